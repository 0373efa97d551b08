"""What the hub of a worker knows of its machine: its name, its roots, and the workspaces that other machines have too."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from antiphon.fleet.membership import WorkerState
from antiphon.fleet.placement import directory_at, home_at
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.settings import HubSettings
from antiphon.journal.owner import OwnedElsewhere, SessionHome

__all__ = ["WorkerPlace", "machine_name"]


def machine_name() -> str:
    """Return a name for this machine that no other one has, and that stays: directories that are not shared are nowhere else.

    The name of the host alone may be that of another machine as well. Containers that share an image may share its id, but not both.
    """
    import platform
    from hashlib import blake2b

    name = platform.node().partition(".")[0] or "machine"
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return f"{name}-{blake2b(text.encode(), digest_size=3).hexdigest()}"
    return name


class WorkerPlace:
    """The place of a hub in a fleet: `gateway.base.HubPlace`."""

    def __init__(self, about: WorkerState) -> None:
        """`about` has what does not change of a worker."""
        self._about = about
        self.worker = about.name
        self.host = about.host

    def home_of(self, directories: Sequence[str]) -> SessionHome:
        """Return what is stored of a session with these directories, to know later where else it can be."""
        return home_at(self._about, directories)

    def localized(self, row: GatewaySession) -> GatewaySession:
        """Return a row with its directories as they are here.

        Raises:
            OwnedElsewhere: one of them is not.
        """
        home = HubSettings(row.state).home
        if not home.host:
            return row
        here = [self._directory(each, home) for each in (row.cwd, *row.directories)]
        return msgspec.structs.replace(row, cwd=here[0], directories=tuple(here[1:]))

    def _directory(self, directory: str, home: SessionHome) -> str:
        found = directory_at(self._about, directory, home)
        if found is None:
            raise OwnedElsewhere(
                f"`{directory}` is on `{home.host}`, and worker `{self.worker}` has no root or workspace with it",
                hint="it is looked for at another worker",
            )
        if home.host != self.host and not Path(found).is_dir():
            raise OwnedElsewhere(
                f"the shared workspace of `{directory}` has no such directory on `{self.host}`",
                hint="look whether it is mounted there",
            )
        return found
