"""Which engine session belongs to which session, what is archived, and what is found again."""

import asyncio
from pathlib import Path

import pytest

from antiphon.store.database import Database
from antiphon.store.errors import NoSuchSession, SessionExists
from antiphon.store.schema import MIGRATIONS
from antiphon.store.sessions import EngineSessionStore, SearchStore
from tests.store.stores import create_as_before, file_in, opened


async def test_an_engine_session_leads_to_its_session(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with opened(tmp_path) as store:
            await store.create("s", "antiphon", "/w")
            await store.create("t", "antiphon", "/w")
            await EngineSessionStore(store.database).set_engine_sessions("s", {"claude": "1", "codex": "1"})
            await EngineSessionStore(store.database).set_engine_sessions("t", {"claude": "2"})
        async with opened(tmp_path) as store:
            store_of_ids = EngineSessionStore(store.database)
            assert await store_of_ids.engine_sessions() == {
                ("claude", "1"): "s",
                ("codex", "1"): "s",
                ("claude", "2"): "t",
            }
            assert await store_of_ids.session_of("codex", "1") == "s"
            assert await store_of_ids.session_of("codex", "2") is None


async def test_a_session_has_the_engine_sessions_it_was_given_last_and_each_is_in_one(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        store_of_ids = EngineSessionStore(store.database)
        with pytest.raises(NoSuchSession):
            await store_of_ids.set_engine_sessions("s", {"claude": "1"})
        await store.create("s", "antiphon", "/w")
        await store.create("t", "antiphon", "/w")
        await store_of_ids.set_engine_sessions("s", {"claude": "1", "codex": "1"})
        await store_of_ids.set_engine_sessions("s", {"claude": "2"})
        assert await store_of_ids.engine_sessions() == {("claude", "2"): "s"}
        await store_of_ids.set_engine_sessions("t", {"claude": "2"})
        assert await store_of_ids.engine_sessions() == {("claude", "2"): "t"}
        await store.fork("t", "u")
        assert await store_of_ids.engine_sessions() == {("claude", "2"): "t"}
        await store.delete("t")
        assert await store_of_ids.engine_sessions() == {}


async def test_the_last_session_of_a_directory_is_one_with_a_prompt(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        assert await store.last("antiphon", "/w") is None
        for id, engine, cwd in (
            ("a", "antiphon", "/w"),
            ("b", "antiphon", "/w"),
            ("c", "demo", "/w"),
            ("d", "antiphon", "/x"),
        ):
            await store.create(id, engine, cwd)
            await store.append(id, [b"{}"])
        await store.create("e", "antiphon", "/w")
        last = await store.last("antiphon", "/w")
        assert last is not None and last.id == "b"
        await store.append("a", [b"{}"])
        last = await store.last("antiphon", "/w")
        assert last is not None and last.id == "a"


async def test_an_archived_session_has_everything_and_the_other_begins_afresh(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        store_of_ids = EngineSessionStore(store.database)
        await store.create("s", "antiphon", "/w", ["/x"])
        await store.append("s", [b"1", b"2"])
        await store.rename("s", "songs")
        await store.set_state("s", b"{}")
        await store_of_ids.set_engine_sessions("s", {"claude": "1"})
        before = await store.get("s")
        assert before is not None

        archived = await store.archive("s", "old", b'{"fresh":1}')
        assert (archived.id, archived.title, archived.length) == ("old", "songs", 2)
        assert (archived.created_at, archived.updated_at) == (before.created_at, before.updated_at)
        assert await store.history("old") == [b"1", b"2"] and await store.state("old") == b"{}"
        assert await store_of_ids.engine_sessions() == {("claude", "1"): "old"}

        left = await store.get("s")
        assert left is not None and (left.title, left.length, left.directories) == (None, 0, ("/x",))
        assert left.updated_at > before.updated_at
        assert await store.history("s") == [] and await store.state("s") == b'{"fresh":1}'
        await store.append("s", [b"3"])
        assert await store.history("s") == [b"3"] and await store.history("old") == [b"1", b"2"]


async def test_nothing_is_archived_over_another_session_or_from_none(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        await store.create("s", "antiphon", "/w")
        await store.append("s", [b"1"])
        await store.create("old", "antiphon", "/w")
        with pytest.raises(SessionExists):
            await store.archive("s", "old")
        with pytest.raises(NoSuchSession):
            await store.archive("gone", "new")
        assert await store.history("s") == [b"1"] and await store.history("old") == []


async def test_words_are_found_in_histories_and_titles_newest_first(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        search = SearchStore(store.database)
        for id, engine, text in (
            ("a", "antiphon", '{"text":"A Song of the Sea"}'),
            ("b", "antiphon", '{"text":"a \\"song\\" of üben"}'),
            ("c", "demo", '{"text":"song"}'),
        ):
            await store.create(id, engine, "/w")
            await store.append(id, [text.encode()])
        await store.rename("a", "Ballads")

        async def found(*words: str, limit: int = 50) -> list[str]:
            return [row.id for row in await search.search("antiphon", words, limit)]

        assert await found("SONG") == ["b", "a"]
        assert await found("song", limit=1) == ["b"]
        assert await found("song", "sea") == ["a"]
        assert await found('"song"') == ["b"]
        assert await found("üben") == ["b"] and await found("ballads", "sea") == ["a"]
        assert await found("100%") == await found("s_ng") == []
        assert await search.count("a", b'{"text') == 1 and await search.count("a", b'{"x') == 0


async def test_an_older_file_gets_the_table_of_engine_sessions(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with Database(file_in(tmp_path), MIGRATIONS[:2]) as before:
            await before.run(lambda connection: create_as_before(connection, "s", "antiphon", "/w"))
        async with opened(tmp_path) as store:
            await EngineSessionStore(store.database).set_engine_sessions("s", {"claude": "1"})
            assert await EngineSessionStore(store.database).session_of("claude", "1") == "s"
