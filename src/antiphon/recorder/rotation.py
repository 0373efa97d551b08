"""The files of a recording: FILE, and beside it FILE.1, FILE.2 … with what was there before, the newest first.

Nothing that was recorded is ever overwritten: a file that is there already moves to FILE.1. A line is never cut in two by that.
"""

import fcntl
import os
import stat
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RecordingFiles"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
_OLD = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC

PIECE = 1024 * 1024
"""Bytes of one write, so that a long one can be seen to move."""


class RecordingFiles:
    """The file that is written now. `limit`: its size in bytes before the next one begins; `keep`: how many old ones stay."""

    def __init__(self, path: str, *, limit: int | None = None, keep: int | None = None) -> None:
        self.path = path
        self.first_line: Callable[[int], bytes] = lambda part: b""
        """What every file begins with; it gets the number of this part of the recording, from 1."""
        self.written = 0
        """Bytes so far, in all files: shows that the disk makes progress."""
        self._limit = limit
        self._keep = keep
        self._fd = -1
        self._size = 0
        self._start = 0  # where the messages begin, behind the first line
        self._part = 0
        self._torn = False  # the last line of the file is not whole, because the disk was full

    def open(self) -> None:
        """Begin a new file, after moving one that is there.

        Raises:
            OSError: that is not possible.
        """
        try:
            special = not stat.S_ISREG(os.stat(self.path).st_mode)
        except FileNotFoundError:
            special = False
        if special:  # a device or a pipe: nothing to move, nothing to make
            self._fd, self._limit = os.open(self.path, _OLD), None
        else:
            self._fd = self._new()
        self._size = 0

    def _new(self) -> int:
        with _alone(os.path.dirname(self.path) or "."):
            if os.path.lexists(self.path):
                _move_aside(self.path, self._keep)
            return os.open(self.path, _NEW, 0o600)

    def write(self, lines: bytes) -> None:
        """Write whole lines, and begin new files where the limit says so.

        Raises:
            OSError: the disk is full, or gone.
        """
        if not self._part:
            self._begin()
        while self._limit is not None and self._size + len(lines) > self._limit:
            fits = lines.rfind(b"\n", 0, max(self._limit - self._size, 0)) + 1
            if not fits and self._size <= self._start:  # one line, longer than a whole file may be
                fits = lines.find(b"\n") + 1
            if fits:
                self._put(lines[:fits])
                lines = lines[fits:]
            if not lines:
                return
            self._turn()
        self._put(lines)

    def _begin(self) -> None:
        self._put(self.first_line(self._part + 1))
        self._part += 1
        self._start = self._size

    def _turn(self) -> None:
        try:
            fresh = self._new()
        except (
            OSError
        ):  # the directory is gone or closed to us: the old file, wherever it is now, goes on being written
            self._limit = None
            return
        os.close(self._fd)
        self._fd, self._size, self._torn = fresh, 0, False
        self._begin()

    def _put(self, lines: bytes) -> None:
        if self._torn:
            lines = b"\n" + lines
        rest = memoryview(lines)
        while rest:
            written = os.write(self._fd, rest[:PIECE])
            rest = rest[written:]
            self._size += written
            self.written += written
            self._torn = bool(rest)

    def close(self) -> None:
        """No more is written."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def discard(self) -> None:
        """Close and remove the file: nothing was recorded."""
        self.close()
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(self.path).st_mode):
                os.unlink(self.path)


def _move_aside(path: str, keep: int | None) -> None:
    free = 1
    while os.path.lexists(f"{path}.{free}"):
        free += 1
    for number in range(free, 1, -1):
        os.rename(f"{path}.{number - 1}", f"{path}.{number}")
    os.rename(path, f"{path}.1")
    if keep is not None:
        for number in range(keep + 1, free + 1):
            os.unlink(f"{path}.{number}")


@contextmanager
def _alone(directory: str) -> "Iterator[None]":
    """While no other tap moves files here: an editor may start several at once."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # not every disk knows locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
