"""A fleet in memory: hubs of workers over shared stores, and a gateway that finds them. No broker, no threads, no clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from antiphon.errors import ConnectionClosed
from antiphon.fleet.gateway.address import RouteAddress
from antiphon.fleet.gateway.hub import FleetHub, FleetView
from antiphon.fleet.gateway.reader import SessionReader
from antiphon.fleet.gateway.routes import OwnerRoutes
from antiphon.fleet.membership import WorkerState
from antiphon.fleet.owner import Hello
from antiphon.fleet.placement import ranked
from antiphon.gateway.base import GatewaySession, HubLimits, Principal
from antiphon.gateway.hub import Hub
from antiphon.journal.base import Lease, StaleLease
from antiphon.journal.owner import NoOwner, Placement
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.gateway.peers import DRIVER, QUICK, HubClients, MemoryJournal, MemoryRows, RawClient, ScriptedAgent
from tests.gateway.test_moves import Place
from tests.limits import limit

__all__ = ["FleetJournalInMemory", "MemoryFleet", "MemoryWorker", "fleet"]


class FleetJournalInMemory(MemoryJournal):
    """A journal that knows who owns a session, and lets a session of a dead worker be claimed."""

    def __init__(self, is_alive: Callable[[str], bool]) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}
        self._is_alive = is_alive

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        await asyncio.sleep(0)
        owner = self.owners.get(session, "")
        if previous is None and owner and owner != by and self._is_alive(owner):
            raise StaleLease(session)
        if previous is None and owner != by:
            self.leases.pop(session, None)
        lease = await super().claim(session, previous, by=by)
        self.owners[session] = by
        return lease

    async def release(self, lease: Lease) -> None:
        if self.leases.get(lease.session) == lease:
            self.owners.pop(lease.session, None)
        await super().release(lease)


class _WorkerJournal:
    """The journal as one worker has it: what is claimed is claimed under its name."""

    def __init__(self, journal: FleetJournalInMemory, worker: str) -> None:
        self._journal = journal
        self._worker = worker
        self.release = journal.release
        self.append = journal.append
        self.store = journal.store
        self.read = journal.read
        self.length = journal.length

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        return await self._journal.claim(session, previous, by=self._worker)


class CopiedMemoryRows(MemoryRows):
    """Rows that report their changes."""

    def __init__(self, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self.changed: Callable[[GatewaySession | None, str], None] | None = None

    async def all(self) -> Sequence[GatewaySession]:
        return [*self.rows.values()]

    def save(self, row: GatewaySession) -> None:
        super().save(row)
        if self.changed is not None:
            self.changed(self.rows.get(row.key), row.key)

    async def delete(self, key: str) -> None:
        row = self.rows.get(key)
        await super().delete(key)
        if row is not None and self.removed is not None:
            self.removed(key, row.agent, row.session_id)


class MemoryWorker(HubClients):
    """A worker: its hub, its agent, and the connections that lead to it."""

    def __init__(self, name: str, directory: Path, fleet: "MemoryFleet", agents: Sequence[str] = ("demo",)) -> None:
        self.name = name
        self.directory = directory
        agent = ScriptedAgent()
        ids = count(1)
        agent.answers["session/new"] = lambda params: {"sessionId": f"{name}-{next(ids)}"}
        agent.answers["session/load"] = lambda params: {}
        hub = Hub(
            dict.fromkeys(agents, agent.start),
            fleet.rows,
            _WorkerJournal(fleet.journal, name),
            roots=[str(directory)],
            limits=QUICK,
            place=Place(name, fleet.hosts.get(name, "here"), None),
        )
        super().__init__(hub, agent)
        self.is_alive = True
        self.connections: list[Transport] = []
        self.serving: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> WorkerState:
        return WorkerState(
            self.name,
            host=getattr(self.hub.moves and self.hub.moves.place, "host", ""),
            agents=tuple(self.hub.agents),
            roots=(str(self.directory),),
            slots=100,
            turns=self.hub.counts()["turns"],
            draining=self.hub.is_draining,
        )

    def connect(self, hello: Hello) -> Transport:
        ours, theirs = memory_pair()
        self.connections.append(ours)
        serving = asyncio.get_running_loop().create_task(self.hub.serve(theirs, hello.principal, hello.agent))
        self.serving.add(serving)
        serving.add_done_callback(self._served)
        return ours

    def _served(self, serving: "asyncio.Task[None]") -> None:
        self.serving.discard(serving)
        if not serving.cancelled():
            serving.exception()

    async def cut(self) -> None:
        """Cut all connections to it."""
        connections, self.connections = self.connections, []
        for each in connections:
            await each.close()

    def freeze(self) -> None:
        """Let nothing more leave it, and nothing reach it: others take it for dead, and it does not know."""
        self.is_alive = False
        connections, self.connections = self.connections, []
        for each in connections:
            each._lose(ConnectionClosed("nothing came from the worker"))


class _Owner:
    """Finds the workers of a fleet in memory."""

    def __init__(self, fleet: "MemoryFleet") -> None:
        self._fleet = fleet

    async def find(self, key: str) -> str | None:
        await asyncio.sleep(0)
        owner = self._fleet.journal.owners.get(key, "")
        return owner if owner and self._fleet.is_alive(owner) else None

    async def place(self, placement: Placement) -> WorkerState:
        await asyncio.sleep(0)
        return ranked(self._fleet.states(), placement)[0]

    async def connect(self, worker: str, hello: Hello) -> Transport:
        await asyncio.sleep(0)
        self._fleet.hellos.append((worker, hello))
        if not self._fleet.is_alive(worker) or worker in self._fleet.unreached:
            raise NoOwner(f"worker `{worker}` was not reached", hint="it is tried again")
        found = self._fleet.workers[worker]
        if found.hub.is_draining and self._fleet.journal.owners.get(hello.session) != worker:
            raise NoOwner(f"worker `{worker}` is about to end", hint="another one is found")
        return found.connect(hello)

    async def watch(self) -> AsyncIterator[WorkerState]:
        for state in self._fleet.states():
            yield state


class _Summaries:
    changed: Callable[[str], None] | None = None

    def __init__(self, fleet: "MemoryFleet") -> None:
        self._fleet = fleet

    def get(self, key: str) -> Any:
        from antiphon.fleet.worker.summaries import LiveSummary

        for worker in self._fleet.living():
            for agent in worker.hub.agents.values():
                for session in agent.sessions.values():
                    if session.key == key:
                        waiting = sum(1 for _ in session.requests.waiting())
                        return LiveSummary(session.last, waiting, session.turns.running is not None)
        return None


class _Control:
    def __init__(self, fleet: "MemoryFleet") -> None:
        self._fleet = fleet

    def revoked(self, token: str, why: str) -> None:
        for worker in self._fleet.living():
            worker.hub.drop_prompts(token, why)


class _Directories:
    def __init__(self, fleet: "MemoryFleet") -> None:
        self._fleet = fleet

    @property
    def roots(self) -> Sequence[str]:
        return sorted({root for state in self._fleet.states() for root in state.roots})

    async def usable(self, directories: Sequence[str]) -> Sequence[str]:
        return directories

    async def directories(self, path: str) -> dict[str, object]:
        return {"path": path, "parent": None, "directories": [*self.roots]}


class MemoryFleet:
    """Workers and one gateway."""

    def __init__(self) -> None:
        self.hosts: dict[str, str] = {}
        """The machine of each worker, where it is not the one that all share."""
        self.journal = FleetJournalInMemory(self.is_alive)
        self.rows = CopiedMemoryRows(self.journal)
        self.workers: dict[str, MemoryWorker] = {}
        self.unreached: set[str] = set()
        """Workers that are alive and not reached."""
        self.hellos: list[tuple[str, Hello]] = []
        """Which worker was connected to, and with which words."""
        self.reader = SessionReader(self.rows, self.journal, QUICK)
        self.routes = OwnerRoutes(_Owner(self), self.states, self.rows, self.reader)
        self.summaries = _Summaries(self)
        parts: list[Any] = [_Directories(self), _Control(self), self.summaries]
        view = FleetView(self.states, lambda: True, self.routes, self.reader, *parts)
        self.hub = FleetHub(view, self.rows, self.journal, limits=HubLimits(prompts_per_minute=10_000))
        self.clients: list[RawClient] = []

    def is_alive(self, name: str) -> bool:
        return name in self.workers and self.workers[name].is_alive

    def living(self) -> list[MemoryWorker]:
        return [worker for worker in self.workers.values() if worker.is_alive]

    def states(self) -> list[WorkerState]:
        return [worker.state for worker in self.living()]

    @asynccontextmanager
    async def worker(
        self, name: str, directory: Path, agents: Sequence[str] = ("demo",)
    ) -> AsyncIterator[MemoryWorker]:
        """Run a worker whose root is a directory."""
        worker = self.workers[name] = MemoryWorker(name, directory, self, agents)
        try:
            async with worker.hub:
                yield worker
                worker.is_alive = False
                await worker.leave()
                await worker.cut()
        finally:
            worker.is_alive = False

    def address(self, session_id: str) -> RouteAddress:
        return RouteAddress(self.routes, DRIVER, "demo", session_id)

    def raw_client(
        self, principal: Principal = DRIVER, agent: str = "demo", transport: Transport | None = None
    ) -> RawClient:
        hub: Any = self.hub
        client = RawClient(hub, principal, agent, transport)
        self.clients.append(client)
        return client

    async def client(
        self, principal: Principal = DRIVER, *, numbers: bool = False, agent: str = "demo", **capabilities: object
    ) -> RawClient:
        """Connect a client to the gateway and initialize it."""
        client = self.raw_client(principal, agent)
        await client.initialize(numbers=numbers, **capabilities)
        return client

    async def close(self) -> None:
        for client in self.clients:
            await client.leave()
        await self.hub.close()

    async def move(self, key: str, to: str, why: str = "its worker does not answer any more") -> None:
        """Have another worker take a session, as it does when its owner is taken for dead."""
        before = self.journal.owners[key]
        self.workers[before].freeze()
        moves = self.workers[to].hub.moves
        assert moves is not None
        assert await moves.adopt(self.rows.rows[key], self.journal.leases[key].epoch, why)

    def key(self, session_id: str) -> str:
        return next(row.key for row in self.rows.rows.values() if row.session_id == session_id)


@asynccontextmanager
async def fleet(directory: Path, *names: str) -> AsyncIterator[MemoryFleet]:
    """A fleet whose workers have the same directory. They are on one machine, so that any of them can take any session."""
    found = MemoryFleet()
    async with asyncio.timeout(limit()):
        await found.hub.start()
        async with _workers(found, directory, names):
            try:
                yield found
            finally:
                await found.close()


@asynccontextmanager
async def _workers(found: MemoryFleet, directory: Path, names: Sequence[str]) -> AsyncIterator[None]:
    if not names:
        yield
        return
    async with found.worker(names[0], directory), _workers(found, directory, names[1:]):
        yield
