"""Which client made a session is kept with it, and older files have sessions without a client."""

import asyncio
from pathlib import Path

import pytest

from antiphon.store.database import Database
from antiphon.store.schema import MIGRATIONS
from tests.store.stores import create_as_before, file_in, opened


@pytest.mark.parametrize("seen", range(1, len(MIGRATIONS)))
async def test_a_file_of_any_earlier_version_is_opened_with_all_that_it_has(tmp_path: Path, seen: int) -> None:
    async with asyncio.timeout(20):
        async with Database(file_in(tmp_path), MIGRATIONS[:seen]) as before:
            await before.run(lambda connection: create_as_before(connection, "old", "antiphon", "/w", length=3))
        async with opened(tmp_path) as store:
            (row,), _ = await store.list()
            assert (row.id, row.title, row.length, row.client) == ("old", "about old", 3, "")
            assert await store.history("old") == [b"1", b"2", b"3"]
            assert await store.state("old") == b'{"route":"demo"}'
            assert await store.last("antiphon", "/w") == row
            assert await store.last("antiphon", "/w", client="zed") is None, "nobody knows who made it"
            await store.append("old", [b"4"])
            assert (await store.history("old"))[-1] == b"4"


async def test_a_copy_belongs_to_the_client_that_copies_and_an_archive_to_its_old_client(tmp_path: Path) -> None:
    async with asyncio.timeout(20), opened(tmp_path) as store:
        await store.create("a", "antiphon", "/w", client="zed")
        await store.append("a", [b"1"])
        assert (await store.fork("a", "b", client="antiphon-run")).client == "antiphon-run"
        assert (await store.archive("a", "c")).client == "zed"
        left = await store.get("a")
        assert left is not None and left.client == "zed"


async def test_the_last_session_is_that_of_the_client_that_is_meant(tmp_path: Path) -> None:
    made = [("1", "zed"), ("2", "neovim"), ("3", "antiphon-run"), ("4", ""), ("5", "antiphon-run")]
    async with asyncio.timeout(20), opened(tmp_path) as store:
        for id, client in made:
            await store.create(id, "antiphon", "/w", client=client)
            await store.append(id, [b"said"])
        await store.create("6", "antiphon", "/w", client="zed")  # nothing was sent in it

        async def last(**which: object) -> str | None:
            row = await store.last("antiphon", "/w", **which)  # type: ignore[arg-type]  # one of three
            return None if row is None else row.id

        assert [await last(client=name) for name in ("zed", "neovim", "emacs")] == ["1", "2", None]
        assert await last() == "5" and await last(but="5") == "4"
        assert await last(not_by=("antiphon-run",)) == "4" and await last(not_by=("antiphon-run", "")) == "2"


async def test_any_beginning_of_an_id_finds_its_session(tmp_path: Path) -> None:
    async with asyncio.timeout(20), opened(tmp_path) as store:
        for id in ("abc", "abd", "ab", "x_%"):
            await store.create(id, "antiphon", "/w")

        async def found(beginning: str) -> set[str]:
            return {row.id for row in await store.beginning(beginning)}

        assert await found("a") == {"abc", "abd", "ab"}
        assert await found("ab") == {"ab"}, "the whole id of one is no beginning of another"
        assert await found("abd") == {"abd"} and await found("x_") == {"x_%"} and await found("%") == set()
