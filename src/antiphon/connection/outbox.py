"""Frames that leave, and observers: frames into the transport's buffer, taps, reports."""

import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from antiphon.aio import NO_WAIT
from antiphon.connection.inbox import Inbox
from antiphon.connection.reports import HandlerFailed, Observer, Report
from antiphon.errors import AcpError, ConnectionClosed, LocalProtocolError, fresh
from antiphon.protocol.base import encode_into
from antiphon.rpc.envelope import Noise, RequestId
from antiphon.transports.base import OUTPUT_HIGH, Transport

__all__ = ["Direction", "Outbox", "RoutedOutbox", "Tap"]

Direction = Literal["in", "out"]
Tap = Callable[[Direction, float, bytes], None]
"""Sees a frame: which way it went, when (seconds since the epoch), and its bytes."""

ANSWERS_LIMIT: Final = 16 * 1024 * 1024
"""Unsent bytes above which we stop reading from a peer that sends requests and does not read the responses."""

NOISE_KEPT: Final = 50
"""Lines that were not protocol, kept to explain a failure."""

_log = logging.getLogger(__name__)


class _Drain:
    """An await that lasts until the peer has read. Unlike a coroutine it may be dropped."""

    __slots__ = ("_outbox",)

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox

    def __await__(self) -> Generator[object, None, None]:
        return self._outbox.drain().__await__()


class Outbox:
    """The outgoing half of a connection, and its observers."""

    def __init__(self, transport: Transport, inbox: Inbox, observer: Observer | None) -> None:
        self.transport = transport
        self._inbox = inbox
        self.taps: list[Tap] = []
        self.counts: Counter[str] = Counter()
        self.noise: deque[bytes] = deque(maxlen=NOISE_KEPT)
        self.lost: AcpError | None = LocalProtocolError("the connection is not started: use `async with connection`")
        """Why nothing can be sent (any more); None while the connection is open."""
        self.over = False
        """Whether the peer has sent its last frame."""
        self.watched = True
        """Whether `_look_at` has anything to do: one check on the hot path instead of two."""
        self._observer = observer

    def tap(self, see: Tap) -> Callable[[], None]:
        """Let `see` have every frame from now on; the returned function ends it."""
        self.taps.append(see)
        self.watched = True

        def leave() -> None:
            self.taps.remove(see)
            self.watched = bool(self.taps) or self.lost is not None

        return leave

    def open(self) -> None:
        """Set the transport: from now on frames can be sent."""
        self.lost = None
        self.watched = bool(self.taps)

    def lose(self, error: ConnectionClosed) -> None:
        """Nothing can be sent from now on."""
        self.lost = error
        self.watched = True

    def _look_at(self, out: bytearray, start: int) -> None:
        """Show a frame that was just put into the buffer, or take it out again if it cannot be sent.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        if self.lost is not None:
            del out[start:]
            raise fresh(self.lost)
        self.show("out", bytes(out[start:-1]))

    def put(self, head: bytes, tail: bytes, value: object) -> Awaitable[None]:
        """A notification into the buffer: `value` as JSON between `head` and `tail`. It leaves at the end of this turn of the loop,
        with its neighbours. Await the result to wait while the peer is slow; dropping it is safe.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        # The hottest path for sending: no coroutine, and no lookup that can be done beforehand.
        transport = self.transport
        out = transport.out
        start = len(out)
        try:
            out += head
            encode_into(value, out, -1)
            out += tail
        except BaseException:
            del out[start:]  # half a frame would corrupt the next
            raise
        if self.watched:
            self._look_at(out, start)
        if not start:
            transport.flush_soon()
        return NO_WAIT if start < OUTPUT_HIGH else _Drain(self)

    def sender(self, head: bytes, tail: bytes, session_id: str) -> Callable[[object], Awaitable[None]]:
        """Return a function that puts one value between `head` and `tail`: `put` for a notification of this session."""
        return partial(self.put, head, tail)

    async def drain(self) -> None:
        """Wait until the peer has read. Reading goes on meanwhile: the peer may be waiting for us."""
        self._inbox.wait_begins()
        try:
            await self.transport.drain()
        finally:
            self._inbox.wait_ends()

    def send(self, frame: bytes | bytearray, params: object = None, answers: RequestId | UnsetType = UNSET) -> None:
        """Send a frame at once, because it is waited for. What was posted before goes first.

        `params` are those of a request; `answers` is the id of the request that a response is for.
        """
        if self.taps:
            self.show("out", bytes(frame))
        transport = self.transport
        if isinstance(frame, bytearray) and not transport.out:
            frame += b"\n"
            transport.out = frame  # not copied: it may be a 50 MiB file
        else:
            transport.out += frame
            transport.out += b"\n"
        transport.flush()
        if transport.unsent > ANSWERS_LIMIT:
            self._inbox.choke()
        transport.linger()

    def show(self, direction: Direction, frame: bytes) -> None:
        """Let the taps see a frame."""
        now = time.time()
        for see in tuple(self.taps):
            try:
                see(direction, now, frame)
            except Exception:
                _log.exception("a tap failed")

    def report(self, report: Report) -> None:
        """Count what would otherwise pass in silence, and inform the observer."""
        self.counts[type(report).__name__] += 1
        if isinstance(report, Noise):
            self.noise.append(report.raw)
        if self._observer is not None:
            try:
                self._observer(report)
            except Exception:
                _log.exception("the observer failed")

    def handler_failed(self, method: str, error: Exception) -> None:
        """A handler of ours raised what it should not."""
        _log.error("the handler of `%s` failed", method, exc_info=error)
        self.report(HandlerFailed(method, error))


class RoutedOutbox(Outbox):
    """The outgoing half over a transport that sends each frame its own way, as HTTP does with one stream for each session."""

    def put(self, head: bytes, tail: bytes, value: object) -> Awaitable[None]:
        """Hand over a notification with the session that its params name."""
        return self._put_for(_session_of(value), head, tail, value)

    def sender(self, head: bytes, tail: bytes, session_id: str) -> Callable[[object], Awaitable[None]]:
        """Return a function that hands over notifications of this session."""
        return partial(self._put_for, session_id, head, tail)

    def _put_for(self, session_id: str | None, head: bytes, tail: bytes, value: object) -> Awaitable[None]:
        frame = bytearray(head)
        encode_into(value, frame, -1)
        frame += tail[:-1]
        if self.lost is not None:
            raise fresh(self.lost)
        self._hand_over(frame, session_id, UNSET)
        return NO_WAIT if self.transport.unsent < OUTPUT_HIGH else _Drain(self)

    def send(self, frame: bytes | bytearray, params: object = None, answers: RequestId | UnsetType = UNSET) -> None:
        """Hand over a request with the session that its params name, or a response with the id of its request."""
        self._hand_over(frame, _session_of(params), answers)
        if self.transport.unsent > ANSWERS_LIMIT:
            self._inbox.choke()

    def _hand_over(self, frame: bytes | bytearray, session_id: str | None, answers: RequestId | UnsetType) -> None:
        if self.taps:
            self.show("out", bytes(frame))
        self.transport.route(bytes(frame), session_id, answers)


def _session_of(params: object) -> str | None:
    found = params.get("sessionId") if isinstance(params, Mapping) else getattr(params, "session_id", None)
    return found if isinstance(found, str) else None
