"""Frames over two file descriptors: what `stdio` and `process` have in common.

Written on the loop's `add_reader` and `add_writer` rather than asyncio's pipe transports: those read 256 KiB at a time,
which costs a fresh process three memory-mapping calls for every wake-up, twice the price of a small message.
"""

import asyncio
import logging
import os
import select
import stat
from collections import deque
from time import perf_counter
from typing import Final

from antiphon.errors import ConnectionClosed
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME, LineFramer

__all__ = ["CLOSE_GRACE", "PipeTransport"]

_log = logging.getLogger(__name__)

READ_SIZE: Final = 64 * 1024
"""Bytes per read: what a pipe holds, and below the size at which malloc turns to mmap."""

READS_PER_TURN: Final = 16
"""Reads in a row, of one long line, before the loop gets a turn: 1 MiB."""

LINGER: Final = 50e-6
"""Seconds that we look out for the next word after a request or an answer of ours, before we let the kernel put us to sleep.
A peer that answers at once does so within this time, and going to sleep and being woken costs both of us more than that."""

_SPARE_CORE: Final = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1

DEAF_GRACE: Final = 2.0
"""Seconds after which a peer that has closed its input counts as gone: what it still says is heard, but it can answer nothing."""

SET_ASIDE: Final = 256 * 1024
"""Buffers of this size and more are not moved to make room, but sent from where they are."""

CLOSE_GRACE: Final = 2.0
"""Seconds that a peer may take to read what we still have to say when we close."""


class PipeTransport(Transport):
    """Reads lines from one descriptor and writes them to another. Owns both."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int = MAX_FRAME, already_read: bytes = b"") -> None:
        super().__init__()
        self._already_read = already_read
        self._read_fd, self._write_fd = read_fd, write_fd
        self._framer = LineFramer(limit)
        self._full = False  # the pipe takes no more for now
        self._ramp = 1
        self._lingering = False
        self._poll: select.poll | None = None
        self._aside = memoryview(b"")  # what is left of a large frame
        self._senders: deque[asyncio.Future[None]] = deque()  # who waits for room
        self._emptied = asyncio.Event()  # all is sent
        self._reading = self._ended = self._broken = self._closed = False
        # A file or /dev/null is always ready and cannot be polled.
        self._pollable = not _is_plain_file(read_fd)
        # The mode belongs to everybody who has the descriptor. A terminal is shared with a shell, so it keeps its own.
        self._unblocked = [fd for fd in (read_fd, write_fd) if not _is_plain_file(fd) and os.get_blocking(fd)]
        self._unblocked = [fd for fd in self._unblocked if not os.isatty(fd)]
        for fd in self._unblocked:
            os.set_blocking(fd, False)

    # Reading.

    def _start_reading(self) -> None:
        if self._already_read:
            self.loop.call_soon(self._take, self._already_read)  # before anything that the reader below may find
        self.resume()

    def _take(self, chunk: bytes) -> None:
        if self.sink is not None:
            for block in self._framer.blocks(chunk):
                self.sink.block_received(block)

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            if self._pollable:
                self.loop.remove_reader(self._read_fd)

    def resume(self) -> None:
        if self._reading or self._ended or self._closed:
            return
        self._reading = True
        if self._pollable:
            self.loop.add_reader(self._read_fd, self._readable)
        else:
            self.loop.call_soon(self._readable)

    def _readable(self) -> None:
        if not self._reading:
            return
        for _ in range(READS_PER_TURN):
            try:
                chunk = os.read(self._read_fd, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                chunk = b""
            if not chunk:
                self._end_of_input()
                return
            self._take(chunk)
            # In the middle of a long line the rest is on its way: no need to ask the loop for each piece.
            if self._framer.pending <= READ_SIZE or not self._soon_readable():
                break
        if not self._pollable and self._reading:
            self.loop.call_soon(self._readable)

    def linger(self) -> None:
        if self._reading and self._pollable and not self._lingering:
            self._lingering = True
            self.loop.call_soon(self._look_out)

    def _look_out(self) -> None:
        self._lingering = False
        if self._soon_readable():
            self._readable()

    def _soon_readable(self) -> bool:
        """Whether input is there, or comes within the time it would take to fall asleep and be woken."""
        if not (_SPARE_CORE and self._reading and self._pollable):
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._read_fd, select.POLLIN)
        arrived = self._poll.poll
        deadline = perf_counter() + LINGER
        while not arrived(0):
            if perf_counter() > deadline:
                return False
        return True

    def _end_of_input(self) -> None:
        self.pause()
        self._ended = True
        if self.sink is not None:
            for frame in self._framer.end():
                self.sink.block_received(frame)
        self._input_ended()

    def _input_ended(self) -> None:
        self._lose(ConnectionClosed("the peer closed its output"))

    def _lose(self, error: ConnectionClosed) -> None:
        self._ended = True
        super()._lose(error)

    # Writing.

    @property
    def unsent(self) -> int:
        return len(self.out) + len(self._aside)

    @property
    def deaf(self) -> bool:
        return self._broken or self._closed

    def flush(self) -> None:
        if not self.out or self._full:
            return
        if self._broken or self._closed:
            self.out.clear()
            return
        try:
            sent = os.write(self._write_fd, self.out)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._break()
            return
        if sent == len(self.out):
            self.out.clear()
            if self._senders:
                self._admit()
        else:
            self._full = True
            self._set_aside(sent)
            self.loop.add_writer(self._write_fd, self._writable)

    def _set_aside(self, sent: int) -> None:
        """Keep what a full pipe did not take. Little stays in `out`, where senders see it and wait; much is not moved about."""
        if len(self.out) < SET_ASIDE:
            del self.out[:sent]
        else:
            self._aside = memoryview(self.out)[sent:]
            self.out = bytearray()

    def _writable(self) -> None:
        self._ramp = 1
        try:
            while self._aside:
                self._aside = self._aside[os.write(self._write_fd, self._aside) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._break()
            return
        self._full = False
        self.loop.remove_writer(self._write_fd)
        self.flush()
        self._admit()
        if not self.unsent:
            self._emptied.set()

    def _break(self) -> None:
        """The peer reads no more. What it still says is worth hearing, so reading goes on."""
        if not self._broken and not self._closed and not self._ended:
            self.loop.call_later(DEAF_GRACE, self._lose, ConnectionClosed("the peer no longer reads"))
        self._broken = True
        if self._full:
            self.loop.remove_writer(self._write_fd)
        self._full = False
        self._aside = memoryview(b"")
        self.out.clear()
        self._admit(len(self._senders))
        self._emptied.set()

    async def drain(self) -> None:
        self.flush()
        if self.unsent < OUTPUT_HIGH:
            await asyncio.sleep(0)  # even if all was sent: a sender that never waits would never hear `session/cancel`
        elif not self._closed:
            turn: asyncio.Future[None] = self.loop.create_future()
            self._senders.append(turn)
            await turn
        if self._broken or self._closed:
            raise ConnectionClosed("the peer no longer reads")

    def _admit(self, count: int = 1) -> None:
        """Let senders go on, first come first served: one, then twice as many each turn of the loop while there is room.

        All at once would be a stampede: the first fills the pipe again and the others queue up anew.
        """
        while count and self._senders and (self.unsent < OUTPUT_HIGH or self._broken or self._closed):
            turn = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1
                if not count and self._senders:
                    self._ramp *= 2
                    self.loop.call_soon(self._admit, self._ramp)

    # Closing.

    async def close(self) -> None:
        if self._closed:
            return
        await self._send_the_rest()
        self._shut()
        self._lose(ConnectionClosed("the connection is closed"))

    async def _send_the_rest(self) -> None:
        self.flush()
        if self.unsent:
            self._emptied.clear()
            try:
                await asyncio.wait_for(self._emptied.wait(), CLOSE_GRACE)
            except TimeoutError:
                _log.warning("closing with %d bytes unsent: the peer does not read", self.unsent)

    def _shut(self) -> None:
        if self._closed:
            return
        self.pause()
        self._close_output()
        self._closed = True
        self._give_back(self._read_fd)

    def _close_output(self) -> None:
        if self._write_fd >= 0:
            self._break()
            self._give_back(self._write_fd)
            self._write_fd = -1

    def _give_back(self, fd: int) -> None:
        if fd in self._unblocked:
            os.set_blocking(fd, True)
        os.close(fd)


def _is_plain_file(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))
