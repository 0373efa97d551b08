"""The benchmarks of the bridges, of the tap, of translation and of the fleet still play, with few words. Their numbers are not judged here."""

import math
import sys
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.bridges.clis import CLIS
from benchmarks.bridges.playing import play_bridge
from benchmarks.commands import CONTESTANTS, OURS
from benchmarks.fleet import PARTS, Sizes
from benchmarks.tap import contestants, cpu_of, first_answer
from benchmarks.translation import MESSAGE_TARGET, measure, target_of
from benchmarks.workloads import BridgeMeasure, Engine


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
@pytest.mark.parametrize("engine", CLIS)
def test_a_bridge_is_played_and_everything_about_it_measured(engine: Engine) -> None:
    values = play_bridge(CONTESTANTS[OURS].command(engine), engine, 50, settle=0)
    assert values.keys() == set(get_args(BridgeMeasure))
    assert all(value > 0 for value in values.values())


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
def test_the_tap_is_played_beside_a_bare_loop(tmp_path: Path) -> None:
    for words in contestants(str(tmp_path)).values():
        assert cpu_of(words, 0.05, "apart") > 0 and first_answer(words) > 0


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
async def test_translation_is_measured_in_both_directions_and_an_open_message_stays_small() -> None:
    lines = await measure(rounds=2, starts=1)
    assert len([name for name in lines if name.endswith("added")]) == 10
    assert all(target_of(name) is not None for name in lines if not name.endswith(("without", "ms")))
    sizes = [value for name, value in lines.items() if name.endswith("bytes")]
    assert len(sizes) == 2 and max(sizes) < MESSAGE_TARGET


FEW = Sizes(rounds=1, seconds=0.3, sessions=4, events=400, kills=1, grows=(10,), idle=(10,), workers=(1, 2))


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_the_fleet_is_measured(part: str) -> None:
    lines = PARTS[part](FEW)
    assert lines and all(math.isfinite(value) for value in lines.values())
    for name, value in lines.items():
        if name.endswith(("/s", "ms", "seconds")) or "events/s" in name:
            assert value > 0, name
