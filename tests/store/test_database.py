"""One file, one thread, group commit: what a database promises whatever its tables are."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import pytest

from antiphon.store import database as store_database
from antiphon.store.database import Database
from antiphon.store.errors import StoreError
from tests.limits import limit
from tests.store.stores import Gate
from tests.waits import idle

WORDS = (("CREATE TABLE word (text TEXT NOT NULL UNIQUE)",),)


def words(connection: Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM word ORDER BY rowid")]


def adding(text: str | None) -> Callable[[Connection], int | None]:
    return lambda connection: connection.execute("INSERT INTO word VALUES (?)", (text,)).lastrowid


def add(database: Database, text: str | None) -> "asyncio.Task[int | None]":
    return asyncio.ensure_future(database.run(adding(text)))


# --- jobs ---


async def test_jobs_are_done_in_order_and_give_their_results(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        assert await asyncio.gather(*[add(database, text) for text in "abc"]) == [1, 2, 3]
        database.post(adding("d"))
        assert await add(database, "e") == 5
        assert await database.read(words) == ["a", "b", "c", "d", "e"]


async def test_jobs_that_wait_together_share_a_commit(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        gate = Gate(database)
        waiting = [add(database, str(number)) for number in range(200)]
        await idle()
        gate.open()
        await asyncio.gather(*waiting)
        assert gate.statements.count("COMMIT") == 2  # the gate's own, and one for all of these
        assert len(await database.read(words)) == 200


async def test_a_result_is_returned_after_its_commit(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        await add(database, "here")
        other = sqlite3.connect(tmp_path / "db")
        assert words(other) == ["here"]
        other.close()


async def test_a_failing_job_takes_nothing_of_its_neighbours_along(tmp_path: Path) -> None:
    def half_done(connection: Connection) -> None:
        connection.execute("INSERT INTO word VALUES ('half')")
        raise LookupError("the other half")

    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        gate = Gate(database)
        first = add(database, "first")
        failing = asyncio.ensure_future(database.run(half_done))
        twice = add(database, "first")
        last = add(database, "last")
        await idle()
        gate.open()
        results = await asyncio.gather(first, failing, twice, last, return_exceptions=True)
        assert [type(result) for result in results] == [int, LookupError, sqlite3.IntegrityError, int]
        assert gate.statements.count("COMMIT") == 2  # the gate's own, and one for all of these
        assert await database.read(words) == ["first", "last"]


async def test_a_caller_that_stops_waiting_does_not_cancel_the_job(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        gate = Gate(database)
        waiting = add(database, "kept")
        await idle()
        waiting.cancel()
        gate.open()
        assert await database.read(words) == ["kept"]
        assert waiting.cancelled()


async def test_what_is_posted_is_there_after_a_flush(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        database.post(adding("posted"))
        await database.flush()
        other = sqlite3.connect(tmp_path / "db")
        assert words(other) == ["posted"]
        other.close()


async def test_a_posted_job_that_fails_is_logged_and_raised_by_the_next_flush_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Connection) -> None:
        raise LookupError("no such thing")

    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        database.post(fail)
        with pytest.raises(LookupError, match="no such thing"):
            await database.flush()
        assert "no such thing" in caplog.text
        await database.flush()


async def test_closing_finishes_what_waits(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        database = Database(tmp_path / "db", WORDS)
        gate = Gate(database)
        for number in range(100):
            database.post(adding(str(number)))
        gate.open()
        await database.close()
        await database.close()
        async with Database(tmp_path / "db", WORDS) as again:
            assert len(await again.read(words)) == 100


async def test_closing_raises_what_no_flush_has_raised(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        database = Database(tmp_path / "db", WORDS)
        database.post(adding(None))
        with pytest.raises(sqlite3.IntegrityError):
            await database.close()


async def test_a_closed_database_raises_an_error(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        database = Database(tmp_path / "db", WORDS)
        await database.close()
        await database.flush()
        with pytest.raises(StoreError, match="closed"):
            await database.read(words)
        assert not (tmp_path / "db").exists()


def test_a_loop_that_ended_does_not_stop_the_thread(tmp_path: Path) -> None:
    database = Database(tmp_path / "db", WORDS)

    async def leave() -> Gate:
        gate = Gate(database)
        waiting = add(database, "left behind")
        await idle()
        waiting.cancel()
        return gate

    asyncio.run(leave()).open()

    async def come_back() -> list[str]:
        async with asyncio.timeout(10), database:
            return await database.read(words)

    assert asyncio.run(come_back()) == ["left behind"]


# --- other processes ---


async def test_a_writer_waits_for_another_and_a_reader_does_not(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        await add(database, "before")
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO word VALUES ('theirs')")
        assert await database.read(words) == ["before"]
        ours = add(database, "ours")
        await idle()
        other.execute("COMMIT")
        other.close()
        await ours
        assert await database.read(words) == ["before", "theirs", "ours"]


async def test_a_lock_that_is_never_released_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "LOCK_TIMEOUT", 0.05)
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another program") as caught:
            await add(database, "late")
        assert "\nhint: " in str(caught.value)
        other.close()
        await add(database, "again")
        assert await database.read(words) == ["again"]


async def test_a_reader_elsewhere_only_delays_a_commit(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        await add(database, "before")
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN")
        assert words(other) == ["before"]
        ours = add(database, "after")
        await idle()
        assert words(other) == ["before"]
        other.close()
        await ours
        assert await database.read(words) == ["before", "after"]


# --- a failing machine ---


async def test_a_full_disk_fails_the_job_and_nothing_else(tmp_path: Path) -> None:
    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        await add(database, "before")
        await database.read(lambda connection: connection.execute("PRAGMA max_page_count = 4").fetchall())
        gate = Gate(database)
        small, large = add(database, "small"), add(database, "x" * 100_000)
        await idle()
        gate.open()
        with pytest.raises(StoreError, match="disk is full"):
            await large
        await small
        assert await database.read(words) == ["before", "small"]


async def test_when_sqlite_undoes_the_whole_transaction_the_neighbours_are_done_again(tmp_path: Path) -> None:
    def undo_all(connection: Connection) -> None:
        connection.execute("INSERT OR ROLLBACK INTO word VALUES (NULL)")

    async with asyncio.timeout(10), Database(tmp_path / "db", WORDS) as database:
        gate = Gate(database)
        early, twice, undoing, late = (
            add(database, "early"),
            add(database, "early"),
            asyncio.ensure_future(database.run(undo_all)),
            add(database, "late"),
        )
        await idle()
        gate.open()
        results = await asyncio.gather(early, twice, undoing, late, return_exceptions=True)
        assert [type(result) for result in results] == [int, sqlite3.IntegrityError, sqlite3.IntegrityError, int]
        assert await database.read(words) == ["early", "late"]


EXITS = """
import asyncio, sys
from antiphon.store.database import Database

async def main():
    database = Database(sys.argv[1], (("CREATE TABLE word (text TEXT)",),))
    for number in range(2000):
        database.post(lambda connection, number=number: connection.execute("INSERT INTO word VALUES (?)", (str(number),)))

asyncio.run(main())
"""


def test_a_program_that_exits_without_closing_ends_the_thread_first(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    done = subprocess.run(
        [sys.executable, "-c", EXITS, str(path)], capture_output=True, check=False, encoding="utf-8", timeout=limit()
    )
    assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM word").fetchone() == (2000,)
