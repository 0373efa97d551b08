"""Play many random schedules of faults against fleets, and write what was seen to docs/evidence/fleet.md.

    python -m tests.fleet.faults.evidence --seeds 200 --lanes 2

Each lane has a fleet of its own, and a new one after some schedules or one that failed: that a fleet leaves nothing behind is seen at its end.
"""

import argparse
import asyncio
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from antiphon.fleet.nats.program import find_nats_server
from tests.fleet.faults.programs import LEASE, faulty_fleet
from tests.fleet.faults.schedule import FAULTS, FleetSchedule, Tally
from tests.limits import limit

PAGE = Path(__file__).resolve().parents[3] / "docs/evidence/fleet.md"
EACH = 10
"""Schedules that one fleet lives through."""
SINGLE = 4
"""Every so many fleets the broker is one server."""
LONGEST = 120.0
"""Seconds for one schedule, on a machine that has nothing else to do."""


class Lanes:
    """The schedules that are left, and what those that were played have shown."""

    def __init__(self, seeds: list[int], until: float) -> None:
        self.seeds = seeds
        self.tally = Tally()
        self._until = until
        self._fleets = 0

    def next(self) -> int | None:
        """Return the next seed; None if there is none, or the time is over."""
        return self.seeds.pop(0) if self.seeds and time.monotonic() < self._until else None

    async def work(self) -> None:
        """Play schedules until none is left."""
        seed = self.next()
        while seed is not None:
            directory = Path(tempfile.mkdtemp(prefix="antiphon-fleet-"))
            self._fleets += 1
            cluster = self._fleets % SINGLE != 0
            failed, schedule = len(self.tally.failed), None
            try:
                async with faulty_fleet(directory, random.Random(seed), cluster=cluster) as fleet:
                    for _ in range(EACH):
                        began = time.monotonic()
                        schedule = FleetSchedule(fleet, seed, self.tally)
                        async with asyncio.timeout(limit(LONGEST)):
                            await schedule.play()
                        sys.stderr.write(f"{seed}: {time.monotonic() - began:.0f} s\n")
                        seed = self.next()
                        if seed is None:
                            break
            except Exception as error:
                self.tally.failed.append(f"{seed}: {error!r}")
                sys.stderr.write(f"{seed} FAILED in {directory}: {error!r}\n{schedule}\n")
                seed = self.next()
            if len(self.tally.failed) == failed:
                shutil.rmtree(directory, ignore_errors=True)


def page(tally: Tally, seconds: float, lanes: int, first: int) -> str:
    """Return the page."""
    moves = sorted(tally.moves) or [0.0]
    p50, p95 = statistics.median(moves), moves[int(len(moves) * 0.95)] if len(moves) > 1 else moves[0]
    version = subprocess.run(
        [find_nats_server(), "--version"], capture_output=True, encoding="utf-8", check=True
    ).stdout.split()[-1]
    faults = "\n".join(f"| {name} | {tally.faults[name]:,} |" for name in FAULTS)
    failed = "\n".join(f"- `{each}`" for each in tally.failed) or "None."
    return f"""# Faults of a fleet

Written by `make fleet-faults`, seeds from {first} on. Each schedule is random from its seed: while three people use three sessions (a client that
attaches by number, the project's own link, `antiphon.connect`) and two more clients watch, as processes of their own, one or two things
at a time break. All is real: `nats-server` {version} (three nodes; one in every {SINGLE}th fleet), two `antiphon serve --fleet`, three `antiphon worker`, a
lease of {LEASE:g} s. [`tests/fleet/faults`](../../tests/fleet/faults/schedule.py) has the faults and the checks.

| | |
|---|---|
| schedules | {tally.schedules:,} |
| sessions, read back from the broker | {tally.sessions:,} |
| events, compared by number and by hash with what each client saw | {tally.events:,} |
| events lost | {0 if not tally.failed else "see below"} |
| events doubled | {0 if not tally.failed else "see below"} |
| prompts | {tally.prompts:,}: {tally.answered:,} with a result, {tally.interrupted:,} interrupted, {tally.prompts - tally.answered - tally.interrupted:,} whose client was cut off |
| prompts that ran twice, or had no response or two | {0 if not tally.failed else "see below"} |
| events of a worker that had lost its session | {0 if not tally.failed else "see below"} |
| agents left behind | {0 if not tally.failed else "see below"} |

| fault | times |
|---|---|
{faults}
| two at once | {tally.both:,} |

From the moment a worker was killed, stopped or cut off to the event at a client that its session has moved, with that lease, whatever else
was broken: p50 {p50:.1f} s, p95 {p95:.1f} s, longest {moves[-1]:.1f} s ({len(tally.moves):,} moves). The machine has {os.cpu_count()} processors ({platform.machine()}) and ran {lanes} such fleets side by side; it took {seconds / 60:.0f} minutes.

## Schedules that failed

{failed}
"""


async def main() -> int:
    """Play them, and return the exit status."""
    parser = argparse.ArgumentParser(prog="make fleet-faults", description="Play random faults against fleets.")
    parser.add_argument("--seeds", type=int, default=200, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--lanes", type=int, default=2, help="fleets side by side")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no schedule after this time")
    options = parser.parse_args()
    began = time.monotonic()
    lanes = Lanes([*range(options.first, options.first + options.seeds)], began + options.minutes * 60)
    await asyncio.gather(*(lanes.work() for _ in range(options.lanes)))
    PAGE.write_text(page(lanes.tally, time.monotonic() - began, options.lanes, options.first), encoding="utf-8")
    sys.stderr.write(f"{lanes.tally}\n{PAGE}\n")
    return 1 if lanes.tally.failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
