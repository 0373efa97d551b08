"""Agents of a worker that is cut off: they are stopped before other workers may take their sessions, and go on if none did.

The broker keeps a worker that is cut off from storing anything once another has its sessions. Nothing keeps its agents from writing files in
a workspace that the other one shares. So the worker counts the time since the last beat that others have received for certain: they
take this worker for dead no sooner than a lease after it. Before that time is over, every agent that runs a turn which
could go on elsewhere is stopped (`SIGSTOP`), with all that it started. When a beat arrives again, the records of owners are read:
if all of the agent's sessions are still ours it goes on, as if nothing had happened; if one is not, it is ended where it stands.

That a beat came back says nothing of others: its server may be cut off from the other servers together with this worker. Others have received
a beat if, behind it, one of each of them came, or something was stored: most servers of the broker confirm that. While turns run and neither
happens for the length of a beat, the worker stores a record for it. In a broker that has lost its leader nothing is stored, but workers
receive the beats of each other, and agents go on.

Turns that no other worker could take go on, however long the broker is away: what they send waits in memory, up to a bound.
"""

import asyncio
import logging
from typing import Final

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.membership import Heartbeat, Members, WorkerState
from antiphon.fleet.owner import placement_of
from antiphon.fleet.placement import could_take
from antiphon.fleet.records.formats import owner_of, owner_subject
from antiphon.gateway.agents.link import AgentLink, end_process
from antiphon.gateway.hub import Hub
from antiphon.gateway.session import HubSession
from antiphon.journal.owner import worker_title

__all__ = ["WorkerIsolation"]

MARGIN: Final = 1.0
"""Seconds before the end of a lease at which agents are stopped; a third of a shorter lease."""

LOOKS: Final = 30
"""How often in a lease the time is looked at."""

_log = logging.getLogger(__name__)


class WorkerIsolation:
    """Stops agents while this worker may be taken for dead, until it is closed."""

    def __init__(self, broker: Broker, members: Members, heartbeat: Heartbeat, hub: Hub, journal: FleetJournal) -> None:
        self._broker = broker
        self._members = members
        self._heartbeat = heartbeat
        self._hub = hub
        self._journal = journal
        self._worker = journal.worker
        self._limit = members.lease - min(MARGIN, members.lease / 3)
        self._frozen: dict[str, tuple[AgentLink, list[str]]] = {}
        """The agents that are stopped, by their names, with the keys of the sessions in which they ran turns."""
        self._others: list[WorkerState] = []
        """The other workers when this one was last known to be received. Who is gone from our sight may still be there."""
        self._proved = broker.clock()
        """A time at which most servers of the broker were there."""
        self._proof: asyncio.Task[None] | None = None
        self._is_working = False
        """Whether turns ran when this was looked at last."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    @property
    def is_isolated(self) -> bool:
        """Whether other workers may take this one for dead soon."""
        return self._broker.clock() - self._received() > self._limit

    def _received(self) -> float:
        """Return when the last beat was sent that others have received for certain."""
        came = min((self._last_of(each.name) for each in self._others), default=self._broker.clock())
        reached = max(came, self._journal.appends.confirmed, self._proved)
        return min(self._heartbeat.confirmed, self._heartbeat.sent_before(reached))

    def _last_of(self, name: str) -> float:
        found = self._members.received(name)
        return float("-inf") if found is None else found

    @property
    def frozen(self) -> list[str]:
        """The names of the agents that are stopped."""
        return [*self._frozen]

    async def close(self) -> None:
        """Look no more. What is stopped stays stopped: the end of the hub ends it."""
        tasks = [self._task, *([self._proof] if self._proof is not None else ())]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _work(self) -> None:
        while True:
            try:
                self._look_for_proof()
                if self.is_isolated and self._is_working:
                    await self._freeze()
                else:
                    await self._thaw()
                    self._others = [each for each in self._members.workers.values() if each.name != self._worker]
            except BrokerAway:
                pass  # it is gone again: the next look decides
            except Exception:  # the next look may succeed
                _log.exception("agents could not be stopped or continued")
            await asyncio.sleep(self._members.lease / LOOKS)

    def _look_for_proof(self) -> None:
        """Have most servers of the broker confirm that they are there, if turns run and nothing else has shown it for the length of a beat."""
        now, was_working = self._broker.clock(), self._is_working
        self._is_working = bool(self._frozen) or any(
            session.turns.running is not None
            for agent in self._hub.agents.values()
            for session in agent.sessions.values()
        )
        if not self._is_working or not self._others:
            return
        if not was_working:
            self._proved = now  # the agent gets a prompt when its beginning is stored
        silence, interval = now - self._received(), self._heartbeat.interval
        if silence > interval and self._broker.is_connected:
            if self._proof is None:
                self._heartbeat.beat_now()
                self._proof = asyncio.get_running_loop().create_task(self._prove(now))
            elif now - self._heartbeat.sent_before(now) > interval / 4:
                self._heartbeat.beat_now()  # the next beat of another worker shows that it has received a younger one

    async def _prove(self, began: float) -> None:
        try:
            await self._broker.append(f"acp.s.{worker_title(self._worker)}.beat", b"", replaces=True)
            self._proved = max(self._proved, began)
        except AcpError as error:
            _log.info("it is not certain that other workers receive the beats of this one: %s", error.sentence)
        finally:
            self._proof = None

    async def _freeze(self) -> None:
        for agent in self._hub.agents.values():
            link = agent.link
            if link is None or link.process is None or self._is_frozen(agent.name, link):
                continue
            running = [session for session in agent.sessions.values() if session.turns.running is not None]
            if any(self._may_move(session) for session in running):
                _log.warning("agent `%s` is stopped: other workers may take this one for dead", agent.name)
                self._frozen[agent.name] = link, [session.key for session in running]
                await link.process.freeze()

    def _is_frozen(self, name: str, link: AgentLink) -> bool:
        return name in self._frozen and self._frozen[name][0] is link

    def _may_move(self, session: HubSession) -> bool:
        """Whether another worker could take a session."""
        placement = placement_of(session.row)
        return any(could_take(worker, placement) for worker in self._others)

    async def _thaw(self) -> None:
        for name, (link, keys) in (*self._frozen.items(),):
            ours = [await self._is_ours(key) for key in keys]
            if self.is_isolated:
                return
            del self._frozen[name]
            if link.lost is not None:
                continue
            if not all(ours):
                await end_process(name, link, "another worker has taken one of its sessions", at_once=True)
            elif link.process is not None:
                _log.warning("agent `%s` goes on: its sessions are still here", name)
                await link.process.thaw()

    async def _is_ours(self, key: str) -> bool:
        """Whether this worker still owns a session, as the leader of the broker has it."""
        return owner_of(await self._broker.last(owner_subject(key))).worker == self._worker
