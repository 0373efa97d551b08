"""Frames over two file descriptors: what `stdio` and `process` have in common.

Written on the loop's `add_reader` and `add_writer` rather than asyncio's pipe transports: those read 256 KiB at a time,
which costs a fresh process three memory-mapping calls for every wake-up, twice the price of a small message.
"""

import asyncio
import fcntl
import logging
import os
import select
import stat
from collections import deque
from contextlib import suppress
from enum import Enum
from time import perf_counter
from typing import Final

from antiphon.errors import ConnectionClosed
from antiphon.life import Life
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME, LineFramer

__all__ = ["CLOSE_GRACE", "PIPE_INPUT_LIFE", "PIPE_OUTPUT_LIFE", "InputEvent", "InputState", "OutputEvent", "OutputState", "PipeTransport"]  # fmt: skip

_log = logging.getLogger(__name__)

NEWLINE: Final = ord("\n")

READ_SIZE: Final = 64 * 1024
"""Bytes per read: what a pipe holds at first, and below the size at which malloc turns to mmap."""

PIPE_SIZE: Final = 256 * 1024
"""Bytes that a pipe holds from the first time on that we find it full. Each wake-up then moves up to four times as much, which is a
tenth less CPU for each update where many sessions share the pipe. Not more: the kernel gives small pipes to a user with 64 MiB of them."""

FULL_READS: Final = 4
"""Reads in a row of a pipe that is full each time, before the loop gets a turn: 256 KiB."""

READS_PER_TURN: Final = 16
"""Reads in a row, of one long line, before the loop gets a turn: 1 MiB."""

LINGER: Final = 50e-6
"""Seconds that we poll for the next frame after a request or a response of ours, before we let the kernel put us to sleep.
A peer that responds at once does so within this time, and going to sleep and being woken costs both of us more than that."""

_SET_PIPE_SIZE: Final[int | None] = getattr(fcntl, "F_SETPIPE_SZ", None)
"""The command that resizes a pipe, which Linux alone has."""

_SPARE_CORE: Final = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1

DEAF_GRACE: Final = 2.0
"""Seconds after which a peer that has closed its input counts as gone: what it still sends is received, but it can get no response."""

SET_ASIDE: Final = 256 * 1024
"""Buffers of this size and more are not moved to make room, but sent from where they are."""

CLOSE_GRACE: Final = 2.0
"""Seconds that a peer may take to read what is left to send when we close."""


class InputState(Enum):
    """What we do with the descriptor that we read."""

    PAUSED = "paused"
    READING = "reading"
    READING_ON = "reading on"
    """The peer counts as gone, and what it still writes is read so that it can end."""
    ENDED = "ended"
    CLOSED = "closed"


class InputEvent(Enum):
    """What can happen to the input."""

    RESUME = "resume"
    PAUSE = "pause"
    END = "end"
    LOSE = "lose"
    CLOSE = "close"


_I, _IE = InputState, InputEvent
PIPE_INPUT_LIFE: Final = Life(
    "input of a pipe transport",
    _I.PAUSED,
    {
        _I.PAUSED: {_IE.RESUME: _I.READING, _IE.PAUSE: _I.PAUSED, _IE.END: _I.ENDED, _IE.LOSE: _I.ENDED, _IE.CLOSE: _I.CLOSED},
        _I.READING: {_IE.RESUME: _I.READING, _IE.PAUSE: _I.PAUSED, _IE.END: _I.ENDED, _IE.LOSE: _I.READING_ON, _IE.CLOSE: _I.CLOSED},
        _I.READING_ON: {_IE.RESUME: _I.READING_ON, _IE.PAUSE: _I.ENDED, _IE.END: _I.ENDED, _IE.LOSE: _I.READING_ON, _IE.CLOSE: _I.CLOSED},
        _I.ENDED: {_IE.RESUME: _I.ENDED, _IE.PAUSE: _I.ENDED, _IE.END: _I.ENDED, _IE.LOSE: _I.ENDED, _IE.CLOSE: _I.CLOSED},
        _I.CLOSED: {_IE.RESUME: _I.CLOSED, _IE.PAUSE: _I.CLOSED, _IE.LOSE: _I.CLOSED},
    },
    "A peer is lost before its input ends when it reads no more of what we send.",
)  # fmt: skip


class OutputState(Enum):
    """What the descriptor that we write to can take."""

    OPEN = "open"
    FULL = "full"
    """The peer is slow: what we have waits in memory, and senders wait for it."""
    BROKEN = "broken"
    """The peer reads no more. What it still sends is worth reading."""
    CLOSED = "closed"


class OutputEvent(Enum):
    """What can happen to the output."""

    FILL = "fill"
    DRAIN = "drain"
    BREAK = "break"
    CLOSE = "close"


_O, _OE = OutputState, OutputEvent
PIPE_OUTPUT_LIFE: Final = Life(
    "output of a pipe transport",
    _O.OPEN,
    {
        _O.OPEN: {_OE.FILL: _O.FULL, _OE.BREAK: _O.BROKEN, _OE.CLOSE: _O.CLOSED},
        _O.FULL: {_OE.DRAIN: _O.OPEN, _OE.BREAK: _O.BROKEN, _OE.CLOSE: _O.CLOSED},
        _O.BROKEN: {_OE.BREAK: _O.BROKEN, _OE.CLOSE: _O.CLOSED},
        _O.CLOSED: {},
    },
    "The two halves live apart: a peer that reads no more may still send, and one that has sent its last frame may still read.",
)

_READS: Final = (InputState.READING, InputState.READING_ON)
_GONE: Final = (OutputState.BROKEN, OutputState.CLOSED)


class PipeTransport(Transport):
    """Reads lines from one descriptor and writes them to another. Owns both."""

    def __init__(self, read_fd: int, write_fd: int, *, limit: int = MAX_FRAME, already_read: bytes = b"") -> None:
        super().__init__()
        self._already_read = already_read
        self._read_fd, self._write_fd = read_fd, write_fd
        self._framer = LineFramer(limit)
        self._chunks = 0
        """How many pieces of input have been read."""
        self._input = PIPE_INPUT_LIFE.start
        self._output = PIPE_OUTPUT_LIFE.start
        self._ramp = 1
        self._grown = False
        self._lingering = False
        self._poll: select.poll | None = None
        self._aside = memoryview(b"")  # what is left of a large frame
        self._senders: deque[asyncio.Future[None]] = deque()  # senders that wait for room
        self._emptied = asyncio.Event()  # all is sent
        # A file or /dev/null is always ready and cannot be polled.
        self._pollable = not _is_plain_file(read_fd)
        # The mode belongs to every process that has the descriptor. A terminal is shared with a shell, so it keeps its own.
        self._unblocked = [fd for fd in (read_fd, write_fd) if not _is_plain_file(fd) and os.get_blocking(fd)]
        self._unblocked = [fd for fd in self._unblocked if not os.isatty(fd)]
        for fd in self._unblocked:
            os.set_blocking(fd, False)

    def _input_does(self, event: InputEvent) -> None:
        """Change the state of the input, and with it whether the loop watches the descriptor."""
        before, self._input = self._input, PIPE_INPUT_LIFE.next(self._input, event)
        if (before in _READS) == (self._input in _READS):
            return
        if self._input not in _READS:
            if self._pollable:
                self.loop.remove_reader(self._read_fd)
        elif self._pollable:
            self.loop.add_reader(self._read_fd, self._readable)
        else:
            self.loop.call_soon(self._readable)

    # Reading.

    def _start_reading(self) -> None:
        if self._already_read:
            self.loop.call_soon(self._take, self._already_read)  # before anything that the reader below may find
        self.resume()

    def _take(self, chunk: bytes) -> None:
        self._chunks += 1
        if self.sink is not None:
            for block in self._framer.blocks(chunk):
                self.sink.block_received(block)

    def pause(self) -> None:
        self._input_does(InputEvent.PAUSE)

    def resume(self) -> None:
        self._input_does(InputEvent.RESUME)

    def _readable(self) -> None:
        if self._input not in _READS:
            return
        for reads in range(1, READS_PER_TURN + 1):
            try:
                chunk = os.read(self._read_fd, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                chunk = b""
            if not chunk:
                self._end_of_input()
                return
            framer, sink = self._framer, self.sink
            if chunk[-1] == NEWLINE and not framer.pending and len(chunk) <= framer.limit and sink is not None:
                self._chunks += 1
                sink.block_received(chunk)  # as `blocks` would give it
            else:
                self._take(chunk)
            if len(chunk) == READ_SIZE and reads < FULL_READS and self._input in _READS:
                self._grow()
                continue  # a full pipe: the peer has more, and each look at the loop would cost as much as some updates
            # In the middle of a long line the rest is on its way: no need to ask the loop for each piece.
            if framer.pending <= READ_SIZE or not self._soon_readable():
                break
        if not self._pollable and self._input in _READS:
            self.loop.call_soon(self._readable)

    def _grow(self) -> None:
        """Let the pipe hold more: the peer writes faster than we are woken."""
        if _SET_PIPE_SIZE is not None and not self._grown:
            self._grown = True
            with suppress(OSError):  # a socket or a terminal, or the user has too many large pipes
                fcntl.fcntl(self._read_fd, _SET_PIPE_SIZE, PIPE_SIZE)

    def linger(self) -> None:
        if self._pollable and not self._lingering and self._input in _READS:
            self._lingering = True
            self.loop.call_soon(self._look_out)

    def _look_out(self) -> None:
        self._lingering = False
        if self._soon_readable():
            self._readable()

    def _soon_readable(self) -> bool:
        """Whether input is there, or comes within the time it would take to fall asleep and be woken."""
        if not (_SPARE_CORE and self._pollable and self._input in _READS):
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
        self._input_does(InputEvent.END)
        if self.sink is not None:
            for frame in self._framer.end():
                self.sink.block_received(frame)
        self._input_ended()

    def _input_ended(self) -> None:
        self._lose(ConnectionClosed("the peer closed its output"))

    def _lose(self, error: ConnectionClosed) -> None:
        self._input_does(InputEvent.LOSE)
        super()._lose(error)

    # Writing.

    @property
    def unsent(self) -> int:
        return len(self.out) + len(self._aside)

    @property
    def deaf(self) -> bool:
        return self._output in _GONE

    def flush(self) -> None:
        if not self.out or self._output is OutputState.FULL:
            return
        if self._output is not OutputState.OPEN:
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
            self._output = PIPE_OUTPUT_LIFE.next(self._output, OutputEvent.FILL)
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
        self._output = PIPE_OUTPUT_LIFE.next(self._output, OutputEvent.DRAIN)
        self.loop.remove_writer(self._write_fd)
        self.flush()
        self._admit()
        if not self.unsent:
            self._emptied.set()

    def _break(self) -> None:
        """The peer reads no more. What it still sends is worth reading, so reading goes on."""
        if self._output not in _GONE and self._input in (InputState.PAUSED, InputState.READING):
            self.loop.call_later(DEAF_GRACE, self._lose, ConnectionClosed("the peer no longer reads"))
        self._output_does(OutputEvent.BREAK)

    def _output_does(self, event: OutputEvent) -> None:
        """End the output: what waits is dropped, and senders that wait learn of it."""
        before, self._output = self._output, PIPE_OUTPUT_LIFE.next(self._output, event)
        if before is OutputState.FULL:
            self.loop.remove_writer(self._write_fd)
        self._aside = memoryview(b"")
        self.out.clear()
        self._admit(len(self._senders))
        self._emptied.set()

    async def drain(self) -> None:
        self.flush()
        if self.unsent < OUTPUT_HIGH:
            await asyncio.sleep(0)  # even if all was sent: a sender that never waits would never receive a cancellation
        elif self._output not in _GONE:
            turn: asyncio.Future[None] = self.loop.create_future()
            self._senders.append(turn)
            await turn
        if self._output in _GONE:
            raise ConnectionClosed("the peer no longer reads")

    def _admit(self, count: int = 1) -> None:
        """Let senders go on, first come first served: one, then twice as many each turn of the loop while there is room.

        All at once would be a stampede: the first fills the pipe again and the others queue up anew.
        """
        while count and self._senders and (self.unsent < OUTPUT_HIGH or self._output in _GONE):
            turn = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1
                if not count and self._senders:
                    self._ramp *= 2
                    self.loop.call_soon(self._admit, self._ramp)

    # Closing.

    async def close(self) -> None:
        if self._input is InputState.CLOSED:
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
        if self._input is not InputState.CLOSED:
            self._close_output()
            self._input_does(InputEvent.CLOSE)
            self._give_back(self._read_fd)

    def _close_output(self) -> None:
        if self._output is not OutputState.CLOSED:
            self._break()
            self._output_does(OutputEvent.CLOSE)
            self._give_back(self._write_fd)

    def _give_back(self, fd: int) -> None:
        if fd in self._unblocked:
            os.set_blocking(fd, True)
        os.close(fd)


def _is_plain_file(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))
