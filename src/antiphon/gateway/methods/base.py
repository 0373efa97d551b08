"""What the methods about a whole gateway need of it: the hub of one machine has that, and the one of a fleet."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from antiphon.gateway.access.quotas import Quotas
    from antiphon.gateway.agents.process import AgentProcessState
    from antiphon.gateway.base import GatewaySessions, HubFacts, HubLinks, Principal
    from antiphon.gateway.methods.rows import RowFeed

__all__ = ["GatewayHub", "ListedAgent", "ServedDirectories"]


class ListedAgent(Protocol):
    """An agent as a page shows it."""

    @property
    def name(self) -> str:
        """Its name in addresses."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def state(self) -> "AgentProcessState":
        """Its state in its life."""


class ServedDirectories(Protocol):
    """The directories in which sessions may be opened."""

    @property
    def roots(self) -> Sequence[str]:
        """Those that hold all others."""

    async def usable(self, directories: Sequence[str]) -> Sequence[str]:
        """Return those of some directories in which a session can be opened."""

    async def directories(self, path: str) -> Mapping[str, object]:
        """Return the directories in a directory. Without a path it is the root, or the roots by their paths if there are several.

        Raises:
            RequestError: it is outside of the roots, or cannot be read.
        """


class GatewayHub(Protocol):
    """A whole gateway."""

    @property
    def agents(self) -> "Mapping[str, ListedAgent]":
        """The agents by their names."""

    @property
    def rows(self) -> "GatewaySessions":
        """The stored rows."""

    @property
    def facts(self) -> "HubFacts":
        """What the program around it knows of itself."""

    @property
    def links(self) -> "HubLinks | None":
        """Makes links and answers admins; None before it can be reached."""

    @property
    def quotas(self) -> "Quotas":
        """What one principal may have at a time."""

    @property
    def feed(self) -> "RowFeed[Any]":
        """The clients that follow the list of sessions."""

    @property
    def files(self) -> ServedDirectories:
        """The directories of the machines on which agents run."""

    def note(self, principal: "Principal", action: str, key: str, detail: str) -> None:
        """Hand something that was done to the audit."""

    def run(self, work: Coroutine[object, object, object], *, after: Callable[[], None] | None = None) -> None:
        """Run something by itself. It is cancelled when the hub is closed."""
