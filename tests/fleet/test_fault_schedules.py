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
STOPS = 3
"""Schedules in which workers are stopped."""


async def play(
    fleet: FaultyFleet,
    seed: int,
    tally: Tally,
    faults: Sequence[str] = FAULTS,
    kinds: Sequence[str] = KINDS,
) -> None:
    """Play one schedule. If it does not come to its end, what is stored may show why."""
    schedule = FleetSchedule(fleet, seed, tally, faults, kinds)
    try:
        try:
            async with asyncio.timeout(limit(LONGEST)):
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
async def test_a_worker_that_was_stopped_for_longer_than_its_lease_stores_nothing(tmp_path: Path) -> None:
    """Agents that never pause, and workers that go on after their sessions have moved. The simulation removes the fence."""
    tally = Tally()
    async with faulty_fleet(tmp_path, random.Random(0), cluster=False) as fleet:
        for seed in range(STOPS):
            await play(fleet, seed, tally, ("stop worker",), ("fast 1000",))
    assert tally.schedules == STOPS and tally.events > 0
