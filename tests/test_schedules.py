"""The random end-of-life tests find what they are made to find."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.errors import ConnectionClosed
from tests.schedules import Schedule, World, check, run


async def hangs(world: World) -> None:
    waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    world.offer("close", lambda: None)
    if world.schedule.step:
        await waits


async def leaves_a_task(world: World) -> None:
    world.offer("close", lambda: None)
    rest = asyncio.create_task(asyncio.sleep(10_000 if world.schedule.step else 0))
    await asyncio.sleep(0)
    del rest


async def loses_an_exception(world: World) -> None:
    async def fail() -> None:
        if world.acted:
            raise KeyError("lost")

    world.offer("close", lambda: None)
    await asyncio.wait([asyncio.ensure_future(fail())])


async def raises_something_else(world: World) -> None:
    async def work() -> None:
        if world.schedule.step:
            await closed.wait()
            raise ValueError("not one of ours")

    closed = asyncio.Event()
    world.offer("close", closed.set)
    await asyncio.wait([world.start(work())])


async def leaves_a_descriptor(world: World) -> None:
    world.offer("close", lambda: None)
    await asyncio.sleep(0)
    if world.acted:
        LEFT.extend(os.pipe())


async def fails_a_check(world: World) -> None:
    received = [1, 2, 3]
    world.offer("close", received.pop)

    def check_order() -> None:
        assert received == [1, 2, 3]

    world.finally_(check_order)
    await asyncio.sleep(0)


def hangs_without_a_loop(world: World) -> None:
    def serve() -> None:
        asyncio.run(world.pause())

    world.offer("close", lambda: None)
    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()
    if world.schedule.step:
        threading.Event().wait()


LEFT: list[int] = []

FAULTS: dict[str, tuple[Callable[[World], Any], str]] = {
    "a hang": (hangs, "not over after"),
    "a task": (leaves_a_task, "a task is left"),
    "an exception": (loses_an_exception, "lost in the loop"),
    "another error": (raises_something_else, "raised"),
    "a descriptor": (leaves_a_descriptor, "a descriptor is left"),
    "a check": (fails_a_check, "a check failed"),
    "a hang without a loop": (hangs_without_a_loop, "not over"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_that_an_end_brings_about_is_found_and_its_schedule_is_named(what: str) -> None:
    scenario, words = FAULTS[what]
    try:
        with pytest.raises(AssertionError) as failure:
            check(scenario, ends=("close",), limit=0.5 if "without" in what else None)
        assert words in str(failure.value)
        schedule = str(failure.value).partition("ANTIPHON_SCHEDULE=")[2].partition(" ")[0]
        with pytest.raises(AssertionError):
            run(scenario, Schedule.read(schedule), limit=0.5 if "without" in what else None)
    finally:
        while LEFT:
            os.close(LEFT.pop())


def test_an_end_falls_between_any_two_steps_and_a_schedule_is_repeatable() -> None:
    seen = dict[int, list[str]]()

    async def scenario(world: World) -> None:
        trace: list[str] = []
        world.offer("close", lambda: trace.append("END"))

        async def walk(name: str) -> None:
            for number in range(3):
                await asyncio.sleep(0)
                await world.pause(2)
                trace.append(f"{name}{number}")

        await asyncio.gather(world.start(walk("a")), world.start(walk("b")))
        seen[world.schedule.step] = trace

    steps = run(scenario, Schedule(7))
    for step in range(1, steps):
        run(scenario, Schedule(7, "close", step))
        first = seen[step]
        run(scenario, Schedule(7, "close", step))
        assert seen[step] == first
    places = {trace.index("END") for trace in seen.values() if "END" in trace}
    assert places == set(range(7)), "before, between and after all that is done"


def test_what_ends_as_it_should_passes() -> None:
    async def scenario(world: World) -> None:
        gone = asyncio.Event()
        world.offer("kill", gone.set)

        async def ask() -> None:
            await asyncio.wait_for(gone.wait(), 5)
            if world.acted:
                raise ConnectionClosed("gone")

        asking = world.start(ask())
        try:
            await world.pause()
        finally:
            gone.set()
        await asyncio.wait([asking])

    check(scenario, ends=("cancel", "kill", "collect"), count=50)
