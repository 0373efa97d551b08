"""Sessions with their history, the ids of their engine sessions, and their names. An update is bytes here, never decoded."""

import base64
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from sqlite3 import Connection, IntegrityError
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec

from antiphon.store.database import Database, stamp, utc_now
from antiphon.store.errors import BadCursor, NoSuchSession, SessionExists

__all__ = [
    "MAX_LIST",
    "EngineSessionStore",
    "NameStore",
    "NamedSession",
    "SearchStore",
    "SessionRow",
    "SessionStore",
    "read_rows",
]

PAGE_BYTES: Final = 1024 * 1024
"""A page of history ends with the update that passes this: pictures are large, and not all of them fit in memory at once."""

MAX_LIST: Final = 1000
"""Most rows of one list. The cursor leads to more."""

_COLUMNS: Final = "id, engine, cwd, directories, title, created_at, updated_at, length, client"


class SessionRow(msgspec.Struct, frozen=True):
    """What is known of a session without opening its history."""

    id: str
    engine: str
    cwd: str
    directories: tuple[str, ...]
    title: str | None
    created_at: str
    updated_at: str
    length: int
    """How many updates its history has."""
    client: str = ""
    """The name of the client that made it; empty if the client sent none, or an older version did not store it."""


class SessionStore:
    """The sessions in a database. Each method is one transaction; what it wrote is on the disk when it returns."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self._clock = clock

    async def create(
        self,
        id: str,
        engine: str,
        cwd: str,
        directories: Sequence[str] = (),
        *,
        created_at: datetime | None = None,
        client: str = "",
    ) -> SessionRow:
        """Begin a session with an empty history.

        Raises:
            SessionExists: the id is taken.
        """
        at = self._time(created_at)
        row = (id, engine, cwd, _pack(directories), at, at, client)

        def create(connection: Connection) -> SessionRow:
            places = "id, engine, cwd, directories, created_at, updated_at, client"
            try:
                connection.execute(f"INSERT INTO session ({places}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
            except IntegrityError as error:
                raise SessionExists(id) from error
            return SessionRow(id, engine, cwd, tuple(directories), None, at, at, 0, client)

        return await self.database.run(create)

    async def append(self, id: str, updates: Sequence[bytes]) -> int:
        """Add to the history, in this order, and return the number of the last update.

        Raises:
            NoSuchSession: it was deleted, or never was.
        """
        updates = tuple(updates)  # as they are now: the job comes later
        at = stamp(self._clock())

        def append(connection: Connection) -> int:
            # The length is the sequence: under the writer's lock no other process can take the same numbers.
            # Never back in time: another process may have a later one, and a clock may be set back.
            change = "UPDATE session SET length = length + ?, updated_at = max(updated_at, ?) WHERE id = ?"
            if connection.execute(change, (len(updates), at, id)).rowcount == 0:
                raise NoSuchSession(id)
            key, length = connection.execute("SELECT key, length FROM session WHERE id = ?", (id,)).fetchone()
            rows = ((key, seq, data) for seq, data in enumerate(updates, length - len(updates) + 1))
            connection.executemany("INSERT INTO history (session, seq, data) VALUES (?, ?, ?)", rows)
            return int(length)

        return await self.database.run(append)

    async def history(self, id: str) -> list[bytes]:
        """The whole history, in order."""
        return [update async for page in self.pages(id) for update in page]

    async def pages(self, id: str, *, page_bytes: int = PAGE_BYTES) -> AsyncIterator[list[bytes]]:
        """The whole history, some entries at a time. What is added meanwhile comes too."""
        seen = 0

        def page(connection: Connection) -> list[bytes]:
            size, found = 0, []
            rows = "SELECT data FROM history WHERE session = ? AND seq > ? ORDER BY seq"
            for (data,) in connection.execute(rows, (_key(connection, id), seen)):
                found.append(data)
                size += len(data)
                if size >= page_bytes:
                    break
            return found

        while found := await self.database.read(page):
            seen += len(found)
            yield found

    async def read(self, id: str, after: int, limit: int) -> "list[tuple[int, bytes]]":
        """The updates after a number, each with its own: at most `limit` of them, or as many as pass the size of a page.

        Raises:
            NoSuchSession: it was deleted, or never was.
        """

        def read(connection: Connection) -> list[tuple[int, bytes]]:
            size, found = 0, []
            rows = "SELECT seq, data FROM history WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
            for seq, data in connection.execute(rows, (_key(connection, id), after, limit)):
                found.append((seq, data))
                size += len(data)
                if size >= PAGE_BYTES:
                    break
            return found

        return await self.database.read(read)

    async def get(self, id: str) -> SessionRow | None:
        """What is known of a session, or `None` if it is not there."""
        rows = await self.database.read(lambda connection: read_rows(connection, "WHERE id = ?", (id,)))
        return rows[0] if rows else None

    async def list(
        self, engine: str | None = None, cwd: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> "tuple[list[SessionRow], str | None]":
        """Sessions, the last used first, and a cursor for those after them (`None`: that was all).

        A cursor stays good whatever happens meanwhile: nothing comes twice. A session that is used while the pages are read
        moves to the front, before the pages still to come.

        Raises:
            BadCursor: it is not one of ours.
        """
        limit = max(1, min(limit, MAX_LIST))
        before = ("9999", "") if cursor is None else _unpack_cursor(cursor)
        where = "WHERE (updated_at, id) < (?, ?) AND engine = ifnull(?, engine) AND cwd = ifnull(?, cwd)"
        order = "ORDER BY updated_at DESC, id DESC LIMIT ?"
        values = (*before, engine, cwd, limit + 1)
        rows = await self.database.read(lambda connection: read_rows(connection, f"{where} {order}", values))
        more, rows = len(rows) > limit, rows[:limit]
        return rows, _pack_cursor(rows[-1]) if more else None

    async def last(
        self, engine: str, cwd: str, *, client: str | None = None, not_by: Collection[str] = (), but: str = ""
    ) -> SessionRow | None:
        """The session of this engine and directory that was used last, of those that are not empty.

        `client`: of those that this client made; `not_by`: of those that none of these made; `but`: not this one.
        """
        where = (
            "WHERE engine = ? AND cwd = ? AND length > 0 AND client = ifnull(?, client) AND id != ?"
            f" AND client NOT IN ({', '.join('?' * len(not_by))}) ORDER BY updated_at DESC, id DESC LIMIT 1"
        )
        values = (engine, cwd, client, but, *not_by)
        rows = await self.database.read(lambda connection: read_rows(connection, where, values))
        return rows[0] if rows else None

    async def beginning(self, id: str, engine: str | None = None) -> Sequence[SessionRow]:
        """The sessions whose ids begin like this, the last used first; the one with just this id alone."""
        where = "WHERE substr(id, 1, length(?)) = ? AND engine = ifnull(?, engine) ORDER BY updated_at DESC, id DESC"
        rows = await self.database.read(lambda connection: read_rows(connection, where, (id, id, engine)))
        return [row for row in rows if row.id == id] or rows

    async def rename(self, id: str, title: str | None) -> None:
        """Give it a title, or take it away."""
        await self._change(id, "title = ?", title)

    async def touch(self, id: str, at: datetime | None = None) -> None:
        """Store when a session was last used: now, or at the given time."""
        await self._change(id, "updated_at = ?", self._time(at))

    async def set_state(self, id: str, state: bytes) -> None:
        """Keep what its engine needs to go on: a small piece of JSON with the mode, the options and so on."""
        await self._change(id, "state = ?", state)

    async def state(self, id: str) -> bytes:
        """What `set_state` kept; empty before."""

        def state(connection: Connection) -> bytes:
            (kept,) = connection.execute("SELECT state FROM session WHERE key = ?", (_key(connection, id),)).fetchone()
            return bytes(kept)

        return await self.database.read(state)

    async def fork(
        self,
        source: str,
        new_id: str,
        *,
        cwd: str | None = None,
        directories: Sequence[str] | None = None,
        state: bytes | None = None,
        client: str = "",
        length: int | None = None,
    ) -> SessionRow:
        """Begin a session with the history, title and state of another, or with a state of its own; the two go on apart.

        `length`: how many updates of the history it begins with; without that, all of them.

        Raises:
            NoSuchSession: there is no `source`.
            SessionExists: `new_id` is taken.
        """
        at = self._time(None)
        packed = None if directories is None else _pack(directories)

        def fork(connection: Connection) -> SessionRow:
            key = _key(connection, source)
            copy = (
                "INSERT INTO session (id, engine, cwd, directories, title, created_at, updated_at, length, state, client)"
                " SELECT ?, engine, ifnull(?, cwd), ifnull(?, directories), title, ?, ?, min(length, ifnull(?, length)), ifnull(?, state), ?"
                " FROM session WHERE key = ?"
            )
            try:
                new_key = connection.execute(copy, (new_id, cwd, packed, at, at, length, state, client, key)).lastrowid
            except IntegrityError as error:
                raise SessionExists(new_id) from error
            connection.execute(
                "INSERT INTO history (session, seq, data) SELECT ?, seq, data FROM history WHERE session = ?"
                " AND seq <= ifnull(?, seq) ORDER BY seq",
                (new_key, key, length),
            )
            return read_rows(connection, "WHERE id = ?", (new_id,))[0]

        return await self.database.run(fork)

    async def archive(self, id: str, new_id: str, state: bytes = b"") -> SessionRow:
        """Give everything of a session to a new one (history, title, state, dates, engine sessions); under its own id it begins afresh.

        What is left keeps its directories, and has the state that is given.

        Raises:
            NoSuchSession: there is no such session.
            SessionExists: `new_id` is taken.
        """
        at = self._time(None)

        def archive(connection: Connection) -> SessionRow:
            key = _key(connection, id)
            try:  # the row with all that hangs on it gets the new id, and nothing has to be moved
                connection.execute("UPDATE session SET id = ? WHERE key = ?", (new_id, key))
            except IntegrityError as error:
                raise SessionExists(new_id) from error
            connection.execute(
                "INSERT INTO session (id, engine, cwd, directories, created_at, updated_at, state, client)"
                " SELECT ?, engine, cwd, directories, created_at, ?, ?, client FROM session WHERE key = ?",
                (id, at, state, key),
            )
            return read_rows(connection, "WHERE id = ?", (new_id,))[0]

        return await self.database.run(archive)

    async def delete(self, id: str) -> bool:
        """Forget a session and its history. False: it was not there."""
        deleted = "DELETE FROM session WHERE id = ?"
        return await self.database.run(lambda connection: connection.execute(deleted, (id,)).rowcount > 0)

    async def _change(self, id: str, assignment: str, value: str | bytes | None) -> None:
        def change(connection: Connection) -> None:
            if connection.execute(f"UPDATE session SET {assignment} WHERE id = ?", (value, id)).rowcount == 0:  # noqa: S608
                raise NoSuchSession(id)

        await self.database.run(change)

    def _time(self, at: datetime | None) -> str:
        return stamp(self._clock() if at is None else at)


def _key(connection: Connection, id: str) -> int:
    found = connection.execute("SELECT key FROM session WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise NoSuchSession(id)
    return int(found[0])


def read_rows(connection: Connection, rest: str, values: Sequence[object]) -> list[SessionRow]:
    """The sessions that the rest of a query picks."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM session {rest}", values)  # noqa: S608 - both are ours
    return [
        SessionRow(id, engine, cwd, msgspec.json.decode(directories, type=tuple[str, ...]), *others)
        for id, engine, cwd, directories, *others in rows
    ]


def _pack(directories: Sequence[str]) -> str:
    return msgspec.json.encode(list(directories)).decode()


def _pack_cursor(last: SessionRow) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([last.updated_at, last.id])).decode()


def _unpack_cursor(cursor: str) -> tuple[str, str]:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor.encode()), type=tuple[str, str])
    except (ValueError, msgspec.DecodeError) as error:
        raise BadCursor("this cursor is not one of ours", hint="list again without a cursor") from error


# Which session of which engine (in the store, a conversation) belongs to which session of ours. The engines store them; here are only ids.


class EngineSessionStore:
    """The ids of engine sessions in a database. What it wrote is on the disk when a method returns. They are deleted with their session."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def set_engine_sessions(self, id: str, engine_sessions: Mapping[str, str]) -> None:
        """Set the engine sessions of a session, engine → id there, and no others. One that another session had is taken from it.

        Raises:
            NoSuchSession: it was deleted, or never was.
        """
        wanted = list(engine_sessions.items())

        def put(connection: Connection) -> None:
            found = connection.execute("SELECT key FROM session WHERE id = ?", (id,)).fetchone()
            if found is None:
                raise NoSuchSession(id)
            connection.execute("DELETE FROM conversation WHERE session = ?", found)
            connection.executemany(
                "INSERT OR REPLACE INTO conversation (engine, id, session) VALUES (?, ?, ?)",
                [(engine, engine_session, found[0]) for engine, engine_session in wanted],
            )

        await self.database.run(put)

    async def engine_sessions(self) -> dict[tuple[str, str], str]:
        """All of them: (engine, id of the engine session) → the id of the session."""

        def every(connection: Connection) -> dict[tuple[str, str], str]:
            rows = (
                "SELECT conversation.engine, conversation.id, session.id"
                " FROM conversation JOIN session ON session.key = conversation.session"
            )
            return {(engine, engine_session): id for engine, engine_session, id in connection.execute(rows)}

        return await self.database.read(every)

    async def session_of(self, engine: str, engine_session_id: str) -> str | None:
        """The id of the session that has this engine session."""

        def one(connection: Connection) -> str | None:
            row = connection.execute(
                "SELECT session.id FROM conversation JOIN session ON session.key = conversation.session"
                " WHERE conversation.engine = ? AND conversation.id = ?",
                (engine, engine_session_id),
            ).fetchone()
            return None if row is None else str(row[0])

        return await self.database.read(one)


# Search in histories without decoding them: what is stored is bytes of JSON, and stays that.
# So a word is found where it stands in one entry of a history or in the title, and names of JSON fields are words like others. To search
# what people see, fold a history first.

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
"""The lower case of ASCII letters, as SQLite's `lower` makes it."""


class SearchStore:
    """Searches the sessions of a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def search(self, engine: str, words: Sequence[str], limit: int = 50) -> list[SessionRow]:
        """Sessions of an engine in which each of these words stands, the last used first. Case counts for letters beyond ASCII only."""
        limit = max(1, min(limit, MAX_LIST))
        places = [(word.translate(_LOWER), _as_stored(word)) for word in words]
        has = (
            " AND (instr(lower(title), ?) > 0 OR EXISTS (SELECT 1 FROM history"
            " WHERE history.session = session.key AND instr(lower(CAST(data AS TEXT)), ?) > 0))"
        )
        where = f"WHERE engine = ? AND length > 0{has * len(places)} ORDER BY updated_at DESC, id DESC LIMIT ?"
        values = (engine, *(text for place in places for text in place), limit)
        return await self.database.read(lambda connection: read_rows(connection, where, values))

    async def count(self, id: str, beginning: bytes) -> int:
        """How many entries of a session's history begin with these bytes."""
        entries = (
            "SELECT count(*) FROM history JOIN session ON session.key = history.session"
            " WHERE session.id = ? AND substr(data, 1, ?) = ?"
        )

        def count(connection: Connection) -> int:
            return int(connection.execute(entries, (id, len(beginning), beginning)).fetchone()[0])

        return await self.database.read(count)


def _as_stored(word: str) -> str:
    """The word as it stands in JSON: with quotes and line ends escaped."""
    return msgspec.json.encode(word).decode()[1:-1].translate(_LOWER)


# Sessions by the names that users give them, and the last one of each directory. The agent has the history.
# A name belongs to an agent and a directory: `review` here is not `review` there. The empty name is the session that was used last
# without one, so that it can be continued.

_NAME_COLUMNS: Final = "name, agent, session_id, cwd, used_at"


class NamedSession(msgspec.Struct, frozen=True):
    """The session of an agent that a name means in a directory."""

    name: str
    agent: str
    session_id: str
    cwd: str
    used_at: str


class NameStore:
    """The names in a database. What it wrote is on the disk when a method returns."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self._clock = clock

    async def put(self, name: str, agent: str, session_id: str, cwd: str) -> NamedSession:
        """Give a name to a session; it becomes the one that was used last."""
        row = NamedSession(name, agent, session_id, cwd, stamp(self._clock()))
        put = (
            f"INSERT INTO named_session ({_NAME_COLUMNS}) VALUES (?, ?, ?, ?, ?)"  # noqa: S608
            " ON CONFLICT (agent, cwd, name) DO UPDATE SET session_id = excluded.session_id, used_at = excluded.used_at"
        )
        await self.database.run(lambda connection: connection.execute(put, msgspec.structs.astuple(row)).rowcount)
        return row

    async def get(self, name: str, agent: str, cwd: str) -> NamedSession | None:
        """The session of this name, if there is one."""
        return await self._first("WHERE name = ? AND agent = ? AND cwd = ?", (name, agent, cwd))

    async def last(self, agent: str, cwd: str) -> NamedSession | None:
        """The session that this agent was last used with in this directory, named or not."""
        return await self._first("WHERE agent = ? AND cwd = ?", (agent, cwd))

    async def list(self) -> "list[NamedSession]":
        """All sessions with a name, the last used first."""
        return await self.database.read(lambda connection: _name_rows(connection, "WHERE name <> ''", ()))

    async def forget(self, name: str) -> int:
        """Forget this name, wherever it is used; how often that was. The sessions stay with their agents."""
        forget = "DELETE FROM named_session WHERE name = ?"
        return await self.database.run(lambda connection: connection.execute(forget, (name,)).rowcount)

    async def _first(self, where: str, values: Sequence[str]) -> NamedSession | None:
        rows = await self.database.read(lambda connection: _name_rows(connection, where, values))
        return rows[0] if rows else None


def _name_rows(connection: Connection, where: str, values: Sequence[object]) -> list[NamedSession]:
    rows = connection.execute(f"SELECT {_NAME_COLUMNS} FROM named_session {where} ORDER BY used_at DESC", values)  # noqa: S608
    return [NamedSession(*row) for row in rows]
