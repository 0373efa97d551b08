"""What is kept of a joint session: on the disk before it is shown, replayed as it was, written by one process at a time."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.duet.session_list import PAGE
from antiphon.errors import Code, RequestRefused
from antiphon.journal.sqlite import SqliteJournal
from antiphon.protocol import v1
from antiphon.protocol.base import decoder
from antiphon.protocol.v1 import methods as m
from antiphon.store.locks import SessionLock
from antiphon.store.sessions import SessionStore
from antiphon.transcript.transcript import CallEntry, Message, fold
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, state_of

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome

_update: "msgspec.json.Decoder[v1.Update]" = decoder(v1.Update)  # type: ignore[arg-type]  # a union is a type to msgspec


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    state_of(monkeypatch.setenv, tmp_path)
    return tmp_path / "state"


@pytest.fixture
def resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_AUTO_RESUME", "true")


async def work(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
    """A bit of everything."""
    await session.send(
        v1.AgentThoughtChunk(v1.TextBlock("hm"), f"t{turn.text}"),
        *(v1.AgentMessageChunk(v1.TextBlock(word), f"m{turn.text}") for word in ("la ", "li ", "lu")),
        v1.ToolCall(f"c{turn.text}", "make"),
        v1.ToolCallUpdate(f"c{turn.text}", status=v1.ToolStatus.COMPLETED),
    )
    return None


def lines(editor: Editor, *prompts: str) -> list[tuple[str, str]]:
    """What a screen shows, with what was typed before everything if it was typed there."""
    updates = [_update.decode(msgspec.json.encode(update)) for update in editor.updates()]
    entries = fold(updates).entries
    shown = [(type(each).__name__, each.text) for each in entries if isinstance(each, Message)]
    return [*(("Message", prompt) for prompt in prompts), *shown] + [
        ("call", f"{each.title} {each.status.value}") for each in entries if isinstance(each, CallEntry)
    ]


async def load(editor: Editor, session: str, cwd: str = "/w") -> v1.LoadSessionResult:
    return await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(session, cwd, []))


async def listed(editor: Editor) -> list[v1.SessionInfo]:
    rows: list[v1.SessionInfo] = []
    query = v1.ListSessions()
    while True:
        page = await editor.connection.request(m.LIST_SESSIONS, query)
        rows += page.sessions
        if page.next_cursor is None:
            return rows
        query = v1.ListSessions(cursor=page.next_cursor)


async def test_whatever_is_shown_is_on_the_disk_by_then(state: Path) -> None:
    def look(direction: str, _: float, frame: bytes) -> None:
        message = msgspec.json.decode(frame)
        kind = message.get("params", {}).get("update", {}).get("sessionUpdate", "") if direction == "in" else ""
        if "chunk" in kind or "tool" in kind:
            shown.append(kind)
            with closing(sqlite3.connect(state / "antiphon.sqlite3")) as connection:
                rows = connection.execute("SELECT data FROM history ORDER BY session, seq").fetchall()
            kept.append(sum(b'"event":"shown"' in row[0] for row in rows))

    shown: list[str] = []
    kept: list[int] = []
    async with playing(agent_over(FakeEngine("alto", work)), FULL) as editor:
        editor.connection.tap(look)
        await editor.prompt(await editor.open(), "1")
    assert len(shown) == 6 and all(count >= number for number, count in enumerate(kept, 1))


async def test_another_process_replays_it_and_goes_on() -> None:
    alto, bass = FakeEngine("alto", work), FakeEngine("bass")
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "1")
        await editor.prompt(session, "/bass 2")
        before = lines(editor)
    async with playing(agent_over(alto, bass), FULL) as editor:
        await load(editor, session)
        again = lines(editor)
        await editor.prompt(session, "3")
    assert [line for line in again if line[1] not in ("1", "/bass 2")] == before
    assert ("Message", "1") in again and ("Message", "/bass 2") in again
    assert bass.given[-1].endswith("3"), "the route is kept, too"
    assert len(editor.updates("agent_message_chunk")) < 6, "pieces of one message come as one"


async def test_a_load_reads_the_history_once_whatever_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alto, bass = FakeEngine("alto", work), FakeEngine("bass")
    async with playing(agent_over(alto, bass), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "/duet 1")
    for engine in (alto, bass):
        engine.kept[f"{engine.name}-1"].append(v1.AgentMessageChunk(v1.TextBlock("in a terminal"), engine.name))
    begun: list[str] = []
    read, pages = SqliteJournal.read, SessionStore.pages

    def counted_read(journal: SqliteJournal, id: str, after: int = 0, limit: int = 1000) -> Any:
        if after == 0:
            begun.append(id)
        return read(journal, id, after, limit)

    def counted_pages(store: SessionStore, id: str, **more: Any) -> Any:
        begun.append(id)
        return pages(store, id, **more)

    monkeypatch.setattr(SqliteJournal, "read", counted_read)
    monkeypatch.setattr(SessionStore, "pages", counted_pages)
    async with playing(agent_over(alto, bass), FULL) as editor:
        await load(editor, session)
        assert [text for _, text in lines(editor)].count("in a terminal") == 2
    assert begun == [session]


def test_the_mode_of_a_session_is_kept_in_one_field() -> None:
    counted = subprocess.run(
        [sys.executable, "tools/mode_fields.py"], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (counted.stdout, counted.returncode) == ("1 field: JointState.mode\n", 0), counted.stderr


async def test_what_an_engine_did_elsewhere_comes_after_what_we_know() -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto, FakeEngine("bass")), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "here")
    alto.kept["alto-1"] += [
        v1.UserMessageChunk(v1.TextBlock("in a terminal")),
        v1.AgentMessageChunk(v1.TextBlock("alto: in a terminal"), "m2"),
    ]
    for _ in range(2):  # it is ours from then on, and sent once
        async with playing(agent_over(alto, FakeEngine("bass")), FULL) as editor:
            await load(editor, session)
            sent = [text for _, text in lines(editor)]
            assert sent == ["here", "alto: here", "in a terminal", "alto: in a terminal"]


async def test_an_engine_that_forgot_its_session_gets_a_summary_of_all_of_it() -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "remember the river")
    alto.kept.clear()
    async with playing(agent_over(alto), FULL) as editor:
        await load(editor, session)
        await editor.prompt(session, "what was it?")
    assert "remember the river" in alto.given[-1] and alto.given[-1].endswith("what was it?")


async def test_resuming_is_silent() -> None:
    alto = FakeEngine("alto", work)
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "1")
    async with playing(agent_over(alto), FULL) as editor:
        await editor.connection.request(m.RESUME_SESSION, v1.ResumeSession(session, "/w"))
        assert lines(editor) == []
        await editor.prompt(session, "2")
        assert len(lines(editor)) == 2


async def test_a_session_that_is_open_elsewhere_is_an_error(state: Path) -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
    with SessionLock.take(state, session, "Another editor"):
        async with playing(agent_over(alto), FULL) as editor:
            with pytest.raises(RequestRefused, match="Another editor") as refusal:
                await load(editor, session)
            assert refusal.value.code == Code.INVALID_REQUEST
    async with playing(agent_over(alto), FULL) as editor:
        await load(editor, session)


async def test_a_new_session_goes_on_where_the_last_one_ended_with_a_notice(resumes: None) -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
        assert await editor.open() != session, "it is open already"
    async with playing(agent_over(alto), FULL, name="zed") as editor:
        assert await editor.open() == session
        await editor.until("notice")
        order = editor.order
        assert order.index("answer:session/new") < order.index("user_message_chunk") < order.index("notice")
        assert await editor.open("/elsewhere") != session
        await editor.prompt(session, "li")
    assert [each.splitlines()[-1] for each in alto.given] == ["la", "li"]


async def test_clearing_begins_afresh_and_loses_nothing(resumes: None) -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "a song about rivers")
        await editor.prompt(session, "/clear")
        await editor.prompt(session, "a song about hills")
        rows = await listed(editor)
    assert alto.given == ["a song about rivers", "a song about hills"] and len(alto.sessions) == 2
    assert {row.title for row in rows} == {"a song about rivers", "a song about hills"}
    async with playing(agent_over(alto), FULL) as editor:
        await load(editor, session)
        assert "rivers" not in str(lines(editor)) and "hills" in str(lines(editor))
        [old] = [row.session_id for row in rows if row.title == "a song about rivers"]
        await load(editor, old)
        assert "rivers" in str(lines(editor))


async def test_a_fork_has_the_history_and_goes_on_apart() -> None:
    alto = FakeEngine("alto")
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
        fork = await editor.connection.request(m.FORK_SESSION, v1.ForkSession(session, "/w"))
        await editor.prompt(fork.session_id, "li")
        await editor.prompt(session, "lu")
    async with playing(agent_over(alto), FULL) as editor:
        await load(editor, fork.session_id)
        assert [text for _, text in lines(editor)] == ["la", "alto: la", "li", "alto: li"]


async def test_the_list_has_one_row_per_session_and_those_of_the_engines_and_turns_its_pages() -> None:
    alto = FakeEngine("alto")
    for number in range(PAGE + 20):
        alto.kept[f"terminal-{number}"] = [v1.UserMessageChunk(v1.TextBlock("hi"))]
    async with playing(agent_over(alto, FakeEngine("bass")), FULL) as editor:
        sessions = []
        for number in range(3):
            sessions.append(await editor.open())
            await editor.prompt(sessions[-1], f"song {number}")
        rows = await listed(editor)
    ids = [row.session_id for row in rows]
    assert len(ids) == len(set(ids)) == PAGE + 23
    assert ids[:3] == sessions[::-1] and "alto-1" not in ids


async def test_a_session_of_a_terminal_becomes_ours_when_it_is_opened() -> None:
    alto = FakeEngine("alto")
    alto.kept["terminal-1"] = [
        v1.UserMessageChunk(v1.TextBlock("begun elsewhere")),
        v1.AgentMessageChunk(v1.TextBlock("so it was"), "m0"),
    ]
    async with playing(agent_over(FakeEngine("bass"), alto), FULL) as editor:
        await load(editor, "terminal-1")
        assert [text for _, text in lines(editor)] == ["begun elsewhere", "so it was"]
        await editor.prompt("terminal-1", "and on")
        assert [row.session_id for row in await listed(editor)] == ["terminal-1"]
    assert alto.given == ["and on"], "the engine that began it goes on"


async def test_deleting_forgets_ours_and_the_engines_own() -> None:
    alto = FakeEngine("alto")
    alto.kept["terminal-1"] = []
    async with playing(agent_over(alto), FULL) as editor:
        session = await editor.open()
        await editor.prompt(session, "la")
        for id in (session, "terminal-1"):
            await editor.connection.request(m.DELETE_SESSION, v1.DeleteSession(id))
        assert await listed(editor) == [] and alto.kept == {}
        with pytest.raises(RequestRefused) as refusal:
            await load(editor, session)
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND


async def test_an_opening_that_fails_leaves_nothing_open(state: Path) -> None:
    async def refuse(*_: Any) -> Any:
        raise asyncio.CancelledError

    alto = FakeEngine("alto")
    agent = agent_over(alto, FakeEngine("bass"))
    alto.new = refuse  # type: ignore[method-assign, assignment]
    async with playing(agent, FULL) as editor:
        with pytest.raises(RequestRefused):
            await editor.open()
        assert list((state / "locks").glob("*.lock")) == []


async def test_a_session_without_a_prompt_leaves_no_trace(state: Path) -> None:
    async with playing(agent_over(FakeEngine("alto")), FULL) as editor:
        await editor.open()
        assert await listed(editor) == []
    assert list((state / "locks").glob("*.lock")) == []
