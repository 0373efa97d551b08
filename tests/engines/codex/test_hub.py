"""What all sessions share: which session receives a message, which are forgotten, and what happens to a thread that none wants."""

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from antiphon.agent.session import AgentSession, SessionHost
from antiphon.catalogue.programs import CODEX, FoundProgram
from antiphon.engines.codex import wire
from antiphon.engines.codex.hub import CodexHub
from antiphon.engines.codex.login import kept_login
from antiphon.engines.codex.rollout import UnseenItems
from antiphon.engines.codex.server import CodexServer, server_ended
from antiphon.engines.codex.settings import CodexSettings
from antiphon.engines.codex.stored_threads import list_threads, turns_of
from antiphon.engines.codex.thread import OpenThread
from antiphon.engines.codex.translate.translator import CodexTranslator
from antiphon.errors import ConnectionClosed, ProcessDied, RequestError
from antiphon.protocol import v1
from tests.engines.codex.versions import PYPI, program

LATE = """\
import json, sys
late = None
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    open(sys.argv[1], "a").write(f"{method}\\n")
    if method == "thread/start":
        late = asked["id"]
        print(json.dumps({"method": "configWarning", "params": {"summary": "wait"}}), flush=True)
    elif "id" in asked:
        if method == "config/read":
            print(json.dumps({"id": late, "result": {"thread": {"id": "t1", "turns": []}}}))
        result = {"data": [{"id": "m", "createdAt": 1e300}], "nextCursor": "again"}
        print(json.dumps({"id": asked["id"], "result": result}), flush=True)
"""
"""A server that answers `thread/start` only when it is asked for its configuration, and whose pages never end."""

WARNING = wire.decode(b'{"method":"configWarning","params":{"summary":"a key that nobody knows"}}')


class RecordingSession:
    """A session that records what it receives, or fails at it."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.received: list[str] = []
        self.notified = asyncio.Event()

    def expect(self) -> None:
        pass

    async def receive(self, shown: wire.ServerNotification) -> None:
        self._note(shown.method)

    def receive_request(self, server: CodexServer, question: wire.ServerRequest) -> None:
        self._note(question.method)

    async def lost(self, server: CodexServer) -> None:
        self._note("lost")

    def displaced(self) -> None:
        self._note("displaced")

    def _note(self, what: str) -> None:
        if self.fails:
            raise ConnectionClosed("the client is gone")
        self.received.append(what)
        self.notified.set()


def hub_of(path: str = "codex") -> CodexHub:
    return CodexHub(FoundProgram(CODEX, path, cast("Any", "path")))


@asynccontextmanager
async def late_server(tmp_path: Path) -> AsyncIterator[tuple[CodexHub, Path]]:
    program, notes, script = tmp_path / "codex", tmp_path / "notes.txt", tmp_path / "late.py"
    script.write_text(LATE, encoding="utf-8")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "{notes}"\n', encoding="utf-8")
    program.chmod(0o755)
    hub = hub_of(str(program))
    try:
        yield hub, notes
    finally:
        await hub.close()


def thread_in(hub: CodexHub, listener: RecordingSession) -> OpenThread:
    session = cast(
        "AgentSession", SimpleNamespace(id="s", cwd="/w", directories=(), mcp_servers=(), meta={}, host=SessionHost())
    )
    return OpenThread(session, hub, CodexSettings(session), UnseenItems(), listener)


async def test_a_session_that_fails_does_not_keep_notifications_from_the_others() -> None:
    hub, listeners = hub_of(), [RecordingSession(), RecordingSession(fails=True), RecordingSession()]
    for number, listener in enumerate(listeners):
        hub.listen(str(number), listener)
    server = cast("CodexServer", None)
    await hub.receive(server, cast("wire.ServerNotification", WARNING))
    await hub.ended(server)
    assert [listener.received for listener in listeners] == [["configWarning", "lost"], [], ["configWarning", "lost"]]
    assert hub.early_notifications() == [WARNING]


async def test_only_the_listener_of_a_thread_can_give_it_up() -> None:
    hub, first, second = hub_of(), RecordingSession(), RecordingSession()
    hub.listen("t", first)
    hub.listen("t", second)
    assert first.received == ["displaced"] and second.received == []
    assert not hub.forget("t", first) and hub.listener_of("t") is second
    assert hub.forget("t", second) and hub.listener_of("t") is None


async def test_the_sub_agents_of_a_session_are_forgotten_with_it_down_to_the_last() -> None:
    hub, listener = hub_of(), RecordingSession()
    hub.listen("t", listener)
    server = cast("CodexServer", SimpleNamespace(refuse=lambda id, *_: listener.received.append(f"refused {id}")))
    for child, parent in (("c", "t"), ("g", "c")):
        raw = msgspec.json.encode({
            "method": "thread/started", "params": {"thread": {"id": child, "parentThreadId": parent, "turns": []}}
        })  # fmt: skip
        await hub.receive(server, cast("wire.ServerNotification", wire.decode(raw)))
    question = (
        b'{"id":1,"method":"item/fileChange/requestApproval","params":{"threadId":"g","turnId":"u","itemId":"i"}}'
    )
    await hub.receive(server, cast("wire.ServerRequest", wire.decode(question)))
    hub.forget("t", listener)
    hub.listen("t", listener)
    await hub.receive(server, cast("wire.ServerRequest", wire.decode(question)))
    assert listener.received == ["item/fileChange/requestApproval", "refused 1"]


async def test_a_thread_that_is_opened_for_a_cancelled_caller_is_closed_again(tmp_path: Path) -> None:
    async with late_server(tmp_path) as (hub, notes):
        other = RecordingSession()
        hub.listen("other", other)
        opening = asyncio.ensure_future(thread_in(hub, RecordingSession()).start())
        async with asyncio.timeout(10):
            await other.notified.wait()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            server = await hub.ready()
            await server.request("config/read", {})
            await server.request("account/read", {})
        assert notes.read_text(encoding="utf-8").split()[-3:] == ["config/read", "thread/unsubscribe", "account/read"]
        assert hub.listener_of("t1") is None


async def test_pages_that_repeat_come_to_an_end_and_times_that_are_none_are_left_out(tmp_path: Path) -> None:
    async with late_server(tmp_path) as (hub, _):
        async with asyncio.timeout(10):
            assert len(await hub.models()) == 2
            assert len([page async for page in turns_of(await hub.ready(), "t")]) == 2
            [listed] = (await list_threads(hub, v1.ListSessions())).sessions
        assert listed.updated_at is None


async def test_the_end_of_a_server_is_raised_as_a_new_error_each_time_and_without_colours(tmp_path: Path) -> None:
    async with late_server(tmp_path) as (hub, _):
        server = await hub.ready()
        listener = RecordingSession()
        hub.listen("t", listener)
        await server.close()
        async with asyncio.timeout(10):
            await listener.notified.wait()
        errors = []
        for _ in range(2):
            with pytest.raises(ConnectionClosed) as caught:
                await server.request("account/read")
            errors.append(caught.value)
        assert errors[0] is not errors[1] and str(errors[0]) == str(errors[1])
    assert "last words" in str(server_ended(ProcessDied("codex", 1, "last words"))) and "\x1b" not in str(
        server_ended(ProcessDied("codex", 1, "\x1b[2m2026\x1b[0m \x1b[31mERROR\x1b[0m no"))
    )


def test_a_login_that_is_kept_anew_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert kept_login() is None
    (tmp_path / "auth.json").write_text("{}", encoding="utf-8")
    before = kept_login()
    assert before is not None and kept_login() == before
    (tmp_path / "auth.json").write_text('{"a": 1}', encoding="utf-8")
    assert kept_login() != before


RACED = """\
import json, os, sys
starts = sys.argv[1]
open(starts, "a").write("x")
if os.path.getsize(starts) <= int(sys.argv[2]):
    sys.exit(sys.argv[3])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"id": asked["id"], "result": {}}), flush=True)
"""
"""A server that ends so many times before it works, with these words."""

BUSY = "Error: failed to initialize sqlite state runtime under /home/x/.codex: failed to initialize state runtime"


@asynccontextmanager
async def raced_server(tmp_path: Path, failures: int, words: str) -> AsyncIterator[tuple[CodexHub, Path]]:
    command, starts, script = tmp_path / "codex", tmp_path / "starts", tmp_path / "raced.py"
    script.write_text(RACED, encoding="utf-8")
    line = shlex.join([sys.executable, str(script), str(starts), str(failures), words])
    command.write_text(f"#!/bin/sh\nexec {line}\n", encoding="utf-8")
    command.chmod(0o755)
    hub = hub_of(str(command))
    try:
        yield hub, starts
    finally:
        await hub.close()


@pytest.mark.parametrize("words", [BUSY, f"{BUSY}\nStack backtrace:\n" + "  0: <unknown>\n" * 20])
async def test_a_server_that_another_one_was_in_the_way_of_is_started_again(tmp_path: Path, words: str) -> None:
    async with raced_server(tmp_path, 2, words) as (hub, starts):
        server = await hub.ready()
        assert server.end is None and starts.read_text(encoding="utf-8") == "xxx"


async def test_a_server_that_does_not_start_for_another_reason_is_not_started_again(tmp_path: Path) -> None:
    async with raced_server(tmp_path, 99, "Error: a key that nobody knows") as (hub, starts):
        with pytest.raises(RequestError, match="a key that nobody knows"):
            await hub.ready()
        assert starts.read_text(encoding="utf-8") == "x"


def test_a_warning_about_the_machine_is_sent_once_and_others_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path))
    text = "could not find bubblewrap on PATH; a bundled one is used"
    sandbox = [
        wire.ServerNotification("warning", wire.WarningNotification(message=text)),
        wire.ServerNotification("configWarning", wire.ConfigWarning(summary=text)),
    ]
    assert [hub_of().sent_before(each) for each in sandbox * 2] == [False, True, True, True]
    assert (
        hub_of().sent_before(
            wire.ServerNotification("warning", wire.WarningNotification(message=f"{text}, and another thing"))
        )
        is False
    )
    assert [hub_of().sent_before(cast("wire.ServerNotification", WARNING)) for _ in range(2)] == [False, False]


@pytest.mark.slow
def test_every_notification_of_the_installed_codex_is_known_by_name(tmp_path: Path) -> None:
    codex = program(PYPI)
    assert codex is not None
    words = [str(codex), "app-server", "generate-json-schema", "--out", str(tmp_path / "schema")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path)}
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=60)
    schema = msgspec.json.decode((tmp_path / "schema" / "ServerNotification.json").read_bytes())
    names = [each["properties"]["method"]["enum"][0] for each in schema["oneOf"]]
    translator = CodexTranslator("/w")
    assert len(names) > 50 and [name for name in names if not translator.handles(name)] == []


@pytest.mark.slow
async def test_two_that_start_at_once_in_a_new_home_both_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codex = program(PYPI)
    assert codex is not None
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    for number in range(3):
        home = tmp_path / f"home-{number}"
        (home / ".codex").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
        hubs = [hub_of(str(codex)) for _ in range(3)]
        try:
            servers = await asyncio.gather(*(hub.ready() for hub in hubs))
            assert all(server.end is None for server in servers)
        finally:
            await asyncio.gather(*(hub.close() for hub in hubs))
