"""Which workers live, as every other process judges it: by a simulated broker and a clock that jumps to the next timer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from antiphon.fleet.membership import BEAT, LEASE, Heartbeat, Members, WorkerState
from antiphon.fleet.simulation import SimulatedServer
from tests.schedules import Schedule, World, check, run

DEEP = 100_000
"""Levels of nesting that no version of Python follows."""


def virtually(scenario: Callable[[SimulatedServer], Awaitable[None]]) -> None:
    """Play a scenario once, on a virtual clock."""

    async def play(world: World) -> None:
        await scenario(SimulatedServer())

    run(play, Schedule(0))


def worker(server: SimulatedServer, name: str, broker: Any = None, **more: Any) -> tuple[Any, Heartbeat]:
    """Start the heartbeat of a worker on a connection of its own."""
    broker = broker or server.connect(name)
    beating = Heartbeat(broker, lambda: WorkerState(name, host="h", agents=("demo",), **more))
    beating.start()
    return broker, beating


def test_a_worker_is_known_with_its_first_beat_and_dead_a_lease_after_its_last() -> None:
    async def scenario(server: SimulatedServer) -> None:
        seen: list[tuple[str, bool, float]] = []
        loop = asyncio.get_running_loop()
        members = Members(server.connect("gateway"))
        members.changed.append(lambda state, alive: seen.append((state.name, alive, loop.time())))
        broker, beating = worker(server, "one")
        await members.known()
        assert [*members.workers] == ["one"] and members.is_alive("one")
        await asyncio.sleep(10)
        assert members.is_alive("one")
        cut = loop.time()
        server.cut(broker)
        await asyncio.sleep(LEASE + 1)
        assert [(name, alive) for name, alive, _ in seen] == [("one", True), ("one", False)]
        assert LEASE - 1 <= seen[-1][2] - cut <= LEASE + 0.5
        assert not members.is_alive("one") and not members.workers
        server.mend(broker)
        await asyncio.sleep(0.1)
        assert members.is_alive("one"), "a worker that was cut off and comes back is there at once"
        beating.leave()
        members.close()

    virtually(scenario)


def test_a_worker_with_a_longer_lease_than_ours_is_waited_for_as_long_as_that() -> None:
    """It may send beats less often than once in the time of our lease."""

    async def scenario(server: SimulatedServer) -> None:
        members = Members(server.connect("gateway"))
        died: list[str] = []
        members.changed.append(lambda state, alive: None if alive else died.append(state.name))
        broker = server.connect("slow")
        beating = Heartbeat(broker, lambda: WorkerState("slow", lease=3 * LEASE), interval=1.5 * LEASE)
        beating.start()
        await members.known()
        await asyncio.sleep(5 * LEASE)
        assert not died
        server.cut(broker)
        await asyncio.sleep(3.5 * LEASE)
        assert died == ["slow"]
        beating.leave()
        members.close()

    virtually(scenario)


def test_a_process_whose_own_connection_was_lost_gives_every_worker_a_fresh_lease() -> None:
    async def scenario(server: SimulatedServer) -> None:
        ours = server.connect("gateway")
        members = Members(ours)
        died: list[str] = []
        members.changed.append(lambda state, alive: None if alive else died.append(state.name))
        _, first = worker(server, "one")
        broker, second = worker(server, "two")
        await members.known()
        server.cut(ours)
        await asyncio.sleep(20)
        assert not died, "without a connection nothing can be judged"
        server.cut(broker)
        server.mend(ours)
        await asyncio.sleep(LEASE - 0.2)
        assert not died, "it could have received nothing for so long"
        await asyncio.sleep(0.5)
        assert died == ["two"] and members.is_alive("one")
        for each in (first, second):
            each.leave()
        members.close()

    virtually(scenario)


def test_a_process_that_stood_still_gives_every_worker_a_fresh_lease() -> None:
    """Beats that came while it was stopped wait to be read behind the timer that looks for the dead."""

    async def scenario(server: SimulatedServer) -> None:
        now = 0.0
        broker = SimulatedServer(clock=lambda: now).connect("gateway")
        members = Members(broker)
        state = WorkerState("one", host="h")
        members._take(_beat(state))
        now = 2.9
        members.look()
        now = 60.0
        members.look()
        assert members.is_alive("one"), "the clock has jumped: nothing is known about the time between"
        for now in (61.0, 62.0, 63.0):  # noqa: B007 - the clock reads it
            members.look()
        assert members.is_alive("one")
        now = 63.1
        members.look()
        assert not members.is_alive("one")
        members.close()

    virtually(scenario)


def _beat(state: WorkerState) -> Any:
    from antiphon.fleet.broker import CoreMessage

    return CoreMessage(BEAT + state.name, msgspec.json.encode(state))


def test_a_worker_that_leaves_in_order_is_gone_at_once_and_for_ever() -> None:
    async def scenario(server: SimulatedServer) -> None:
        members = Members(server.connect("gateway"))
        _, beating = worker(server, "one")
        await members.known()
        beating.leave()
        await asyncio.sleep(0.01)
        assert not members.is_alive("one")
        late = Members(server.connect("late"))
        assert late.is_alive("one"), "a process that is new does not know, and takes no worker for dead"
        await asyncio.sleep(LEASE + 0.5)
        assert not late.is_alive("one")
        for each in (members, late):
            each.close()

    virtually(scenario)


def test_a_worker_that_was_started_again_names_the_start_before_it_and_no_other_worker() -> None:
    async def scenario(server: SimulatedServer) -> None:
        members = Members(server.connect("gateway"))
        broker, beating = worker(server, "one.aaaaaa")
        await members.known()
        _, other = worker(server, "other.aaaaaa", replaces="one.aaaaaa")
        await asyncio.sleep(0.01)
        assert members.is_alive("one.aaaaaa") and members.is_alive("other.aaaaaa")
        server.cut(broker)  # killed
        _, again = worker(server, "one.bbbbbb", replaces="one.aaaaaa")
        await asyncio.sleep(0.01)
        assert not members.is_alive("one.aaaaaa") and members.is_alive("one.bbbbbb"), "before the lease is over"
        for each in (again, other, beating):
            each.leave()
        members.close()

    virtually(scenario)


def test_workers_send_a_beat_when_they_are_asked_to() -> None:
    async def scenario(server: SimulatedServer) -> None:
        _, beating = worker(server, "one")
        await asyncio.sleep(0.3)
        members = Members(server.connect("gateway"))
        await asyncio.sleep(0.01)
        assert "one" in members.workers, "long before the next beat is due"
        beating.leave()
        members.close()

    virtually(scenario)


def test_the_last_beat_that_came_back_says_until_when_others_know_of_us() -> None:
    async def scenario(server: SimulatedServer) -> None:
        loop = asyncio.get_running_loop()
        broker, beating = worker(server, "one")
        await asyncio.sleep(5.5)
        assert beating.confirmed == 5.0
        server.freeze(broker)
        await asyncio.sleep(4)
        assert beating.confirmed == 5.0, "what does not come back may not have arrived"
        server.thaw(broker)
        await asyncio.sleep(0.01)
        assert beating.confirmed >= 9.0
        server.cut(broker)
        await asyncio.sleep(3)
        before = loop.time()
        server.mend(broker)
        await asyncio.sleep(0.01)
        assert beating.confirmed >= before, "a beat is sent as soon as the connection is back"
        beating.leave()

    virtually(scenario)


def test_a_beat_of_a_newer_version_is_read_without_the_fields_that_are_not_known() -> None:
    async def scenario(server: SimulatedServer) -> None:
        broker = server.connect("newer")
        members = Members(server.connect("gateway"))
        newer = {"name": "new", "host": "h", "format": 2, "version": "9.0", "colour": "blue", "agents": ["demo"]}
        broker.publish(BEAT + "new", msgspec.json.encode(newer))
        broker.publish(BEAT + "old", msgspec.json.encode({"name": "old"}))
        broker.publish(BEAT + "far", msgspec.json.encode({"name": "far", "format": 3}))
        broker.publish(BEAT + "odd", b"\xff")
        broker.publish(BEAT + "lies", msgspec.json.encode({"name": "lies", "slots": 0, "used": -1}))
        broker.publish(BEAT + "big", b'{"name": "big", "slots": 1, "used": 1%b}' % (b"0" * 400))
        broker.publish(BEAT + "deep", b'{"name": "deep", "colour": %b%b}' % (b"[" * DEEP, b"]" * DEEP))
        broker.publish(BEAT + "other", msgspec.json.encode({"name": "new", "alive": False}))
        await asyncio.sleep(0.01)
        assert sorted(members.workers) == ["far", "new", "old"]
        assert members.workers["new"].agents == ("demo",) and members.workers["new"].is_compatible
        assert not members.workers["far"].is_compatible
        members.close()

    virtually(scenario)


def test_a_beat_that_says_the_same_is_no_change() -> None:
    async def scenario(server: SimulatedServer) -> None:
        count = 0
        state = WorkerState("one", host="h")

        def changed(*_: object) -> None:
            nonlocal count
            count += 1

        members = Members(server.connect("gateway"))
        members.changed.append(changed)
        beating = Heartbeat(server.connect("one"), lambda: state)
        beating.start()
        await asyncio.sleep(5.5)
        assert count == 1
        state = msgspec.structs.replace(state, turns=1)
        beating.beat_soon()
        await asyncio.sleep(0.01)
        assert count == 2
        beating.leave()
        beating.leave()
        await asyncio.sleep(3)
        assert count == 3 and not members.workers
        members.close()

    virtually(scenario)


@pytest.mark.parametrize("seeds", [200])
def test_no_living_worker_is_taken_for_dead_whatever_happens_to_connections(seeds: int) -> None:
    """Connections are cut and mended at random. A worker whose own connection, and that of the judge, were up for a lease is alive."""

    async def scenario(world: World) -> None:
        server = SimulatedServer(seed=world.schedule.seed)
        server.delay = (0.0, 0.05)
        brokers = {name: server.connect(name) for name in ("a", "b", "judge")}
        beating = [worker(server, name, brokers[name])[1] for name in ("a", "b")]
        members = Members(brokers["judge"])
        for _ in range(20):
            name = world.random.choice([*brokers])
            broker = brokers[name]
            (server.mend if not broker.is_connected else server.cut)(broker)
            await asyncio.sleep(world.random.uniform(0, 2))
            now = broker.clock()
            up = {
                each: found.connected_since is not None and now - found.connected_since > 1.2
                for each, found in brokers.items()
            }
            for name in ("a", "b"):
                if up[name] and up["judge"]:
                    assert name in members.workers
        for broker in brokers.values():
            server.mend(broker)
        await asyncio.sleep(LEASE + 1)
        assert sorted(members.workers) == ["a", "b"]
        for each in beating:
            each.leave()
        members.close()

    check(scenario, ends=("collect",), count=seeds)
