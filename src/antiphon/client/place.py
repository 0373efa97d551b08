"""Where a session works and with what: said to the agent when it is opened, and again when it has to be opened again."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from antiphon.local.files import Roots
from antiphon.protocol import v1

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """A directory, perhaps more of them, and MCP servers."""

    cwd: str
    directories: tuple[str, ...] = ()
    servers: tuple[v1.McpServer, ...] = ()

    @classmethod
    def at(
        cls,
        cwd: str | os.PathLike[str] | None,
        directories: Sequence[str | os.PathLike[str]] = (),
        servers: Sequence[v1.McpServer] = (),
    ) -> "Place":
        """With absolute paths, as the protocol wants them; without a directory it is ours."""
        return cls(
            os.path.abspath(os.getcwd() if cwd is None else os.fspath(cwd)),
            tuple(os.path.abspath(os.fspath(directory)) for directory in directories),
            tuple(servers),
        )

    @cached_property
    def roots(self) -> Roots:
        """Where files may be read and commands may run."""
        return Roots((self.cwd, *self.directories))

    def new(self) -> v1.NewSession:
        """Open a session here."""
        return v1.NewSession(self.cwd, list(self.servers), additional_directories=list(self.directories))

    def load(self, session_id: str) -> v1.LoadSession:
        """Open an earlier one here and hear its history."""
        return v1.LoadSession(session_id, self.cwd, list(self.servers), additional_directories=list(self.directories))

    def resume(self, session_id: str) -> v1.ResumeSession:
        """Open an earlier one here."""
        return v1.ResumeSession(
            session_id, self.cwd, additional_directories=list(self.directories), mcp_servers=list(self.servers)
        )

    def fork(self, session_id: str) -> v1.ForkSession:
        """Open one here that starts where another stands."""
        return v1.ForkSession(
            session_id, self.cwd, additional_directories=list(self.directories), mcp_servers=list(self.servers)
        )
