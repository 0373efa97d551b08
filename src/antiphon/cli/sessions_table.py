"""The list of sessions and the hits of a search, as they stand on stdout: as wide as the terminal, coloured on one."""

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from antiphon.cli.saying import coloured
from antiphon.cli.screen import Style
from antiphon.text import cut, width_of

__all__ = ["Paint", "ago", "table"]

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
NARROWEST: Final = 12
"""Columns that the cell which gives way keeps."""


class Paint:
    """Colours and columns of stdout."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.columns: int | None = shutil.get_terminal_size().columns if terminal else None
        """None: nobody cuts what a program reads."""
        self.coloured = coloured(sys.stdout)

    def __call__(self, text: str, style: Style) -> str:
        """In a colour, where there are any."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.coloured and style and text else text

    def fit(self, text: str, beside: str = "") -> str:
        """A line that is no wider than the terminal, with something beside it."""
        return text if self.columns is None else cut(text, max(self.columns - 1 - width_of(beside), NARROWEST))


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Style], giving: int, paint: Paint
) -> list[str]:
    """Lines with every column as wide as it has to be; the one at `giving` is cut where the terminal is too narrow."""
    every = [tuple(header), *map(tuple, rows)]
    widths = [max(width_of(row[column]) for row in every) for column in range(len(header))]
    if paint.columns is not None:
        beyond = sum(widths) + 2 * (len(widths) - 1) - (paint.columns - 1)
        widths[giving] = max(min(NARROWEST, widths[giving]), widths[giving] - max(beyond, 0))
    lines = []
    for number, row in enumerate(every):
        cells = []
        for column, cell in enumerate(row):
            text = cut(cell, widths[column]) if column == giving else cell
            room = " " * (widths[column] - width_of(text)) if column < len(row) - 1 else ""
            cells.append(paint(text, "dim" if number == 0 else styles[column]) + room)
        lines.append("  ".join(cells).rstrip())
    return lines


def ago(stored: str, now: datetime | None = None) -> str:
    """A stored time, as people say it."""
    try:
        then = datetime.fromisoformat(stored)
    except ValueError:
        return stored
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for limit, unit, word in ((90, 1, ""), (5400, 60, "min"), (129600, 3600, "h"), (30 * 86400, 86400, "days")):
        if seconds < limit:
            return f"{round(seconds / unit)} {word} ago" if word else "just now"
    return f"{then.astimezone():%Y-%m-%d}"
