"""A gateway as people start it: a process of its own, reached over sockets."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from websockets.sync.client import ClientConnection, connect

from tests.limits import limit
from tests.prepared import ForkedGateway
from tests.waits import until

__all__ = [
    "DEMO",
    "HOSTILE",
    "INITIALIZE",
    "ROOT",
    "WEAKENED",
    "Answer",
    "Gateway",
    "Turn",
    "call",
    "own_address",
    "prompt",
    "running",
]

WEAKENED = Path(__file__).with_name("weakened.py")
ROOT = Path(__file__).resolve().parents[2]
DEMO = (sys.executable, "-m", "antiphon", "agent", "--engine", "demo")
HOSTILE = (sys.executable, str(Path(__file__).with_name("hostile_agent.py")))
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {}},
}


class Answer(NamedTuple):
    """A response over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """One that runs."""

    def __init__(
        self,
        process: "subprocess.Popen[str] | ForkedGateway",
        place: Mapping[str, Any],
        directory: Path,
        without: str = "nothing",
        view: Path = Path("/"),
    ) -> None:
        self.view = view
        self.process = process
        self.without = without
        """The check that is switched off."""
        self.place = place
        self.directory = directory
        self.is_killed = False
        self.port = int(str(place["url"]).rpartition(":")[2] or 0)

    def kill(self) -> None:
        """End it without a word."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()

    @property
    def token(self) -> str:
        return Path(f"{self.view}/{self.place['token_file']}").read_text(encoding="utf-8").strip()

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def code(self) -> str:
        return str(self.place["page"]).partition("#code=")[2]

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", body: object = None
    ) -> Answer:
        """Send one request. A body becomes JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit())
        try:
            content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            given = {"Host": f"127.0.0.1:{self.port}", **({"Content-Type": "application/json"} if content else {})}
            connection.request(method, path, content, {**given, **(headers or {})})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def open_http(self) -> str:
        """Open a connection over HTTP, and return its id."""
        opened = self.ask("/acp", self.bearer, method="POST", body=INITIALIZE)
        assert opened.status == 200, opened
        return opened.headers["acp-connection-id"]

    def admin(self, **request: object) -> Any:
        """Ask as an admin, and return the result."""
        answer = self.ask("/api/admin", self.bearer, method="POST", body=request)
        assert answer.status == 200, answer
        return answer.json

    def upgrade(self, headers: Mapping[str, str], path: str = "/acp") -> int:
        """Ask for a WebSocket, and return the status of the answer."""
        wanted = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
        return self.ask(path, {**wanted, **headers}).status

    def until_turn_ends(self) -> None:
        """Wait until a turn that was begun has ended."""
        asyncio.run(until(lambda: self.admin(action="status")["turns"] == 0))

    def sign_in(self) -> dict[str, str]:
        """Sign in as a browser does, and return the cookie that it sends from then on."""
        code = self.admin(action="launch")["code"]
        answer = self.ask("/api/login", self.origin, method="POST", body={"code": code})
        assert answer.status == 200, answer
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

    @property
    def origin(self) -> dict[str, str]:
        return {"Origin": f"http://127.0.0.1:{self.port}"}

    def raw(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=limit())

    @contextmanager
    def open_socket(self, headers: Mapping[str, str] | None = None, path: str = "/acp") -> "Iterator[ClientConnection]":
        """A WebSocket, with the owner's token if nothing else is given."""
        given = self.bearer if headers is None else headers
        url = f"ws://127.0.0.1:{self.port}{path}"
        with connect(url, additional_headers=given, proxy=None, open_timeout=limit()) as opened:
            yield opened


def own_address() -> str:
    """An address of this machine that others use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.99", 9))  # nothing is sent
        own = str(probe.getsockname()[0])
    assert not own.startswith("127."), "this machine has no address of its own"
    return own


def call(opened: ClientConnection, id: int, called: str, /, **params: object) -> Any:
    """Send a request, and return the response to it; what comes before is dropped."""
    opened.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": called, "params": params}))
    while True:
        message = json.loads(opened.recv(timeout=limit()))
        if message.get("id") == id and "method" not in message:
            return message


class Turn(NamedTuple):
    """What a turn of the hostile agent brought."""

    results: Any
    """What the agent sent back."""
    asked: list[Any]
    """The permission requests that the client got."""


def prompt(opened: ClientConnection, text: str, cwd: Path, *, option: str | None = "reject", **more: object) -> Turn:
    """Prompt the hostile agent in a new session; each permission request is answered with the option, if there is one."""
    call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
    made = call(opened, 1, "session/new", **{"cwd": str(cwd), "mcpServers": [], **more})
    assert "result" in made, made
    params = {"sessionId": made["result"]["sessionId"], "prompt": [{"type": "text", "text": text}]}
    opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
    texts, asked = [], []
    while True:
        message = json.loads(opened.recv(timeout=limit()))
        if message.get("method") == "session/request_permission":
            asked.append(message["params"])
            if option is None:
                continue
            outcome = {"outcome": {"outcome": "selected", "optionId": option}}
            opened.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": outcome}))
        elif message.get("method") == "session/update":
            texts.append(message["params"]["update"].get("content", {}).get("text", ""))
        elif message.get("id") == 2:
            assert "result" in message, message
            return Turn(json.loads("".join(texts)), asked)


@contextmanager
def running(
    directory: Path,
    *options: str,
    without: str = "nothing",
    env: Mapping[str, str] | None = None,
    agent: Sequence[str] = DEMO,
    prefix: Sequence[str] = (),
    view: Path = Path("/"),
) -> Iterator[Gateway]:
    """Start a gateway with the demo agent or another, and end it with SIGTERM.

    `prefix`: the program that starts it. `view`: the directory under which its files are seen here.
    """
    root = directory / "root"
    root.mkdir(parents=True, exist_ok=True)
    data = directory / "data"
    words = ["serve", "--json", "--port", "0", "--data", str(data), "--root", str(root), *options, "--", *agent]
    given = {**os.environ, "ANTIPHON_STATE_DIR": str(directory / "state"), "PYTHONPATH": str(ROOT), **(env or {})}
    process: subprocess.Popen[str] | ForkedGateway
    if prefix:
        process = subprocess.Popen(
            [*prefix, sys.executable, str(WEAKENED), without, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=given, cwd=directory,
        )  # fmt: skip
    else:
        process = ForkedGateway(without, *words, cwd=directory, env=given)
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.stderr.read())
        gateway = Gateway(process, json.loads(line), directory, without, view)
        yield gateway
        process.send_signal(signal.SIGTERM)
        assert gateway.is_killed or process.wait(limit()) == 0, process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
