"""Whole sessions."""

import pytest

from tests.engines.codex.translate import scenarios_calls, scenarios_turns
from tests.engines.codex.translate.harness import CWD, VERSIONS, TranslatedThread
from tests.engines.codex.translate.scenario import SCENARIOS

PLAYED = (scenarios_calls, scenarios_turns)
FILES = {f"{CWD}/a.txt": "one\ntwo\nthree\n"}


@pytest.mark.parametrize("spoken", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_thread_is_shown_as_it_was(name: str, spoken: str) -> None:
    play, outline = SCENARIOS[name]
    thread = TranslatedThread(spoken, read=FILES.get)
    play(thread)
    assert thread.outline == outline
    assert not thread.translator.unknown
