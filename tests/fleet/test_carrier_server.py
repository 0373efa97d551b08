"""Connections that a real NATS server carries: each behaviour once."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from antiphon.errors import LocalProtocolError
from antiphon.fleet.carrier import DOWN, OPEN
from antiphon.fleet.connection import HEAD, PROBE, CarrierLimits
from antiphon.transports.remote import ConnectionRefused
from tests.fleet.brokers import NatsWorld, nats_world
from tests.fleet.carriers import WORKER, Ends, Reader
from tests.fleet.servers import nats_server
from tests.limits import limit

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server.port


@pytest.fixture
async def world(port: int) -> AsyncIterator[NatsWorld]:
    async with nats_world(lambda: port) as world:
        yield world


@pytest.fixture
async def both(world: NatsWorld) -> AsyncIterator[Ends]:
    limits = CarrierLimits(frame=80 * MIB, ping=0.2, silence=0.6)
    made = Ends(await world.connect("gateway"), await world.connect("worker"), limits)
    await made.worker.last("acp.a.nothing")  # behind its subscriptions
    async with asyncio.timeout(limit(120)):
        yield made
        await made.close()


async def test_a_message_of_64_mib_arrives_and_small_ones_in_both_directions(both: Ends) -> None:
    near, far = await both.open()
    readers = Reader(near), Reader(far)
    line = b"x" * (64 * MIB)
    sending = asyncio.create_task(near.send(line))
    for number in range(1000):
        await far.send(b"%d" % number)
    await readers[1].has(len(line) + 1)
    assert readers[1].received == line + b"\n"
    await sending
    await readers[0].has(3890)
    assert readers[0].received == b"".join(b"%d\n" % number for number in range(1000))


async def test_a_reader_that_pauses_makes_the_writer_wait(both: Ends) -> None:
    near, far = await both.open()
    reader = Reader(far)
    far.pause()
    near.out += b"x" * (4 * MIB) + b"\n"
    near.flush()
    draining = asyncio.create_task(near.drain())
    other, _ = await both.open()  # behind all that was sent
    assert near.unsent == 3 * MIB + 1 and not draining.done() and other.lost is None
    far.resume()
    await reader.has(4 * MIB + 1)
    await draining


async def test_a_close_ends_the_other_end_behind_all_bytes_before_it(both: Ends) -> None:
    near, far = await both.open()
    reader = Reader(far)
    near.out += b"x" * (3 * MIB) + b"\nlast"
    await near.close()
    await reader.end()
    assert reader.received == b"x" * (3 * MIB) + b"\nlast"


async def test_workers_that_refuse_and_those_that_are_not_there_have_different_errors(both: Ends) -> None:
    both.refuses = LocalProtocolError("all slots are taken", hint="try another worker")
    with pytest.raises(ConnectionRefused) as caught:
        await both.dialer.open(WORKER, b"")
    assert caught.value.advice == ("all slots are taken", "try another worker")
    with pytest.raises(ConnectionRefused, match="not there") as caught:
        await both.dialer.open("two", b"")
    assert caught.value.recoverable


@pytest.mark.parametrize("which", ["gateway", "worker"])
async def test_both_ends_learn_that_a_connection_to_the_server_was_lost(
    world: NatsWorld, both: Ends, which: str
) -> None:
    near, far = await both.open()
    readers = Reader(near), Reader(far)
    broker = getattr(both, which)
    world.cut(broker)
    await world.mend(broker)
    for reader in readers:
        assert (await reader.end()).recoverable
    near, far = await both.open()
    await near.send(b"again")
    assert await far.receive() == b"again"


@pytest.mark.parametrize("which", ["gateway", "worker"])
async def test_a_peer_behind_a_cable_that_was_pulled_is_given_up_and_learns_of_it_later(
    world: NatsWorld, both: Ends, which: str
) -> None:
    near, far = await both.open()
    readers = {"worker": Reader(near), "gateway": Reader(far)}
    network = world._networks[getattr(both, which)]
    network.is_open.clear()
    assert (await readers[which].end()).recoverable
    network.is_open.set()
    for reader in readers.values():
        await reader.end()


async def test_a_thousand_connections_stay_and_each_carries_its_bytes(both: Ends) -> None:
    opened = [await both.open() for _ in range(1000)]
    readers = [Reader(far) for _, far in opened]
    for number, (near, _) in enumerate(opened):
        near.out += b"%d\n" % number
        near.flush()
    for number, reader in enumerate(readers):
        await reader.has(len(b"%d\n" % number))
        assert reader.received == b"%d\n" % number
    assert all(end.lost is None for pair in opened for end in pair)


async def test_a_long_name_of_a_peer_does_not_end_the_connection_to_the_server(both: Ends) -> None:
    """The server ends a connection with a line of more than 4,096 bytes, and a name is a part of the subject of the answer."""
    near, _ = await both.open()
    for kind in (11, 12):  # ping and pong
        both.worker.publish(DOWN + both.dialer.name, struct.pack(">BQ", kind, 1) + b"a" * 5000)
    both.worker.publish(DOWN + both.dialer.name, HEAD.pack(PROBE, b"0" * 16, 0, 0, 0) + b"a" * 5000)
    opening = {"connection": "00" * 16, "sender": "a" * 5000, "epoch": 1, "granted": 1}
    answer = await both.gateway.request(OPEN + WORKER, msgspec.json.encode(opening) + b"\n{}", limit())
    assert b"a wrong name" in answer
    await both.worker.last("acp.a.nothing")
    await both.gateway.last("acp.a.nothing")  # behind what was answered
    assert near.lost is None and await both.open()
