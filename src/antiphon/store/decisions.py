"""What the user answered with "always": a rule, a verdict, for how far and for how long. Rules are text here, and never read.

Rule 1: a decision for a session holds in that session of that agent: two agents may give their sessions the same id.
Rule 2: a decision for a project, or for everywhere, holds whichever agent asks: it is about what is done, not about who does it.
Rule 3: what has expired is not told, and goes when the next decision is made.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import Any, Final, Literal, TypeAlias

import msgspec

from antiphon.store.database import Database
from antiphon.store.times import stamp, utc_now

__all__ = ["Decision", "DecisionStore", "Scope", "Verdict", "scope_key"]

Scope: TypeAlias = Literal["session", "project", "everywhere"]
Verdict: TypeAlias = Literal["allow", "deny"]

_COLUMNS: Final = "id, rule, verdict, scope, session_id, project, agent, made_at, expires_at"


class Decision(msgspec.Struct, frozen=True):
    """One remembered answer. `session_id` and `project` are empty where the scope does not need them."""

    id: int
    rule: str
    verdict: str
    scope: str
    session_id: str
    project: str
    agent: str
    made_at: str
    expires_at: str | None


class DecisionStore:
    """The remembered answers in a database. What it wrote is on the disk when a method returns."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self._clock = clock

    async def remember(
        self,
        rule: str,
        verdict: Verdict,
        scope: Scope,
        *,
        session_id: str = "",
        project: str = "",
        agent: str = "",
        expires_at: datetime | str | None = None,
    ) -> Decision:
        """Keep an answer. The same rule in the same scope is answered anew, whatever was said before.

        Raises:
            ValueError: a scope without what it is about, or a time without its zone.
        """
        until = _time(expires_at)
        key = scope_key(scope, session_id, project)
        about = (key["session_id"], key["project"], agent)
        at = stamp(self._clock())

        def remember(connection: Connection) -> Decision:
            connection.execute("DELETE FROM decision WHERE expires_at <= ?", (at,))
            same = "rule = ? AND scope = ? AND session_id = ? AND project = ? AND (scope <> 'session' OR agent = ?)"
            connection.execute(f"DELETE FROM decision WHERE {same}", (rule, scope, *about))  # noqa: S608
            row = (rule, verdict, scope, *about, at, until)
            places = _COLUMNS.removeprefix("id, ")
            added = connection.execute(f"INSERT INTO decision ({places}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
            return Decision(added.lastrowid or 0, *row)

        return await self.database.run(remember)

    async def valid(
        self, session_id: str = "", project: str = "", now: datetime | str | None = None, *, agent: str = ""
    ) -> list[Decision]:
        """Those that hold for this session in this project, the oldest first."""
        at = _time(now) or stamp(self._clock())
        where = (
            "WHERE (expires_at IS NULL OR expires_at > ?) AND (scope = 'everywhere' OR (scope = 'project' AND project = ?)"
            " OR (scope = 'session' AND session_id = ? AND agent = ?))"
        )
        return await self.database.read(lambda connection: _rows(connection, where, (at, project, session_id, agent)))

    async def all(self) -> list[Decision]:
        """Every decision that has not expired, the oldest first."""
        where, at = "WHERE expires_at IS NULL OR expires_at > ?", stamp(self._clock())
        return await self.database.read(lambda connection: _rows(connection, where, (at,)))

    async def revoke(self, which: int | str) -> int:
        """Forget the decision of this number, or all of this rule; how many that were."""
        column = "id" if isinstance(which, int) else "rule"
        delete = f"DELETE FROM decision WHERE {column} = ?"  # noqa: S608
        return await self.database.run(lambda connection: connection.execute(delete, (which,)).rowcount)

    async def revoke_session(self, session_id: str, *, agent: str = "") -> int:
        """Forget what was decided for this session of this agent; how many that were."""
        delete = "DELETE FROM decision WHERE scope = 'session' AND session_id = ? AND agent = ?"
        return await self.database.run(lambda connection: connection.execute(delete, (session_id, agent)).rowcount)

    async def revoke_all(self) -> int:
        """Forget everything; how many that were."""
        return await self.database.run(lambda connection: connection.execute("DELETE FROM decision").rowcount)


def scope_key(scope: Scope, session_id: str, project: str) -> dict[str, str]:
    """Return the session and the project that a decision of this scope is about; empty where the scope does not need them.

    Raises:
        ValueError: a scope without what it is about.
    """
    if (scope == "session" and not session_id) or (scope == "project" and not project):
        raise ValueError(f"a decision for a {scope} has to say which")
    return {
        "session_id": session_id if scope == "session" else "",
        "project": project if scope == "project" else "",
    }


def _time(moment: datetime | str | None) -> str | None:
    """A moment as it is stored, whichever way it was given."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return None if moment is None else stamp(moment)


def _rows(connection: Connection, where: str, values: Sequence[Any]) -> list[Decision]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM decision {where} ORDER BY id", values)  # noqa: S608
    return [Decision(*row) for row in rows]
