"""How the file is made, brought up to date, and refused."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from antiphon.store.database import Database, copy_of
from antiphon.store.errors import StoreError
from tests.store.stores import file_in, opened

ONE = ("CREATE TABLE one (x)", "INSERT INTO one VALUES ('kept')")
TWO = ("CREATE TABLE two (x)", "INSERT INTO two SELECT x FROM one")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


async def pragma(database: Database, name: str) -> object:
    return await database.read(lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0])


async def test_what_we_keep_is_for_the_user_alone(tmp_path: Path) -> None:
    directory = tmp_path / "state" / "antiphon"
    async with asyncio.timeout(10), opened(directory) as store:
        await store.create("s", "demo", "/w")
        assert mode(directory) == 0o700
        assert {path.name: mode(path) for path in directory.iterdir()} == {
            "antiphon.sqlite3": 0o600,
            "antiphon.sqlite3-journal": 0o600,
        }


async def test_a_file_that_others_could_read_is_closed_to_them_and_a_directory_stays_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir(0o755)
    file_in(directory).touch(0o644)
    async with asyncio.timeout(10), opened(directory):
        assert (mode(directory), mode(file_in(directory))) == (0o755, 0o600)


async def test_a_commit_waits_for_the_disk_and_there_is_no_wal(tmp_path: Path) -> None:
    async with asyncio.timeout(10), opened(tmp_path) as store:
        assert await pragma(store.database, "journal_mode") == "truncate"
        assert await pragma(store.database, "synchronous") == 2  # FULL


async def test_nothing_is_touched_before_the_first_job(tmp_path: Path) -> None:
    Database(tmp_path / "db", (ONE,))
    assert not (tmp_path / "db").exists()


async def test_an_older_file_is_brought_up_to_date_and_keeps_what_it_has(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with Database(tmp_path / "db", (ONE,)) as database:
            assert await pragma(database, "user_version") == 1
        for _ in range(2):
            async with Database(tmp_path / "db", (ONE, TWO)) as database:
                assert await pragma(database, "user_version") == 2
                two = await database.read(lambda connection: connection.execute("SELECT * FROM two").fetchall())
                assert two == [("kept",)]


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with Database(tmp_path / "db", (ONE,)):
            pass
        with pytest.raises(sqlite3.OperationalError):
            async with Database(tmp_path / "db", (ONE, (*TWO, "CREATE NONSENSE"))):
                pass
        assert version(tmp_path / "db") == 1
        async with Database(tmp_path / "db", (ONE, TWO)):
            assert version(tmp_path / "db") == 2


async def test_many_that_open_a_new_file_at_once_find_it_whole(tmp_path: Path) -> None:
    many = [Database(tmp_path / "db", (ONE, TWO)) for _ in range(8)]
    async with asyncio.timeout(20):
        found = await asyncio.gather(
            *[one.read(lambda connection: connection.execute("SELECT count(*) FROM two").fetchone()) for one in many]
        )
        assert found == [(1,)] * 8
        await asyncio.gather(*[one.close() for one in many])


async def test_a_newer_file_is_refused_with_a_hint(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with Database(tmp_path / "db", (ONE, TWO)):
            pass
        with pytest.raises(StoreError, match="written by a newer Antiphon") as caught:
            async with Database(tmp_path / "db", (ONE,)):
                pass
        assert "\nhint: update" in str(caught.value)
        assert version(tmp_path / "db") == 2


async def test_a_file_that_becomes_newer_while_it_is_open_is_not_written_any_more(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", (ONE,)) as old:
        async with Database(tmp_path / "db", (ONE, TWO)):
            pass
        with pytest.raises(StoreError, match="written by a newer Antiphon"):
            await old.run(lambda connection: connection.execute("INSERT INTO one VALUES ('old')"))


async def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file_in(tmp_path).write_bytes(b"my only copy of a poem\n" * 100)
    async with asyncio.timeout(10):
        with pytest.raises(StoreError, match="is not a database") as caught:
            async with opened(tmp_path):
                pass
    assert str(file_in(tmp_path)) in str(caught.value) and "\nhint: " in str(caught.value)
    assert file_in(tmp_path).read_bytes() == b"my only copy of a poem\n" * 100


async def test_a_damaged_file_is_reported_as_such_and_left_alone(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with opened(tmp_path) as store:
            await store.create("s", "demo", "/w")
            await store.append("s", [b"x" * 500] * 200)
        whole = file_in(tmp_path).read_bytes()
        damaged = whole[:20_000] + b"\xff" * 60_000 + whole[80_000:]
        file_in(tmp_path).write_bytes(damaged)
        async with opened(tmp_path) as store:
            with pytest.raises(StoreError, match="is damaged") as caught:
                await store.history("s")
        assert "\nhint: " in str(caught.value)
    assert file_in(tmp_path).read_bytes() == damaged


@pytest.mark.parametrize("in_the_way", ["file", "directory"])
async def test_a_place_where_no_file_can_be_is_an_error_with_a_hint(tmp_path: Path, in_the_way: str) -> None:
    if in_the_way == "file":
        (tmp_path / "state").touch()
    else:
        file_in(tmp_path / "state").mkdir(parents=True)
    async with asyncio.timeout(10):
        with pytest.raises(StoreError, match=r"cannot be (made|opened)[^\n]*\nhint: "):
            async with opened(tmp_path / "state"):
                pass


async def test_a_file_is_copied_before_its_tables_change_and_a_new_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "songs.sqlite3"
    for migrations in ((ONE,), (ONE, TWO)):
        database = Database(path, migrations)
        assert await pragma(database, "user_version") == len(migrations)
        await database.close()
    assert sorted(name for name in os.listdir(tmp_path) if name.endswith(".sqlite3")) == [
        "songs-version-1.sqlite3",
        "songs.sqlite3",
    ]
    assert (version(copy_of(path, 1)), version(path), mode(copy_of(path, 1))) == (1, 2, 0o600)


async def test_without_space_for_a_copy_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "songs.sqlite3"
    first = Database(path, (ONE,))
    await pragma(first, "user_version")
    await first.close()
    copy_of(path, 1).mkdir()  # in the way, as a full disk is
    second = Database(path, (ONE, TWO))
    with pytest.raises(StoreError, match="no copy could be made") as raised:
        await pragma(second, "user_version")
    assert raised.value.hint and version(path) == 1
    await second.close()
