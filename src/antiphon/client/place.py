"""Where a session works and with what: said to the agent when it is opened, and again when it has to be opened again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from antiphon.local.roots import AnyPath, Workspace
from antiphon.protocol import v1

__all__ = ["Place"]


@dataclass(frozen=True)
class Place(Workspace):
    """The directories and the MCP servers of a session."""

    servers: tuple[v1.McpServer, ...] = ()

    @classmethod
    def at(
        cls,
        cwd: AnyPath | None,
        directories: Iterable[AnyPath] = (),
        servers: Sequence[v1.McpServer] = (),
    ) -> Self:
        """Return these directories with absolute paths, as the protocol wants them; without a directory, the current one."""
        return replace(super().at(cwd, directories), servers=tuple(servers))

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
