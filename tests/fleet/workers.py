"""Workers of a fleet in one process: real hubs over a simulated broker, with scripted agents and short leases."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from antiphon.fleet.broker import Broker
from antiphon.fleet.carrier import CarrierDialer
from antiphon.fleet.membership import Members
from antiphon.fleet.owner import FleetOwner, Hello
from antiphon.fleet.simulation import SimulatedServer
from antiphon.fleet.worker.worker import FleetWorker, WorkerOptions
from antiphon.gateway.base import AgentSource, GatewaySession, HubLimits, Principal
from antiphon.gateway.data import GatewayData
from tests.gateway.peers import DRIVER, QUICK, RawClient, ScriptedAgent
from tests.waits import until

__all__ = ["INTERVAL", "LEASE", "PlayedWorker", "WorkerFleet", "worker_fleet"]

LEASE: Final = 0.6
INTERVAL: Final = 0.15
"""Seconds; short, and long enough for a machine that has much to do."""


class PlayedWorker:
    """A worker, its agent and its connection to the broker."""

    def __init__(self, worker: FleetWorker, agent: ScriptedAgent, broker: Any) -> None:
        self.worker = worker
        self.agent = agent
        self.broker = broker

    @property
    def name(self) -> str:
        return self.worker.name

    def session(self, session_id: str) -> Any:
        """Return a session that is in its memory."""
        return self.worker.hub.agents["demo"].session_of(session_id)


class WorkerFleet:
    """A broker, workers, and a gateway's view of them."""

    def __init__(
        self, directory: Path, server: Any, stack: AsyncExitStack, lease: float = LEASE, interval: float = INTERVAL
    ) -> None:
        self.directory = directory
        self.server = server
        self._stack = stack
        self.broker = server.connect("gateway")
        self._times = {"lease": lease, "interval": interval}
        self.members = Members(self.broker, lease, interval)
        self.dialer = CarrierDialer(self.broker)
        self.owner = FleetOwner(self.broker, self.members, self.dialer)
        self.clients: list[RawClient] = []
        self.connections: list[Any] = []

    @asynccontextmanager
    async def running(
        self,
        name: str,
        *,
        host: str = "here",
        agent: ScriptedAgent | None = None,
        source: AgentSource | None = None,
        limits: HubLimits = QUICK,
        broker: Broker | None = None,
        data: str = "",
        **options: Any,
    ) -> AsyncIterator[PlayedWorker]:
        """Run a worker as long as the block lasts. `data` is the name of its data directory, if that is another one."""
        agent = agent or ScriptedAgent()
        connection: Any = broker or self.server.connect(data or name)
        given = {"roots": (str(self.directory),), "drain": 5.0, **self._times, **options}
        chosen = WorkerOptions(name, host, limits=limits, **given)
        async with (
            GatewayData.open(self.directory / "data" / (data or name)) as opened,
            FleetWorker(connection, opened, {"demo": source or agent.start}, chosen) as worker,
        ):
            await until(lambda: worker.name in self.members.workers)
            self.connections.append(connection)
            yield PlayedWorker(worker, agent, connection)

    async def start(self, name: str, **how: Any) -> PlayedWorker:
        """Run a worker to the end of the test."""
        return await self._stack.enter_async_context(self.running(name, **how))

    async def client(self, worker: PlayedWorker, principal: Principal = DRIVER, *, numbers: bool = True) -> RawClient:
        """Connect a client to a worker."""
        transport = await self.owner.connect(worker.name, Hello(principal, "demo"))
        client = RawClient(None, transport=transport)
        self.clients.append(client)
        await client.initialize(numbers=numbers)
        return client

    async def row(self, worker: PlayedWorker, session_id: str) -> GatewaySession:
        """Return the row of a session as a worker has it."""
        found = await worker.worker.rows.find("demo", session_id)
        assert found is not None
        return found

    async def events(self, key: str) -> list[bytes]:
        """Return all events of a session, as the broker has them."""
        from antiphon.fleet.records.formats import RunAssembler, events_subject

        assembler, found = RunAssembler(), list[bytes]()
        after = 0
        while page := await self.broker.read(events_subject(key), after):
            for message in page:
                after = message.sequence
                if (run := assembler.take(message)) is not None:
                    assert run.header.first == len(found) + 1, "the numbers have no gap"
                    found += run.events
        return found


@asynccontextmanager
async def worker_fleet(
    directory: Path, change: Callable[[Any], None] = lambda server: None, *, server: Any = None, **times: float
) -> AsyncIterator[WorkerFleet]:
    """Give a fleet without workers, with a simulated server unless another one is given."""
    server = server or SimulatedServer()
    change(server)
    async with AsyncExitStack() as stack:
        fleet = WorkerFleet(directory, server, stack, **times)
        try:
            yield fleet
        finally:
            for client in fleet.clients:
                await client.transport.close()
            server.start()
            for connection in fleet.connections:
                server.mend(connection)  # a worker that is cut off waits for the broker before it ends
            await stack.aclose()
            await fleet.dialer.close()
            fleet.members.close()
