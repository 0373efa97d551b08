"""`antiphon chat` by lines, in a real pseudo-terminal that cannot move its cursor, against the demo agent."""

from pathlib import Path

import pytest

from tests.tui.terminal import CTRL_C, CTRL_D, Terminal, chat

pytestmark = pytest.mark.slow

ENTER = "\n"


def type_line(terminal: Terminal, text: str, answer: str) -> None:
    """Type a line, and wait for what comes of it, and for the next prompt."""
    before = terminal.all.count("\nyou>")
    terminal.ask(f"{text}{ENTER}", answer)
    terminal.until(lambda: terminal.all.count("\nyou>") > before, "there is no prompt")


def asked(terminal: Terminal, text: str) -> None:
    """Type a line, and wait for the question that comes of it."""
    before = terminal.all.count("\nanswer>")
    terminal.press(f"{text}{ENTER}")
    terminal.until(lambda: terminal.all.count("\nanswer>") > before, "there is no question")


def test_a_conversation_by_lines_has_no_codes_and_words_answer_its_questions(tmp_path: Path) -> None:
    with chat(tmp_path, rows=60, TERM="dumb") as terminal:
        terminal.wait("say what you want")
        terminal.until(lambda: terminal.all.endswith("\nyou>"))
        type_line(terminal, "/echo one", "\none")
        asked(terminal, "/run touch made")
        assert "Allow?  Run a command\n  $ touch made\ny once · a always Bash(touch made) · n no" in terminal.shown
        terminal.ask(f"perhaps{ENTER}", "That is no answer.")
        type_line(terminal, "no", "Run `touch made`  denied")
        assert not (tmp_path / "work" / "made").exists()
        asked(terminal, "/run touch made")
        type_line(terminal, "yes", "Done: Run `touch made`")
        assert (tmp_path / "work" / "made").exists()
        asked(terminal, "/run echo call")
        asked(terminal, "always")
        assert "Always allow\n  Bash(echo call)" in terminal.shown
        type_line(terminal, "session", "always in this session: Bash(echo call)")
        terminal.ask(f"/ask{ENTER}", "Your name [Ada]>")
        terminal.press(CTRL_C)
        terminal.until(lambda: terminal.all.endswith("\nyou>"))
        type_line(terminal, "/mode plan", "mode: plan")
        assert "\x1b" not in terminal.written  # not one code
        assert terminal.all.count("/echo one") == 1  # as it was typed
        terminal.press(CTRL_D)
        assert terminal.wait_for_end() == 0
        assert "antiphon chat --resume" in terminal.all


def test_no_key_is_named_that_does_nothing_here_and_the_next_line_is_asked_for_once(tmp_path: Path) -> None:
    with chat(tmp_path, "--plain", rows=80) as terminal:
        terminal.wait("you>")
        assert "mode           default (/mode): ask before" in terminal.shown
        type_line(terminal, "/help", "Enter, `\\` Enter")
        type_line(terminal, "/help keys", "hand on its output")
        asked(terminal, "/run seq 100")
        type_line(terminal, "yes", "… 91 more lines · /output")
        type_line(terminal, "/output", "/output NUMBER shows it whole.")
        type_line(terminal, "/output 1", "\n  50")
        for key in ("Shift-Tab", "Ctrl-O", "Ctrl-R", "Ctrl-G", "Esc", "Tab"):
            assert key not in terminal.all
        # Each prompt has a line, but the last.
        lines = [line for line in terminal.all.split("\n") if line.startswith("you>")]
        assert all(len(line) > len("you>") for line in lines[:-1]) and lines[-1] == "you>", lines


def test_ctrl_c_cancels_the_turn_and_a_line_typed_meanwhile_is_not_lost(tmp_path: Path) -> None:
    with chat(tmp_path, "--plain", rows=60) as terminal:
        terminal.wait("you>")
        asked(terminal, "/run sleep 600")
        terminal.ask(f"y{ENTER}", "Running: Run `sleep 600`")
        terminal.ask(f"/echo later{ENTER}", "Queued: it is sent after this turn.")
        terminal.press(CTRL_C)
        terminal.wait("(cancelled)")
        terminal.wait("not sent: /echo later")
        terminal.until(lambda: terminal.all.endswith("\nyou>"))
        terminal.ask(CTRL_C, "Ctrl-C again to leave")
        terminal.press(CTRL_C)
        assert terminal.wait_for_end() == 0
        assert "\x1b" not in terminal.written
