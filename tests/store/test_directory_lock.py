"""One process has a directory for itself alone, with a write-ahead log; or several share it, with a rollback journal."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.errors import LocalProtocolError
from antiphon.store.database import Database, DirectoryLock
from antiphon.store.errors import DirectoryInUse
from tests.limits import limit

TABLES = (("CREATE TABLE word (id INTEGER PRIMARY KEY, word TEXT NOT NULL)",),)

HOLDER = """
import asyncio, sys
from pathlib import Path
from antiphon.store.database import Database, DirectoryLock

TABLES = (("CREATE TABLE word (id INTEGER PRIMARY KEY, word TEXT NOT NULL)",),)

async def main():
    directory = Path(sys.argv[1])
    with DirectoryLock(directory) as lock:
        async with Database(directory / "db", TABLES, lock=lock) as database:
            for number in range(1_000_000):
                word = f"word {number}"
                await database.run(lambda c: c.execute("INSERT INTO word (word) VALUES (?)", (word,)).rowcount)
                print(number, flush=True)

asyncio.run(main())
"""


def mode_of(path: Path) -> str:
    """How the file is written, by its header."""
    return "wal" if path.read_bytes()[18] == 2 else "rollback"


async def add(database: Database, word: str) -> None:
    await database.run(lambda connection: connection.execute("INSERT INTO word (word) VALUES (?)", (word,)).rowcount)


async def words(database: Database) -> list[str]:
    return await database.read(lambda c: [word for (word,) in c.execute("SELECT word FROM word ORDER BY id")])


async def test_the_owner_of_the_directory_writes_ahead_and_what_it_wrote_can_be_read_later(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DirectoryLock(tmp_path) as lock:
        async with Database(path, TABLES, lock=lock) as database:
            await asyncio.gather(*(add(database, f"{number}") for number in range(500)))
            assert mode_of(path) == "wal"
            sync = await database.read(lambda connection: connection.execute("PRAGMA synchronous").fetchone()[0])
            assert sync == 2, "a commit survives a power cut"
    async with Database(path, TABLES) as database:
        assert await words(database) == [f"{number}" for number in range(500)]
        assert mode_of(path) == "rollback"


async def test_a_second_one_is_refused_with_a_hint(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        with pytest.raises(DirectoryInUse, match="in use by another Antiphon") as refused:
            DirectoryLock(tmp_path)
        assert "choose another directory" in refused.value.hint
    DirectoryLock(tmp_path).release()


async def test_others_do_not_open_its_databases_and_it_does_not_begin_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with DirectoryLock(tmp_path) as lock:
        async with Database(path, TABLES, lock=lock) as database:
            with pytest.raises(DirectoryInUse):
                await Database(path, TABLES).__aenter__()
            await add(database, "mine")
    async with Database(path, TABLES) as database:
        with pytest.raises(DirectoryInUse):
            DirectoryLock(tmp_path)
        async with Database(path, TABLES) as another:  # those who share it do not mind each other
            await add(another, "theirs")
        assert await words(database) == ["mine", "theirs"]
    DirectoryLock(tmp_path).release()


async def test_a_lock_covers_its_own_directory_only_while_it_is_held(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "one")
    with pytest.raises(LocalProtocolError, match="does not cover"):
        await Database(tmp_path / "two" / "db", TABLES, lock=lock).__aenter__()
    lock.release()
    with pytest.raises(LocalProtocolError, match="does not cover"):
        await Database(tmp_path / "one" / "db", TABLES, lock=lock).__aenter__()


def written_until_killed(directory: Path) -> int:
    """Have another process write until it is killed, and return the last number that it committed."""
    words = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8") as holder:
        try:
            assert holder.stdout is not None
            sent = [int(holder.stdout.readline()) for _ in range(30)]
            with pytest.raises(DirectoryInUse):
                DirectoryLock(directory)
        finally:
            os.kill(holder.pid, signal.SIGKILL)
    return sent[-1]


async def test_a_killed_process_leaves_the_directory_free_and_all_that_it_committed(tmp_path: Path) -> None:
    committed = written_until_killed(tmp_path)
    with DirectoryLock(tmp_path) as lock:
        async with Database(tmp_path / "db", TABLES, lock=lock) as database:
            found = await words(database)
    assert found == [f"word {number}" for number in range(len(found))]
    assert len(found) > committed


def test_a_reader_beside_it_sees_what_is_committed(tmp_path: Path) -> None:
    async def play() -> list[str]:
        with DirectoryLock(tmp_path) as lock:
            async with Database(tmp_path / "db", TABLES, lock=lock) as database:
                await add(database, "one")
                reader = sqlite3.connect(f"file:{tmp_path / 'db'}?mode=ro", uri=True)
                try:
                    return [word for (word,) in reader.execute("SELECT word FROM word")]
                finally:
                    reader.close()

    assert asyncio.run(play()) == ["one"]


async def test_a_job_that_is_locked_out_of_a_transaction_of_its_own_waits_its_turn(tmp_path: Path) -> None:
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def store(connection: sqlite3.Connection, how: str) -> str:
        connection.execute("INSERT INTO word (word) VALUES (?)", (how,))
        return how

    def then(result: str | None, error: Exception | None) -> None:
        done.set_result(result or str(error))

    with DirectoryLock(tmp_path) as lock:
        async with asyncio.timeout(limit(30)), Database(tmp_path / "db", TABLES, lock=lock) as database:
            other = sqlite3.connect(tmp_path / "db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            tried = asyncio.Event()
            loop = asyncio.get_running_loop()

            def alone(connection: sqlite3.Connection) -> str:
                try:
                    return store(connection, "alone")
                finally:
                    loop.call_soon_threadsafe(tried.set)

            database.submit_then(lambda connection: store(connection, "among others"), then, alone=alone)
            await tried.wait()
            other.execute("ROLLBACK")
            assert await done == "among others"
            assert await words(database) == ["among others"]
            other.close()
