"""Sessions by the names that users give them, and the last one of each directory. The agent keeps what was said in them.

A name belongs to an agent and a directory: `review` here is not `review` there. The empty name is the session that was used last
without one, so that it can be continued.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from antiphon.store.database import Database
from antiphon.store.times import stamp, utc_now

__all__ = ["NameStore", "NamedSession"]

_COLUMNS: Final = "name, agent, session_id, cwd, used_at"


class NamedSession(msgspec.Struct, frozen=True):
    """Which session of which agent a name means in a directory."""

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
        """From now on the name means this session, and it is the one that was used last."""
        row = NamedSession(name, agent, session_id, cwd, stamp(self._clock()))
        put = (
            f"INSERT INTO named_session ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)"  # noqa: S608
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
        """All that have a name, the last used first."""
        return await self.database.read(lambda connection: _rows(connection, "WHERE name <> ''", ()))

    async def forget(self, name: str) -> int:
        """Forget this name, wherever it is used; how often that was. The sessions stay with their agents."""
        forget = "DELETE FROM named_session WHERE name = ?"
        return await self.database.run(lambda connection: connection.execute(forget, (name,)).rowcount)

    async def _first(self, where: str, values: Sequence[str]) -> NamedSession | None:
        rows = await self.database.read(lambda connection: _rows(connection, where, values))
        return rows[0] if rows else None


def _rows(connection: Connection, where: str, values: Sequence[Any]) -> list[NamedSession]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM named_session {where} ORDER BY used_at DESC", values)  # noqa: S608
    return [NamedSession(*row) for row in rows]
