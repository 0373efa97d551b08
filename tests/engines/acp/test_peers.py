"""Agents of the official SDKs, and our demo, behind our engine: our client plays the whole scenario of the interop tests through it."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.interop import faults, scenario
from tests.interop.environment import environment, play
from tests.interop.programs import PeerProgram, all_programs
from tests.interop.test_pairs import LACKING

MENDED = {"resume", "close"}
"""Steps that a peer gets wrong by itself and that go well through the engine, because there is another way."""


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("name", ["antiphon", "python", "python-next", "typescript"])
def test_an_agent_behind_the_engine_plays_the_whole_scenario(name: str, tmp_path: Path) -> None:
    who = all_programs()
    if who[name].missing:
        pytest.skip(f"{who[name].name} {who[name].missing}")
    words = (sys.executable, "-m", "antiphon", "agent", "--engine", shlex.join(who[name].agent))
    behind = PeerProgram("behind the engine", "", (), words)
    with environment(tmp_path) as on:
        play(on, who["antiphon"], behind)  # the first start learns the ways to sign in
        (on.folder / "poem.txt").unlink()
        on.log.unlink()
        played = play(on, who["antiphon"], behind)
        troubles = {
            seen.step: trouble
            for seen in played.seen
            if (trouble := scenario.problem(seen, str(on.folder), played.traffic))
        }
    known = {step for step in troubles if faults.known("antiphon", name, step) or (name, step) in LACKING}
    assert [seen.step for seen in played.seen] == [step for step in scenario.TITLES if step != "quiet"], played.logged
    assert set(troubles) == known, troubles
    assert not set(troubles) & MENDED and "Traceback" not in played.logged
