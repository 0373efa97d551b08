"""What changed in a file, as lines to show. Pure; knows two texts and no file."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from antiphon.tui.clean import exact

__all__ = ["Change", "bounded", "change_of", "diff_texts"]

LARGEST: Final = 4_000
"""Lines of a file beyond which its parts are not matched up: comparing takes time that grows with the square."""

CONTEXT: Final = 2
"""Unchanged lines shown around a change."""


@dataclass(frozen=True, slots=True)
class Change:
    """The lines of a diff, and how many came and went."""

    lines: tuple[str, ...]
    """Each with ` `, `+`, `-` in front; `@` begins a part."""
    added: int
    removed: int


def change_of(old: str | None, new: str) -> Change:
    """Compare two versions; no old one means that the file is new."""
    before, after = exact(old or "").splitlines(), exact(new).splitlines()
    lines = tuple(_compared(before, after))
    added, removed = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    if not added and not removed and (old or "") != new:
        lines = ("@ only the end of the last line differs, or the kind of line ends",)
    return Change(lines, added, removed)


def _compared(before: list[str], after: list[str]) -> Iterator[str]:
    if max(len(before), len(after)) > LARGEST:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number or group[0][3]:  # nothing is left out before the first line of a file
            yield f"@ line {group[0][3] + 1}"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[i1:i2])
                continue
            yield from (f"-{line}" for line in before[i1:i2])
            yield from (f"+{line}" for line in after[j1:j2])


_STYLES: Final = {"+": "green", "-": "red", "@": "dim cyan", " ": "dim"}


def diff_texts(change: Change, most: int | None = None) -> list[Text]:
    """The diff in colour, at most so many lines of it."""
    shown = [
        Text(f"{line[0]} {line[1:]}" if line[0] != "@" else f"  {line[2:]}", _STYLES[line[0]]) for line in change.lines
    ]
    return bounded(shown, most)


def bounded(texts: Sequence[Text], most: int | None, *, tail: bool = False) -> list[Text]:
    """The first of them (or the last), and how many more there are."""
    if most is None or len(texts) <= most:
        return list(texts)
    kept, left = max(most - 1, 1), len(texts) - max(most - 1, 1)
    more = Text(f"… {left} more {'line' if left == 1 else 'lines'}", "dim")
    return [more, *texts[-kept:]] if tail else [*texts[:kept], more]
