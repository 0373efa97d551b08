"""What tests of the store share."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import Connection

from antiphon.store.database import Database
from antiphon.store.schema import FILE_NAME, open_database
from antiphon.store.sessions import SessionStore

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    """A second later each time one looks."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[SessionStore]:
    async with open_database(directory) as database:
        yield SessionStore(database, Clock())


def create_as_before(connection: Connection, id: str, engine: str, cwd: str, length: int = 0) -> None:
    """A session as versions wrote it that did not know clients."""
    columns = "id, engine, cwd, directories, title, created_at, updated_at, length, state"
    at = START.isoformat()
    values = (id, engine, cwd, "[]", f"about {id}", at, at, length, b'{"route":"demo"}')
    connection.execute(f"INSERT INTO session ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    key = connection.execute("SELECT key FROM session WHERE id = ?", (id,)).fetchone()[0]
    for seq in range(1, length + 1):
        connection.execute("INSERT INTO history (session, seq, data) VALUES (?, ?, ?)", (key, seq, f"{seq}".encode()))


def file_in(directory: Path) -> Path:
    return directory / FILE_NAME


class Gate:
    """Holds the database's thread, so that jobs gather behind it."""

    def __init__(self, database: Database) -> None:
        self.statements: list[str] = []
        self._held = threading.Event()
        self._open = threading.Event()
        database.post(self._hold)
        assert self._held.wait(10)  # it is a group of its own: what comes next gathers behind it

    def _hold(self, connection: Connection) -> None:
        self._held.set()
        self._open.wait(10)
        connection.set_trace_callback(self.statements.append)

    def open(self) -> None:
        self._open.set()
