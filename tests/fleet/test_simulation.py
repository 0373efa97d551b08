"""The faults of the simulated broker: what it loses, what it keeps, and that a seed repeats them."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from antiphon.fleet.broker import BrokerAway, Fence, Fenced, StoredMessage, Unsure
from antiphon.fleet.errors import BrokerFull
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from tests.schedules import Schedule, World, check, run


def virtually(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something on a virtual clock."""

    async def scenario(_: World) -> None:
        await play()

    run(scenario, Schedule(0))


async def settled(server: SimulatedServer) -> None:
    """Wait until nothing is under way."""
    await asyncio.sleep(server.delay[1] * 4 + 0.001)


async def test_a_stopped_server_keeps_what_is_stored_and_its_connections_come_back() -> None:
    server = SimulatedServer()
    one, two = server.connect("one"), server.connect("two")
    came_back: list[str] = []
    one.on_reconnect(lambda: came_back.append("one"))
    two.on_reconnect(lambda: came_back.append("two"))
    number = await one.append("acp.s.a.ev", b"kept")
    server.stop()
    assert not one.is_connected and not two.is_connected
    late = server.connect("late")
    assert late.connected_since is None
    with pytest.raises(BrokerAway):
        await one.last("acp.s.a.ev")
    server.cut(two)
    server.start()
    found = await one.last("acp.s.a.ev")
    assert found is not None and found.sequence == number
    assert came_back == ["one"] and [each.connected_since is None for each in (one, two, late)] == [False, True, False]
    server.mend(two)
    await two.last("acp.s.a.ev")
    assert came_back == ["one", "two"]


def test_what_is_under_way_when_a_connection_is_lost_arrives_up_to_some_point() -> None:
    counts: set[int] = set()

    async def play(seed: int) -> None:
        server = SimulatedServer(seed=seed)
        server.delay = (0.01, 0.02)
        broker = server.connect()
        appends = [asyncio.ensure_future(broker.append("acp.s.a.ev", b"%d" % at)) for at in range(5)]
        await asyncio.sleep(0)
        server.cut(broker)
        results = await asyncio.gather(*appends, return_exceptions=True)
        assert all(isinstance(result, Unsure) for result in results)
        server.mend(broker)
        found = [int(message.data) for message in await broker.read("acp.s.a.ev")]
        assert found == list(range(len(found))), "the first of them"
        counts.add(len(found))

    for seed in range(40):
        virtually(partial(play, seed))
    assert {0, 5} <= counts and len(counts) > 3


def test_a_frozen_connection_loses_nothing() -> None:
    async def play() -> None:
        server = SimulatedServer()
        frozen, other = server.connect(), server.connect()
        found: list[bytes] = []
        frozen.subscribe("acp.all", lambda message: found.append(message.data))
        await frozen.last("acp.s.a.ev")
        server.freeze(frozen)
        other.publish("acp.all", b"1")
        with pytest.raises(Unsure):
            await frozen.append("acp.s.a.ev", b"late", name="late")
        with pytest.raises(BrokerAway):
            await frozen.last("acp.s.a.ev")
        assert found == [] and await other.last("acp.s.a.ev") is None and frozen.unsent == 4
        server.thaw(frozen)
        await settled(server)
        assert found == [b"1"] and frozen.unsent == 0
        stored = await other.last("acp.s.a.ev")
        assert stored is not None and stored.data == b"late"
        assert await frozen.append("acp.s.a.ev", b"late", name="late") == stored.sequence

    virtually(play)


def test_a_stale_read_sees_an_older_state_of_the_last_second_and_nothing_older() -> None:
    async def play() -> None:
        server = SimulatedServer(seed=3)
        server.stale = 0.7
        broker = server.connect()
        await broker.append("acp.s.a.row", b"old", replaces=True)
        await asyncio.sleep(2.0)
        for at in range(10):
            await broker.append("acp.s.a.ev", b"%d" % at)
        await broker.append("acp.s.a.row", b"new", replaces=True)
        rows, lengths = set(), set()
        for _ in range(200):
            lengths.add(len(await broker.read("acp.s.a.ev")))
            (row,) = await broker.lasts("acp.s.*.row")
            rows.add(row.data)
            last = await broker.last("acp.s.a.row")
            assert last is not None and last.data == b"new", "the leader has it"
        assert rows == {b"old", b"new"} and lengths == set(range(11))
        await asyncio.sleep(2.0)
        for _ in range(50):
            assert len(await broker.read("acp.s.>")) == 11

    virtually(play)


def test_one_who_follows_can_miss_messages_without_a_sign() -> None:
    async def play() -> None:
        server = SimulatedServer(seed=1)
        server.missed = 0.3
        broker = server.connect()
        found: list[int] = []
        broker.follow("acp.s.>", lambda message: found.append(message.sequence))
        numbers = [await broker.append("acp.s.a.ev", b"") for _ in range(100)]
        await settled(server)
        assert 40 < len(found) < 95 and set(found) < set(numbers) and found == sorted(found)
        assert len(await broker.read("acp.s.>")) == 100

    virtually(play)


async def test_a_full_broker_stores_nothing_until_there_is_room() -> None:
    server = SimulatedServer()
    broker = server.connect()
    number = await broker.append("acp.s.a.ev", b"1", name="1")
    server.is_full = True
    with pytest.raises(BrokerFull):
        await broker.append("acp.s.a.ev", b"2")
    assert await broker.append("acp.s.a.ev", b"1", name="1") == number, "it is stored already"
    server.is_full = False
    assert await broker.append("acp.s.a.ev", b"2") == number + 1


def test_a_name_is_remembered_for_minutes() -> None:
    async def play() -> None:
        broker = SimulatedServer().connect()
        first = await broker.append("acp.s.a.ev", b"", name="x")
        await asyncio.sleep(290)
        assert await broker.append("acp.s.a.ev", b"", name="x") == first
        await asyncio.sleep(20)
        assert await broker.append("acp.s.a.ev", b"", name="x") == first + 1

    async def scenario(_: World) -> None:
        await play()

    run(scenario, Schedule(0), limit=1000.0)


async def test_the_clock_is_the_one_that_is_given() -> None:
    now = 100.0
    server = SimulatedServer(clock=lambda: now)
    broker = server.connect()
    assert broker.clock() == 100.0 == broker.connected_since
    await broker.append("acp.s.a.ev", b"")
    now = 160.5
    await broker.append("acp.s.a.ev", b"")
    first, second = await broker.read("acp.s.a.ev")
    assert second.time - first.time == pytest.approx(60.5)


def played(seed: int) -> list[str]:
    """Play something with all faults at once, and return what happened."""
    events: list[str] = []

    async def scenario(world: World) -> None:
        server = SimulatedServer(seed=seed)
        server.delay, server.unsure, server.stale, server.missed = (0.0, 0.05), 0.2, 0.3, 0.1
        brokers = [server.connect(f"{at}") for at in range(3)]
        for broker in brokers:
            broker.follow("acp.s.>", lambda message, name=broker.name: events.append(f"{name} {message.sequence}"))  # type: ignore[misc]
        faults = asyncio.ensure_future(break_things(server, brokers, world))
        for at in range(60):
            broker = world.random.choice(brokers)
            try:
                events.append(f"{at}: {await broker.append('acp.s.a.ev', b'x', name=str(at))}")
            except BrokerAway as error:
                events.append(f"{at}: {type(error).__name__}")
        faults.cancel()

    run(scenario, Schedule(seed))
    return events


async def break_things(server: SimulatedServer, brokers: list[SimulatedBroker], world: World) -> None:
    """Cut connections and stop the server at random, and make good what was broken."""
    while True:
        await asyncio.sleep(world.random.uniform(0.0, 0.3))
        broker = world.random.choice(brokers)
        what = world.random.choice(["cut", "stop", "freeze"])
        if what == "stop":
            server.stop()
            await asyncio.sleep(world.random.uniform(0.0, 0.2))
            server.start()
        elif what == "cut":
            server.cut(broker)
            await asyncio.sleep(world.random.uniform(0.0, 0.5))
            server.mend(broker)
        else:
            server.freeze(broker)
            await asyncio.sleep(world.random.uniform(0.0, 7.0))
            server.thaw(broker)


def test_a_seed_repeats_everything() -> None:
    assert played(5) == played(5)
    assert played(5) != played(6)


@pytest.mark.parametrize("fenced", [True, False])
def test_sessions_that_are_claimed_and_written_under_faults_have_one_owner_at_a_time(fenced: bool) -> None:
    """Owners that know nothing of each other: what the fence lets through is never mixed, and what is acknowledged is stored once.

    Without the fence this test finds what it is for.
    """

    async def scenario(world: World) -> None:
        server = SimulatedServer(seed=world.random.randint(0, 10**9))
        server.checks_conditions = fenced
        server.delay, server.unsure = (0.0, 0.03), 0.1
        brokers = [server.connect(f"owner-{at}") for at in range(3)]
        world.offer("stop", server.stop)
        acknowledged: dict[str, int] = {}
        faults = world.start(break_things(server, brokers, world))
        owners = [world.start(own(broker, acknowledged, world)) for broker in brokers]
        try:
            await asyncio.wait(owners)
        finally:
            faults.cancel()
            world.acted = True
        server.start()
        reader = server.connect("reader")
        messages = await reader.read("acp.s.a.>", limit=100_000)
        check_one_owner(messages, acknowledged)

    if fenced:
        check(scenario, ends=("cancel", "stop"), limit=2000.0)
    else:
        with pytest.raises(AssertionError, match="was stored while"):
            check(scenario, ends=("cancel", "stop"), limit=2000.0)


async def own(broker: SimulatedBroker, acknowledged: dict[str, int], world: World) -> None:
    """Claim the session, write to it until another has claimed it, and claim it again."""
    for claim in range(3):
        await asyncio.sleep(world.random.uniform(0.0, 1.0))
        try:
            last = await broker.last("acp.s.a.own")
            expects = last.sequence if last else 0
            name = f"{broker.name}/{claim}"
            epoch = await broker.append("acp.s.a.own", name.encode(), expects=expects, name=name)
            for at in range(10):
                event = f"{name}/{at}"
                fence = Fence("acp.s.a.own", epoch)
                acknowledged[event] = await broker.append("acp.s.a.ev", event.encode(), fence=fence, name=event)
        except (BrokerAway, Fenced):
            continue


def check_one_owner(messages: list[StoredMessage], acknowledged: dict[str, int]) -> None:
    owner = ""
    seen: dict[str, int] = {}
    for message in messages:
        text = message.data.decode()
        if message.subject.endswith(".own"):
            owner = text
        else:
            assert text.startswith(f"{owner}/"), f"{text} was stored while {owner} owned the session"
            assert text not in seen
            seen[text] = message.sequence
    assert acknowledged.items() <= seen.items()
