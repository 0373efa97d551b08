"""A question that is answered with yes or no, before something is changed."""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.cli.screen import Screen

__all__ = ["answer"]


def answer(screen: "Screen", terminal: int, question: str) -> str:
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
