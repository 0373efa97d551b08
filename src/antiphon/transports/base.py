"""The interface of transports: frames that move, and the sink that takes them.

A transport has three simple methods: `send`, `receive`, `close`. A connection, which must be fast, attaches itself as
the `Sink` instead: it is handed whole blocks of lines as they arrive and writes straight into `out`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Final, Protocol

from msgspec import UnsetType

from antiphon.errors import ConnectionClosed, LocalProtocolError
from antiphon.rpc.envelope import Frame, Overlong, RequestId
from antiphon.transports.framing import lines_of

__all__ = ["JITTER", "OUTPUT_HIGH", "Frame", "Sink", "Transport"]

OUTPUT_HIGH: Final = 60 * 1024
"""Unsent bytes above which a sender waits: a little less than a pipe holds, so that what has gathered leaves in one piece."""

JITTER: Final = 0.25
"""The part of a delay that is added at random before a remote agent is tried again."""

RECEIVE_HIGH: Final = 1024
"""Frames that wait for `receive` before reading pauses."""


class Sink(Protocol):
    """The object that takes what arrives."""

    def block_received(self, block: Frame) -> None:
        """Whole lines, each with its end, in one piece; or the remains of a line over the limit."""

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Nothing more will arrive. Called once."""


class Transport(ABC):
    """Frames out, frames in. One frame is one line."""

    noisy = False
    """Whether lines that are not protocol are to be expected, as from a program that may also print."""

    routed = False
    """Whether each frame is handed to `route` instead of being written into `out`."""

    def __init__(self) -> None:
        self.out = bytearray()
        """Encoded frames, each with its line end, that are not yet on their way."""
        self.sink: Sink | None = None
        self.lost: ConnectionClosed | None = None
        """Why nothing more will arrive; None while more may."""
        self._mailbox: _Mailbox | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self.flushing_soon = False
        """Whether `flush_soon` has been asked for and not done yet."""

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this transport lives on: the one that ran when it was first used."""
        return asyncio.get_running_loop()

    @property
    def origin(self) -> "Transport":
        """The transport that moves the bytes: this one, unless it stands on another."""
        return self

    def settled(self) -> "Transport":
        """Return what to use after the handshake: this one, unless it stood on another for the handshake alone."""
        return self

    # For a connection.

    def attach(self, sink: Sink) -> None:
        """Hand everything that arrives to `sink`, from now on."""
        if self.sink is not None:
            raise LocalProtocolError("this transport has a reader already")
        self.sink = sink
        if self.lost is None:
            self._start_reading()
        else:
            sink.connection_lost(self.lost)

    def _lose(self, error: ConnectionClosed) -> None:
        """Nothing more will arrive: inform the sink, once."""
        if self.lost is None:
            self.lost = error
            if self.sink is not None:
                self.sink.connection_lost(error)

    def skip_grace(self) -> None:  # noqa: B027 - most transports wait for nothing
        """Have `close` wait for a peer no longer than it must: it was given its time to end, and did not use it."""

    def flush_soon(self) -> None:
        """Send `out` at once, and what is added in this turn of the loop at its end, so that many small frames leave together; or when it
        is as much as leaves in one piece and the peer has taken all before it: a fast reader does not pass for a slow one."""
        if not self.flushing_soon:
            self.gather()
            self.flush()
        elif len(self.out) >= OUTPUT_HIGH and self.unsent == len(self.out):
            self.flush()

    def gather(self) -> None:
        """Much will be sent within the next turn of the loop: let it leave in one piece, at its end, and nothing of it at once."""
        if not self.flushing_soon:
            self.flushing_soon = True
            self.loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self.flushing_soon = False
        self.flush()

    async def abort(self, reason: str) -> None:
        """Close at once: from now on nothing is handed over or sent, whatever waits."""
        self._lose(ConnectionClosed(reason))
        await self.close()

    def route(self, frame: bytes, session_id: str | None, answers: RequestId | UnsetType) -> None:
        """Take one frame, without its line end, to send it where it belongs; for transports with `routed = True`.

        `session_id` is the session that a request or a notification is about, None where it names none. `answers` is the id of the
        request that a response is for, UNSET for all other frames. What cannot be sent yet counts as `unsent`.
        """
        raise NotImplementedError

    @property
    def unsent(self) -> int:
        """Bytes that we have and the peer has not."""
        return len(self.out)

    @property
    def deaf(self) -> bool:
        """Whether the peer reads no more, though it may still send."""
        return self.lost is not None

    def linger(self) -> None:  # noqa: B027 - an offer; most transports have nothing to gain
        """A frame from the peer may come within microseconds: poll for it, where that is worth it."""

    @abstractmethod
    def flush(self) -> None:
        """Send as much of `out` as goes without waiting."""

    @abstractmethod
    async def drain(self) -> None:
        """Wait until the peer has taken enough for more to be sent. The loop turns at least once.

        Raises:
            ConnectionClosed: it will take no more.
        """

    def when_drained(self, callback: Callable[[], None]) -> None:
        """Call `callback` once there is room for more, or the transport has closed."""
        task = self.loop.create_task(self._call_when_drained(callback))
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _call_when_drained(self, callback: Callable[[], None]) -> None:
        with suppress(ConnectionClosed):
            await self.drain()
        callback()

    @abstractmethod
    def pause(self) -> None:
        """Stop reading until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Continue to read."""

    @abstractmethod
    def _start_reading(self) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Send what is left, within limits, and end. Closing twice is fine."""

    # The simple methods.

    async def send(self, frame: bytes) -> None:
        """Send one frame and wait while the peer is slow."""
        if b"\n" in frame:
            raise LocalProtocolError("a frame is one line: it cannot hold a line end")
        self.out += frame
        self.out += b"\n"
        self.flush()
        if self.unsent >= OUTPUT_HIGH:
            await self.drain()

    async def receive(self) -> Frame | None:
        """The next frame, or None when there will be no more."""
        if self._mailbox is None:
            self._mailbox = _Mailbox(self)
            self.attach(self._mailbox)
        return await self._mailbox.take()


class _Mailbox:
    """The sink behind `receive`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._frames: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        self._over = False

    def block_received(self, block: Frame) -> None:
        if isinstance(block, Overlong):
            self._frames.append(block)
        else:
            self._frames.extend(lines_of(block))
        if len(self._frames) > RECEIVE_HIGH:
            self._transport.pause()
        self._arrived.set()

    def connection_lost(self, error: ConnectionClosed) -> None:
        self._over = True
        self._arrived.set()

    async def take(self) -> Frame | None:
        while not self._frames and not self._over:
            self._arrived.clear()
            await self._arrived.wait()
        if not self._frames:
            return None
        frame = self._frames.popleft()
        if len(self._frames) == RECEIVE_HIGH // 2:
            self._transport.resume()
        return frame
