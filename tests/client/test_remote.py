"""Remote agents that go away: what is tried again and when, what never is, and what an error says about it."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import antiphon
from antiphon import v1
from antiphon.client import sync
from antiphon.client.link import Retry, Tries
from antiphon.errors import AcpError, ConnectionClosed, LocalProtocolError, RequestRefused, RequestTimeout, TurnLost
from antiphon.transports.asgi import AcpEndpoint, Admission, Refusal
from antiphon.transports.asgi.server import listen
from antiphon.transports.base import JITTER, Sink, Transport
from antiphon.transports.remote import ConnectionRefused, RemoteAddress, seconds_of
from tests.limits import limit
from tests.rows import each_row
from tests.transports.serving import serve_demo, served

PROFILES = ("http", "ws")
SOON = Retry((0.01, 0.01, 0.01, 0.01))


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


@each_row(
    "url, refused",
    [
        ("ws://host/acp", True),
        ("http://host:8321/acp", True),
        ("ws://192.168.1.2/acp", True),
        ("ws://127.0.0.1.evil.example/acp", True),
        ("ws://localhost.evil.example/acp", True),
        ("ws://[fe80::1]/acp", True),
        ("wss://host/acp", False),
        ("https://host/acp", False),
        ("unix:///run/agent.sock", False),
        ("ws://localhost:8321/acp", False),
        ("http://127.0.0.1:8321/acp", False),
        ("ws://127.1.2.3/acp", False),
        ("ws://[::1]:8321/acp", False),
    ],
)
def test_a_token_is_not_sent_to_another_machine_without_tls_unless_that_is_allowed(url: str, refused: bool) -> None:
    RemoteAddress(url)
    for given in ({"token": "t"}, {"headers": {"authorization": "Bearer t"}}):
        access: dict[str, Any] = given
        RemoteAddress(url, plaintext=True, **access)
        if not refused:
            RemoteAddress(url, **access)
            continue
        with pytest.raises(LocalProtocolError, match="could read the token") as error:
            RemoteAddress(url, **access)
        assert "--plaintext" in error.value.hint


@each_row(
    "words", [["run", "--agent"], ["agent", "--connect"], ["bridge", "--connect"], ["check", "--cwd", "/", "--url"]]
)
def test_a_command_refuses_to_send_a_token_without_tls(words: list[str]) -> None:
    command = [sys.executable, "-m", "antiphon", *words, "ws://192.0.2.1/acp"]
    more = ["hello"] if words[0] == "run" else []
    env = {**os.environ, "ANTIPHON_TOKEN": "secret"}
    done = subprocess.run([*command, *more], input=b"", capture_output=True, env=env, check=False, timeout=limit())
    assert done.returncode != 0 and b"could read the token" in done.stderr and b"--plaintext" in done.stderr


class Counted:
    """Serves the demo agent; the connections whose number `ends` names are cut when a request of that method arrives."""

    def __init__(self, method: str, ends: Callable[[int], bool]) -> None:
        self.opened = 0
        self.seen = 0
        self._method = b'"%b"' % method.encode()
        self._ends = ends

    async def serve(self, transport: Transport) -> None:
        self.opened += 1
        ends = self._ends(self.opened)
        attach = transport.attach

        def attach_counting(sink: Any) -> None:
            received = sink.block_received

            def block_received(block: bytes) -> None:
                if self._method in bytes(block):
                    self.seen += 1
                    if ends:
                        serving.cancel()
                        return
                received(block)

            attach(cast("Sink", SimpleNamespace(block_received=block_received, connection_lost=sink.connection_lost)))

        transport.attach = attach_counting  # type: ignore[method-assign]
        serving = asyncio.ensure_future(serve_demo(transport))
        await asyncio.wait([serving])


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_request_whose_socket_is_lost_is_sent_again_five_times_in_all(profile: str, tmp_path: Path) -> None:
    counted = Counted("session/new", lambda number: number < 5)
    async with (
        asyncio.timeout(limit(60)),
        served(AcpEndpoint(counted.serve)) as host,
        antiphon.connect(f"{profile}://{host}/acp", retry=SOON) as agent,
    ):
        assert (await agent.new_session(tmp_path)).id
        assert (counted.opened, counted.seen) == (5, 5)


async def test_after_the_fifth_time_the_error_says_that_it_can_be_tried_again(tmp_path: Path) -> None:
    counted = Counted("session/new", lambda number: True)
    async with asyncio.timeout(limit(60)), served(AcpEndpoint(counted.serve)) as host:
        async with antiphon.connect(f"ws://{host}/acp", retry=SOON) as agent:
            with pytest.raises(ConnectionClosed) as raised:
                await agent.new_session(tmp_path)
        assert counted.seen == 5
        assert (raised.value.recoverable, raised.value.action) == (True, "reconnect")


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_prompt_that_has_begun_is_never_sent_again(profile: str, tmp_path: Path) -> None:
    counted = Counted("session/prompt", lambda number: True)
    async with (
        asyncio.timeout(limit(60)),
        served(AcpEndpoint(counted.serve)) as host,
        antiphon.connect(f"{profile}://{host}/acp", retry=SOON) as agent,
    ):
        session = await agent.new_session(tmp_path)
        with pytest.raises(TurnLost) as raised:
            await session.prompt("hello")
        assert counted.seen == 1 and raised.value.recoverable is None


async def test_a_server_that_restarts_is_found_again_at_its_address(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        name = listening.getsockname()
        async with listen(AcpEndpoint(serve_demo), listening):
            agent = await antiphon.connect(f"ws://127.0.0.1:{name[1]}/acp", retry=Retry((0.05,) * 100))
            session = await agent.new_session(tmp_path)
            await session.prompt("hello")
    opening = asyncio.create_task(agent.load_session(session.id, tmp_path))
    await asyncio.wait([opening], timeout=0.2)  # it is refused meanwhile
    assert not opening.done()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(name)
        async with listen(AcpEndpoint(serve_demo), again):
            assert (await opening).transcript.entries
            await agent.close()


async def test_a_server_that_does_not_let_us_in_any_more_is_not_asked_again(tmp_path: Path) -> None:
    asked = 0

    async def admit(scope: Any) -> Admission | Refusal:
        nonlocal asked
        asked += 1
        return Admission(serve_demo) if asked == 1 else Refusal(403, "no longer")

    async with (
        served(AcpEndpoint(admit=admit)) as host,
        antiphon.connect(f"ws://{host}/acp", retry=SOON) as agent,
    ):
        await agent._link.kill(agent._link.connection)
        with pytest.raises(ConnectionRefused, match="403"):
            await agent.new_session(tmp_path)
    assert asked == 2


def test_the_delays_are_those_of_the_protocol_guide_and_a_remote_agent_gets_some_jitter() -> None:
    assert tuple(Retry().delays) == (1, 2, 4, 8) and 0 < JITTER < 1


async def test_delays_before_a_remote_agent_differ_and_grow_by_no_more_than_the_jitter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def unused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("antiphon.client.link.asyncio.sleep", sleep)
    for _ in range(10):
        tries = Tries(Retry(), can_reconnect=lambda: True, sign_in=unused, reconnect=unused, jitter=JITTER)
        for _ in range(4):
            await tries.another(ConnectionClosed("lost"))
        with pytest.raises(ConnectionClosed):
            await tries.another(ConnectionClosed("lost"))
    assert len(set(waited)) == len(waited) == 40
    assert all(delay <= found <= delay * (1 + JITTER) for delay, found in zip([1, 2, 4, 8] * 10, waited, strict=True))
    busy = ConnectionRefused("busy", status=503)
    busy.retry_after = 30
    await Tries(Retry(), can_reconnect=lambda: True, sign_in=unused, reconnect=unused).another(busy)
    assert waited[-1] == 30


@each_row(
    ("error", "recoverable", "action"),
    [
        (RequestRefused(-32700, "Parse error"), False, "fix the JSON"),
        (RequestRefused(-32600, "Invalid request"), False, "fix the structure"),
        (RequestRefused(-32601, "Method not found"), False, "check the method"),
        (RequestRefused(-32602, "Invalid params"), False, "fix the params"),
        (RequestRefused(-32603, "Internal error"), None, "investigate"),
        (RequestRefused(-32000, "Connection closed"), True, "reconnect"),
        (RequestRefused(-32000, "Authentication required"), True, "sign in"),
        (RequestRefused(-32001, "Request timeout"), True, "try again later"),
        (RequestRefused(-32001, "Unsupported protocol version"), False, "use another version"),
        (RequestRefused(-32002, "Permission denied"), False, "the user rejected it"),
        (RequestRefused(-32003, "Session expired"), True, "open a new session"),
        (RequestRefused(-32050, "Odd"), False, ""),
        (RequestRefused(-32050, "Odd", {"recoverable": True, "action": "wait"}), True, "wait"),
        (RequestTimeout("session/new", 1), True, "try again later"),
        (ConnectionRefused("no", status=503), True, "reconnect"),
        (ConnectionRefused("no", status=401), False, ""),
        (AcpError("no"), False, ""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_error_has_whether_to_try_again_and_what_to_do(
    error: AcpError, recoverable: bool | None, action: str
) -> None:
    assert (error.recoverable, error.action) == (recoverable, action)


@pytest.mark.parametrize(
    ("header", "seconds"), [(None, 0), ("5", 5), ("0", 0), ("86400", 60), ("9" * 400, 60), ("-1", 0), ("soon", 0)]
)
@pytest.mark.parametrize("scheme", PROFILES)
async def test_a_server_that_wants_to_be_left_alone_is_for_a_minute_at_most(
    scheme: str, header: str | None, seconds: float
) -> None:
    async def admit(scope: Any) -> Refusal:
        return Refusal(503, "later", () if header is None else ((b"retry-after", header.encode()),))

    async with served(AcpEndpoint(admit=admit)) as host:
        with pytest.raises(ConnectionRefused) as refused:
            async with antiphon.connect(f"{scheme}://{host}/acp", retry=Retry(())):
                pass
    assert refused.value.retry_after == seconds


def test_a_time_at_which_to_come_back_is_understood_too() -> None:
    assert 20 < seconds_of(format_datetime(datetime.now(UTC) + timedelta(seconds=30))) <= 30
    assert seconds_of(format_datetime(datetime.now(UTC) - timedelta(days=1))) == 0


async def test_a_script_without_async_reaches_a_remote_agent_too(tmp_path: Path) -> None:
    def talk(url: str) -> v1.StopReason:
        with sync.connect(url, token="t") as agent:
            return v1.StopReason(agent.new_session(tmp_path).prompt("hello").result.stop_reason)

    async with served(AcpEndpoint(serve_demo)) as host:
        for profile in PROFILES:
            found = await asyncio.to_thread(talk, f"{profile}://{host}/acp")
            assert found is v1.StopReason.END_TURN
