"""Makes text safe to show. What an agent, a file or a command says never reaches the terminal as an instruction to it.

Rule 1: a control character is shown as a picture of itself, not obeyed and not dropped.
Rule 2: where a person decides by what is shown (a command, a path, an address), what is invisible or turns the writing around is
shown by its number.
"""

import re
from typing import Final

__all__ = ["EXACT", "PROSE", "clean", "exact", "one_line", "output_lines"]

TAB: Final = 4
"""Columns from one tab stop to the next, in everything that is shown."""

_CONTROLS: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
_C1: Final = {code: f"<U+{code:04X}>" for code in range(0x80, 0xA0)}
# Embeddings, overrides and isolates: with them a line can be shown in another order than it is read by the shell.
_TURNING: Final = {code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_BREAKS: Final = {0x2028: "\n", 0x2029: "\n", 0x85: "\n"}
_INVISIBLE: Final = {
    code: f"<U+{code:04X}>"
    for code in (0x00A0, 0x00AD, 0x061C, 0x180E, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF, *range(0xE0000, 0xE0080))
}  # fmt: skip

PROSE: Final = str.maketrans({**_CONTROLS, **_C1, **_TURNING, **_BREAKS})
EXACT: Final = str.maketrans({**_CONTROLS, **_C1, **_TURNING, **_INVISIBLE, 0x2028: "<U+2028>", 0x2029: "<U+2029>"})

_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, whole strings
    r"|\x1b[ -/]*[0-~]"
)


def clean(text: str) -> str:
    """Prose: as it is, without anything that the terminal would obey."""
    return _unmixed(text).translate(PROSE).expandtabs(TAB)


def exact(text: str) -> str:
    """What somebody decides by: nothing in it is invisible."""
    return _unmixed(text).translate(EXACT).expandtabs(TAB)


def one_line(text: str) -> str:
    """A title: its lines joined, its spaces few."""
    return " ".join(clean(text).split())


def output_lines(text: str) -> list[str]:
    """What a command wrote, as it would look at the end: without colours, and a line that was written over shows the last of it."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return [clean(line.rstrip("\r").rpartition("\r")[2]) for line in plain.rstrip("\n").split("\n")] if plain else []


def _unmixed(text: str) -> str:
    """A lone surrogate cannot be written to a terminal."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
