"""The rules of `fleet.broker`, for each broker: the simulated one, a NATS server, a cluster of three."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from antiphon.fleet.broker import (
    Broker,
    BrokerAway,
    CoreMessage,
    Fence,
    Fenced,
    NoResponder,
    StoredMessage,
    Unsure,
)
from antiphon.fleet.errors import MessageTooLarge
from tests.fleet.brokers import BrokerWorld, nats_world, simulated_world
from tests.fleet.servers import nats_cluster, nats_server
from tests.limits import limit
from tests.waits import until

MANY = 2500
"""More subjects than a NATS server reads the last messages of at once."""


@pytest.fixture(scope="module")
def one_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server.port


@pytest.fixture(scope="module")
def cluster_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nats_cluster(tmp_path_factory.mktemp("cluster"), advertise=False) as servers:
        yield servers[0].port


@pytest.fixture(
    params=[
        "simulation",
        pytest.param("nats", marks=pytest.mark.slow),
        pytest.param("cluster", marks=pytest.mark.slow),
    ]
)
async def world(request: pytest.FixtureRequest) -> AsyncIterator[BrokerWorld]:
    if request.param == "simulation":
        async with simulated_world() as simulated:
            yield simulated
    else:
        port = request.getfixturevalue("one_port" if request.param == "nats" else "cluster_port")
        async with nats_world(lambda: port) as real:
            yield real


@pytest.fixture
async def broker(world: BrokerWorld) -> AsyncIterator[Broker]:
    broker = await world.connect("first")
    yield broker
    await broker.close()


@pytest.fixture
def key() -> str:
    return secrets.token_hex(16)


async def read_until(broker: Broker, pattern: str, count: int) -> list[StoredMessage]:
    """Read until there are so many: a copy may be a moment old."""
    async with asyncio.timeout(limit()):
        while True:
            found = await broker.read(pattern)
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)


async def lasts_until(broker: Broker, pattern: str, count: int) -> list[StoredMessage]:
    async with asyncio.timeout(limit()):
        while True:
            found = await broker.lasts(pattern)
            if len(found) == count:
                return found
            await asyncio.sleep(0.01)


# Storing.


async def test_messages_are_stored_in_one_sequence_with_all_that_was_given(broker: Broker, key: str) -> None:
    first = await broker.append(f"acp.s.{key}.ev", b"one\r\ntwo", headers={"Antiphon-Run": "1 ü", "B": ""})
    second = await broker.append(f"acp.s.{key}.row", b"")
    third = await broker.append(f"acp.s.{key}.ev", bytes(range(256)))
    assert first < second < third
    found = await read_until(broker, f"acp.s.{key}.>", 3)
    assert [message.sequence for message in found] == [first, second, third]
    assert [message.subject.rpartition(".")[2] for message in found] == ["ev", "row", "ev"]
    assert [message.data for message in found] == [b"one\r\ntwo", b"", bytes(range(256))]
    assert found[0].headers == {"Antiphon-Run": "1 ü", "B": ""} and found[1].headers == {}
    assert 0 <= found[2].time - found[0].time < limit()


async def test_a_fence_lets_messages_through_while_its_message_is_the_last(broker: Broker, key: str) -> None:
    own, events = f"acp.s.{key}.own", f"acp.s.{key}.ev"
    epoch = await broker.append(own, b"first", expects=0, replaces=True)
    stored = await broker.append(events, b"1", fence=Fence(own, epoch))
    later = await broker.append(own, b"second", expects=epoch, replaces=True)
    for _ in range(2):
        with pytest.raises(Fenced):
            await broker.append(events, b"2", fence=Fence(own, epoch))
    last = await broker.append(events, b"3", fence=Fence(own, later))
    assert [message.sequence for message in await read_until(broker, events, 2)] == [stored, last]


async def test_a_fence_of_zero_is_a_subject_without_messages(broker: Broker, key: str) -> None:
    own, events = f"acp.s.{key}.own", f"acp.s.{key}.ev"
    await broker.append(events, b"1", fence=Fence(own, 0))
    await broker.append(own, b"")
    with pytest.raises(Fenced):
        await broker.append(events, b"2", fence=Fence(own, 0))


async def test_one_of_many_that_expect_the_same_number_is_stored(world: BrokerWorld, key: str) -> None:
    brokers = [await world.connect(f"number-{number}") for number in range(4)]
    own = f"acp.s.{key}.own"
    appends = [each.append(own, b"%d" % at, expects=0, name=f"{key}-{at}") for at, each in enumerate(brokers * 3)]
    results = await asyncio.gather(*appends, return_exceptions=True)
    won = [result for result in results if not isinstance(result, Fenced)]
    assert len(won) == 1 and isinstance(won[0], int)
    found = await brokers[0].last(own)
    assert found is not None and found.sequence == won[0]
    assert found.data == b"%d" % results.index(won[0])


async def test_messages_with_one_fence_may_be_under_way_at_once_and_are_stored_in_order(
    broker: Broker, key: str
) -> None:
    own, events = f"acp.s.{key}.own", f"acp.s.{key}.ev"
    fence = Fence(own, await broker.append(own, b""))
    numbers = await asyncio.gather(*(broker.append(events, b"%d" % at, fence=fence) for at in range(40)))
    assert numbers == sorted(numbers)
    assert [message.data for message in await read_until(broker, events, 40)] == [b"%d" % at for at in range(40)]


async def test_messages_of_many_subjects_are_under_way_at_once(broker: Broker, key: str) -> None:
    subjects = [f"acp.s.{key}{at:03}.ev" for at in range(300)]
    numbers = await asyncio.gather(*(broker.append(subject, subject.encode()) for subject in subjects))
    assert len(set(numbers)) == 300
    found = {message.sequence: message.subject for message in await lasts_until(broker, "acp.s.*.ev", 300)}
    assert [found[number] for number in numbers] == subjects


async def test_a_message_that_is_stored_again_under_its_name_is_there_once(broker: Broker, key: str) -> None:
    events = f"acp.s.{key}.ev"
    first = await broker.append(events, b"1", name=f"{key}-1")
    assert await broker.append(events, b"1", name=f"{key}-1") == first
    second = await broker.append(events, b"1", name=f"{key}-2")
    assert [message.sequence for message in await read_until(broker, events, 2)] == [first, second]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_message_without_an_answer_is_stored_once_when_it_is_sent_again(
    world: BrokerWorld, broker: Broker, key: str, stored: bool
) -> None:
    events = f"acp.s.{key}.ev"
    error = await world.lose(broker, broker.append(events, b"1", name=f"{key}-1"), stored=stored)
    assert isinstance(error, Unsure)
    number = await broker.append(events, b"1", name=f"{key}-1")
    await broker.append(events, b"2", name=f"{key}-2")
    found = await read_until(broker, events, 2)
    assert [message.data for message in found] == [b"1", b"2"] and found[0].sequence == number


async def test_a_claim_that_was_stored_without_an_answer_is_found_when_it_is_sent_again(
    world: BrokerWorld, broker: Broker, key: str
) -> None:
    own = f"acp.s.{key}.own"

    async def claim() -> int:
        return await broker.append(own, b"mine", name=f"{key}-claim", expects=0, replaces=True)

    assert isinstance(await world.lose(broker, claim(), stored=True), Unsure)
    number = await claim()
    found = await broker.last(own)
    assert found is not None and found.sequence == number


async def test_a_fenced_message_that_was_stored_without_an_answer_is_found_though_another_has_claimed(
    world: BrokerWorld, broker: Broker, key: str
) -> None:
    own, events = f"acp.s.{key}.own", f"acp.s.{key}.ev"
    other = await world.connect("other")
    fence = Fence(own, await broker.append(own, b"mine", expects=0))

    async def append(text: bytes) -> int:
        return await broker.append(events, text, name=f"{key}-{text.decode()}", fence=fence)

    await append(b"1")
    assert isinstance(await world.lose(broker, append(b"2"), stored=True), Unsure)
    assert isinstance(await world.lose(broker, append(b"3"), stored=False), Unsure)
    await other.append(own, b"theirs", expects=fence.sequence)
    number = await append(b"2")
    with pytest.raises(Fenced):
        await append(b"3")
    found = await read_until(broker, events, 2)
    assert [message.data for message in found] == [b"1", b"2"] and found[1].sequence == number


async def test_a_message_that_replaces_is_the_only_one_of_its_subject(broker: Broker, key: str) -> None:
    row, other = f"acp.s.{key}.row", f"acp.s.{key}.ev"
    await broker.append(other, b"stays")
    numbers = [await broker.append(row, text, replaces=True) for text in (b"1", b"2", b"3")]
    found = await read_until(broker, f"acp.s.{key}.>", 2)
    while len(found) > 2:
        found = await broker.read(f"acp.s.{key}.>")
    assert [message.data for message in found] == [b"stays", b"3"] and found[1].sequence == numbers[2]


async def test_what_is_removed_is_as_if_it_had_never_been(broker: Broker, key: str) -> None:
    mine, others = f"acp.s.{key}.own", f"acp.s.{key[::-1]}.own"
    await broker.append(mine, b"1")
    await broker.append(f"acp.s.{key}.ev", b"2")
    await broker.append(others, b"3")
    await broker.remove(f"acp.s.{key}.>")
    assert await broker.last(mine) is None and await broker.last(f"acp.s.{key}.ev") is None
    found = await broker.last(others)
    assert found is not None and found.data == b"3"
    number = await broker.append(mine, b"4", expects=0)
    assert number > found.sequence
    await broker.remove("acp.s.nothing.>")


# Reading.


async def test_the_last_message_of_a_subject_is_read(broker: Broker, key: str) -> None:
    row = f"acp.a.token.{key}"
    assert await broker.last(row) is None
    await broker.append(row, b"1", headers={"A": "1"})
    number = await broker.append(row, b"\x00\xff", headers={"A": "2"}, name=f"{key}-x")
    found = await broker.last(row)
    assert found is not None
    assert found[:4] == (row, number, b"\x00\xff", {"A": "2"}) and found.time > 1_000_000_000


async def test_a_pattern_is_read_in_pages(broker: Broker, key: str) -> None:
    wanted = []
    for at in range(30):
        number = await broker.append(f"acp.s.{key}{at % 3}.ev", b"%d" % at)
        await broker.append(f"acp.s.{key}{at % 3}.row", b"another")
        wanted.append(number)
    await read_until(broker, "acp.s.*.ev", 30)
    found: list[int] = []
    while page := await broker.read("acp.s.*.ev", after=found[-1] if found else 0, limit=7):
        assert len(page) <= 7
        found += [message.sequence for message in page]
    assert found == wanted
    assert await broker.read("acp.s.*.ev", after=wanted[-1]) == []
    assert await broker.read("acp.s.none.ev") == []
    one = [message.sequence for message in await broker.read(f"acp.s.{key}1.ev", after=wanted[4])]
    assert one == wanted[7::3]


async def test_a_page_of_large_messages_has_less_than_was_asked_for_and_misses_none(broker: Broker, key: str) -> None:
    events = f"acp.s.{key}.ev"
    numbers = [await broker.append(events, bytes(1 << 20)) for _ in range(12)]
    await broker.last(events)
    found: list[int] = []
    async with asyncio.timeout(limit()):
        while len(found) < len(numbers):
            found += [message.sequence for message in await broker.read(events, after=found[-1] if found else 0)]
    assert found == numbers


async def test_the_last_messages_of_subjects_are_read(broker: Broker, key: str) -> None:
    for at in range(3):
        for text in (b"old", b"new"):
            await broker.append(f"acp.s.{key}{at}.row", text)
        await broker.append(f"acp.s.{key}{at}.own", b"own")
    found = await lasts_until(broker, "acp.s.*.row", 3)
    assert [(message.subject, message.data) for message in found] == [
        (f"acp.s.{key}{at}.row", b"new") for at in range(3)
    ]
    assert [message.sequence for message in found] == sorted(message.sequence for message in found)
    assert await broker.lasts("acp.s.*.nothing") == []


async def test_the_last_messages_of_thousands_of_subjects_are_read(broker: Broker, key: str) -> None:
    subjects = [f"acp.s.{key}{at:05}.row" for at in range(MANY)]
    for begin in range(0, MANY, 250):
        await asyncio.gather(*(broker.append(each, each.encode()) for each in subjects[begin : begin + 250]))
    found = await lasts_until(broker, "acp.s.*.row", MANY)
    assert sorted(message.subject for message in found) == subjects
    assert all(message.data == message.subject.encode() for message in found)
    assert [message.sequence for message in found] == sorted(message.sequence for message in found)


# Following.


async def test_what_is_stored_is_given_to_those_that_follow(world: BrokerWorld, broker: Broker, key: str) -> None:
    other = await world.connect("other")
    events: list[StoredMessage] = []
    both: list[StoredMessage] = []
    broker.follow("acp.s.*.ev", events.append)
    subscription = broker.follow(f"acp.s.{key}.>", both.append)
    await broker.last("acp.s.x.ev")  # the server knows of the subscriptions when it answers
    numbers = []
    for at in range(20):
        numbers.append(await other.append(f"acp.s.{key}.ev", b"%d" % at, headers={"At": str(at)}, name=f"{key}-{at}"))
        await other.append(f"acp.s.{key}.row", b"row", replaces=True)
    await until(lambda: len(events) == 20 and len(both) == 40)
    assert [(message.sequence, message.data) for message in events] == [
        (number, b"%d" % at) for at, number in enumerate(numbers)
    ]
    assert events[3].subject == f"acp.s.{key}.ev" and events[3].headers == {"At": "3"}
    assert [message.sequence for message in both] == sorted(message.sequence for message in both)
    subscription.end()
    subscription.end()
    count = len(both)
    await other.append(f"acp.s.{key}.ev", b"last")
    await until(lambda: len(events) == 21)
    assert len(both) == count


async def test_a_function_that_fails_does_not_take_messages_from_others(broker: Broker, key: str) -> None:
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context["exception"]))
    found: list[StoredMessage] = []

    def fail(message: StoredMessage) -> None:
        raise ValueError(message.data)

    broker.follow(f"acp.s.{key}.ev", fail)
    broker.follow(f"acp.s.{key}.ev", found.append)
    await broker.last("acp.s.x.ev")
    await broker.append(f"acp.s.{key}.ev", b"1")
    await broker.append(f"acp.s.{key}.ev", b"2")
    await until(lambda: len(found) == 2 and len(lost) == 2)
    asyncio.get_running_loop().set_exception_handler(None)


# Messages that are not stored.


async def test_messages_go_to_all_that_subscribe_and_to_one_of_a_queue(world: BrokerWorld, key: str) -> None:
    brokers = [await world.connect(f"number-{number}") for number in range(3)]
    alone: list[list[CoreMessage]] = [[] for _ in brokers]
    shared: list[list[CoreMessage]] = [[] for _ in brokers]
    for at, each in enumerate(brokers):
        each.subscribe(f"acp.c.{key}.*", alone[at].append)
        each.subscribe(f"acp.c.{key}.up", shared[at].append, queue="workers")
        await each.last("acp.s.x.ev")
    for at in range(90):
        brokers[0].publish(f"acp.c.{key}.up", b"%d" % at, reply="_INBOX.answer")
    await until(lambda: all(len(found) == 90 for found in alone) and sum(map(len, shared)) == 90)
    for found in alone:
        assert found == [CoreMessage(f"acp.c.{key}.up", b"%d" % at, "_INBOX.answer") for at in range(90)]
    assert all(shared), "each of the queue gets some"
    assert sorted(int(message.data) for found in shared for message in found) == list(range(90))


async def test_a_request_gets_its_answer(world: BrokerWorld, broker: Broker, key: str) -> None:
    worker = await world.connect("worker")
    worker.subscribe(f"acp.open.{key}", lambda message: worker.publish(message.reply, message.data[::-1]))
    await worker.last("acp.s.x.ev")
    answers = await asyncio.gather(*(broker.request(f"acp.open.{key}", b"%d!" % at, limit()) for at in range(20)))
    assert answers == [(b"%d!" % at)[::-1] for at in range(20)]


async def test_a_request_that_nothing_takes_fails_at_once(broker: Broker, key: str) -> None:
    begin = time.monotonic()
    with pytest.raises(NoResponder):
        await broker.request(f"acp.open.{key}", b"", limit())
    assert time.monotonic() - begin < limit() / 2


async def test_a_request_without_an_answer_fails_in_time(broker: Broker, key: str) -> None:
    broker.subscribe(f"acp.open.{key}", lambda message: None)
    await broker.last("acp.s.x.ev")
    with pytest.raises(BrokerAway):
        await broker.request(f"acp.open.{key}", b"", 0.05)


# The connection.


async def test_a_lost_connection_says_so_and_comes_back(world: BrokerWorld, broker: Broker, key: str) -> None:
    other = await world.connect("other")
    came_back: list[float | None] = []
    followed: list[bytes] = []
    sent: list[bytes] = []
    broker.on_reconnect(lambda: came_back.append(broker.connected_since))
    broker.follow(f"acp.s.{key}.ev", lambda message: followed.append(message.data))
    broker.subscribe(f"acp.c.{key}.up", lambda message: sent.append(message.data))
    other.subscribe(f"acp.c.{key}.down", lambda message: sent.append(message.data))
    for each in (broker, other):
        await each.last("acp.s.x.ev")
    since = broker.connected_since
    assert broker.is_connected and since is not None and since <= broker.clock()
    world.cut(broker)
    await until(lambda: not broker.is_connected)
    assert broker.connected_since is None and broker.unsent == 0
    for call in (broker.append(f"acp.s.{key}.ev", b"x"), broker.last("acp.s.x.ev"), broker.read("acp.s.>"),
                 broker.lasts("acp.s.>"), broker.remove("acp.s.x.ev"), broker.request("acp.x", b"", 1.0)):  # fmt: skip
        with pytest.raises(BrokerAway) as caught:
            await call
        assert not isinstance(caught.value, Unsure), "it was not sent"
    broker.publish(f"acp.c.{key}.down", b"lost")
    other.publish(f"acp.c.{key}.up", b"missed")
    await other.append(f"acp.s.{key}.ev", b"missed")
    assert came_back == []
    await world.mend(broker)
    await until(lambda: len(came_back) == 1)
    assert came_back[0] is not None and came_back[0] >= since
    await broker.last("acp.s.x.ev")
    broker.publish(f"acp.c.{key}.down", b"down")
    other.publish(f"acp.c.{key}.up", b"up")
    await other.append(f"acp.s.{key}.ev", b"new")
    await until(lambda: len(sent) == 2 and followed)
    assert sorted(sent) == [b"down", b"up"] and followed == [b"new"]
    assert [message.data for message in await read_until(broker, f"acp.s.{key}.ev", 2)] == [b"missed", b"new"]


async def test_calls_under_way_end_when_the_connection_is_lost(world: BrokerWorld, broker: Broker, key: str) -> None:
    broker.subscribe(f"acp.open.{key}", lambda message: None)
    await broker.last("acp.s.x.ev")
    waiting = asyncio.ensure_future(broker.request(f"acp.open.{key}", b"", 600.0))
    await broker.last("acp.s.x.ev")
    world.cut(broker)
    with pytest.raises(BrokerAway):
        async with asyncio.timeout(limit()):
            await waiting


async def test_a_closed_connection_stays_closed(world: BrokerWorld, broker: Broker, key: str) -> None:
    other = await world.connect("other")
    found: list[bytes] = []
    other.subscribe(f"acp.c.{key}.up", lambda message: found.append(message.data))
    await other.last("acp.s.x.ev")
    broker.publish(f"acp.c.{key}.up", b"the last")
    waiting = asyncio.ensure_future(broker.request(f"acp.c.{key}.up", b"unanswered", 600.0))
    await until(lambda: len(found) == 2)
    await broker.close()
    await broker.close()
    assert not broker.is_connected and broker.connected_since is None and broker.unsent == 0
    with pytest.raises(BrokerAway):
        await waiting
    with pytest.raises(BrokerAway):
        await broker.append(f"acp.s.{key}.ev", b"")
    broker.publish(f"acp.c.{key}.up", b"lost")
    assert await other.last(f"acp.s.{key}.ev") is None
    assert found == [b"the last", b"unanswered"]


async def test_what_was_published_just_before_the_end_arrives(world: BrokerWorld, broker: Broker, key: str) -> None:
    other = await world.connect("other")
    found: list[bytes] = []
    other.subscribe(f"acp.c.{key}.up", lambda message: found.append(message.data))
    await other.last("acp.s.x.ev")
    broker.publish(f"acp.c.{key}.up", b"1")
    broker.publish(f"acp.c.{key}.up", b"2")
    await broker.close()
    await until(lambda: found == [b"1", b"2"])


async def test_what_cannot_be_sent_is_refused(broker: Broker, key: str) -> None:
    large = bytes(broker.max_payload + 1)
    for call in (broker.append(f"acp.s.{key}.ev", large), broker.request("acp.x", large, 1.0)):
        with pytest.raises(MessageTooLarge):
            await call
    with pytest.raises(MessageTooLarge):
        broker.publish("acp.x", large)
    own = Fence(f"acp.s.{key}.own", 0)
    for wrong in (
        broker.append("acp.x", b""),
        broker.append(f"acp.a.{key}", b"", fence=own),
        broker.append(f"acp.s.{key}.ev", b"", fence=own, expects=0),
        broker.read("acp.c.>"),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            await wrong
    largest = bytes(broker.max_payload)
    number = await broker.append(f"acp.s.{key}.ev", largest, headers={"A": "a" * 500}, name=key)
    found = await broker.last(f"acp.s.{key}.ev")
    assert found is not None and found.sequence == number and found.data == largest


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_servers_end_with_their_tests(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        pid = server.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
