"""A question that is answered with yes or no, before something is changed."""

import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from antiphon.cli.answers import QUIET, YES_OR_NO
from antiphon.errors import AcpError

if TYPE_CHECKING:
    from antiphon.cli.screen import Screen

__all__ = ["agreed", "answered_yes"]


def agreed(screen: "Screen", question: str, *, nothing: str, otherwise: str) -> bool:
    """Ask the person at the terminal, and return whether the answer is yes.

    If not, `nothing` says what was not done. `otherwise` says how it is done without asking.

    Raises:
        AcpError: there is no terminal to ask in.
    """
    from antiphon.cli.asking import terminal_of

    terminal = terminal_of(screen)
    if terminal is None:
        raise AcpError(f"{nothing}: there is no terminal to ask in", hint=otherwise)
    if answered_yes(screen, terminal, f"{question} (y yes, n no): "):
        return True
    screen.note(nothing)
    return False


def answered_yes(screen: "Screen", terminal: int, question: str, quiet: float = QUIET) -> bool:
    """Ask once, and return whether the answer is yes. What was typed before the question does not answer it; nor does the end of the input."""
    import termios

    with suppress(termios.error):  # before it is shown: an answer that comes at once counts
        termios.tcflush(terminal, termios.TCIFLUSH)
    screen.ask(question)
    typed = b""
    while b"\n" not in typed:
        chunk = _read(terminal)
        if not chunk:
            sys.stderr.write("\n")
            return False
        typed += chunk
    if YES_OR_NO.read(typed) is not True:
        return False
    return not select.select([terminal], [], [], quiet)[0]  # a text that goes on was pasted


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the terminal is gone
        return b""
