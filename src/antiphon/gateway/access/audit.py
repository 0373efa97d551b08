"""The audit log of a gateway: who did what, from where. Entries are added and never changed, and form a chain of hashes.

The hash of an entry covers the hash of the one before it and a digest of its text. So the text of a session that is deleted can be
removed, and the chain can still be checked.
"""

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import msgspec

from antiphon.store.database import Database, Migration, stamp, utc_now
from antiphon.store.errors import StoreError, explained

__all__ = ["AUDIT", "PAGE", "AccessEntry", "AccessLog", "remove_text"]

AUDIT: Final[Migration] = (
    """
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        actor TEXT NOT NULL,
        token TEXT NOT NULL,
        address TEXT NOT NULL,
        action TEXT NOT NULL,
        session TEXT NOT NULL,
        detail TEXT,
        digest BLOB NOT NULL,
        hash BLOB NOT NULL
    )
    """,
    "CREATE INDEX audit_session ON audit (session)",
)
"""The table of this log. `detail` is NULL once the text was removed; `digest` is what it was."""

START: Final = bytes(32)
"""What stands for the hash before the first entry."""

DETAIL_LIMIT: Final = 4096
"""Characters of the text of an entry. A command or a path fits; a whole file does not belong here."""

_log = logging.getLogger(__name__)

RETRY: Final = 1.0
"""Seconds until an entry that could not be stored is tried again."""

PAGE: Final = 1000
"""Entries that are read at once, unless fewer are wanted."""

CHECKED: Final = 1000
"""Entries that are read at once when the chain is checked: a reader that is in the file for long keeps its log from being emptied."""

_COLUMNS: Final = "id, at, actor, token, address, action, session, detail, digest, hash"


class AccessEntry(msgspec.Struct, frozen=True):
    """One entry of the log."""

    id: int
    at: str
    actor: str
    """The name of the token or share that was used; `gateway` for what the gateway did itself."""
    token: str
    """The number of the token, which is no secret."""
    address: str
    action: str
    session: str
    detail: str | None
    """None: it was removed with its session."""
    digest: bytes
    hash: bytes

    def expected(self, before: bytes) -> bytes:
        """The hash that this entry has to have behind the given one."""
        fields = [self.at, self.actor, self.token, self.address, self.action, self.session]
        return hashlib.sha256(before + msgspec.json.encode(fields) + self.digest).digest()


class AccessLog:
    """The table of entries in the file of a gateway."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        action: str,
        *,
        actor: str = "gateway",
        token: str = "",
        address: str = "",
        session: str = "",
        detail: str = "",
        at: datetime | None = None,
    ) -> None:
        """Add an entry, without waiting for the disk. Secrets do not belong into `detail`."""
        moment = stamp(at or utc_now())
        text = detail[:DETAIL_LIMIT]
        digest = hashlib.sha256(text.encode(errors="replace")).digest()

        def add(connection: Connection) -> None:
            row = connection.execute("SELECT hash FROM audit ORDER BY id DESC LIMIT 1").fetchone()
            entry = AccessEntry(0, moment, actor, token, address, action, session, text, digest, b"")
            hash = entry.expected(START if row is None else row[0])
            values = (moment, actor, token, address, action, session, text, digest, hash)
            places = _COLUMNS.removeprefix("id, ")
            connection.execute(f"INSERT INTO audit ({places}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)  # noqa: S608

        self._store(add)

    def _store(self, add: Callable[[Connection], None]) -> None:
        """Store an entry; one that cannot be stored, as when the disk is full, is tried again until it is."""

        def stored(done: "asyncio.Future[None]") -> None:
            error = None if done.cancelled() else done.exception()
            if error is not None:
                _log.error("an entry of the audit log cannot be stored, it is tried again: %s", error)
                done.get_loop().call_later(RETRY, self._store, add)

        try:
            self._database.submit(add).add_done_callback(stored)
        except StoreError as error:  # it was closed
            _log.error("an entry of the audit log is lost: %s", error)

    async def read(self, after: int = 0, limit: int = PAGE) -> list[AccessEntry]:
        """The entries after a number, in order."""
        where = f"SELECT {_COLUMNS} FROM audit WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608
        return await self._database.read(lambda connection: [*_entries(connection, where, (after, limit))])

    async def read_back(self, before: int | None = None, limit: int = PAGE) -> list[AccessEntry]:
        """The last entries before a number, in order; without one the newest."""
        where = f"SELECT {_COLUMNS} FROM audit WHERE ? IS NULL OR id < ? ORDER BY id DESC LIMIT ?"  # noqa: S608
        values = (before, before, limit)
        return await self._database.read(lambda connection: [*_entries(connection, where, values)][::-1])

    async def broken(self) -> int | None:
        """The number of the first entry that is not as it was written, or behind which one is missing; None: all is well.

        The oldest entries may have been removed by retention: the chain is checked from the first that is there.
        """

        await self._database.read(lambda _: None)  # what was added before is stored then
        try:
            return await asyncio.to_thread(_first_broken, self._database.path)
        except sqlite3.Error as error:
            raise explained(error, self._database.path) from error


def _first_broken(path: Path) -> int | None:
    """Check the chain page by page, over a connection of its own: nothing that is to be stored waits for it."""
    before: AccessEntry | None = None
    query = f"SELECT {_COLUMNS} FROM audit WHERE id > ? ORDER BY id LIMIT {CHECKED}"  # noqa: S608
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        while page := [*_entries(connection, query, (0 if before is None else before.id,))]:
            for entry in page:
                text = entry.detail
                if text is not None and hashlib.sha256(text.encode(errors="replace")).digest() != entry.digest:
                    return entry.id
                if before is not None and entry.hash != entry.expected(before.hash):
                    return entry.id
                if before is None and entry.id == 1 and entry.hash != entry.expected(START):
                    return entry.id
                before = entry
        return _cut_off(connection, 0 if before is None else before.id)


def _cut_off(connection: sqlite3.Connection, last: int) -> int | None:
    """Return the number of the first entry that is missing at the end. SQLite keeps the last number that it gave."""
    given = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
    return last + 1 if last and given is not None and given[0] > last else None


def remove_text(connection: Connection, session: str) -> None:
    """Remove the text of all entries about a session; that they were made stays visible."""
    connection.execute("UPDATE audit SET detail = NULL WHERE session = ?", (session,))


def _entries(connection: Connection, query: str, values: tuple[object, ...]) -> Iterator[AccessEntry]:
    for row in connection.execute(query, values):
        yield AccessEntry(*row)


def shown(entry: AccessEntry) -> Mapping[str, object]:
    """An entry as JSON has it: without the bytes of its hashes."""
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "token": entry.token,
        "address": entry.address,
        "action": entry.action,
        "session": entry.session,
        "detail": entry.detail,
    }
