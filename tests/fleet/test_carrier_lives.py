"""Connections over a broker while anything ends at any step: each end gets a beginning of what was sent, and learns of the end once."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from antiphon.errors import AcpError, ConnectionClosed
from antiphon.fleet.connection import CarrierLimits, CarrierTransport
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from tests.fleet.carriers import WORKER, Ends, Reader, lose
from tests.schedules import World, check

LIMITS = CarrierLimits(chunk=1000, window=4000, least_window=2000, windows=8000)
CONNECTIONS = 4


class Lives:
    """A gateway and a worker with several connections, and what can happen to them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._server = SimulatedServer(seed=world.schedule.seed)
        self._brokers = self._server.connect(), self._server.connect()
        self._both = Ends(*self._brokers, LIMITS)
        self._readers: list[tuple[Reader, bytes]] = []
        gateway, worker = self._brokers
        server, dialer, listener = self._server, self._both.dialer, self._both.listener
        for name, broker in (("gateway", gateway), ("worker", worker)):
            world.offer(f"cut {name}", self._fault(server.cut, server.mend, broker))
            world.offer(f"freeze {name}", self._fault(server.freeze, server.thaw, broker))
        world.offer("restart", self._fault(lambda _: server.stop(), lambda _: server.start(), worker))
        world.offer("lose some", lambda: lose(worker, lambda *_: world.random.random() < 0.1))
        world.offer("lost", lambda: dialer.lost(WORKER))
        world.offer("close", listener.close)
        world.offer("close dialer", dialer.close)
        world.finally_(self._check)

    def _fault(
        self, begin: Callable[[SimulatedBroker], None], end: Callable[[SimulatedBroker], None], broker: SimulatedBroker
    ) -> Callable[[], object]:
        async def happen() -> None:
            begin(broker)
            await asyncio.sleep(self._world.random.choice([0.0, 0.2, 5.0]))
            end(broker)

        return happen

    async def play(self) -> None:
        await self._brokers[1].last("acp.a.nothing")  # behind its subscriptions
        self._server.delay = (0.0, self._world.random.choice([0.0, 0.05]))
        try:
            await asyncio.wait([self._world.start(self._use()) for _ in range(CONNECTIONS)])
            await asyncio.sleep(6)
            if not self._world.acted:
                assert not self._both.dialer._peers and not self._both.listener._peers
        finally:
            self._server.start()
            await self._both.close()

    async def _use(self) -> None:
        try:
            near = await self._both.dialer.open(WORKER, b"")
        except AcpError:
            assert self._world.acted
            return
        far = next(each for each, _ in self._both.accepted if each.id == near.id)
        (first, to_near), (second, to_far) = pairs = [self._read(near, b"n"), self._read(far, b"f")]
        self._readers += pairs
        sending = [self._world.start(self._send(far, to_near)), self._world.start(self._send(near, to_far))]
        await asyncio.wait(sending)
        if self._world.random.random() < 0.5:
            for reader, data in pairs:
                while len(reader.received) < len(data) and reader.error is None:
                    reader.changed.clear()
                    await reader.changed.wait()
        end = self._world.random.choice([near, far])
        await (end.close() if self._world.random.random() < 0.7 else end.abort("enough"))
        await asyncio.gather(first.end(), second.end())

    def _read(self, end: CarrierTransport, name: bytes) -> tuple[Reader, bytes]:
        random = self._world.random
        data = b"".join(name + b"%d " % number * random.randint(1, 300) + b"\n" for number in range(20))
        reader = Reader(end)
        if random.random() < 0.5:
            end.pause()
            asyncio.get_running_loop().call_later(random.choice([0.01, 0.3, 4.0]), end.resume)
        return reader, data

    async def _send(self, transport: CarrierTransport, data: bytes) -> None:
        random = self._world.random
        with suppress(ConnectionClosed):
            while data and not transport.deaf:
                size = random.randint(1, 3000)
                transport.out += data[:size]
                data = data[size:]
                random.choice([transport.flush, transport.flush_soon])()
                if random.random() < 0.3:
                    await transport.drain()
                await self._world.pause()

    def _check(self) -> None:
        for reader, data in self._readers:
            assert data.startswith(reader.received), "bytes are missing or doubled in the middle"
            assert reader.error is not None, "an end has not learned of the end"
        assert not self._both.dialer.connections and not self._both.listener.connections


async def lives(world: World) -> None:
    await Lives(world).play()


FAULTS = ("cut gateway", "cut worker", "freeze gateway", "freeze worker", "restart", "lose some", "lost", "close", "close dialer", "cancel")  # fmt: skip


def test_every_end_learns_of_the_end_and_gets_a_beginning_of_what_was_sent_whatever_happens() -> None:
    check(lives, FAULTS)
