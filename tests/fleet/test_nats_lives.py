"""A connection to NATS that ends at any step: cancelled, closed, cut, the server killed. Nothing hangs, nothing is left."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from antiphon.fleet.broker import BrokerAway, Fence
from antiphon.fleet.nats import connect_broker
from tests.fleet.servers import NatsServer, nats_server
from tests.schedules import World, check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server


def test_everything_ends_however_a_connection_ends(server: NatsServer) -> None:
    count = 0

    async def scenario(world: World) -> None:
        nonlocal count
        count += 1
        key = f"{count:032x}"
        broker = await connect_broker(server.url, name="test")
        try:
            world.offer("close", broker.close)
            world.offer("cut", broker._link._break)
            followed: list[int] = []
            broker.follow(f"acp.s.{key}.ev", lambda message: followed.append(message.sequence))
            broker.subscribe(f"acp.open.{key}", lambda message: broker.publish(message.reply, message.data), "workers")
            fence = Fence(f"acp.s.{key}.own", await broker.append(f"acp.s.{key}.own", b"", expects=0))
            events = f"acp.s.{key}.ev"
            appends = [
                world.start(broker.append(events, b"%d" % at, fence=fence, name=f"{key}-{at}")) for at in range(3)
            ]
            others = [
                world.start(broker.request(f"acp.open.{key}", b"?", 20.0)),
                world.start(broker.last(events)),
                world.start(broker.read("acp.s.*.ev")),
                world.start(broker.lasts(f"acp.s.{key}.*")),
                world.start(broker.remove("acp.s.none.ev")),
            ]
            await world.pause()
            if world.random.random() < 0.5:
                world.random.choice([*appends, *others]).cancel()
                world.acted = True  # its cancellation is no fault
            await asyncio.wait([*appends, *others])
            stored = [each.result() for each in appends if not each.cancelled() and not each.exception()]
            assert stored == sorted(stored), "in the order in which they were sent"
            assert len({id(turn) for turn in broker._turns.values()}) == 0, "no turn is left"
        finally:
            await broker.close()
        assert not broker.is_connected

    check(scenario, ends=("cancel", "close", "cut"), virtual=False)


def test_everything_ends_while_a_connection_is_made_again(server: NatsServer) -> None:
    async def scenario(world: World) -> None:
        broker = await connect_broker(server.url, name="test")
        came_back: list[None] = []
        try:
            world.offer("close", broker.close)
            broker.on_reconnect(lambda: came_back.append(None))
            broker.subscribe("acp.all", lambda message: None)
            broker._link._break()
            while not came_back and not broker._link._closed:
                with suppress(BrokerAway):
                    await broker.last("acp.s.x.ev")
                await asyncio.sleep(0.002)
        finally:
            await broker.close()
        assert came_back or world.acted

    check(scenario, ends=("cancel", "close"), virtual=False)
