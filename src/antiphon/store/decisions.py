"""Remembered decisions, trusted projects and the audit log.

A decision is what the user answered with "always": a rule, a verdict, for how far and for how long. Rules are text here, and never read.

Rule 1: a decision for a session holds in that session of that agent: two agents may give their sessions the same id.
Rule 2: a decision for a project, or for everywhere, holds whichever agent asks: it is about what is done, not about who does it.
Rule 3: what has expired is not returned, and is deleted when the next decision is made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from sqlite3 import Connection
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from antiphon.store.database import Database, stamp, utc_now

if TYPE_CHECKING:
    from antiphon.config.project_files import ProjectFile

__all__ = [
    "MAX_TEXT",
    "AuditEntry",
    "AuditStore",
    "Decision",
    "DecisionStore",
    "Scope",
    "TrustStore",
    "TrustedProject",
    "Verdict",
    "scope_key",
]

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
        """Keep an answer. The same rule in the same scope replaces the earlier answer.

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
        """Decisions that hold for this session in this project, the oldest first."""
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
        raise ValueError(f"a decision for a {scope} has to name it")
    return {
        "session_id": session_id if scope == "session" else "",
        "project": project if scope == "project" else "",
    }


def _time(moment: datetime | str | None) -> str | None:
    """A moment as it is stored, whichever way it was given."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return None if moment is None else stamp(moment)


def _rows(connection: Connection, where: str, values: Sequence[object]) -> list[Decision]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM decision {where} ORDER BY id", values)  # noqa: S608
    return [Decision(*row) for row in rows]


# Projects whose own configuration may loosen the policy, and files of theirs that engines may read.
# Trust is in bytes: a file that has changed is not trusted any more.


class TrustedProject(msgspec.Struct, frozen=True):
    """A directory, and the digest of the configuration in it that was trusted."""

    project: str
    digest: str
    trusted_at: str


class TrustStore:
    """The trusted projects in a database. What it wrote is on the disk when a method returns."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self._clock = clock

    async def trust(self, project: str, digest: str) -> TrustedProject:
        """Trust this text in this project, and no other.

        Raises:
            ValueError: the digest is empty.
        """
        if not digest:
            raise ValueError("trust needs the digest of what is trusted")
        row = TrustedProject(project, digest, stamp(self._clock()))
        put = "INSERT OR REPLACE INTO trusted_project (project, digest, trusted_at) VALUES (?, ?, ?)"
        await self.database.run(lambda connection: connection.execute(put, msgspec.structs.astuple(row)).rowcount)
        return row

    async def trusted(self, project: str, digest: str) -> bool:
        """Whether exactly this text was trusted there."""
        find = "SELECT 1 FROM trusted_project WHERE project = ? AND digest = ?"
        return await self.database.read(
            lambda connection: connection.execute(find, (project, digest)).fetchone() is not None
        )

    async def all(self) -> list[TrustedProject]:
        """Every trusted project."""

        def rows(connection: Connection) -> list[TrustedProject]:
            found = "SELECT project, digest, trusted_at FROM trusted_project ORDER BY project"
            return [TrustedProject(*row) for row in connection.execute(found)]

        return await self.database.read(rows)

    async def distrust(self, project: str) -> bool:
        """Trust it no longer. False: it was not trusted."""
        delete = "DELETE FROM trusted_project WHERE project = ?"
        return await self.database.run(lambda connection: connection.execute(delete, (project,)).rowcount > 0)

    # Files that engines read.

    async def trust_files(self, files: "Iterable[ProjectFile]") -> None:
        """Trust these files as they are. One whose content is unknown is left out."""
        now = stamp(self._clock())
        rows = [(file.path, file.digest, now) for file in files if file.digest]
        put = "INSERT OR REPLACE INTO trusted_file (path, digest, trusted_at) VALUES (?, ?, ?)"
        await self.database.run(lambda connection: connection.executemany(put, rows).rowcount)

    async def digests(self) -> "Mapping[str, str]":
        """The digest of each trusted file."""
        return {row.project: row.digest for row in await self.files()}

    async def files(self) -> list[TrustedProject]:
        """Every trusted file, in the shape of a project."""

        def rows(connection: Connection) -> list[TrustedProject]:
            found = "SELECT path, digest, trusted_at FROM trusted_file ORDER BY path"
            return [TrustedProject(*row) for row in connection.execute(found)]

        return await self.database.read(rows)

    async def distrust_files(self, paths: "Iterable[str]") -> int:
        """Trust these files no longer. How many of them were trusted."""
        rows = [(path,) for path in paths]
        delete = "DELETE FROM trusted_file WHERE path = ?"
        return await self.database.run(lambda connection: max(connection.executemany(delete, rows).rowcount, 0))


# The audit log: every decision about what an agent may do, in the order in which they were made. It is never changed.
# What is kept of a call is its tool, kind and subject (a command, a path), never its raw input: that may hold whole files and secrets.

MAX_TEXT: Final = 2000
"""Letters kept of each text: a long command is recognised by its beginning."""


class AuditEntry(msgspec.Struct, frozen=True):
    """One decision: what was wanted, what came of it, and why."""

    agent: str
    session_id: str
    cwd: str
    tool: str
    kind: str
    subject: str
    verdict: str
    """What was done in the end: `allow` or `deny`."""
    rule: str
    """The rule that decided, as it was written; empty if it was none."""
    source: str
    """The source of the decision: the rule's file and line, `mode`, `remembered`, `user` and so on."""
    why: str
    answer: str = ""
    """The id of the option that the agent received; empty where the agent sent no request."""
    at: str = ""
    """When; given by the store."""


_AUDIT_COLUMNS: Final = AuditEntry.__struct_fields__


class AuditStore:
    """The list of decisions in a database."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self.database = database
        self._clock = clock

    def post(self, entry: AuditEntry) -> None:
        """Write it down without waiting for the disk. `database.flush()` waits, and raises what went wrong."""
        entry = msgspec.structs.replace(entry, at=entry.at or stamp(self._clock()))
        row = [_short(text) for text in msgspec.structs.astuple(entry)]
        places = ", ".join("?" * len(row))
        insert = f"INSERT INTO audit ({', '.join(_AUDIT_COLUMNS)}) VALUES ({places})"  # noqa: S608
        self.database.post(lambda connection: connection.execute(insert, row))

    async def latest(self, limit: int = 50, *, session_id: str | None = None) -> list[AuditEntry]:
        """The last so many, the oldest of them first; of one session, or of all."""
        select = f"SELECT {', '.join(_AUDIT_COLUMNS)} FROM audit WHERE session_id = ifnull(?, session_id) ORDER BY id DESC LIMIT ?"  # noqa: S608

        def latest(connection: Connection) -> list[AuditEntry]:
            return [AuditEntry(*row) for row in connection.execute(select, (session_id, max(limit, 0)))][::-1]

        return await self.database.read(latest)


def _short(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # a path may have letters that SQLite does not take
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
