"""The one file of a gateway: rows of sessions, their journal, tokens and the audit log; how long they are kept, and copies of them.

A row is one session of one agent. Its key is ours: an agent may give the same id to two sessions, and then the older row is archived
under its own key. Nothing here knows what the events of a session mean.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from sqlite3 import Connection
from typing import Any, Final, TypeAlias

import msgspec

from antiphon.config.directories import make_private_directory, state_dir
from antiphon.gateway.access.audit import AUDIT, AccessLog, remove_text
from antiphon.gateway.access.tokens import TokenStore
from antiphon.gateway.base import GatewaySession
from antiphon.journal.runs import EVENTS, RunJournal
from antiphon.store.database import Database, DirectoryLock, Migration, stamp
from antiphon.store.errors import StoreError

__all__ = ["FILE_NAME", "MIGRATIONS", "GatewayData", "Retention", "copy_file", "data_directory"]

FILE_NAME: Final = "gateway.sqlite3"
DAY: Final = 24 * 3600.0
_log = logging.getLogger(__name__)

_SESSIONS: Final[Migration] = (
    """
    CREATE TABLE session (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        session_id TEXT NOT NULL,
        cwd TEXT NOT NULL,
        directories TEXT NOT NULL,
        title TEXT NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        state BLOB NOT NULL,
        turn TEXT NOT NULL,
        turn_after INTEGER NOT NULL,
        archived INTEGER NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX session_agent ON session (agent, session_id) WHERE archived = 0",
)

# A share is a token that has sessions: every secret is looked up in one table.
_TOKENS: Final[Migration] = (
    """
    CREATE TABLE token (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        role INTEGER NOT NULL,
        digest BLOB NOT NULL UNIQUE,
        sessions TEXT,
        created REAL NOT NULL,
        expires REAL,
        revoked REAL
    )
    """,
)

_PARENTS: Final[Migration] = ("ALTER TABLE token ADD COLUMN parent INTEGER",)
_OWNERS: Final[Migration] = ("ALTER TABLE session ADD COLUMN owner TEXT NOT NULL DEFAULT ''",)

MIGRATIONS: Final[tuple[Migration, ...]] = ((*_SESSIONS, *EVENTS, *_TOKENS, *AUDIT), _PARENTS, _OWNERS)
"""Version by version. A migration that was released is never changed: files out there have seen it."""

Rows: TypeAlias = list[GatewaySession]

_COLUMNS: Final = GatewaySession.__struct_fields__
_INSERT: Final = f"INSERT INTO session ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_CHANGED: Final = tuple(
    name for name in _COLUMNS if name not in ("key", "archived", "owner")
)  # a row is archived by `create` alone
_UPDATE: Final = f"UPDATE session SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE key = ?"  # noqa: S608
_USED: Final = "max(updated, created)"
"""When a session was used last: one without a turn, when it was opened."""


class Retention(msgspec.Struct, frozen=True):
    """How long and how much is kept."""

    session_days: int = 90
    """Days after its last use at which a session is deleted."""
    audit_days: int = 365
    """Days for which entries of the audit log are kept."""
    total_bytes: int = 10 * 1024**3
    """Size of everything at which sessions are deleted: those that were used least recently, of the owners who have most.

    An owner who has less than an equal share of what all sessions need loses none to those who have more.
    """


def data_directory(chosen: Path | None = None) -> Path:
    """The directory of a gateway's data: the one that was chosen, or `gateway` in the state directory."""
    return (state_dir() / "gateway") if chosen is None else chosen.expanduser().absolute()


class GatewayData:
    """The file of a gateway, open and locked for this process. Made by `open`."""

    def __init__(self, directory: Path, database: Database) -> None:
        self.directory = directory
        self.database = database
        self.journal = RunJournal(database)
        self.audit = AccessLog(database)
        self.tokens = TokenStore(database, directory)
        """To be loaded before they are used."""

    @classmethod
    @asynccontextmanager
    async def open(cls, directory: Path | None = None) -> "AsyncIterator[GatewayData]":
        """Lock the directory and open its file, as long as the block lasts.

        Raises:
            DirectoryInUse: another gateway has it.
            StoreError: it cannot be used; the hint says what to do.
        """
        place = data_directory(directory)
        with DirectoryLock(place) as lock:
            async with Database(place / FILE_NAME, MIGRATIONS, lock=lock) as database:
                data = cls(place, database)
                try:
                    yield data
                finally:
                    await data.journal.flush()

    # Rows.

    async def create(
        self, agent: str, session_id: str, cwd: str, directories: tuple[str, ...] = (), owner: str = ""
    ) -> GatewaySession:
        row = GatewaySession(token_hex(16), agent, session_id, cwd, directories, created=time.time(), owner=owner)

        def create(connection: Connection) -> None:
            older = "UPDATE session SET archived = 1 WHERE agent = ? AND session_id = ? AND archived = 0"
            connection.execute(older, (agent, session_id))
            connection.execute(_INSERT, _stored(row))

        await self.database.run(create)
        return row

    async def get(self, key: str) -> GatewaySession | None:
        """Return the row with this key."""
        return next(iter(await self._rows("key = ?", key)), None)

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        rows = await self._rows("agent = ? AND session_id = ? AND archived = 0", agent, session_id)
        return rows[0] if rows else None

    async def list(self, agent: str, *, cwd: str | None = None) -> Rows:
        where = f"agent = ? AND cwd = ifnull(?, cwd) AND archived = 0 ORDER BY {_USED} DESC, id DESC"
        return await self._rows(where, agent, cwd)

    async def all(self) -> Rows:
        """Return every row, the archived ones too, those used last first."""
        return await self._rows(f"1 ORDER BY {_USED} DESC, id DESC")

    async def interrupted(self) -> Rows:
        return await self._rows("turn != '' ORDER BY id")

    def save(self, row: GatewaySession) -> None:
        values = [value for name, value in zip(_COLUMNS, _stored(row), strict=True) if name in _CHANGED]
        self.journal.post(lambda connection: connection.execute(_UPDATE, (*values, row.key)))

    async def delete(self, key: str) -> None:
        """Delete a session with its events, the text about it in the audit log, and its shares."""
        await self.database.run(lambda connection: _delete(connection, key), empties_log=True)
        await self.tokens.forget_session(key)

    async def _rows(self, where: str, *values: object) -> Rows:
        await self.journal.flush()  # a row that was saved and waits for its commit
        query = f"SELECT {', '.join(_COLUMNS)} FROM session WHERE {where}"  # noqa: S608
        found = await self.database.read(lambda connection: connection.execute(query, values).fetchall())
        return [_row(each) for each in found]

    # Retention.

    async def used_bytes(self) -> int:
        """The size of everything in the file, without the room that deleted things have left."""
        return await self.database.read(_used_bytes)

    async def prune(self, retention: Retention, *, now: float | None = None) -> Sequence[str]:
        """Delete what is too old or too much, but no session that is open or in which a turn runs; return the keys of the deleted ones."""
        moment = time.time() if now is None else now
        oldest = moment - retention.session_days * DAY
        oldest_entry = stamp(datetime.fromtimestamp(moment - retention.audit_days * DAY, UTC))

        def prune(connection: Connection) -> Sequence[str]:
            connection.execute("DELETE FROM audit WHERE at < ?", (oldest_entry,))
            rows = connection.execute(f"SELECT key, {_USED}, turn FROM session ORDER BY 2, id").fetchall()  # noqa: S608
            running = {key for key, _, turn in rows if turn}

            def is_free(key: str) -> bool:  # as it is now: one may be opened while we wait
                return key not in running and key not in self.journal.claimed

            deleted = [key for key, used, _ in rows if used < oldest and is_free(key)]
            for key in deleted:
                _delete(connection, key)
            further = _to_go(connection, is_free, retention.total_bytes)
            while _used_bytes(connection) > retention.total_bytes:
                if (key := next(further, None)) is None:
                    _log.error("the data need more than their limit: what is left is in use, or of owners with little")
                    break
                _delete(connection, key)
                deleted.append(key)
            return deleted

        keys = await self.database.run(prune, empties_log=True)
        for key in keys:
            await self.tokens.forget_session(key)
        return keys

    # Copies.

    async def backup(self, target: Path) -> None:
        """Write a copy of the file as it is now, readable by the user alone. Work goes on meanwhile.

        Raises:
            StoreError: there is a file of this name, or it cannot be written.
        """
        await self.journal.flush()
        await self.database.flush()
        await asyncio.to_thread(copy_file, self.database.path, target)


def copy_file(source: Path, target: Path) -> None:
    """Write a copy of the file of a gateway, as it is now. Only reads it, so it may be in use.

    Raises:
        StoreError: there is a file of this name, or it cannot be written.
    """
    try:
        if target.exists():
            raise StoreError(f"`{target}` is there already", hint="choose another name, or move it away")
        make_private_directory(target.parent)
        with _unfinished(target) as half:
            # Read only: this connection can neither write nor move pages from the log into the file.
            uri = f"{source.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as opened, closing(sqlite3.connect(half)) as copy:
                opened.backup(copy)
            os.link(half, target)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(
            f"`{target}` cannot be written: {reason}", hint="check the disk and the permissions there"
        ) from error


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """An empty file for a copy: one that was cut short never has the name of a whole one. One that was left by a process that was killed
    is used again; it has no lock."""
    half = target.with_name(f"{target.name}.half")
    descriptor = os.open(half, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(descriptor), os.stat(half))
        except (BlockingIOError, FileNotFoundError):
            mine = False
        if not mine:
            raise StoreError(f"`{target}` is being written by another process", hint="choose another name")
        os.ftruncate(descriptor, 0)
        try:
            yield half
        finally:
            half.unlink()
    finally:
        os.close(descriptor)


def _stored(row: GatewaySession) -> "list[object]":
    values = msgspec.structs.asdict(row)
    return [*{**values, "directories": msgspec.json.encode(row.directories).decode()}.values()]


def _row(values: Sequence[Any]) -> GatewaySession:
    given = dict(zip(_COLUMNS, values, strict=True))
    given["directories"] = msgspec.json.decode(given["directories"], type=tuple[str, ...])
    return GatewaySession(**{**given, "archived": bool(given["archived"])})


def _delete(connection: Connection, key: str) -> None:
    # What is deleted is overwritten: the text of a session may be why it is deleted.
    connection.execute("PRAGMA secure_delete = ON")
    remove_text(connection, key)
    connection.execute("DELETE FROM session WHERE key = ?", (key,))


def _to_go(connection: Connection, is_free: Callable[[str], bool], total: int) -> Iterator[str]:
    """Yield the sessions to delete while there is too much: each time the least recently used one of the owner who has most.

    An owner who has less than an equal share loses none. It ends where all sessions together need less than half of the limit: it is not
    they that need the rest, and one who fills the audit log is not to empty the journal.
    """
    query = f"""
        SELECT key, owner, (SELECT ifnull(sum(length(data)), 0) FROM event WHERE event.session = session.id)
        FROM session ORDER BY {_USED}, id
    """  # noqa: S608
    sizes: Counter[str] = Counter()
    rows: dict[str, deque[tuple[str, int]]] = {}
    for key, owner, size in connection.execute(query).fetchall():
        sizes[owner] += size
        rows.setdefault(owner, deque()).append((key, size))
    while 2 * sizes.total() >= total:
        above = [owner for owner, size in sizes.most_common() if size * len(sizes) >= sizes.total() and rows[owner]]
        if not above:
            return
        key, size = rows[above[0]].popleft()
        if is_free(key):
            sizes[above[0]] -= size
            yield key


def _used_bytes(connection: Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
