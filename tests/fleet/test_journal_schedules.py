"""Random schedules of workers, readers and faults: numbers have no gap, nothing that was acknowledged is lost, nothing is stored twice,
and a stale lease stores nothing. Each safeguard is taken away in a twin of the test, which has to find what is wrong then."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import RunHeader
from antiphon.fleet.simulation import SimulatedBroker
from tests.fleet.journal_world import LIMIT, JournalWorld
from tests.schedules import SCHEDULES, Schedule, World, run

TWINS = 120
"""Schedules in which a safeguard that is missing has to be noticed: about every fifth one notices it."""


async def scenario(world: World) -> None:
    await JournalWorld(world.random).play()


def play(seed: int) -> None:
    run(scenario, Schedule(seed), limit=5 * LIMIT, logs=False)


@pytest.mark.slow
@pytest.mark.prove
def test_nothing_is_lost_or_doubled_and_a_stale_lease_stores_nothing() -> None:
    if chosen := os.environ.get("ANTIPHON_SCHEDULE"):
        run(scenario, Schedule.read(chosen), limit=5 * LIMIT, logs=False)
        return
    for seed in range(SCHEDULES):
        play(seed)


def _without(**conditions: Any) -> Callable[..., Any]:
    append = SimulatedBroker.append

    async def weak(self: SimulatedBroker, subject: str, data: bytes, **given: Any) -> int:
        return await append(self, subject, data, **{**given, **conditions})

    return weak


async def _found_nothing(*_: object) -> None:
    return None


def _without_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedBroker, "append", _without(fence=None))


def _without_names(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedBroker, "append", _without(name=""))
    patch.setattr(CertainAppends, "_find", _found_nothing)


def _with_half_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunHeader, "last", property(lambda header: header.first + header.length - 1))


@pytest.mark.parametrize("weakened", [_without_fence, _without_names, _with_half_runs])
def test_the_schedules_find_it_when_a_safeguard_is_missing(
    weakened: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    weakened(monkeypatch)
    for seed in range(TWINS):
        try:
            play(seed)
        except AssertionError:
            return
    pytest.fail("nothing was noticed")
