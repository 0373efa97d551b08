"""The ways of a gateway to the workers of a fleet: the owner of a session, a worker for a new one, any worker with an agent."""

import random
from typing import TYPE_CHECKING, Final

from antiphon.journal.owner import NoOwner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from antiphon.fleet.gateway.address import RouteAddress
    from antiphon.fleet.gateway.reader import SessionReader
    from antiphon.fleet.membership import WorkerState
    from antiphon.fleet.owner import Hello
    from antiphon.gateway.base import GatewaySession, GatewaySessions
    from antiphon.journal.owner import Owner, Placement
    from antiphon.transports.base import Transport

__all__ = ["OwnerRoutes"]

LISTED: Final = 10_000
"""Sessions of which it is remembered where they were listed."""


class OwnerRoutes:
    """Finds workers by the records of owners, the rows, and what workers say of themselves: `address.FleetRoutes`."""

    def __init__(
        self,
        owner: "Owner[Hello]",
        workers: "Callable[[], Collection[WorkerState]]",
        rows: "GatewaySessions",
        reader: "SessionReader",
    ) -> None:
        """`workers` returns those that live."""
        self._owner = owner
        self._workers = workers
        self._rows = rows
        self._reader = reader
        self._listed: dict[tuple[str, str], str] = {}
        """The machine on which each session was listed last, the oldest first."""

    async def row(self, agent: str, session_id: str) -> "GatewaySession | None":
        """Return the row of a session."""
        return await self._rows.find(agent, session_id)

    async def find(self, key: str) -> str | None:
        """Return the living worker that owns a session."""
        return await self._owner.find(key)

    async def place(self, placement: "Placement") -> str:
        """Choose a worker for a session that has no owner."""
        return (await self._owner.place(placement)).name

    def any_worker(self, agent: str) -> str:
        """Choose a worker that has an agent, one of the least used."""
        living = [worker for worker in self._workers() if worker.is_compatible]
        found = [worker for worker in living if agent in worker.agents]
        if not found:
            names = ", ".join(sorted({name for worker in living for name in worker.agents})) or "none"
            why = f"no worker has the agent `{agent}`" if living else "no worker is connected"
            hint = f"the agents of the fleet are: {names}" if living else "start one: antiphon worker --fleet URL"
            raise NoOwner(why, hint=hint)
        staying = [worker for worker in found if not worker.draining] or found
        return min(staying, key=lambda worker: (worker.used / max(worker.slots, 1), random.random())).name  # noqa: S311 - no secret

    def machines(self, agent: str) -> "Mapping[str, str]":
        """Return the machines that have an agent, each with the worker to ask there."""
        living = [worker for worker in self._workers() if worker.is_compatible and agent in worker.agents]
        staying = [worker for worker in living if not worker.draining] or living
        return {worker.host: worker.name for worker in sorted(staying, key=lambda worker: worker.name)}

    def listed(self, agent: str, host: str, ids: "Collection[str]") -> None:
        """Note on which machine sessions were listed."""
        for session_id in ids:
            self._listed.pop((agent, session_id), None)
            self._listed[agent, session_id] = host
        while len(self._listed) > LISTED:
            del self._listed[next(iter(self._listed))]

    def listed_at(self, agent: str, session_id: str) -> str | None:
        """Return a living worker of the machine on which a session was listed that nothing is stored of."""
        return self.machines(agent).get(self._listed.get((agent, session_id), ""))

    async def connect(self, worker: str, hello: "Hello") -> "Transport":
        """Open a connection to a worker."""
        return await self._owner.connect(worker, hello)

    def read(self, address: "RouteAddress", hello: "Hello") -> "Transport":
        """Open a connection to the history of sessions."""
        return self._reader.connect(address, hello)
