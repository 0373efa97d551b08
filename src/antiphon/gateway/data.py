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
from antiphon.gateway.access.tokens import AccessTokens, TokenStore
from antiphon.gateway.base import FoundText, GatewaySession, ListedRow, SearchableText, SessionQuery
from antiphon.journal.runs import EVENT_TIMES, EVENTS, RunJournal
from antiphon.store.database import Database, DirectoryLock, Migration, stamp
from antiphon.store.errors import StoreError, explained

__all__ = [
    "FILE_NAME",
    "MIGRATIONS",
    "GatewayData",
    "Retention",
    "copy_file",
    "data_directory",
    "delete_row",
    "put_row",
    "row_in",
]

FILE_NAME: Final = "gateway.sqlite3"
DAY: Final = 24 * 3600.0
SEARCH_TIME: Final = 10.0
"""Seconds for one search: it keeps a thread, and others wait for one."""
SEARCH_STEPS: Final = 100_000
"""Steps of SQLite between two looks at the clock: a millisecond."""
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


# What lists show of a session beside its title, and the text of its messages for the search.
_SHOWN: Final[Migration] = (
    "ALTER TABLE session ADD COLUMN agent_title TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE session ADD COLUMN renamed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE session ADD COLUMN failed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE session ADD COLUMN text TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE session ADD COLUMN searchable INTEGER NOT NULL DEFAULT 0",
    "UPDATE session SET agent_title = title",
    """
    CREATE TABLE message (
        session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        sender TEXT NOT NULL,
        text TEXT NOT NULL
    )
    """,
    "CREATE INDEX message_session ON message (session)",
)

# Rows that are copies of those of a fleet: their events are elsewhere, so the row has the number of the last one.
_COPIES: Final[Migration] = (
    "ALTER TABLE session ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0",
    """
    CREATE TABLE copied (
        key TEXT PRIMARY KEY,
        sequence INTEGER NOT NULL,
        born INTEGER NOT NULL,
        agent TEXT NOT NULL,
        session_id TEXT NOT NULL,
        shown INTEGER NOT NULL,
        deleted REAL,
        more BLOB NOT NULL
    )
    """,
    "CREATE INDEX copied_agent ON copied (agent, session_id)",
    "CREATE INDEX copied_sequence ON copied (sequence)",
    "CREATE TABLE copied_stream (id TEXT NOT NULL, sequence INTEGER NOT NULL)",
)

MIGRATIONS: Final[tuple[Migration, ...]] = (
    (*_SESSIONS, *EVENTS, *_TOKENS, *AUDIT),
    _PARENTS,
    _OWNERS,
    (*EVENT_TIMES, *_SHOWN),
    _COPIES,
)
"""Version by version. A migration that was released is never changed: files out there have seen it."""

Rows: TypeAlias = list[GatewaySession]

_Deleted: TypeAlias = tuple[str, str, str]
"""The key of a session that was deleted, its agent and its id; these are empty if lists did not have it."""

_COLUMNS: Final = GatewaySession.__struct_fields__
_INSERT: Final = f"INSERT INTO session ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_CHANGED: Final = tuple(
    name for name in _COLUMNS if name not in ("key", "archived", "owner")
)  # a row is archived by `create` alone
_PUT: Final = f"""
    INSERT INTO session (last_number, {", ".join(_COLUMNS)}) VALUES (?, {", ".join("?" * len(_COLUMNS))})
    ON CONFLICT (key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in ("last_number", *_COLUMNS))}
"""  # noqa: S608
_UPDATE: Final = f"UPDATE session SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE key = ?"  # noqa: S608
_LAST: Final = (
    "max(last_number, ifnull((SELECT last FROM event WHERE session = session.id ORDER BY first DESC LIMIT 1), 0))"
)
_ROW: Final = 512
"""Bytes that a row takes besides its settings and events. Sessions without a prompt count too: there may be millions."""
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
        self.tokens: AccessTokens = TokenStore(database, directory)
        """To be loaded before they are used."""
        self.removed: Callable[[str, str, str], None] | None = None

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
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        row = GatewaySession(token_hex(16), agent, session_id, cwd, directories, created=time.time(), owner=owner)

        def create(connection: Connection) -> None:
            connection.execute(_INSERT, _stored(msgspec.structs.replace(row, archived=True)))
            if not hidden:
                _show(connection, row.key)

        await self.database.run(create)
        return row

    async def show(self, key: str) -> None:
        await self.database.run(lambda connection: _show(connection, key))

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

    async def is_copy(self) -> bool:
        """Whether this is the copy of what a fleet has stored, in the directory of a gateway or a worker of it."""
        found = await self.database.read(
            lambda connection: connection.execute("SELECT 1 FROM copied_stream").fetchone()
        )
        return found is not None

    async def interrupted(self) -> Rows:
        return await self._rows("turn != '' ORDER BY id")

    def save(self, row: GatewaySession) -> None:
        values = [value for name, value in zip(_COLUMNS, _stored(row), strict=True) if name in _CHANGED]
        self.journal.post(lambda connection: connection.execute(_UPDATE, (*values, row.key)))

    async def delete(self, key: str) -> None:
        """Delete a session with its events, the text about it in the audit log, and its shares."""
        await self._deleted(await self.database.run(lambda connection: [delete_row(connection, key)], empties_log=True))

    async def _deleted(self, sessions: Sequence[_Deleted]) -> None:
        """Do what follows the deletion of sessions: their shares are revoked, and lists are without them."""
        for key, agent, session_id in sessions:
            await self.tokens.forget_session(key)
            if self.removed is not None and agent:
                self.removed(key, agent, session_id)

    async def _rows(self, where: str, *values: object) -> Rows:
        await self.journal.flush()  # a row that was saved and waits for its commit
        query = f"SELECT {', '.join(_COLUMNS)} FROM session WHERE {where}"  # noqa: S608
        found = await self.database.read(lambda connection: connection.execute(query, values).fetchall())
        return [_row(each) for each in found]

    # Lists and the search.

    async def listed(self, query: SessionQuery) -> Sequence[ListedRow]:
        await self.journal.flush()
        where, values = rows_of(query.agents, query.keys)
        for word in query.words:
            columns = ("title", "text", "cwd", "agent")
            where += f" AND ({' OR '.join(f'{each} LIKE ? ESCAPE char(92)' for each in columns)})"
            values += [_like(word)] * len(columns)
        if query.before is not None:
            where += f" AND ({_USED}, id) < (?, ?)"
            values += query.before
        names = ", ".join("CAST('{}' AS BLOB)" if name == "state" else name for name in _COLUMNS)
        statement = (
            f"SELECT {names}, {_LAST}, {_USED}, id FROM session WHERE {where} ORDER BY {_USED} DESC, id DESC LIMIT ?"  # noqa: S608
        )
        values.append(query.limit)
        found = await self.database.read(lambda connection: connection.execute(statement, values).fetchall())
        return [ListedRow(_row(each[:-3]), each[-3], (each[-2], each[-1])) for each in found]

    async def settings(self, agent: str) -> bytes:
        query = f"SELECT state FROM session WHERE agent = ? AND archived = 0 ORDER BY {_USED} DESC, id DESC LIMIT 1"  # noqa: S608
        found = await self.database.read(lambda connection: connection.execute(query, (agent,)).fetchone())
        return b"{}" if found is None else bytes(found[0])

    async def unread(self, key: str, *, only: bool = False) -> tuple[str, int] | None:
        where = f"key {'=' if only else '>'} ? AND turn = '' AND searchable < {_LAST}"
        query = f"SELECT key, searchable FROM session WHERE {where} ORDER BY key LIMIT 1"  # noqa: S608
        await self.journal.flush()  # that its turn has ended may wait for its commit
        found: tuple[str, int] | None = await self.database.read(
            lambda connection: connection.execute(query, (key,)).fetchone()
        )
        return found

    async def add_text(self, key: str, texts: Sequence[SearchableText], number: int) -> None:
        def add(connection: Connection) -> None:
            row = connection.execute("SELECT id FROM session WHERE key = ?", (key,)).fetchone()
            if row is None:
                return  # it was deleted meanwhile
            connection.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", [(row[0], *each) for each in texts])
            connection.execute("UPDATE session SET searchable = ? WHERE id = ?", (number, row[0]))

        await self.database.run(add)

    async def search(
        self, words: Sequence[str], keys: frozenset[str] | None, agents: tuple[str, ...], limit: int
    ) -> Sequence[FoundText]:
        """Look for messages over a connection of its own: nothing that is to be stored waits for a search."""
        where, values = rows_of(agents, keys)
        for word in words:
            spellings = dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))  # LIKE folds ASCII alone
            where += f" AND ({' OR '.join('message.text LIKE ? ESCAPE char(92)' for _ in spellings)})"
            values += map(_like, spellings)
        statement = f"""
            SELECT key, agent, session_id, title, cwd, number, sender, message.text
            FROM session JOIN message ON message.session = session.id
            WHERE {where} ORDER BY {_USED} DESC, session.id DESC, message.rowid DESC LIMIT ?
        """  # noqa: S608

        def search() -> Sequence[FoundText]:
            uri = f"{self.database.path.absolute().as_uri()}?mode=ro"
            until = time.monotonic() + SEARCH_TIME
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.set_progress_handler(lambda: time.monotonic() > until, SEARCH_STEPS)
                return [FoundText(*each) for each in connection.execute(statement, (*values, limit))]

        try:
            return await asyncio.to_thread(search)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                hint = "name a word that fewer messages have"
                raise StoreError(f"the search took more than {SEARCH_TIME:g} seconds", hint=hint) from error
            raise explained(error, self.database.path) from error

    # Retention.

    async def used_bytes(self) -> int:
        """The size of everything in the file, without the room that deleted things have left."""
        return await self.database.read(_used_bytes)

    async def prune(self, retention: Retention, *, now: float | None = None) -> Sequence[str]:
        """Delete what is too old or too much, but no session that is open or in which a turn runs; return the keys of the deleted ones."""
        moment = time.time() if now is None else now
        oldest = moment - retention.session_days * DAY
        oldest_entry = stamp(datetime.fromtimestamp(moment - retention.audit_days * DAY, UTC))

        def prune(connection: Connection) -> list[_Deleted]:
            connection.execute("DELETE FROM audit WHERE at < ?", (oldest_entry,))
            rows = connection.execute(f"SELECT key, {_USED}, turn FROM session ORDER BY 2, id").fetchall()  # noqa: S608
            running = {key for key, _, turn in rows if turn}

            def is_free(key: str) -> bool:  # as it is now: one may be opened while we wait
                return key not in running and key not in self.journal.claimed

            deleted = [delete_row(connection, key) for key, used, _ in rows if used < oldest and is_free(key)]
            further = _to_go(connection, is_free, retention.total_bytes)
            while _used_bytes(connection) > retention.total_bytes:
                if (key := next(further, None)) is None:
                    _log.error("the data need more than their limit: what is left is in use, or of owners with little")
                    break
                deleted.append(delete_row(connection, key))
            return deleted

        deleted = await self.database.run(prune, empties_log=True)
        await self._deleted(deleted)
        return [key for key, _, _ in deleted]

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


def rows_of(agents: tuple[str, ...], keys: frozenset[str] | None) -> "tuple[str, list[Any]]":
    """Return the condition for rows of these agents and keys that are not archived, and its values. A share sees no others."""
    where = f"archived = 0 AND agent IN ({', '.join('?' * len(agents))})"
    values: list[Any] = [*agents]
    if keys is not None:
        where += f" AND key IN ({', '.join('?' * len(keys))})"
        values += sorted(keys)
    return where, values


def _like(word: str) -> str:
    """Return the pattern for a word in a text."""
    return "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"


def _stored(row: GatewaySession) -> "list[object]":
    values = msgspec.structs.asdict(row)
    return [*{**values, "directories": msgspec.json.encode(row.directories).decode()}.values()]


def _row(values: Sequence[Any]) -> GatewaySession:
    given = dict(zip(_COLUMNS, values, strict=True))
    given["directories"] = msgspec.json.decode(given["directories"], type=tuple[str, ...])
    flags = {name: bool(given[name]) for name in ("archived", "renamed", "failed")}
    return GatewaySession(**{**given, **flags})


def _show(connection: Connection, key: str) -> None:
    """Show a row, and archive the one that had its place. A later one keeps it."""
    same = "(agent, session_id) = (SELECT agent, session_id FROM session WHERE key = ?) AND archived = 0"
    older = f"UPDATE session SET archived = 1 WHERE {same} AND id < (SELECT id FROM session WHERE key = ?)"  # noqa: S608
    connection.execute(older, (key, key))
    shown = f"UPDATE session SET archived = 0 WHERE key = ? AND NOT EXISTS (SELECT 1 FROM session WHERE {same})"  # noqa: S608
    connection.execute(shown, (key, key))


def row_in(connection: Connection, key: str) -> GatewaySession | None:
    """Return the row with this key."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM session WHERE key = ?"  # noqa: S608
    found = connection.execute(query, (key,)).fetchone()
    return None if found is None else _row(found)


def put_row(connection: Connection, row: GatewaySession, number: int) -> None:
    """Store a row in the place of the one with its key, or as a new one; `number` is that of its last event, which is stored elsewhere."""
    connection.execute(_PUT, (number, *_stored(row)))


def delete_row(connection: Connection, key: str) -> _Deleted:
    """Delete a row with its events, and what other tables have of it."""
    # What is deleted is overwritten: the text of a session may be why it is deleted.
    connection.execute("PRAGMA secure_delete = ON")
    remove_text(connection, key)
    query = "SELECT agent, session_id FROM session WHERE key = ? AND archived = 0"
    agent, session_id = connection.execute(query, (key,)).fetchone() or ("", "")
    connection.execute("DELETE FROM session WHERE key = ?", (key,))
    return key, agent, session_id


def _to_go(connection: Connection, is_free: Callable[[str], bool], total: int) -> Iterator[str]:
    """Yield the sessions to delete while there is too much: each time the least recently used one of the owner who has most.

    An owner who has less than an equal share loses none. It ends where all sessions together need less than half of the limit: it is not
    they that need the rest, and one who fills the audit log is not to empty the journal.
    """
    query = f"""
        SELECT key, owner, {_ROW} + length(state) + (SELECT ifnull(sum(length(data)), 0) FROM event WHERE event.session = session.id)
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
