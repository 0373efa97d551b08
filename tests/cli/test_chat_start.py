"""The start of `antiphon chat` on a screen: what is shown first, the first prompt, the status line and the modes."""

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from antiphon.tui.screen import PROMPT
from tests.tui.terminal import CTRL_D, ENTER, chat

pytestmark = pytest.mark.slow

SHIFT_TAB = "\x1b[Z"


def test_the_first_screen_names_directory_branch_engine_model_and_mode_and_what_to_try(tmp_path: Path) -> None:
    head = tmp_path / "work" / ".git" / "HEAD"
    head.parent.mkdir(parents=True)
    head.write_text("ref: refs/heads/trunk\n", encoding="utf-8")
    for columns in (50, 80, 120):
        with chat(tmp_path, columns=columns) as terminal:
            terminal.wait("say what you want")
            shown = terminal.wait("mode default")
            lines = shown.split("\n")
            assert lines[0].startswith("Antiphon ") and (columns == 50 or lines[0].endswith("/work on trunk"))
            assert "  Antiphon demo  answers · echo" in lines and "  mode           default (Shift-Tab)" in shown
            assert "  fix the failing test  say what you want" in lines
            assert lines[-1].startswith("Antiphon demo (echo) · mode default · trunk")
            assert max(map(len, lines)) <= columns
            assert "\x1b[38;2" not in terminal.written  # the terminal's own colours


def test_shift_tab_goes_through_the_modes(tmp_path: Path) -> None:
    with chat(tmp_path) as terminal:
        terminal.wait("say what you want")
        for mode in ("acceptEdits", "plan", "default"):
            terminal.press(SHIFT_TAB)
            terminal.wait(f"(echo) · mode {mode}   /help")
        terminal.ask(f"/run touch made{ENTER}", "Allow?")
        terminal.press(SHIFT_TAB)  # no answer
        terminal.ask("n", "denied")


def test_the_first_screen_names_the_mode_that_the_status_line_names(tmp_path: Path) -> None:
    agent = f"{sys.executable} -m tests.cli.agents HasOwnModes {tmp_path / 'log'}"
    with chat(tmp_path, "--agent", agent, PYTHONPATH=os.pathsep.join(sys.path)) as terminal:
        terminal.wait("HasOwnModes · mode ask   /help")
        assert "  mode         ask (Shift-Tab): Ask: Only answers" in terminal.shown


@pytest.mark.parametrize("words", [("/echo sing the", "second voice"), ("demo", "/echo sing the second voice")])
def test_a_prompt_on_the_command_line_is_sent_first(tmp_path: Path, words: tuple[str, ...]) -> None:
    with chat(tmp_path, *words) as terminal:
        terminal.wait(f"{PROMPT} /echo sing the second voice")
        terminal.wait("\nsing the second voice")
        terminal.wait("   /help")


def test_one_word_that_is_no_agent_is_not_sent_and_the_nearest_agent_is_named(tmp_path: Path) -> None:
    with chat(tmp_path, "gemni") as terminal:
        assert terminal.wait_for_end() == 2
        assert "did you mean `gemini`?" in terminal.all and "antiphon gemni" in terminal.all


def test_a_user_who_looks_elsewhere_is_notified_and_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    with chat(tmp_path, TERM_PROGRAM="WezTerm") as terminal:
        terminal.wait("say what you want")
        terminal.ask(f"/echo one{ENTER}", "\none")
        terminal.wait("   /help")
        assert "\x1b]9;" not in terminal.written
        terminal.press("\x1b[O")  # another window is in front
        terminal.press(f"/run touch made{ENTER}")
        terminal.until(lambda: "\x1b]9;waiting for your answer\x07" in terminal.written)
        assert "\x1b]2;? /run touch made\x07" in terminal.written
        terminal.press("\x1b[I")
        terminal.ask("n", "denied")
        terminal.wait("   /help")
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert "\x1b]9;done" not in terminal.written
        assert terminal.written.rindex("\x1b[?1004l") > terminal.written.rindex("\x1b[?1004h")
        assert "\x1b[23;2t" in terminal.written


def test_a_narrow_status_line_leaves_out_hints_first_and_then_words_and_models(tmp_path: Path) -> None:
    rows = ["Antiphon demo (echo) · mode default   /help", "Antiphon demo (echo) · mode default"]
    rows += ["Antiphon demo (echo) · default", "Antiphon demo · default"]
    wanted: list[str] = []
    with chat(tmp_path, columns=80) as terminal:
        terminal.wait(rows[0])
        for wider, row in pairwise(rows):
            terminal.resize(len(wider) - 1, 24)
            wanted.append(row)
            terminal.until(lambda: terminal.shown.split("\n")[-1] == wanted[-1], f"{row!r} is not the last line")
