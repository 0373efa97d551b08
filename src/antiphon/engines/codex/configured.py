"""What the user's own configuration says about things that a turn is told, and that would not count if it were told without it."""

from collections.abc import Iterable
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


class _Project(msgspec.Struct, frozen=True):
    trust_level: str | None = None


class Configured(msgspec.Struct, frozen=True):
    """The part of it that is read here."""

    approval_policy: str | dict[str, Any] | None = None

    sandbox_mode: str | None = None
    default_permissions: str | None = None
    sandbox_workspace_write: _Workspace | None = None
    model_reasoning_summary: str | None = None
    projects: dict[str, _Project] | None = None

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

    def trusts(self, places: Iterable[str]) -> bool | None:
        """Return whether the user trusts a project in Codex's own file. None if the file does not say."""
        levels = {found.trust_level for place in places if (found := (self.projects or {}).get(place)) is not None}
        return False if "untrusted" in levels else True if "trusted" in levels else None

    def rights(self, trusts: bool | None) -> dict[str, Any]:
        """Return when Codex asks and what its sandbox lets it do: what the user has said, and by its own defaults where they have not.

        A thread is told whether to read the project's own settings. Codex takes that for a word about rights too: in a
        project that it is told to trust it writes unasked. These settings keep the two apart. What the user has said is told
        again, because a thread that is resumed keeps the rights of its last turn, and those are ours.
        """
        if trusts is False:
            return {}
        rights: dict[str, Any] = {"approval_policy": self.approval_policy or "on-request"}
        if self.default_permissions is None:
            rights["sandbox_mode"] = self.sandbox_mode or ("workspace-write" if trusts else "read-only")
        return rights


class _Read(msgspec.Struct, frozen=True):
    config: Configured = Configured()


async def configured(server: "Server", cwd: str) -> Configured:
    """As it stands for this directory.

    Raises:
        ServerRefused: the server does not say.
        RemoteProtocolError: it says something else.
    """
    return (await server.call("config/read", {"cwd": cwd}, _Read)).config
