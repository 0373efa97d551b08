"""Projects whose own configuration may loosen the policy, and files of theirs that engines may read.

Trust is in bytes: a file that has changed is not trusted any more.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from sqlite3 import Connection
from typing import TYPE_CHECKING

import msgspec

from antiphon.store.database import Database
from antiphon.store.times import stamp, utc_now

if TYPE_CHECKING:
    from antiphon.config.project_files import ProjectFile

__all__ = ["TrustStore", "TrustedProject"]


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
            ValueError: there is no digest: nothing cannot be trusted.
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
