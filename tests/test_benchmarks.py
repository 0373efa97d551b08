"""The benchmarks of the bridges and of the tap still play, with few words. Its numbers are judged by `make bench`, not here."""

import sys
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.bridges.clis import CLIS
from benchmarks.bridges.playing import play_bridge
from benchmarks.commands import CONTESTANTS, OURS
from benchmarks.tap import contestants, cpu_of, first_answer
from benchmarks.workloads import BridgeMeasure, Engine


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
@pytest.mark.parametrize("engine", CLIS)
def test_a_bridge_is_played_and_everything_about_it_measured(engine: Engine) -> None:
    values = play_bridge(CONTESTANTS[OURS].command(engine), engine, 50, settle=0)
    assert values.keys() == set(get_args(BridgeMeasure))
    assert all(value > 0 for value in values.values())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what a process costs is read from Linux")
def test_the_tap_is_played_beside_a_bare_loop(tmp_path: Path) -> None:
    for words in contestants(str(tmp_path)).values():
        assert cpu_of(words, 0.05, "apart") > 0 and first_answer(words) > 0
