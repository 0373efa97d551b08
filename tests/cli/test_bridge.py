"""`antiphon bridge` as people start it: between stdio and an agent, and between sockets and an agent."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os.path import exists
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect as connect_socket
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

import antiphon
from antiphon import v1
from antiphon.cli.arguments import read_token
from antiphon.transports.asgi import AcpEndpoint
from antiphon.transports.process import ProcessTransport, spawn
from antiphon.transports.remote import ConnectionRefused, RemoteAddress
from tests.limits import limit
from tests.transports.serving import serve_demo, served
from tests.waits import until

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = [sys.executable, "-m", "antiphon", "bridge"]
DEMO = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"]
ECHO = [
    sys.executable,
    "-c",
    "import sys\nfor line in sys.stdin.buffer:\n sys.stdout.buffer.write(line); sys.stdout.flush()",
]
"""A peer that sends back what it gets, so that the other end of the bridge is seen."""
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


SCRIPT = """
import json, sys
script, heard = json.load(open(sys.argv[1], encoding="utf-8")), open(sys.argv[2], "w", encoding="utf-8")
for sent in script:
    heard.write(sys.stdin.readline()); heard.flush()
    for line in sent:
        sys.stdout.write(line + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    heard.write(line); heard.flush()
"""


class Between:
    """A bridge with a scripted agent behind it: `sent[n]` is what the agent sends after its nth line."""

    def __init__(self, folder: Path, *sent: list[str]) -> None:
        (folder / "script.json").write_text(json.dumps(sent), encoding="utf-8")
        (folder / "agent.py").write_text(SCRIPT, encoding="utf-8")
        self._received = folder / "heard"
        self.words = [
            *BRIDGE,
            "--",
            sys.executable,
            *(str(folder / name) for name in ("agent.py", "script.json", "heard")),
        ]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ProcessTransport]:
        async with asyncio.timeout(limit(60)):
            transport = await spawn(self.words)
            try:
                yield transport
            finally:
                await transport.close()

    async def received_lines(self, number: int) -> list[str]:
        """The first lines that the agent got."""
        await until(lambda: len(self._lines()) >= number)
        return self._lines()

    def _lines(self) -> list[str]:
        return self._received.read_text(encoding="utf-8").splitlines()


PERMISSION = '{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}'
START = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}'


async def received(transport: ProcessTransport) -> bytes:
    frame = await transport.receive()
    assert isinstance(frame, bytes)
    return frame


# As the fifth seed asks.


async def test_the_discriminator_session_update_arrives_intact_with_every_other_byte(tmp_path: Path) -> None:
    kinds = ("agent_message_chunk", "tool_call", "tool_call_update", "plan", "current_mode_update", "of_tomorrow")
    update = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"KIND","type":"kept","x":1.50}}}'
    updates = [update.replace("KIND", kind) for kind in kinds]
    async with Between(tmp_path, updates).client() as client:
        await client.send(START)
        assert [await received(client) for _ in updates] == [line.encode() for line in updates]


@pytest.mark.parametrize("written", ["7", '"perm_123"', '"7"', "0"])
async def test_a_permission_request_is_forwarded_as_a_request_and_answered_under_the_same_id_and_type(
    tmp_path: Path, written: str
) -> None:
    between = Between(tmp_path, [PERMISSION % written])
    async with between.client() as client:
        await client.send(START)
        request = json.loads(await received(client))
        assert request["method"] == "session/request_permission" and "id" in request
        outcome = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        await client.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": outcome}).encode())
        _, answer = await between.received_lines(2)
        assert json.loads(answer) == {"jsonrpc": "2.0", "id": json.loads(written), "result": outcome}
        assert f'"id": {written}' in answer


async def test_the_ids_of_both_sides_are_kept_apart(tmp_path: Path) -> None:
    """Both sides use 1: each gets the response to its own request."""
    between = Between(tmp_path, [PERMISSION % "1"], ["{}"])
    async with between.client() as client:
        await client.send(START)
        asked = json.loads(await received(client))
        prompt = json.loads((await between.received_lines(1))[0])
        assert prompt["method"] == "session/prompt"
        await client.send(
            json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}).encode()
        )
        answered = json.loads((await between.received_lines(2))[1])
        assert answered["id"] == 1 and answered["result"]["outcome"] == {"outcome": "cancelled"}


async def test_requests_are_forwarded_both_ways_and_each_response_finds_its_request(tmp_path: Path) -> None:
    async with antiphon.connect([*BRIDGE, "--", *DEMO], permission=lambda request: "allow_once") as agent:
        session, other = await agent.new_session(tmp_path), await agent.new_session(tmp_path)
        first, second = await asyncio.gather(session.prompt("/run echo one"), other.prompt("/run echo two"))
        assert first.stop_reason is second.stop_reason is v1.StopReason.END_TURN
        turn = other.prompt("/slow 1000")
        await anext(turn)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        loaded = await agent.load_session(session.id, tmp_path)
        assert loaded.transcript.entries


# Ends, errors and streams.


def run_bridge(*words: str, line: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*BRIDGE, *words], input=line, capture_output=True, check=False, timeout=limit(60))


def test_it_ends_with_its_client_and_with_the_status_of_an_agent_that_ends_first() -> None:
    done = run_bridge("--", *ECHO, line=b'{"jsonrpc":"2.0","method":"a"}\n')
    assert (done.returncode, done.stderr) == (0, b"")
    with subprocess.Popen(
        [*BRIDGE, "--", sys.executable, "-c", "import sys; sys.stderr.write('words'); sys.exit(7)"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.wait(limit(60)) == 7 and b"words" in process.stderr.read()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give one agent"),
        (("--connect", "ws://x/acp", "--", "a"), "give one agent"),
        (("--no-auth", "--", "a"), "for clients of `--listen`"),
        (("--listen", "0.0.0.0:8137", "--", "a"), "no address of this machine alone"),
        (("--listen", "192.168.1.2:1", "--no-auth", "--", "a"), "no address of this machine alone"),
        (("--listen", "99999", "--", "a"), "no address of this machine alone"),
        (("--token-file", "x", "--", "a"), "`--token-file` and `--plaintext` are for `--connect`"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], sentence: str) -> None:
    done = run_bridge(*words)
    assert done.returncode == 2 and sentence in done.stderr.decode()


def test_a_program_and_an_address_that_are_not_there_are_named() -> None:
    done = run_bridge("--", "no-such-agent")
    assert done.returncode == 2 and "`no-such-agent`" in done.stderr.decode()
    done = run_bridge("--connect", "ws://127.0.0.1:9/acp")
    assert done.returncode == 1 and "`ws://127.0.0.1:9/acp` was not reached" in done.stderr.decode()


@pytest.mark.parametrize("profile", ["http", "ws"])
async def test_any_editor_reaches_a_remote_agent_over_stdio(profile: str, tmp_path: Path) -> None:
    async with served(AcpEndpoint(serve_demo)) as host:
        command = [*BRIDGE, "--connect", f"{profile}://{host}/acp"]
        async with antiphon.connect(command, permission=lambda request: "allow_once") as agent:
            session = await agent.new_session(tmp_path)
            assert (await session.prompt("/run echo la")).stop_reason is v1.StopReason.END_TURN


def _is_there(path: str) -> bool:
    return bool(path) and exists(path)


@asynccontextmanager
async def listening(*words: str) -> AsyncIterator[tuple[str, str]]:
    """A bridge that listens: its address, and the path of its token."""
    process = await asyncio.create_subprocess_exec(*BRIDGE, *words, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(limit(60)):
        address = (await process.stderr.readline()).decode().removeprefix("listening on ").strip()
        path = ""
        if address.startswith("ws:") and "--no-auth" not in words and "--client-token-file" not in words:
            path = (await process.stderr.readline()).decode().removeprefix("the token is in ").strip()
        try:
            yield address, path
        finally:
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
            assert not _is_there(path)


async def test_a_local_agent_is_reached_over_both_profiles_with_the_token_that_was_made(tmp_path: Path) -> None:
    async with listening("--listen", "0", "--", *DEMO) as (address, path):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        token = read_token(path)
        for url in (address, address.replace("ws:", "http:")):
            async with antiphon.connect(url, token=token, permission=lambda request: "allow_once") as agent:
                session = await agent.new_session(tmp_path)
                assert (await session.prompt("/run echo la")).stop_reason is v1.StopReason.END_TURN
            with pytest.raises(ConnectionRefused, match="401"):
                await antiphon.connect(url, token="another")
        with pytest.raises(InvalidStatus) as refused:  # its second Host: a proxy may have gone by the first
            await connect_socket(address, additional_headers={"Host": "evil.example", **bearer(token)})
        assert refused.value.response.status_code == 400
        with pytest.raises(InvalidStatus) as refused:
            await connect_socket(address, origin=Origin("https://evil.example"), additional_headers=bearer(token))
        assert refused.value.response.status_code == 403
        async with httpx.AsyncClient(headers=bearer(token)) as client:
            url = address.replace("ws:", "http:")
            assert (await client.delete(url, headers={"Host": "evil.example"})).status_code == 421
            assert (await client.delete(url, headers={"Origin": "https://evil.example"})).status_code == 403
            assert (await client.delete(url)).status_code == 404  # let in: there is no such connection


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_unix_socket_is_for_this_user_and_needs_no_token(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    async with listening("--listen", f"unix:{path}", "--", *DEMO) as (address, _):
        assert address == f"unix://{path}" and stat.S_IMODE(os.stat(path).st_mode) == 0o600
        async with antiphon.connect(RemoteAddress(address)) as agent:
            assert (await agent.new_session(tmp_path)).id
    assert not path.exists()


async def test_several_messages_in_a_frame_and_a_line_end_behind_them_are_understood(tmp_path: Path) -> None:
    async with (
        listening("--listen", "127.0.0.1:0", "--no-auth", "--", *ECHO) as (address, _),
        connect_socket(address) as client,
    ):
        await client.send('{"jsonrpc":"2.0","method":"a"}\n{"jsonrpc":"2.0","method":"b"}\n')
        await client.send('{"jsonrpc":"2.0",\n "method":"c"}')
        assert [json.loads(await client.recv())["method"] for _ in range(3)] == ["a", "b", "c"]
