"""The sequence diagram: the client on the left, the agent on the right, an arrow for each message, also while a file grows.

Runs of chunks are one arrow.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from antiphon.recorder.analysis import RecordedMessage, RecordedTurn
from antiphon.recorder.labels import seconds, size
from antiphon.recorder.views.style import ViewStyle
from antiphon.text import Style, width_of

__all__ = ["DiagramRow", "FileTail", "LiveView", "diagram_head", "diagram_lines", "fold", "joined", "row_lines"]

SHORTEST: Final = 3
"""Columns that an arrow has at least."""


@dataclass(slots=True)
class DiagramRow:
    """One arrow: a message, or several of a kind that came one after another."""

    first: RecordedMessage
    count: int = 1
    size: int = 0
    last: float = 0.0


def joined(row: DiagramRow, shown: RecordedMessage) -> bool:
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


def fold(entries: Iterable[RecordedMessage]) -> Iterator[DiagramRow]:
    """The rows of a diagram."""
    row: DiagramRow | None = None
    for shown in entries:
        if row is not None and joined(row, shown):
            continue
        if row is not None:
            yield row
        row = DiagramRow(shown, 1, shown.size, shown.t)
    if row is not None:
        yield row


def diagram_lines(entries: Iterable[RecordedMessage], style: ViewStyle, *, texts: bool = False) -> Iterator[str]:
    """The whole diagram."""
    yield diagram_head(style)
    for row in fold(entries):
        yield from row_lines(row, style, texts=texts)


def diagram_head(style: ViewStyle) -> str:
    """The names above the lanes."""
    inner = _inner(style)
    return style(f"{'':>16} client{'':{inner - 10}}agent", "bold")


def row_lines(row: DiagramRow, style: ViewStyle, *, texts: bool = False) -> Iterator[str]:
    """The line of a row; with `texts`, also what is wrong with it."""
    shown = row.first
    lane = style(style.signs.lane, "dim")
    mark = (
        style(style.signs.warning, "yellow")
        if shown.deviations
        else style(style.signs.bad, "red")
        if shown.error
        else " "
    )
    left = style(f"{shown.message:>5} {shown.t:>8.3f}", "dim")
    yield f"{left} {mark} {lane}{_arrow(row, style)}{lane}"
    if texts:
        for text in shown.deviations:
            yield f"{'':>17}{style(f'{style.signs.warning} {style.fit(text, 19)}', 'yellow')}"
        for text in shown.advice:
            yield f"{'':>17}{style(f'i {style.fit(text, 19)}', 'dim')}"


def _inner(style: ViewStyle) -> int:
    return style.width - 19


def _arrow(row: DiagramRow, style: ViewStyle) -> str:
    """Exactly as wide as there is room between the lanes. The text stands at the sender's side, the name first in reading order."""
    shown, signs = row.first, style.signs
    width = _inner(style)
    name, label = _words(row, style)
    name = style.cut(name, width - SHORTEST - 4)
    columns = width - SHORTEST - 4 - width_of(name)
    label = style.cut(label, columns) if columns > 3 else ""
    between = " " if label else ""
    colour = _colour(shown)
    line = signs.answer if shown.kind == "answer" else signs.line
    drawn = line * (width - 3 - width_of(name) - len(between) - width_of(label))
    if shown.dir == "c2a":
        return f" {style(name, colour)}{between}{style(label, 'dim')} {style(f'{drawn}{signs.to_agent}', 'dim')}"
    return f"{style(f'{signs.to_client}{drawn}', 'dim')} {style(name, colour)}{between}{style(label, 'dim')} "


def _words(row: DiagramRow, style: ViewStyle) -> tuple[str, str]:
    shown = row.first
    if row.count > 1:
        passed = seconds(max(row.last - shown.t, 0.0))
        return f"{row.count} {style.signs.times} {shown.name}", f"{size(row.size)} in {passed}"
    return shown.name, shown.label


def _colour(shown: RecordedMessage) -> Style:
    if shown.error:
        return "red"
    if shown.kind in ("noise", "batch", "other") or shown.deviations:
        return "yellow"
    return "" if shown.kind == "notification" else "cyan" if shown.dir == "c2a" else "green"


# --- a recording that is still being written
# Looks ten times a second whether there is more. A file that is replaced or cut is read again from its beginning, after what is left of
# the old one; a file that is not there yet is waited for.

PAUSE: Final = 0.1
"""Seconds between two looks at the file."""

ROW_TIMEOUT: Final = 1.0
"""Seconds after which a run of pieces is written down though more of them may come."""


class FileTail:
    """The whole lines of a file that grows; None each time there is nothing new."""

    def __init__(self, path: Path, pause: Callable[[], None] = lambda: time.sleep(PAUSE)) -> None:
        self._path = path
        self._pause = pause
        self._rest = b""
        self.restarted: Callable[[], None] = lambda: None
        """Called when the lines of another file begin."""

    def __iter__(self) -> Iterator[bytes | None]:
        file: BinaryIO | None = None
        try:
            while True:
                if file is not None:
                    yield from self._lines(file)
                    if not self._moved(file):
                        yield None
                        self._pause()
                        continue
                    yield from self._end(file)
                    file.close()
                file = self._opened()
                if file is None:
                    yield None
                    self._pause()
        finally:
            if file is not None:
                file.close()

    def _opened(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        for piece in iter(file.readline, b""):
            line, self._rest = self._rest + piece, b""
            if not line.endswith(b"\n"):
                self._rest = line  # its end is still to come
                return
            yield line

    def _end(self, file: BinaryIO) -> Iterator[bytes]:
        """What was written to the old file before it was moved away, its last line too if it has no end."""
        yield from self._lines(file)
        if self._rest:
            yield self._rest
            self._rest = b""
        self.restarted()

    def _moved(self, file: BinaryIO) -> bool:
        """Whether the name means another file by now, or this one was cut."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False  # between two files of a rotation, or gone: the old one may still be written to
        here = os.fstat(file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) or there.st_size < file.tell()


class LiveView:
    """Messages as they come, in the form of the diagram. On a terminal the last line shows the turn that goes on."""

    def __init__(self, style: ViewStyle, clock: Callable[[], float] = time.monotonic) -> None:
        self._style = style
        self._clock = clock
        self._row: DiagramRow | None = None
        self._received = clock()
        self._last = 0.0
        self._status = ""
        self._redraws = style.paint.columns is not None and os.environ.get("TERM", "") not in ("", "dumb")

    def write(self, line: str) -> None:
        """A whole line."""
        sys.stdout.write(f"\r\x1b[K{line}\n" if self._status else f"{line}\n")
        self._status = ""

    def add(self, shown: RecordedMessage) -> None:
        """A message has come."""
        self._received, self._last = self._clock(), shown.t
        if self._row is not None and joined(self._row, shown):
            return
        self.finish_row()
        self._row = DiagramRow(shown, 1, shown.size, shown.t)
        if not shown.name.endswith("_chunk"):
            self.finish_row()

    def finish_row(self) -> None:
        """Write down what may have been the beginning of a run."""
        if self._row is not None:
            row, self._row = self._row, None
            for line in row_lines(row, self._style, texts=True):
                self.write(line)

    def idle(self, turn: RecordedTurn | None) -> None:
        """Nothing has come for now, and this turn goes on."""
        passed = self._clock() - self._received
        if passed >= ROW_TIMEOUT:
            self.finish_row()
        if self._redraws:
            status = self._status_line(turn, passed)
            if status != self._status:
                sys.stdout.write(f"\r\x1b[K{self._style(status, 'dim')}")
                self._status = status
        sys.stdout.flush()

    def _status_line(self, turn: RecordedTurn | None, passed: float) -> str:
        if turn is None:
            return ""
        row = f", {self._row.count} {self._row.first.name}" if self._row is not None else ""
        goes_on = int(self._last - turn.start + passed)
        return "      " + self._style.cut(
            f"turn {turn.number}: {goes_on} s, {turn.updates} updates{row}", self._style.width - 8
        )

    def end(self) -> None:
        """No more comes."""
        self.finish_row()
        if self._status:
            sys.stdout.write("\r\x1b[K")
        sys.stdout.flush()
