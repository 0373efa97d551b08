"""The sequence diagram: the client on the left, the agent on the right, an arrow for each message. Runs of small pieces are one arrow."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from antiphon.recorder.story import Shown
from antiphon.recorder.views.pen import Pen
from antiphon.recorder.wording import seconds, size
from antiphon.text import Style, width_of

__all__ = ["Row", "diagram_head", "diagram_lines", "fold", "joined", "row_lines"]

SHORTEST: Final = 3
"""Columns that an arrow has at least."""


@dataclass(slots=True)
class Row:
    """One arrow: a message, or several of a kind that came one after another."""

    first: Shown
    count: int = 1
    size: int = 0
    last: float = 0.0


def joined(row: Row, shown: Shown) -> bool:
    """Take a message into a row, if it is one more of the same."""
    first = row.first
    if (
        shown.kind != "notification"
        or shown.name != first.name
        or shown.dir != first.dir
        or shown.kind != first.kind
        or (shown.session, shown.turn) != (first.session, first.turn)
        or not shown.name.endswith("_chunk")
        or shown.deviations != first.deviations
    ):
        return False
    row.count += 1
    row.size += shown.size
    row.last = shown.t
    return True


def fold(entries: Iterable[Shown]) -> Iterator[Row]:
    """The rows of a diagram."""
    row: Row | None = None
    for shown in entries:
        if row is not None and joined(row, shown):
            continue
        if row is not None:
            yield row
        row = Row(shown, 1, shown.size, shown.t)
    if row is not None:
        yield row


def diagram_lines(entries: Iterable[Shown], pen: Pen, *, texts: bool = False) -> Iterator[str]:
    """The whole diagram."""
    yield diagram_head(pen)
    for row in fold(entries):
        yield from row_lines(row, pen, texts=texts)


def diagram_head(pen: Pen) -> str:
    """The names above the lanes."""
    inner = _inner(pen)
    return pen(f"{'':>16} client{'':{inner - 10}}agent", "bold")


def row_lines(row: Row, pen: Pen, *, texts: bool = False) -> Iterator[str]:
    """The line of a row; with `texts`, also what is wrong with it."""
    shown = row.first
    lane = pen(pen.signs.lane, "dim")
    mark = pen(pen.signs.warning, "yellow") if shown.deviations else pen(pen.signs.bad, "red") if shown.error else " "
    left = pen(f"{shown.message:>5} {shown.t:>8.3f}", "dim")
    yield f"{left} {mark} {lane}{_arrow(row, pen)}{lane}"
    if texts:
        for text in shown.deviations:
            yield f"{'':>17}{pen(f'{pen.signs.warning} {pen.fit(text, 19)}', 'yellow')}"
        for text in shown.advice:
            yield f"{'':>17}{pen(f'i {pen.fit(text, 19)}', 'dim')}"


def _inner(pen: Pen) -> int:
    return pen.width - 19


def _arrow(row: Row, pen: Pen) -> str:
    """Exactly as wide as there is room between the lanes. The words stand where the speaker is, the name first as one reads."""
    shown, signs = row.first, pen.signs
    width = _inner(pen)
    name, label = _words(row, pen)
    name = pen.cut(name, width - SHORTEST - 4)
    room = width - SHORTEST - 4 - width_of(name)
    label = pen.cut(label, room) if room > 3 else ""
    between = " " if label else ""
    style = _style(shown)
    line = signs.answer if shown.kind == "answer" else signs.line
    drawn = line * (width - 3 - width_of(name) - len(between) - width_of(label))
    if shown.dir == "c2a":
        return f" {pen(name, style)}{between}{pen(label, 'dim')} {pen(f'{drawn}{signs.to_agent}', 'dim')}"
    return f"{pen(f'{signs.to_client}{drawn}', 'dim')} {pen(name, style)}{between}{pen(label, 'dim')} "


def _words(row: Row, pen: Pen) -> tuple[str, str]:
    shown = row.first
    if row.count > 1:
        passed = seconds(max(row.last - shown.t, 0.0))
        return f"{row.count} {pen.signs.times} {shown.name}", f"{size(row.size)} in {passed}"
    return shown.name, shown.label


def _style(shown: Shown) -> Style:
    if shown.error:
        return "red"
    if shown.kind in ("noise", "batch", "other") or shown.deviations:
        return "yellow"
    return "" if shown.kind == "notification" else "cyan" if shown.dir == "c2a" else "green"
