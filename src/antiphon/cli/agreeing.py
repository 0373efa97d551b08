"""A question that is answered with yes or no, before something is changed."""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.cli.screen import Screen

__all__ = ["agreed"]


def agreed(screen: "Screen", question: str, *, nothing: str, otherwise: str) -> bool:
    """Whether somebody is there and says yes. If not, `nothing` says what was not done, and `otherwise` how it is done without asking."""
    from antiphon.cli.asking import terminal_of

    terminal = terminal_of(screen)
    if terminal is None:
        screen.note(f"{nothing}: nobody is here to ask; {otherwise}")
        return False
    if _answer(screen, terminal, f"{question} (y yes, n no): ") in ("y", "yes"):
        return True
    screen.note(nothing)
    return False


def _answer(screen: "Screen", terminal: int, question: str) -> str:
    """A line from the terminal. What was typed before the question is no answer to it; the end of input is none."""
    import termios

    with suppress(termios.error):  # before it is shown: who answers at once is heard
        termios.tcflush(terminal, termios.TCIFLUSH)
    screen.ask(question)
    typed = b""
    while b"\n" not in typed:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # the terminal is gone
            chunk = b""
        if not chunk:
            sys.stderr.write("\n")
            break
        typed += chunk
    return typed.decode("utf-8", "replace").strip().lower()
