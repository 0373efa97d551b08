"""Write a recording in a thread of its own: whatever the disk does, forwarding never waits for it.

Blocks stand in a queue, in the order in which they were read, so that a response never stands before its request. The queue is
bounded. If the disk cannot keep up or is stuck, what does not fit is forwarded and not recorded, and the recording notes how much.
"""

import _thread
import fcntl
import os
import stat
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.recorder.lines import DirectionRecorder

__all__ = ["BACKLOG", "QUEUE_INTERVAL", "RecordingFiles", "RecordingWriter", "WriteQueue"]

BACKLOG = 64 * 1024 * 1024
"""Bytes that may wait for the disk in each direction: minutes of a busy session."""

QUEUE_INTERVAL = 0.02
"""Seconds between two looks at the queue. To be woken for every message would cost more than to write it down."""

AT_ONCE = 0.001
"""Seconds in which what is read counts as read at the same time."""

BATCH = 1024 * 1024
"""Bytes that are written at once: a long backlog must not be in memory twice."""

DISK_TIMEOUT = 4.0
"""Seconds without any progress after which, at the end, the disk is no longer waited for."""


class WriteQueue:
    """What waits to be written down. Any thread puts in for one direction, one thread takes out."""

    def __init__(self, directions: tuple[str, ...], limit: int = BACKLOG) -> None:
        self._limit = limit
        # Each number has one writer, so none needs a lock.
        self._put = dict.fromkeys(directions, 0)
        self._taken = dict.fromkeys(directions, 0)
        self._lost = dict.fromkeys(directions, 0)
        self._blocks: deque[tuple[float, str, bytes | int]] = deque()
        self._asleep = False
        self._bell = _thread.allocate_lock()
        self._bell.acquire()
        self._began = time.monotonic()

    def put(self, direction: str, block: bytes) -> None:
        """Take a copy of a block that is about to be forwarded; an empty one: there will be no more."""
        t = time.monotonic() - self._began
        lost = self._lost[direction]
        if self._put[direction] - self._taken[direction] + len(block) > self._limit:
            self._lost[direction] = lost + len(block)
            return
        if lost:
            self._lost[direction] = 0
            self._blocks.append((t, direction, lost))
        self._put[direction] += len(block)
        self._blocks.append((t, direction, block))
        if self._asleep:
            self.ring()

    def ring(self) -> None:
        """Wake the thread that takes blocks out."""
        self._asleep = False
        with suppress(RuntimeError):  # another thread rang
            self._bell.release()

    def take(self) -> tuple[float, str, bytes | int] | None:
        """The next block, or the number of bytes that are missing; None if there is nothing now.

        Blocks that follow each other at once are one: an agent that writes each word by itself is not to cost more than one that does not.
        """
        blocks = self._blocks
        if not blocks:
            return None
        t, direction, block = blocks.popleft()
        if isinstance(block, int):
            return t, direction, block
        parts = [block]
        size = len(block)
        while block and blocks and size < BATCH:
            later, whose, block = blocks[0]
            if whose != direction or later - t > AT_ONCE or not block or isinstance(block, int):
                break
            blocks.popleft()
            parts.append(block)
            size += len(block)
        self._taken[direction] += size
        return t, direction, b"".join(parts) if len(parts) > 1 else parts[0]

    def wait(self) -> None:
        """Wait until there is something to take, or `ring` is called."""
        self._asleep = True
        if not self._blocks:  # looked at again after going to sleep, or what came in between would not wake us
            self._bell.acquire()
        self._asleep = False

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began


class RecordingWriter:
    """Takes blocks from the queue and writes them to the files until `finish` is called."""

    def __init__(self, queue: WriteQueue, files: "RecordingFiles", print_line: Callable[[str], None]) -> None:
        self._queue = queue
        self._files = files
        self._print = print_line
        self._closing = False
        self._turns = 0
        self._complained: set[str] = set()
        """What went wrong and was reported to the user: each thing once."""
        self._lost_lines = 0
        self._redact: Callable[[bytes], bytes] | None = None
        self._done = _thread.allocate_lock()
        self._done.acquire()

    def start(self, command: list[str], redact: frozenset[str], *, quiet: bool = False) -> None:
        """Begin, in a thread of its own, and return the path of the file."""
        _thread.start_new_thread(self._work, (command, redact, quiet))

    def finish(self) -> None:
        """Write down what is left, as long as the disk takes any of it."""
        self._closing = True
        self._queue.ring()
        before = (-1, -1)
        while not self._done.acquire(timeout=DISK_TIMEOUT):
            progress = (self._turns, self._files.written)
            if progress == before:
                self._print("the end of the recording could not be written: the disk does not answer")
                return
            before = progress

    def _work(self, command: list[str], redact: frozenset[str], quiet: bool) -> None:
        """Record until the end. Whatever happens here, `finish` is not left waiting, and the user gets a sentence about it."""
        try:
            self._record(command, redact, quiet)
        except Exception as error:
            self._complain("end", f"{self._files.path} ends here ({_reason(error)}): the session goes on unrecorded")
        finally:
            with suppress(OSError):
                self._files.close()
            self._done.release()

    def _record(self, command: list[str], redact: frozenset[str], quiet: bool) -> None:
        # Here and not above: the agent has been started by now, and what is imported here is imported while it starts.
        from antiphon.recorder.lines import DirectionRecorder, opening

        if redact:
            from antiphon.recorder.redaction import RecordingRedactor

            self._redact = RecordingRedactor(redact).block
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._files.first_line = lambda part: self._cleared(opening(command, started, part, redact))
        self._write(b"")
        if not quiet and not self._complained:
            self._print(f"recording to {self._files.path}")
        wires = {name: DirectionRecorder(name, is_protocol=name != "stderr") for name in ("c2a", "a2c", "stderr")}
        while not self._closing:
            self._queue.wait()
            self._empty(wires)
            time.sleep(QUEUE_INTERVAL)
        self._empty(wires)
        self._write(b"".join(wire.end(self._queue.now) for wire in wires.values()))

    def _empty(self, wires: "dict[str, DirectionRecorder]") -> None:
        lines: list[bytes] = []
        size = 0
        while (taken := self._queue.take()) is not None:
            t, direction, block = taken
            wire = wires[direction]
            if isinstance(block, int):
                lines.append(wire.gap(t, block))
            else:
                lines.append(wire.feed(t, block) if block else wire.end(t))
                size += len(block)
            if size > BATCH:
                self._write(b"".join(lines))
                lines.clear()
                size = 0
        self._write(b"".join(lines))

    def _write(self, lines: bytes) -> None:
        self._turns += 1
        try:
            if self._lost_lines:
                from antiphon.recorder.lines import note

                self._files.write(note(self._queue.now, "lines could not be written", lines=self._lost_lines))
                self._lost_lines = 0
            lines = self._cleared_of_secrets(lines)
            self._files.write(lines)
        except OSError as error:
            self._lost_lines += lines.count(b"\n")
            why = error.strerror or error
            self._complain("disk", f"{self._files.path} cannot be written ({why}): the session goes on unrecorded")

    def _cleared_of_secrets(self, lines: bytes) -> bytes:
        """The lines as they may be written. One that cannot be looked through may hold a secret: it is left out."""
        try:
            return self._cleared(lines)
        except Exception:
            kept: list[bytes] = []
            for line in lines.splitlines(keepends=True):
                try:
                    kept.append(self._cleared(line))
                except Exception as error:
                    self._lost_lines += 1
                    where = self._files.path
                    why = f"some lines cannot be recorded in {where} ({_reason(error)}): they are left out"
                    self._complain("secrets", why)
            return b"".join(kept)

    def _complain(self, about: str, sentence: str) -> None:
        if about not in self._complained:
            self._complained.add(about)
            self._print(sentence)

    def _cleared(self, lines: bytes) -> bytes:
        return self._redact(lines) if self._redact is not None and lines else lines


def _reason(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- the files: FILE, and beside it FILE.1, FILE.2 … with what was there before, the newest first
# Nothing that was recorded is ever overwritten: a file that is there already moves to FILE.1. A line is never cut in two by that.

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
        """Write whole lines, and begin new files at the size limit.

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
