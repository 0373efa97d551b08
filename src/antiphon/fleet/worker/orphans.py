"""The sessions of workers that are gone: which of them this worker takes.

Every worker that lives looks at the records of owners when another one dies, when it has started, and when it was cut off. For each session
of a dead worker all of them choose the same new one (`fleet.placement`), a moment later at random so that not all ask the broker at once.
A wrong choice does no harm: two that try to take a session race, and the broker lets one of them have it; one that was chosen and does
not take it is helped out by the others in the next round. A session that no worker can take waits, and is looked at whenever a worker comes.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway, StoredMessage
from antiphon.fleet.membership import Members, WorkerState
from antiphon.fleet.owner import placement_of
from antiphon.fleet.placement import ranked
from antiphon.fleet.records.formats import ALL_OWNERS, key_of, owner_of
from antiphon.fleet.rows import FleetRows
from antiphon.gateway.moves.adoption import SessionMoves
from antiphon.journal.owner import NoOwner, worker_title
from antiphon.store.errors import StoreError

__all__ = ["OrphanedSessions"]

SPREAD: Final = 0.2
"""Seconds within which the workers begin to look, each at random."""

LONGEST_PAUSE: Final = 30.0
"""Seconds between two looks at sessions that none takes, at most: a look reads the records of all sessions."""

AT_ONCE: Final = 16
"""Sessions that are taken at the same time."""

_log = logging.getLogger(__name__)


class _Orphan(NamedTuple):
    key: str
    epoch: int
    worker: str


def _owned(message: StoredMessage) -> _Orphan:
    """Return the session and the worker of a record; no worker where it is damaged: the other sessions are to be taken all the same."""
    key, worker = key_of(message.subject), ""
    try:
        worker = owner_of(message).worker
    except StoreError as error:
        _log.error("session `%s` is left out: %s", key, error.sentence)
    return _Orphan(key, message.sequence, worker)


class OrphanedSessions:
    """Looks for sessions of dead workers and takes those that it is chosen for, until it is closed."""

    def __init__(
        self,
        broker: Broker,
        members: Members,
        rows: FleetRows,
        moves: SessionMoves,
        state: Callable[[], WorkerState],
    ) -> None:
        self._broker = broker
        self._members = members
        self._rows = rows
        self._moves = moves
        self._state = state
        self._wakes = asyncio.Event()
        self._refused: set[tuple[str, int]] = set()
        """Sessions that could not be taken here, with the epochs of their dead owners: others may."""
        self._task: asyncio.Task[None] | None = None
        self.adopted = 0
        """How many sessions were taken."""
        self.waiting = 0
        """How many sessions no worker can take now."""
        self._offers: dict[str, tuple[object, ...]] = {}
        """What each worker had to offer to a session when it was seen last."""
        members.changed.append(self._member_changed)
        broker.on_reconnect(self._wakes.set)

    def start(self) -> None:
        """Look from now on."""
        self._wakes.set()
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Take no more. A session that is being taken is released again."""
        self._members.changed.remove(self._member_changed)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _member_changed(self, state: WorkerState, alive: bool) -> None:
        before = self._offers.pop(state.name, None)
        if not alive:
            self._wakes.set()
            return
        # Not at every beat: those of a worker that has much to do differ each time, and all records are read then.
        now = (state.agents, state.labels, state.roots, state.workspaces, state.draining, state.used < state.slots)
        self._offers[state.name] = now
        if self.waiting and now != before:
            self._wakes.set()

    async def _work(self) -> None:
        await self._members.known()
        again: float | None = None
        count = 0
        while True:
            try:
                async with asyncio.timeout(again):
                    await self._wakes.wait()
                count = 0
            except TimeoutError:
                count += 1
            self._wakes.clear()
            await asyncio.sleep(random.random() * SPREAD)  # noqa: S311 - no secret
            try:
                again = await self._round(count)
            except (BrokerAway, StoreError) as error:
                _log.warning("sessions of dead workers cannot be looked for now: %s", error.sentence)
                again = self._members.lease
            except Exception:  # the next round may succeed
                _log.exception("a look for sessions of dead workers failed")
                again = self._members.lease

    async def _round(self, count: int) -> float | None:
        """Look at all records once. Return when to look again; None: when something happens.

        `count` is how often they were looked at since something happened. From the third time on this worker also takes what another
        one was chosen for, and has not taken.
        """
        here = self._state()
        if here.draining:
            return None
        found = [each for each in map(_owned, await self._broker.lasts(ALL_OWNERS)) if each.worker]
        orphans = [each for each in found if not self._members.is_alive(each.worker)]
        owners = {each.worker for each in found} - {each.worker for each in orphans}
        random.shuffle(orphans)
        gate = asyncio.Semaphore(AT_ONCE)

        async def take(orphan: _Orphan) -> str:
            async with gate:
                return await self._consider(orphan, here, helps=count > 1)

        results = await asyncio.gather(*(take(each) for each in orphans))
        self.waiting = results.count("waits")
        self._refused &= {(each.key, each.epoch) for each in orphans}
        if "failed" in results or "another" in results:
            return min(self._members.lease / 2 * 2.0 ** max(0, count - 2), max(LONGEST_PAUSE, self._members.lease))
        # One that is not known to live, and not known to be dead, is decided about within the length of a lease.
        return None if owners <= self._members.workers.keys() else self._members.lease

    async def _consider(self, orphan: _Orphan, here: WorkerState, *, helps: bool) -> str:
        """Take a session if it is for this worker. Return what became of it."""
        if (orphan.key, orphan.epoch) in self._refused:
            return "refused"
        row = await self._rows.get(orphan.key)
        if row is None:
            return "gone"
        workers = {**self._members.workers, here.name: here}
        try:
            names = [worker.name for worker in ranked(workers.values(), placement_of(row))]
        except NoOwner as error:
            _log.info("session `%s` of worker `%s` waits: %s", row.session_id, orphan.worker, error.sentence)
            return "waits"
        if here.name not in names:
            return "another"
        if names[0] != here.name and not helps:
            return "another"
        try:
            why = f"worker `{worker_title(orphan.worker)}` does not answer any more"
            taken = await self._moves.adopt(row, orphan.epoch, why)
        except NoOwner as error:
            _log.warning("session `%s` cannot be taken here: %s", row.session_id, error.sentence)
            self._refused.add((orphan.key, orphan.epoch))
            return "refused"
        except AcpError as error:
            _log.warning("session `%s` cannot be taken now: %s", row.session_id, error.sentence)
            return "failed"
        if taken:
            self.adopted += 1
            _log.info("session `%s` of worker `%s` was taken", row.session_id, orphan.worker)
        return "taken" if taken else "gone"
