"""How `antiphon inspect` draws: width, colours and characters of the terminal, and lists of numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.text import Paint, Style, cut, exact_line, width_of

__all__ = ["PLAIN", "WIDTH", "Signs", "ViewStyle", "many", "ranges"]

WIDTH: Final = 100
"""Columns where the width of the terminal is unknown."""

NARROWEST: Final = 60
"""Columns that are used in any case: with fewer nothing could be read."""


@dataclass(frozen=True)
class Signs:
    """What is drawn with. Only `to_agent` and `to_client` of the texts are more than one column wide."""

    turn: str = "█"
    call: str = "▄"
    wait: str = "░"
    part: str = "▏▎▍▌▋▊▉"
    """Eighths of `turn`, from the smallest."""
    lane: str = "│"
    line: str = "─"
    answer: str = "╌"
    to_agent: str = "▶"
    to_client: str = "◀"
    good: str = "✓"
    bad: str = "✗"
    going: str = "…"
    question: str = "?"
    warning: str = "!"
    between: str = "·"
    times: str = "\u00d7"
    both: str = "↔"


PLAIN: Final = Signs(
    "=", "-", "~", "", "|", "-", ".", ">", "<", "+", "x", "...", "?", "!", "-", "x", "<->"
)  # fmt: skip
"""Characters for terminals that know only ASCII."""


class ViewStyle:
    """The width, the colours and the signs of stdout."""

    def __init__(self, paint: Paint | None = None, width: int = WIDTH, signs: Signs | None = None) -> None:
        self.paint = paint or Paint()
        self.width = max(width, NARROWEST)
        self.signs = signs or Signs()

    def __call__(self, text: str, style: Style) -> str:
        """The text in a colour, if colours are on."""
        return self.paint(text, style)

    def cell(self, text: str, width: int, style: Style = "", *, right: bool = False) -> str:
        """A text of others, safe to show, in exactly so many columns."""
        short = self.cut(text, width)
        padding = " " * (width - width_of(short))
        return padding + self.paint(short, style) if right else self.paint(short, style) + padding

    def fit(self, text: str, beside: int = 0) -> str:
        """A text of others, safe to show, no wider than what is left of the line."""
        return self.cut(text, max(self.width - beside, 4))

    def cut(self, text: str, width: int) -> str:
        """A text of a peer, safe to show, cut to so many columns."""
        short = cut(exact_line(text), width)
        return short if self.signs.part else short.replace("…", ".")

    def bar(self, start: float, length: float, whole: float, width: int, sign: str) -> str:
        """A bar from `start` on, in so many columns for the `whole`. What is there at all can be seen."""
        if whole <= 0 or length < 0:
            return " " * width
        first = min(int(start / whole * width), width - 1)
        eighths = max(round(length / whole * width * 8), 1)
        if sign == self.signs.turn and self.signs.part:
            drawn = sign * (eighths // 8) + (self.signs.part[eighths % 8 - 1] if eighths % 8 else "")
        else:
            drawn = sign * max(round(eighths / 8), 1)
        return (" " * first + drawn)[:width].ljust(width)

    def title(self, text: str, note: str = "") -> str:
        """The line above a part."""
        return f"\n{self.paint(text, 'bold')}{self.paint(f'  {note}', 'dim') if note else ''}"


def ranges(numbers: Sequence[int]) -> list[str]:
    """Numbers in order, with those that follow each other joined: 1, 4-6, 9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number <= parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ["-".join(map(str, dict.fromkeys(part))) for part in parts]


def many(numbers: Sequence[int], limit: int = 12) -> str:
    """The messages that something is about."""
    parts = ranges(numbers)
    more = f" and {len(parts) - limit} more" if len(parts) > limit else ""
    word = "message" if len(numbers) == 1 else "messages"
    return f"{word} {', '.join(parts[:limit])}{more}"
