"""Sessions by name, and the last one."""

import asyncio
from pathlib import Path

from antiphon.store.schema import open_database
from antiphon.store.sessions import NamedSession, NameStore
from tests.store.stores import Clock


async def test_a_name_is_there_after_the_process_that_gave_it(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with open_database(tmp_path) as database:
            made = await NameStore(database, Clock()).put("review", "demo", "s1", "/w")
        async with open_database(tmp_path) as database:
            assert await NameStore(database).get("review", "demo", "/w") == made
    assert made == NamedSession("review", "demo", "s1", "/w", "2026-01-02T03:04:06.000000Z")


async def test_a_name_belongs_to_an_agent_and_a_directory(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = NameStore(database)
        await store.put("review", "demo", "s1", "/w")
        await store.put("review", "demo", "s2", "/x")
        await store.put("review", "other", "s3", "/w")
        found = [
            await store.get("review", agent, cwd) for agent, cwd in (("demo", "/w"), ("demo", "/x"), ("other", "/w"))
        ]
        assert [named.session_id for named in found if named is not None] == ["s1", "s2", "s3"]
        assert await store.get("review", "other", "/x") is None
        assert await store.get("review ", "demo", "/w") is None


async def test_a_name_can_be_given_to_another_session(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = NameStore(database)
        await store.put("review", "demo", "s1", "/w")
        await store.put("review", "demo", "s2", "/w")
        assert [named.session_id for named in await store.list()] == ["s2"]


async def test_the_last_session_is_the_last_used_named_or_not(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = NameStore(database, Clock())
        assert await store.last("demo", "/w") is None
        for name, id, cwd in (("a", "s1", "/w"), ("", "s2", "/w"), ("b", "s3", "/x")):
            await store.put(name, "demo", id, cwd)
        last = await store.last("demo", "/w")
        assert last is not None and (last.name, last.session_id) == ("", "s2")
        await store.put("a", "demo", "s1", "/w")
        last = await store.last("demo", "/w")
        assert last is not None and last.session_id == "s1"
        assert await store.last("other", "/w") is None
        assert [named.name for named in await store.list()] == ["a", "b"]  # what has no name is not listed


async def test_a_name_is_forgotten_wherever_it_is_used(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = NameStore(database)
        for cwd in ("/w", "/x"):
            await store.put("review", "demo", "s", cwd)
        await store.put("keep", "demo", "s", "/w")
        assert (await store.forget("review"), await store.forget("review")) == (2, 0)
        assert [named.name for named in await store.list()] == ["keep"]
