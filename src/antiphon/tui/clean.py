"""Makes text safe to show. What an agent, a file or a command says never reaches the terminal as an instruction to it.

Rule 1: a control character is shown as a picture of itself, not obeyed and not dropped.
Rule 2: a character that shows nothing is kept where it is needed to write something (an emoji, a script that joins letters), else
shown by its number. Where a person decides by what is shown (a command, a path, an address), nothing is invisible.
"""

from typing import Final

from antiphon import text as texts
from antiphon.text import prose, strip_ansi

__all__ = ["clean", "exact", "one_line", "output_lines"]

TAB: Final = 4
"""Columns from one tab stop to the next, in everything that is shown."""


def clean(text: str) -> str:
    """Prose: as it is, without anything that the terminal would obey."""
    return prose(_unmixed(text)).expandtabs(TAB)


def exact(text: str) -> str:
    """What somebody decides by: nothing in it is invisible."""
    return texts.exact(text).expandtabs(TAB)


def one_line(text: str) -> str:
    """A title: its lines joined, its spaces few."""
    return " ".join(clean(text).split())


def output_lines(text: str) -> list[str]:
    """What a command wrote, as it would look at the end: without colours, and a line that was written over shows the last of it."""
    plain = strip_ansi(text.replace("\r\n", "\n"))
    return [clean(line.rstrip("\r").rpartition("\r")[2]) for line in plain.rstrip("\n").split("\n")] if plain else []


def _unmixed(text: str) -> str:
    """A lone surrogate cannot be written to a terminal."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
