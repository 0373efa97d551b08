"""Seconds, sizes and numbers in a few letters, for the terminal and for the page; `report/model.js` says them alike."""

from typing import Final

__all__ = ["NOTHING", "about", "clock", "counted", "seconds", "size"]

NOTHING: Final = "\u2013"
"""What stands where there is nothing to say."""


def seconds(value: float | None, nothing: str = NOTHING) -> str:
    """How long: 12 ms, 1.25 s, 3 min 20 s."""
    if value is None:
        return nothing
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 99.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def about(value: float) -> str:
    """How long, roughly: for where there is little room."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.0f} h"


def clock(value: float, step: float) -> str:
    """A moment, as exact as the step between moments asks for."""
    if step < 1:
        return f"{value:.{1 if step >= 0.1 else 2 if step >= 0.01 else 3}f} s"
    whole = round(value)
    if whole < 120 and step < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(number: int) -> str:
    """How much: 812 B, 14.2 kB, 3.1 MB."""
    if number < 1000:
        return f"{number} B"
    value, unit = number / 1e3, "kB"
    for larger in ("MB", "GB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 turn, 2 turns."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
