"""Every decision about what an agent may do, in the order in which they were made. Nothing here is ever changed or deleted.

What is kept of a call is its tool, kind and subject (a command, a path), never its raw input: that may hold whole files and secrets.
"""

from collections.abc import Callable
from datetime import datetime
from sqlite3 import Connection
from typing import Final

import msgspec

from antiphon.store.database import Database
from antiphon.store.times import stamp, utc_now

__all__ = ["MAX_TEXT", "AuditEntry", "AuditStore"]

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
    """Where the decision came from: the rule's place, `mode`, `remembered`, `user` and so on."""
    why: str
    answer: str = ""
    """What the agent was told: the id of an option; empty where it did not ask."""
    at: str = ""
    """When; given by the store."""


_COLUMNS: Final = AuditEntry.__struct_fields__


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
        insert = f"INSERT INTO audit ({', '.join(_COLUMNS)}) VALUES ({places})"  # noqa: S608
        self.database.post(lambda connection: connection.execute(insert, row))

    async def latest(self, limit: int = 50, *, session_id: str | None = None) -> list[AuditEntry]:
        """The last so many, the oldest of them first; of one session, or of all."""
        select = (
            f"SELECT {', '.join(_COLUMNS)} FROM audit WHERE session_id = ifnull(?, session_id) ORDER BY id DESC LIMIT ?"  # noqa: S608
        )

        def latest(connection: Connection) -> list[AuditEntry]:
            return [AuditEntry(*row) for row in connection.execute(select, (session_id, max(limit, 0)))][::-1]

        return await self.database.read(latest)


def _short(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # a path may have letters that SQLite does not take
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
