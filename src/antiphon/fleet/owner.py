"""The owners of the sessions of a fleet: who has a session is on the broker, who can take it is chosen by what workers say of themselves."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from antiphon.errors import AcpError, sentence_and_hint
from antiphon.fleet.broker import Broker, BrokerAway
from antiphon.fleet.carrier import CarrierDialer
from antiphon.fleet.control import WorkerControl
from antiphon.fleet.membership import Members, WorkerState
from antiphon.fleet.placement import could_take, directory_at, ranked
from antiphon.fleet.records.formats import owner_of, owner_subject
from antiphon.gateway.base import GatewaySession, Principal
from antiphon.gateway.settings import HubSettings
from antiphon.journal.owner import NoOwner, Placement
from antiphon.transports.base import Transport
from antiphon.transports.remote import ConnectionRefused

__all__ = ["FleetOwner", "Hello", "placement_of"]

KNOWN_TIMEOUT: Final = 5.0
"""Seconds that a placement waits for the first round of beats."""

MOST_MACHINES: Final = 8
"""Machines that are asked where a directory really is that is below no root of a worker."""

_log = logging.getLogger(__name__)


class Hello(msgspec.Struct, frozen=True):
    """The first words of a connection to a worker: whose it is, and for which agent."""

    principal: Principal
    agent: str
    session: str = ""
    """The key of the session that it is for, if it is for one."""
    opens: bool = False
    """Whether a session is to be opened over it: another worker may have room for it."""


def placement_of(row: GatewaySession, labels: tuple[str, ...] = ()) -> Placement:
    """Return what a stored session needs of a worker."""
    home = HubSettings(row.state).home
    return Placement(row.agent, row.cwd, row.directories, labels, row.key, home if home.host else None)


class FleetOwner:
    """Finds the workers of a fleet for sessions, and connects to them."""

    def __init__(self, broker: Broker, members: Members, dialer: CarrierDialer | None = None) -> None:
        """Without a `dialer`, no connections are opened: a worker chooses among workers, too."""
        self._broker = broker
        self._members = members
        self._dialer = dialer
        self._control = WorkerControl(broker)
        self._placed: dict[str, tuple[int, int]] = {}
        """How many sessions were placed at a worker since a beat of it, and the number of that beat."""
        self._count = 0
        self._last: dict[str, int] = {}
        """The number of the last session that was placed at each worker: of those that are used equally, the next one goes elsewhere."""
        if dialer is not None:
            members.changed.append(self._member_changed)

    def _member_changed(self, state: WorkerState, alive: bool) -> None:
        """End the connections to a worker that is taken for dead. If it is not, its clients connect again; else they need not wait."""
        if not alive and self._dialer is not None:
            self._dialer.lost(state.name, f"worker `{state.name}` does not answer any more")

    async def find(self, key: str) -> str | None:
        """Return the name of the living worker that owns a session; None: none does, and it may be placed.

        Raises:
            BrokerAway: the broker does not answer.
        """
        worker = owner_of(await self._broker.last(owner_subject(key))).worker
        return worker if worker and self._members.is_alive(worker) else None

    async def place(self, placement: Placement) -> WorkerState:
        """Choose the worker of a session that has no owner.

        Raises:
            NoOwner: no worker can take it; the error has the reason.
        """
        try:
            async with asyncio.timeout(KNOWN_TIMEOUT):
                await self._members.known()
        except TimeoutError:
            hint = "look at the broker: `antiphon fleet status`"
            raise NoOwner("the broker cannot be reached, so no worker is known", hint=hint) from None
        try:
            chosen = await self._choose(placement)
        except NoOwner:
            real = await self._with_real_paths(placement)
            if real is None:
                raise
            chosen = await self._choose(real)
        beat, count = self._placed.get(chosen.name, (0, 0))
        self._placed = {name: found for name, found in self._placed.items() if name in self._members.workers}
        self._placed[chosen.name] = chosen.beat, count + 1 if beat == chosen.beat else 1
        self._count += 1
        self._last = {name: at for name, at in self._last.items() if name in self._members.workers}
        self._last[chosen.name] = self._count
        return self._members.workers.get(chosen.name, chosen)

    def _with_placed(self, worker: WorkerState) -> WorkerState:
        """Return a worker with the sessions that it was given since its last beat."""
        beat, count = self._placed.get(worker.name, (0, 0))
        return worker if beat != worker.beat else msgspec.structs.replace(worker, used=worker.used + count)

    def _ranked(self, placement: Placement) -> list[WorkerState]:
        """Return the workers that can take a session now, the best one first, with what was placed since their beats.

        Raises:
            NoOwner: there are none.
        """
        found = ranked(map(self._with_placed, self._members.workers.values()), placement)
        if not placement.key:
            # A beat does not have a session that is just being opened: the agent may take seconds to start.
            found.sort(key=lambda worker: (worker.used / worker.slots, worker.turns, self._last.get(worker.name, 0)))
        return found

    async def _choose(self, placement: Placement) -> WorkerState:
        """Return the best worker that has the directories of a session on its disk. Several machines may have roots of one name.

        Whenever a worker has answered whether it has them, all are looked at again: others were placed meanwhile, and of many sessions
        that are opened at once all would go to the same worker, more than it has slots.

        Raises:
            NoOwner: no worker can take it, or none has them.
        """
        asked: dict[str, bool] = {}
        while True:
            found = self._ranked(placement)
            if len({worker.host for worker in found}) == 1 and not asked:
                return found[0]  # it says so itself when the session is opened
            left = [worker for worker in found if asked.get(worker.name, True)]
            if not left:
                names = ", ".join(worker.name for worker in found)
                hint = "make it there, or give another one"
                raise NoOwner(f"`{placement.cwd}` does not exist at any of: {names}", hint=hint)
            if left[0].name in asked:
                return left[0]
            asked[left[0].name] = await self._has_directories(left[0], placement)

    async def _with_real_paths(self, placement: Placement) -> Placement | None:
        """Return what a new session needs, with the real paths of its directories; None if they are below no root with these either.

        Workers announce real paths, and a client may name a directory by a link to it. Only its machine knows where that leads.
        """
        workers = [each for each in self._members.workers.values() if each.is_compatible]
        workers = [each for each in workers if placement.agent in each.agents]
        if placement.home is not None or any(could_take(worker, placement) for worker in workers):
            return None  # it is something else that is missing
        wanted = (placement.cwd, *placement.directories)
        names = [*{worker.host: worker.name for worker in workers}.values()][:MOST_MACHINES]
        for real in await asyncio.gather(*(self._control.real_paths(name, wanted) for name in names)):
            found = msgspec.structs.replace(placement, cwd=real[0], directories=tuple(real[1:])) if real else placement
            if any(could_take(worker, found) for worker in workers):
                return found
        return None

    async def _has_directories(self, worker: WorkerState, placement: Placement) -> bool:
        """Whether the directories of a session are on the disk of a worker; False if it does not say."""
        wanted = (placement.cwd, *placement.directories)
        there = [directory_at(worker, each, placement.home) or each for each in wanted]
        try:
            return await self._control.has_directories(worker.name, there)
        except AcpError as error:  # it has just ended, is cut off, or cannot say: another one may
            _log.info("worker `%s` does not say whether it has a directory: %s", worker.name, error.sentence)
            return False

    async def connect(self, worker: str, hello: Hello) -> Transport:
        """Open a connection to a worker.

        Raises:
            NoOwner: there is no such worker, or it does not answer or refuses.
        """
        if self._dialer is None:
            raise NoOwner("this process opens no connections to workers", hint="a gateway does")
        try:
            return await self._dialer.open(worker, msgspec.json.encode(hello))
        except ConnectionRefused as error:
            sentence, hint = sentence_and_hint(error)
            if error.recoverable is False:
                raise
            raise NoOwner(sentence, hint=hint or "it is tried again") from error
        except BrokerAway as error:
            raise NoOwner(f"worker `{worker}` was not reached: {error.sentence}", hint="it is tried again") from error

    async def watch(self) -> AsyncIterator[WorkerState]:
        """Yield the workers as they are now, and then each one whose state changes; one that is gone with `alive` false."""
        changes: asyncio.Queue[WorkerState] = asyncio.Queue()

        def changed(state: WorkerState, alive: bool) -> None:
            changes.put_nowait(state)

        self._members.changed.append(changed)
        try:
            for state in (*self._members.workers.values(),):
                yield state
            while True:
                yield await changes.get()
        finally:
            self._members.changed.remove(changed)
