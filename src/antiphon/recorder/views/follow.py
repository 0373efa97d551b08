"""A recording that is still being written: its lines as they come, whatever happens to the file.

Looks ten times a second whether there is more. A file that is replaced or cut is read again from its beginning, after what is left of
the old one; a file that is not there yet is waited for.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from antiphon.recorder.story import Shown, Turn
from antiphon.recorder.views.diagram import Row, joined, row_lines
from antiphon.recorder.views.pen import Pen

__all__ = ["Live", "Tail"]

PAUSE: Final = 0.1
"""Seconds between two looks at the file."""

PATIENCE: Final = 1.0
"""Seconds after which a run of pieces is written down though more of them may come."""


class Tail:
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
        """What was written to the old file before it was moved away, its last line too if nobody ended it."""
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


class Live:
    """Messages as they come, in the form of the diagram. On a terminal the last line tells of the turn that goes on."""

    def __init__(self, pen: Pen, clock: Callable[[], float] = time.monotonic) -> None:
        self._pen = pen
        self._clock = clock
        self._row: Row | None = None
        self._heard = clock()
        self._last = 0.0
        self._status = ""
        self._redraws = pen.paint.columns is not None and os.environ.get("TERM", "") not in ("", "dumb")

    def write(self, line: str) -> None:
        """A whole line."""
        sys.stdout.write(f"\r\x1b[K{line}\n" if self._status else f"{line}\n")
        self._status = ""

    def hear(self, shown: Shown) -> None:
        """A message has come."""
        self._heard, self._last = self._clock(), shown.t
        if self._row is not None and joined(self._row, shown):
            return
        self.finish_row()
        self._row = Row(shown, 1, shown.size, shown.t)
        if not shown.name.endswith("_chunk"):
            self.finish_row()

    def finish_row(self) -> None:
        """Write down what may have been the beginning of a run."""
        if self._row is not None:
            row, self._row = self._row, None
            for line in row_lines(row, self._pen, texts=True):
                self.write(line)

    def idle(self, turn: Turn | None) -> None:
        """Nothing has come for now, and this turn goes on."""
        passed = self._clock() - self._heard
        if passed >= PATIENCE:
            self.finish_row()
        if self._redraws:
            status = self._telling(turn, passed)
            if status != self._status:
                sys.stdout.write(f"\r\x1b[K{self._pen(status, 'dim')}")
                self._status = status
        sys.stdout.flush()

    def _telling(self, turn: Turn | None, passed: float) -> str:
        if turn is None:
            return ""
        row = f", {self._row.count} {self._row.first.name}" if self._row is not None else ""
        goes_on = int(self._last - turn.start + passed)
        return "      " + self._pen.cut(
            f"turn {turn.number}: {goes_on} s, {turn.updates} updates{row}", self._pen.width - 8
        )

    def end(self) -> None:
        """No more comes."""
        self.finish_row()
        if self._status:
            sys.stdout.write("\r\x1b[K")
        sys.stdout.flush()
