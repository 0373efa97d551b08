"""What is kept of sessions."""

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from antiphon.store.errors import BadCursor, NoSuchSession, SessionExists
from antiphon.store.sessions import SessionRow, SessionStore
from tests.store.stores import START, Clock, Gate, opened
from tests.waits import idle

ONE = b'{"sessionUpdate":"plan","entries":[]}'
TWO = '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ü"}}'.encode()


async def names(store: SessionStore, **filters: str) -> list[str]:
    rows, _ = await store.list(**filters)  # type: ignore[arg-type]  # only words here
    return [row.id for row in rows]


async def test_a_session_is_there_after_the_process_that_made_it(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with opened(tmp_path) as store:
            made = await store.create("s", "demo", "/w", ["/x", "/ü"])
            await store.append("s", [ONE, TWO])
            await store.append("s", [ONE])
        async with opened(tmp_path) as store:
            found = await store.get("s")
            assert made == SessionRow(
                id="s",
                engine="demo",
                cwd="/w",
                directories=("/x", "/ü"),
                title=None,
                created_at="2026-01-02T03:04:06.000000Z",
                updated_at="2026-01-02T03:04:06.000000Z",
                length=0,
            )
            assert found is not None
            assert (found.directories, found.length, found.updated_at) == (
                made.directories,
                3,
                "2026-01-02T03:04:08.000000Z",
            )
            assert await store.history("s") == [ONE, TWO, ONE]


async def test_an_id_is_given_once(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        with pytest.raises(SessionExists, match="`s`"):
            await store.create("s", "demo", "/other")
        assert (await store.list())[0][0].cwd == "/w"


async def test_what_is_not_there_is_reported(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        assert await store.get("s") is None
        assert not await store.delete("s")
        for asking in (
            store.append("s", [ONE]),
            store.history("s"),
            store.rename("s", "t"),
            store.touch("s"),
            store.set_state("s", b"{}"),
            store.state("s"),
            store.fork("s", "t"),
        ):
            with pytest.raises(NoSuchSession, match="`s`"):
                await asking


async def test_updates_are_taken_as_they_are_when_they_are_given(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        gate = Gate(store.database)
        updates = [ONE]
        appending = asyncio.ensure_future(store.append("s", updates))
        await idle()
        updates.clear()  # the caller's list is the caller's again
        gate.open()
        assert await appending == 1
        assert await store.history("s") == [ONE]


async def test_a_large_history_comes_in_pages(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        updates = [b"%03d" % number * 100 for number in range(50)]
        await store.create("s", "demo", "/w")
        await store.append("s", updates)
        pages = [page async for page in store.pages("s", page_bytes=1000)]
        assert {len(page) for page in pages} == {4, 2}
        assert [update for page in pages for update in page] == updates


async def test_what_is_added_during_a_read_comes_too(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        await store.append("s", [b"1", b"2"])
        seen: list[bytes] = []
        async for page in store.pages("s", page_bytes=1):
            seen += page
            if seen == [b"1"]:
                await store.append("s", [b"3"])
        assert seen == [b"1", b"2", b"3"]


async def test_the_last_used_comes_first(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        for name, engine, cwd in (("a", "demo", "/w"), ("b", "claude", "/w"), ("c", "demo", "/x")):
            await store.create(name, engine, cwd)
        assert await names(store) == ["c", "b", "a"]
        assert await names(store, engine="demo") == ["c", "a"]
        assert await names(store, cwd="/w") == ["b", "a"]
        assert await names(store, engine="demo", cwd="/w") == ["a"]
        await store.append("a", [ONE])
        await store.touch("b", START + timedelta(days=1))
        assert await names(store) == ["b", "a", "c"]


async def test_pages_of_a_list_hold_each_session_once(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        for number in range(25):
            await store.create(f"s{number}", "demo", "/w", created_at=START + timedelta(hours=number // 5))
        seen: list[str] = []
        cursor: str | None = None
        while True:
            rows, cursor = await store.list(cursor=cursor, limit=4)
            seen += [row.id for row in rows]
            if cursor is None:
                break
        assert len(seen) == 25
        assert set(seen) == {f"s{number}" for number in range(25)}


async def test_pages_stay_good_while_sessions_change(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        for number in range(9):
            await store.create(str(number), "demo", "/w")
        first, cursor = await store.list(limit=3)
        assert [row.id for row in first] == ["8", "7", "6"]
        await store.delete("6")  # the one that the cursor names
        await store.append("8", [ONE])  # seen already
        await store.create("new", "demo", "/w")
        await store.delete("4")
        second, cursor = await store.list(cursor=cursor, limit=3)
        assert [row.id for row in second] == ["5", "3", "2"]
        third, cursor = await store.list(cursor=cursor, limit=3)
        assert ([row.id for row in third], cursor) == (["1", "0"], None)


@pytest.mark.parametrize("cursor", ["", "x", "e30=", "ü", "W10="])
async def test_a_cursor_that_is_not_ours_is_refused(tmp_path: Path, cursor: str) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        with pytest.raises(BadCursor, match="\nhint: "):
            await store.list(cursor=cursor)


async def test_a_title_comes_and_goes(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        for title in ("Fix the tests", None):
            await store.rename("s", title)
            row = await store.get("s")
            assert row is not None and row.title == title


async def test_state_is_kept_as_it_was_given(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        assert await store.state("s") == b""
        await store.set_state("s", b'{"mode":"plan"}')
        assert await store.state("s") == b'{"mode":"plan"}'


async def test_a_fork_begins_where_its_source_is_and_then_goes_its_own_way(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("old", "demo", "/w", ["/x"])
        await store.append("old", [ONE, TWO])
        await store.rename("old", "Title")
        await store.set_state("old", b"{}")
        fork = await store.fork("old", "new", cwd="/elsewhere")
        assert (fork.id, fork.cwd, fork.directories, fork.title, fork.length) == (
            "new",
            "/elsewhere",
            ("/x",),
            "Title",
            2,
        )
        assert fork == await store.get("new")
        assert await store.state("new") == b"{}"
        await store.append("new", [ONE])
        await store.append("old", [TWO])
        assert await store.history("new") == [ONE, TWO, ONE]
        assert await store.history("old") == [ONE, TWO, TWO]
        with pytest.raises(SessionExists, match="`new`"):
            await store.fork("old", "new")


async def test_a_deleted_session_leaves_nothing_behind(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w")
        await store.append("s", [ONE])
        await store.fork("s", "fork")
        assert await store.delete("s")
        assert await names(store) == ["fork"]
        assert await store.history("fork") == [ONE]
        left = await store.database.read(
            lambda connection: connection.execute("SELECT count(*) FROM history").fetchone()
        )
        assert left == (1,)
        await store.create("s", "demo", "/w")
        assert await store.history("s") == []


async def test_a_clock_that_is_set_back_moves_no_session_back(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "demo", "/w", created_at=START + timedelta(days=1))
        await store.append("s", [ONE])
        row = await store.get("s")
        assert row is not None and row.updated_at == row.created_at


async def test_times_are_utc_whatever_zone_they_come_in(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        there = datetime(2026, 6, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
        row = await store.create("s", "demo", "/w", created_at=there)
        assert row.created_at == "2026-06-01T10:00:00.000000Z"
        with pytest.raises(ValueError, match="zone"):
            await store.touch("s", Clock().now.replace(tzinfo=None))
