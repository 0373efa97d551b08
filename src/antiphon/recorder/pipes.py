"""One direction of a tap: reads what there is and writes it on, unchanged, with a copy for the clerk.

Both block, in a thread of its own. So nothing is buffered here, a slow reader slows only who writes to it, two full directions cannot wait
for each other, and no file description that we share with an editor or a terminal is made non-blocking for the others. It is also the
cheapest: one read and one write for each block, and nothing is asked before.
"""

import _thread
import os
import select
from collections.abc import Callable
from contextlib import suppress

from antiphon.recorder.clerk import Tray

__all__ = ["Pipe", "let_go"]

BLOCK = 64 * 1024
"""Bytes of one read: what a pipe holds."""


class Pipe:
    """Bytes from `source` to `sink`, and a copy of them into the tray.

    `ended` is called when there is nothing more to pass on; `broken`, before it, when nobody reads any longer: whether to go on recording.
    """

    def __init__(
        self, source: int, sink: int, direction: str, tray: Tray, ended: Callable[[], None], broken: Callable[[], bool]
    ) -> None:
        self._source = source
        self._sink = sink
        self._direction = direction
        self._tray = tray
        self._ended = ended
        self._broken = broken
        self.reads = 0
        self.writing = False
        """Whether it is the reader behind us that is waited for."""
        self._over = _thread.allocate_lock()
        self._over.acquire()

    def start(self) -> None:
        """Begin, in a thread of its own."""
        _thread.start_new_thread(self._run, ())

    def join(self, seconds: float) -> bool:
        """Whether the last byte has been passed on, within the time."""
        return self._over.acquire(timeout=seconds)

    def _run(self) -> None:
        is_read = True
        while block := _read(self._source):
            self.reads += 1
            self._tray.put(self._direction, block)  # first: the answer to it may be read before our write returns
            if is_read:
                self.writing = True
                is_read = _write(self._sink, block)
                self.writing = False
                if not is_read and not self._broken():
                    break
        self._tray.put(self._direction, b"")
        self._ended()
        self._over.release()


def let_go(fd: int) -> None:
    """Close our end for good. Its number stays taken, so that no other file gets it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, fd)
    os.close(nothing)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, BLOCK)
        except BlockingIOError:  # whoever gave it to us has made it non-blocking
            _wait(fd, select.POLLIN)
        except OSError:  # a terminal that is gone
            return b""


def _write(fd: int, block: bytes) -> bool:
    """Write all of it; False if nobody reads any longer."""
    written = 0
    while written < len(block):
        try:
            written += os.write(fd, memoryview(block)[written:] if written else block)
        except BlockingIOError:
            _wait(fd, select.POLLOUT)
        except OSError:
            return False
    return True


def _wait(fd: int, event: int) -> None:
    poll = select.poll()
    poll.register(fd, event)
    with suppress(OSError):
        poll.poll()
