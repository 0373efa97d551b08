"""A worker that is cut off together with its server of the broker: its own beats come back, and others take its sessions all the same."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.nats import connect_broker
from antiphon.transports.base import Transport
from antiphon.transports.process import ProcessTransport
from tests.fleet.proxies import Network, network
from tests.fleet.servers import NatsServer, free_ports
from tests.fleet.test_worker import state_of
from tests.fleet.workers import PlayedWorker, WorkerFleet, worker_fleet
from tests.gateway.peers import demo
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes in /proc")


class Cluster:
    """Three servers, of which the third is connected to the two others by networks that can be cut."""

    def __init__(self, servers: Sequence[NatsServer], networks: Sequence[Network], brokers: dict[str, Any]) -> None:
        self.servers = servers
        self._networks = networks
        self._brokers = brokers

    def connect(self, name: str) -> Any:
        return self._brokers[name]

    def cut(self) -> None:
        for each in self._networks:
            each.refuses = True
            each.cut()

    def mend(self, broker: object = None) -> None:
        for each in self._networks:
            each.refuses = False

    def start(self) -> None:
        """Do nothing: all servers run."""


@asynccontextmanager
async def cluster(directory: Path) -> AsyncIterator[Cluster]:
    """Start three servers, and connect the worker `one` to the third of them alone, all else to the first."""
    ports = free_ports(3)
    async with AsyncExitStack() as stack:
        networks = [await stack.enter_async_context(network(port)) for port in ports]
        servers = []
        for at, name in enumerate("abc"):
            # The address that servers tell each other leads nowhere, so that none finds a way past the networks.
            routes = [networks[to].port if 2 in (at, to) else ports[to] for to in range(3) if to != at]
            urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
            part = f'cluster {{ name: "fleet", listen: "127.0.0.1:{ports[at]}", advertise: "127.0.0.1:1", no_advertise: true, routes: [{urls}] }}'
            server = NatsServer(directory / name, name=name, cluster=part)
            stack.callback(server.close)
            server.start(wait=False)
            servers.append(server)
        for server in servers:
            await asyncio.to_thread(server.wait)
        brokers: dict[str, Any] = {}
        for name, at in (("gateway", 0), ("one", 2), ("two", 0)):
            brokers[name] = await connect_broker(servers[at].url, name=name)
            stack.push_async_callback(brokers[name].close)
        yield Cluster(servers, networks, brokers)


async def working(fleet: WorkerFleet) -> tuple[PlayedWorker, PlayedWorker, str, ProcessTransport]:
    """Let a turn run in a process of the first of two workers."""
    started: list[ProcessTransport] = []

    async def source() -> Transport:
        transport = await demo(fleet.directory)
        assert isinstance(transport, ProcessTransport)
        started.append(transport)
        return transport

    one, two = await fleet.start("one", source=source), await fleet.start("two")
    client = await fleet.client(one)
    session = await client.new(fleet.directory)
    client.prompt(session, "/permission")
    await client.asked()
    await until(lambda: one.worker.isolation is not None and one.worker.isolation._others)
    return one, two, session, started[0]


@pytest.mark.slow
@pytest.mark.prove
async def test_agents_of_a_worker_that_is_cut_off_with_its_server_are_stopped_before_its_sessions_are_taken(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    async with (
        asyncio.timeout(limit(120)),
        cluster(tmp_path / "servers") as servers,
        worker_fleet(tmp_path, server=servers, lease=3.0, interval=1.0) as fleet,
    ):
        one, two, session, process = await working(fleet)
        servers.cut()
        await until(lambda: two.session(session) is not None)
        assert state_of(process.pid) == "T"
        assert one.broker.is_connected  # its own beats still come back
        servers.mend()
        await until(lambda: process.status is not None)
        await until(lambda: one.session(session) is None)


@pytest.mark.slow
async def test_a_worker_that_receives_only_itself_and_can_store_nothing_stops_its_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(limit()), worker_fleet(tmp_path) as fleet:
        one, two, session, process = await working(fleet)

        async def refuse(*given: object, **how: object) -> int:
            raise BrokerAway("most servers of the broker do not answer")

        two.worker.hub.is_draining = True  # it could take the session, and does not
        beats: Any = one.worker.members._subscription
        take = beats._take
        with monkeypatch.context() as minority:
            minority.setattr(one.broker, "append", refuse)
            own = one.name
            minority.setattr(beats, "_take", lambda message: take(message) if message.subject.endswith(own) else None)
            await until(lambda: state_of(process.pid) == "T")
        await until(lambda: state_of(process.pid) != "T")
        assert one.session(session) is not None


@pytest.mark.slow
async def test_agents_go_on_while_nothing_can_be_stored_and_workers_receive_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(limit()), worker_fleet(tmp_path) as fleet:
        one, _, _, process = await working(fleet)
        tries: list[float] = []

        async def refuse(*given: object, **how: object) -> int:
            tries.append(one.broker.clock())
            raise BrokerAway("the broker has no leader")

        monkeypatch.setattr(one.broker, "append", refuse)
        await until(lambda: tries and tries[-1] - tries[0] > 1.5 * one.worker.members.lease)
        assert one.worker.isolation is not None and not one.worker.isolation.frozen
        assert state_of(process.pid) != "T"
        monkeypatch.undo()
