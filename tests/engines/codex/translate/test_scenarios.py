"""Whole sessions."""

from tests.engines.codex.translate import scenarios_calls, scenarios_turns
from tests.engines.codex.translate.harness import CWD, VERSIONS, TranslatedThread
from tests.engines.codex.translate.scenario import SCENARIOS
from tests.rows import each_row

PLAYED = (scenarios_calls, scenarios_turns)
FILES = {f"{CWD}/a.txt": "one\ntwo\nthree\n"}


@each_row("spoken", VERSIONS)
@each_row("name", SCENARIOS)
def test_a_thread_is_shown_as_it_was(name: str, spoken: str) -> None:
    play, outline = SCENARIOS[name]
    thread = TranslatedThread(spoken, read=FILES.get)
    play(thread)
    assert thread.outline == outline
    assert not thread.translator.unknown
