"""The list of sessions over engines that list in odd ways: it ends, nothing comes twice, nothing is lost, and bad cursors are refused."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.agent.session import AgentSession
from antiphon.duet import session_list as listing
from antiphon.duet.history.writer import OURS
from antiphon.duet.session_list import PAGE, UNIQUE, has_session, normal_directory
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, state_of

Turn = Callable[[v1.ListSessions], v1.ListSessionsResult]


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


class Lister(FakeEngine):
    """Returns the given pages."""

    def __init__(self, turn: Turn) -> None:
        super().__init__("alto")
        self.turn = turn
        self.asked: list[v1.ListSessions] = []

    def list(self, query: v1.ListSessions) -> v1.ListSessionsResult:  # type: ignore[override]  # a page is an answer too
        self.asked.append(query)
        return self.turn(query)


def row(id: str, minute: int | None = None) -> v1.SessionInfo:
    """A session that was used so many minutes before noon."""
    if minute is None:
        return v1.SessionInfo(id, "/w")
    return v1.SessionInfo(id, "/w", updated_at=f"2026-01-01T{11 - minute // 60:02}:{59 - minute % 60:02}:00Z")


def many(count: int) -> list[v1.SessionInfo]:
    return [row(f"c{number:03}", number) for number in range(count)]


def by_offset(rows: list[v1.SessionInfo], size: int) -> Turn:
    """As many agents do it: the cursor is how many rows there were before."""

    def turn(query: v1.ListSessions) -> v1.ListSessionsResult:
        start = int(query.cursor or 0)
        return v1.ListSessionsResult(
            rows[start : start + size], str(start + size) if start + size < len(rows) else None
        )

    return turn


async def page(editor: Editor, cursor: str | None = None, cwd: str | None = None) -> v1.ListSessionsResult:
    return await editor.connection.request(m.LIST_SESSIONS, v1.ListSessions(cwd, cursor))


def ids(*pages: v1.ListSessionsResult) -> list[str]:
    return [each.session_id for page in pages for each in page.sessions]


async def all_pages(editor: Editor, first: v1.ListSessionsResult) -> list[str]:
    """Those of a page and of all that come after it."""
    pages = [first]
    while pages[-1].next_cursor is not None:
        pages.append(await page(editor, pages[-1].next_cursor))
    return ids(*pages)


def circling(query: v1.ListSessions) -> v1.ListSessionsResult:
    return v1.ListSessionsResult([row(f"of {query.cursor}")], "b" if query.cursor == "a" else "a")


def climbing(query: v1.ListSessions) -> v1.ListSessionsResult:
    return v1.ListSessionsResult([], str(int(query.cursor or 0) + 1))


@pytest.mark.parametrize(
    ("turn", "found"),
    [
        (lambda query: v1.ListSessionsResult([row("one")], ""), ["one"]),
        (lambda query: v1.ListSessionsResult([row("one")], "again"), ["one"]),
        (circling, ["of None", "of a", "of b"]),
        (climbing, []),
    ],
    ids=["an empty cursor", "the same cursor", "a circle", "always another"],
)
async def test_a_list_of_an_engine_without_a_last_page_ends(
    turn: Turn, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_PAGES", 20)
    alto = Lister(turn)
    async with playing(agent_over(alto), FULL) as editor:
        assert await all_pages(editor, await page(editor)) == found
        assert len(alto.asked) <= 21
        assert not await has_session(alto, "nobody")
        with pytest.raises(RequestRefused) as refusal:
            await editor.connection.request(m.LOAD_SESSION, v1.LoadSession("nobody", "/w", []))
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND


async def test_a_circle_that_is_longer_than_a_page_of_ours_ends_too() -> None:
    def turn(query: v1.ListSessions) -> v1.ListSessionsResult:
        which = query.cursor or "a"
        return v1.ListSessionsResult([row(f"{which}{n}") for n in range(PAGE)], {"a": "b", "b": "c", "c": "b"}[which])

    async with playing(agent_over(Lister(turn)), FULL) as editor:
        found = await all_pages(editor, await page(editor))
    assert len(found) == len(set(found)) == 3 * PAGE


@pytest.mark.parametrize("size", [1000, PAGE, 30, 7])
async def test_what_comes_goes_and_moves_between_two_pages_makes_no_row_come_twice_or_be_lost(size: int) -> None:
    rows = many(170)
    async with playing(agent_over(Lister(by_offset(rows, size))), FULL) as editor:
        first = await page(editor)
        assert ids(first) == [f"c{number:03}" for number in range(PAGE)]
        rows.insert(0, v1.SessionInfo("new", "/w", updated_at="2026-02-01T00:00:00Z"))
        rows.insert(0, rows.pop(3))
        rows[0] = v1.SessionInfo(rows[0].session_id, "/w", updated_at="2026-02-01T00:01:00Z")
        found = [id for id in await all_pages(editor, first) if id != "new"]
    assert found == [f"c{number:03}" for number in range(170)]


async def test_a_row_that_was_shown_and_is_deleted_takes_no_other_with_it() -> None:
    rows = many(120)
    async with playing(agent_over(Lister(by_offset(rows, 1000))), FULL) as editor:
        first = await page(editor)
        del rows[10:13]
        assert await all_pages(editor, first) == [f"c{number:03}" for number in range(120)]


async def test_our_own_rows_come_once_though_they_are_used_between_two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    async with playing(agent_over(Lister(by_offset([], 1))), FULL) as editor:
        sessions = []
        for number in range(5):
            sessions.append(await editor.open())
            await editor.prompt(sessions[-1], f"song {number}")
        first = await page(editor)
        await editor.prompt(sessions[4], "once more")
        assert await all_pages(editor, first) == sessions[::-1]


async def test_rows_without_a_time_come_last_and_delay_no_others() -> None:
    rows = [row("nobody knows"), row("late", 1), v1.SessionInfo("bad", "/w", updated_at="yesterday"), row("early", 600)]
    async with playing(agent_over(Lister(by_offset(rows, 10))), FULL) as editor:
        mine = await editor.open()
        await editor.prompt(mine, "la")
        assert ids(await page(editor)) == [mine, "late", "early", "nobody knows", "bad"]


@pytest.mark.parametrize(
    "inside",
    [
        b'{"alto":[null,-500,false]}',
        b'{"":[null,-1]}',
        b'{"":["zzz",[],[],false]}',
        b'{"":[],"alto":["no number",[],["x"],false]}',
        b'{"":[null,[],[],false,"more"]}',
        b"{}",
        b"[]",
        b'{"":' + b"[" * 5000,
        b"\xff",
    ],
)
async def test_a_cursor_that_is_none_of_ours_is_refused_with_what_to_do(inside: bytes) -> None:
    def turn(query: v1.ListSessions) -> v1.ListSessionsResult:
        if query.cursor is not None:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", "what cursor is that?")
        return v1.ListSessionsResult(many(3))

    async with playing(agent_over(Lister(turn)), FULL) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await page(editor, base64.urlsafe_b64encode(inside).decode())
        assert refusal.value.code == Code.INVALID_PARAMS and "list again without a cursor" in str(refusal.value.data)
        with pytest.raises(RequestRefused) as refusal:
            await page(editor, "ä no base64")
        assert refusal.value.code == Code.INVALID_PARAMS


async def test_an_engine_that_refuses_its_own_cursor_does_not_hide_the_others() -> None:
    def turn(query: v1.ListSessions) -> v1.ListSessionsResult:
        if query.cursor is not None:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", "what cursor is that?")
        return v1.ListSessionsResult(many(3), "mine")

    async with playing(agent_over(Lister(turn)), FULL) as editor:
        assert len(ids(await page(editor))) == 3


class LongIds(FakeEngine):
    """Gives its sessions ids that no other engine gives."""

    async def new(self, session: AgentSession) -> FakeEngineSession:
        opened = await super().new(session)
        session.id = session.id.ljust(UNIQUE, "-")
        return opened


async def test_a_session_that_several_engines_list_is_one_row_and_none_if_it_is_part_of_ours() -> None:
    """As where one engine is an ACP agent for the CLI that another one drives."""
    tenor = LongIds("tenor")
    of_a_terminal = "t" * UNIQUE
    same = Lister(lambda query: v1.ListSessionsResult([row(id, 1) for id in (*tenor.kept, of_a_terminal, "1")]))
    async with playing(agent_over(tenor, same), FULL) as editor:
        mine = await editor.open()
        await editor.prompt(mine, "la")
        tenor.kept |= {of_a_terminal: [], "1": []}  # two engines may count from one
        assert sorted(ids(await page(editor))) == sorted([mine, of_a_terminal, "1", "1"])


async def test_a_session_of_ours_that_is_an_engine_session_of_another_is_one_row(tmp_path: Path) -> None:
    """As where an engine is a joint agent itself, with the same store."""
    store = SessionStore(open_database())
    async with store.database, playing(agent_over(LongIds("tenor")), FULL) as editor:
        mine = await editor.open()
        await editor.prompt(mine, "la")
        await store.create("tenor-1".ljust(UNIQUE, "-"), OURS, str(tmp_path))
        assert ids(await page(editor)) == [mine]


async def test_a_directory_is_listed_by_each_of_its_names() -> None:
    alto = Lister(by_offset(many(1), 10))
    async with playing(agent_over(alto), FULL) as editor:
        mine = await editor.open("/w")
        await editor.prompt(mine, "la")
        for name in ("/w", "/w/", "//w/.", "/w//"):
            assert mine in ids(await page(editor, cwd=name)), name
        assert mine not in ids(await page(editor, cwd="/"))
    assert [query.cwd for query in alto.asked] == ["/w"] * 4 + ["/"]


def test_one_directory_has_one_name() -> None:
    assert [normal_directory(name) for name in ("/", "//", "/a/./b//", "/a/../b", "a/", "")] == [
        "/", "/", "/a/b", "/a/../b", "a", "",
    ]  # fmt: skip
