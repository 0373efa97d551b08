"""Random faults of a fleet as people start it, from a seed: whatever happens when, nothing is lost and nothing is there twice.

ANTIPHON_SCHEDULES=100 says how many schedules there are, ANTIPHON_SCHEDULE=17 plays the one that failed. `make fleet-faults` plays
hundreds, and writes what was seen to docs/evidence/fleet.md.
"""

import asyncio
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.fleet.faults.programs import FaultyFleet, faulty_fleet
from tests.fleet.faults.schedule import FAULTS, KINDS, FleetSchedule, Tally
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CHOSEN = os.environ.get("ANTIPHON_SCHEDULE")
SCHEDULES = int(os.environ.get("ANTIPHON_SCHEDULES") or "1")
LONGEST = 120.0
"""Seconds for one schedule, on a machine that has nothing else to do."""
UNFENCED = 30.0
"""The same where the fence is removed: clients of a journal that broke wait for events that never come."""
STOPS = 6
"""Schedules in which workers are stopped, of which one is to fail without the fence."""


async def play(
    fleet: FaultyFleet,
    seed: int,
    tally: Tally,
    faults: Sequence[str] = FAULTS,
    kinds: Sequence[str] = KINDS,
    longest: float = LONGEST,
) -> None:
    """Play one schedule. If it does not come to its end, what is stored may show why."""
    schedule = FleetSchedule(fleet, seed, tally, faults, kinds)
    try:
        try:
            async with asyncio.timeout(limit(longest)):
                await schedule.play()
        except TimeoutError:
            await schedule.check_journals()
            raise
    except BaseException as error:
        error.add_note(f"ANTIPHON_SCHEDULE={seed}\n{schedule}")
        raise


@pytest.mark.prove
async def test_nothing_is_lost_or_doubled_whatever_breaks_when(tmp_path: Path) -> None:
    seeds = [int(CHOSEN)] if CHOSEN else range(SCHEDULES)
    tally = Tally()
    async with faulty_fleet(tmp_path, random.Random(0)) as fleet:
        for seed in seeds:
            await play(fleet, seed, tally)
    assert tally.schedules == len(seeds) and tally.events > 0


@pytest.mark.prove
async def test_nothing_is_lost_or_doubled_where_the_broker_is_one_server(tmp_path: Path) -> None:
    tally = Tally()
    async with faulty_fleet(tmp_path, random.Random(0), cluster=False) as fleet:
        for seed in range(SCHEDULES):
            await play(fleet, seed, tally)


@pytest.mark.prove
@pytest.mark.parametrize("is_fenced", [True, False])
async def test_a_worker_that_was_stopped_stores_nothing_because_of_the_fence(tmp_path: Path, is_fenced: bool) -> None:
    """Agents that never pause, workers that are stopped for longer than their lease and go on: without the fence the journal breaks."""
    problem = ""
    async with faulty_fleet(tmp_path, random.Random(0), cluster=False, is_fenced=is_fenced) as fleet:
        for seed in range(STOPS // 2 if is_fenced else STOPS):
            try:
                longest = LONGEST if is_fenced else UNFENCED
                await play(fleet, seed, Tally(), ("stop worker",), ("fast 1000",), longest)
            except AssertionError as error:
                problem = str(error)
                break
            except TimeoutError:
                if is_fenced:
                    raise
    assert ("is stored behind" in problem or "after another had taken" in problem) is not is_fenced, problem
