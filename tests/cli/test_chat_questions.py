"""Permission questions of `antiphon chat` on a screen."""

import os
import sys
from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.tui.terminal import CTRL_D, ENTER, chat

pytestmark = pytest.mark.slow


def test_a_long_change_takes_half_of_the_screen_and_all_edits_are_allowed_by_one_key(tmp_path: Path) -> None:
    with chat(tmp_path, columns=50, rows=20) as terminal:
        notes = tmp_path / "work" / "notes.py"
        notes.write_text("".join(f"a{number} = {number}\n" for number in range(40)), encoding="utf-8")
        terminal.wait("mode default")
        shown = terminal.ask(f"/edit notes.py {'x = 1 ' * 100}{ENTER}", "Allow?")
        question = shown[shown.index("Allow?") :].split("\n")
        assert "+1 -0" in question[0] and "more lines" in shown and "v view" in shown
        assert len(question) - 1 <= 10  # without the status line
        assert "\n  39   a38 = 38\n" in shown  # the number of the line in the file
        terminal.ask("A", "has 41 lines now")
        terminal.wait("mode acceptEdits")
        terminal.wait("   /help")
        terminal.press(f"/edit notes.py y = 2{ENTER}")
        terminal.wait("has 42 lines now")
        assert terminal.all.count("Allow?") == 0


def test_a_reason_is_sent_as_the_next_prompt_to_an_agent_that_has_no_field_for_it(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait("mode default")
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        terminal.ask("r", "Because:")
        terminal.press(f"/echo use make instead{ENTER}")
        terminal.wait("you denied it: /echo use make instead")
        terminal.wait(f"{PROMPT} /echo use make instead")
        terminal.wait("   /help")
        assert not (tmp_path / "work" / "made").exists()
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        terminal.ask("r", "Because:")
        terminal.press("\x1b")
        terminal.wait("y once")
        terminal.ask("n", "denied")


def test_a_changed_rule_is_what_is_remembered(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait("mode default")
        terminal.ask(f"/run echo call{ENTER}", "a always Bash(echo call)")
        terminal.ask("a", "c change it")
        terminal.ask("c", "Rule: Bash(echo call)")
        terminal.ask(f"\x15Read{ENTER}", "✗ it would not allow this call")
        terminal.ask(f"\x15Bash(echo *){ENTER}", "Always allow\n  Bash(echo *)")
        terminal.ask("s", "always in this session: Bash(echo *)")
        terminal.ask(f"/run echo other{ENTER}", "echo other ended with 0")


def test_ctrl_z_suspends_also_while_a_question_is_open(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait("mode default")
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        before = terminal.written.count("\x1b[?2004l")
        terminal.press("\x1a")  # without a shell it goes on at once
        terminal.until(lambda: terminal.written.count("\x1b[?2004l") > before, "it does not leave the terminal")
        terminal.wait("y once")
        terminal.ask("n", "denied")
        terminal.wait("   /help")
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0


def test_what_was_sent_between_two_questions_that_came_at_once_is_not_repeated_later(tmp_path: Path) -> None:
    agent = f"{sys.executable} -m tests.cli.agents AsksAtOnce {tmp_path / 'log'}"
    with chat(tmp_path, "--agent", agent, rows=40, PYTHONPATH=os.pathsep.join(sys.path)) as terminal:
        terminal.wait("   /help")
        terminal.ask(f"go{ENTER}", "Allow?")
        terminal.ask("n", "1 is over")
        terminal.wait("Allow?")
        terminal.ask("n", "2 is over")
        for words in ("other words", "the last of them"):
            terminal.wait("   /help")
            terminal.ask(f"{words}{ENTER}", f"\n{words}")
        terminal.wait("   /help")
        for words in ("1 is over", "2 is over", f"{PROMPT} other words", "\nother words", "\nthe last of them"):
            assert terminal.all.count(words) == 1, terminal.all
