"""Whole conversations."""

import pytest

from tests.engines.codex.translate import scenarios_calls, scenarios_turns
from tests.engines.codex.translate.harness import CWD, VERSIONS, Stage
from tests.engines.codex.translate.scenario import SCENARIOS

PLAYED = (scenarios_calls, scenarios_turns)
FILES = {f"{CWD}/a.txt": "one\ntwo\nthree\n"}


@pytest.mark.parametrize("spoken", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_conversation_is_told_as_it_was(name: str, spoken: str) -> None:
    play, tale = SCENARIOS[name]
    stage = Stage(spoken, read=FILES.get)
    play(stage)
    assert stage.tale == tale
    assert not stage.translator.unknown
