"""What the user's own configuration says about things that a turn is told, and that would not count if it were told without it."""

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from antiphon.engines.codex.server import Server

__all__ = ["Configured", "configured"]


class _Workspace(msgspec.Struct, frozen=True):
    writable_roots: list[str] = []
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


class Configured(msgspec.Struct, frozen=True):
    """The part of it that is read here."""

    sandbox_mode: str | None = None
    default_permissions: str | None = None
    sandbox_workspace_write: _Workspace | None = None
    model_reasoning_summary: str | None = None

    @property
    def workspace(self) -> dict[str, Any] | None:
        """The sandbox of the workspace, as a turn takes it."""
        found = self.sandbox_workspace_write
        if found is None:
            return None
        return {
            "type": "workspaceWrite",
            "writableRoots": found.writable_roots,
            "networkAccess": found.network_access,
            "excludeTmpdirEnvVar": found.exclude_tmpdir_env_var,
            "excludeSlashTmp": found.exclude_slash_tmp,
        }


class _Read(msgspec.Struct, frozen=True):
    config: Configured = Configured()


async def configured(server: "Server", cwd: str) -> Configured:
    """As it stands for this directory.

    Raises:
        ServerRefused: the server does not say.
        RemoteProtocolError: it says something else.
    """
    return (await server.call("config/read", {"cwd": cwd}, _Read)).config
