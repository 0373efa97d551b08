"""What leaves and who watches: frames into the transport's buffer, taps, reports."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from antiphon.connection.reports import HandlerFailed, Observer, Report
from antiphon.protocol.base import encode_into
from antiphon.rpc.envelope import Noise, head_of_notification
from antiphon.transports.base import Transport

if TYPE_CHECKING:
    from antiphon.errors import ConnectionClosed

__all__ = ["Direction", "Tap", "Wire"]

Direction = Literal["in", "out"]
Tap = Callable[[Direction, float, bytes], None]
"""Sees a frame: which way it went, when (seconds since the epoch), and its bytes."""

NOISE_KEPT: Final = 50
"""Lines that were no protocol, kept for whoever looks for the reason of something."""

_log = logging.getLogger(__name__)


class Wire:
    """The outgoing half of a connection, and its observers."""

    def __init__(self, transport: Transport, observer: Observer | None) -> None:
        self.transport = transport
        self.taps: list[Tap] = []
        self.counts: Counter[str] = Counter()
        self.noise: deque[bytes] = deque(maxlen=NOISE_KEPT)
        self.lost: ConnectionClosed | None = None
        """Why nothing can be sent any more; None while the conversation lives."""
        self._observer = observer
        self._heads: dict[str, bytes] = {}

    def post(self, method: str, params: Any) -> int:
        """A notification into the buffer; it leaves at the end of this turn of the loop, with its neighbours.

        Returns the bytes in the buffer, so that the caller may wait for them to leave.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        if self.lost is not None:
            raise self.lost
        transport = self.transport
        out = transport.out
        start = len(out)
        try:
            out += self._heads.get(method) or self._head(method)
            encode_into(params, out, -1)
            out += b"}\n"
        except BaseException:
            del out[start:]  # half a frame would corrupt the next
            raise
        if self.taps:
            self.show("out", bytes(out[start:-1]))
        if not transport.flushing_soon:
            transport.flush_soon()
        return len(out)

    def _head(self, method: str) -> bytes:
        head = self._heads[method] = head_of_notification(method)
        return head

    def send(self, frame: bytes | bytearray) -> None:
        """A frame at once, because somebody waits for it. What was posted before goes first."""
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

    def show(self, direction: Direction, frame: bytes) -> None:
        """Let the taps see a frame."""
        now = time.time()
        for see in tuple(self.taps):
            try:
                see(direction, now, frame)
            except Exception:
                _log.exception("a tap failed")

    def report(self, report: Report) -> None:
        """Count what would otherwise pass in silence, and tell the observer."""
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
