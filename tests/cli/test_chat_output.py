"""Looking back in `antiphon chat`: outputs and changes are shown whole, on the screen or in the pager."""

import os
import signal
from pathlib import Path

import pytest

from tests.tui.terminal import ENTER, Terminal, chat

CTRL_O = "\x0f"
pytestmark = pytest.mark.slow


def idle(terminal: Terminal) -> str:
    return terminal.wait("   /help")


def run(terminal: Terminal, command: str) -> None:
    terminal.ask(f"/run {command}{ENTER}", "Allow?")
    terminal.ask("y", "ended with 0")
    idle(terminal)


def test_an_output_is_unfolded_now_and_later_and_changes_are_paged(tmp_path: Path) -> None:
    page = tmp_path / "page"
    with chat(tmp_path, PAGER=f"tee {page}") as terminal:
        idle(terminal)
        run(terminal, "seq 12")
        run(terminal, "seq 300")
        assert "… 291 more lines · Ctrl-O" in terminal.shown
        terminal.press(CTRL_O)
        terminal.until(lambda: page.exists() and "\n  300\n" in page.read_text(encoding="utf-8"))
        assert page.read_text(encoding="utf-8").split()[-300:] == [str(number) for number in range(1, 301)]
        idle(terminal)
        shown = terminal.ask(CTRL_O, "✓ Run `seq 12`\n  1\n  2\n  3\n")  # the one before, which fits
        assert "  11\n  12\n" in shown
        shown = terminal.ask(f"/output{ENTER}", "/output NUMBER shows it whole")
        assert "1  Run `seq 300`\n  2  Run `seq 12`" in shown
        page.unlink()
        terminal.press(f"/output 1{ENTER}")
        terminal.until(lambda: page.exists() and "\n  300\n" in page.read_text(encoding="utf-8"))
        terminal.ask(f"/output 7{ENTER}", "✗ there is no folded output `7`")
        terminal.ask(f"/edit a.txt one{ENTER}", "Allow?")
        terminal.ask("y", "has 1 line now")
        idle(terminal)
        terminal.ask(f"/clear{ENTER}/diff{ENTER}", "a.txt  +1 -0  new\n  1 + one")


def test_less_is_left_by_q_and_ctrl_c_in_it_ends_nothing(tmp_path: Path) -> None:
    with chat(tmp_path, LESS="-R", PAGER="less") as terminal:
        idle(terminal)
        run(terminal, "seq 300")
        terminal.ask(CTRL_O, "✓ Run `seq 300`\n  1\n  2")
        terminal.ask("G", "  299\n  300\n")
        os.kill(terminal.pid, signal.SIGINT)  # as Ctrl-C does, to all programs of the terminal
        terminal.press("q")
        idle(terminal)
        terminal.ask(f"/echo and on{ENTER}", "and on")
