"""Connections over a broker for tests: both ends, a reader that can be slow, and messages that are lost on the way."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from antiphon.errors import ConnectionClosed
from antiphon.fleet.broker import Broker
from antiphon.fleet.carrier import CarrierDialer, CarrierListener
from antiphon.fleet.connection import CarrierLimits, CarrierTransport
from antiphon.fleet.simulation import SimulatedServer
from antiphon.rpc.envelope import Frame, Overlong
from tests.schedules import Schedule, World, run

WORKER = "one"


def virtually(scenario: Callable[[SimulatedServer], Awaitable[None]], seed: int = 0) -> None:
    """Play a scenario once, on a virtual clock."""

    async def play(_: World) -> None:
        await scenario(SimulatedServer(seed=seed))

    run(play, Schedule(0))


def now() -> float:
    """The time of the loop."""
    return asyncio.get_running_loop().time()


class Reader:
    """The sink of a connection. It keeps what it gets."""

    def __init__(self, transport: CarrierTransport) -> None:
        self.transport = transport
        self.received = bytearray()
        self.overlong: list[Overlong] = []
        self.error: ConnectionClosed | None = None
        self.changed = asyncio.Event()
        transport.attach(self)

    def block_received(self, block: Frame) -> None:
        assert self.error is None, "nothing may arrive behind the end"
        if isinstance(block, Overlong):
            self.overlong.append(block)
        else:
            self.received += block
        self.changed.set()

    def connection_lost(self, error: ConnectionClosed) -> None:
        assert self.error is None, "there is one end"
        self.error = error
        self.changed.set()

    async def has(self, size: int) -> None:
        """Wait until this many bytes have come."""
        while len(self.received) < size:
            assert self.error is None, self.error
            self.changed.clear()
            await self.changed.wait()

    async def end(self) -> ConnectionClosed:
        """Wait for the end."""
        while self.error is None:
            self.changed.clear()
            await self.changed.wait()
        return self.error


class Ends:
    """A gateway and a worker, each with its connection to the broker."""

    def __init__(self, gateway: Broker, worker: Broker, limits: CarrierLimits | None = None) -> None:
        self.gateway: Any = gateway
        self.worker: Any = worker
        self.accepted: list[tuple[CarrierTransport, bytes]] = []
        self.refuses: Exception | None = None
        self.dialer = CarrierDialer(gateway, limits=limits)
        self.listener = CarrierListener(worker, WORKER, self._accept, limits=limits)

    def _accept(self, transport: CarrierTransport, hello: bytes) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.accepted.append((transport, hello))

    async def open(self) -> tuple[CarrierTransport, CarrierTransport]:
        """Open a connection, and return both ends."""
        near = await self.dialer.open(WORKER, b"{}")
        return near, next(far for far, _ in self.accepted if far.id == near.id)

    async def close(self) -> None:
        """Close both."""
        await asyncio.gather(self.dialer.close(), self.listener.close())


@asynccontextmanager
async def ends(limits: CarrierLimits | None = None, server: SimulatedServer | None = None) -> AsyncIterator[Ends]:
    """A gateway and a worker at a simulated broker."""
    server = server or SimulatedServer()
    made = Ends(server.connect("gateway"), server.connect("worker"), limits)
    await made.worker.last("acp.a.nothing")  # behind its subscriptions
    try:
        yield made
    finally:
        await made.close()


def lose(broker: Any, is_lost: Callable[[str, bytes], bool]) -> list[bytes]:
    """Lose messages on their way, without a connection being lost, as between two servers of a cluster. Returns what was lost so far."""
    publish, lost = broker.publish, []

    def losing(subject: str, data: bytes, reply: str = "") -> None:
        if is_lost(subject, data):
            lost.append(data)
        else:
            publish(subject, data, reply)

    broker.publish = losing
    return lost


def lose_once(broker: Any, kind: int) -> list[bytes]:
    """Lose the next message of a kind."""
    lost: list[bytes] = lose(
        broker, lambda subject, data: subject.startswith("acp.c.") and data[0] == kind and not lost
    )
    return lost


def count(broker: Any) -> list[bytes]:
    """Return a list that gets every message that is published from now on."""
    sent: list[bytes] = []
    lose(broker, lambda _, data: bool(sent.append(data)))  # type: ignore[func-returns-value]
    return sent
