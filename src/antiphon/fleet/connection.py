"""One end of a connection that the broker carries: a transport whose bytes travel in numbered chunks, with a window.

Every message begins with the same head: what it is, which connection it is for, the number of the last chunk that its sender has sent, that
of the last chunk that it has received, and how many bytes it grants in all. `fleet.carrier` has the rules, and the other processes.
"""

import asyncio
import logging
import struct
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from antiphon.errors import AcpError, ConnectionClosed, fresh, sentence_and_hint
from antiphon.protocol.base import BAD_INPUT
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME, LineFramer
from antiphon.transports.remote import CLOSE_TIMEOUT

__all__ = [
    "CLOSE",
    "DATA",
    "GONE",
    "HEAD",
    "PROBE",
    "STATE",
    "CarrierLimits",
    "CarrierPeer",
    "CarrierTransport",
    "Closed",
]

DATA, STATE, PROBE, CLOSE, GONE = range(1, 6)
"""Kinds of messages: bytes; what was received and granted; a question for that; the end; "there is no such connection"."""

HEAD: Final = struct.Struct(">B16sQQQ")
"""Kind, connection, number of the last chunk sent, number of the last chunk received, bytes granted in all."""

_log = logging.getLogger(__name__)


class CarrierLimits(msgspec.Struct, frozen=True):
    """How much is sent at once, and how long an end waits."""

    chunk: int = 128 * 1024
    """Bytes of one message, if the broker takes as many."""
    window: int = 1024 * 1024
    """Bytes that a peer may send before the reader here has taken any, on one connection."""
    windows: int = 32 * 1024 * 1024
    """The same on all connections of a process: with many of them, each has a smaller window."""
    least_window: int = 32 * 1024
    """The window of a connection among any number."""
    unsent: int = 8 * 1024 * 1024
    """Bytes that this process may have published and not sent to the broker: above them, connections wait."""
    frame: int = MAX_FRAME
    """Bytes of the longest line. A longer one is not kept."""
    ping: float = 1.0
    """Seconds without a message of a process after which it is sent a ping."""
    silence: float = 3.0
    """Seconds without a message of a process after which it is given up."""
    open: float = 5.0
    """Seconds for the answer of a worker to a connection that is to be opened."""
    close: float = CLOSE_TIMEOUT
    """Seconds for what is left to be sent before a connection is closed."""


class _Exchange(Protocol):
    """What a connection needs of the object that holds all connections of its process."""

    name: str
    limits: CarrierLimits

    @property
    def chunk(self) -> int:
        """Bytes of one message."""

    @property
    def window(self) -> int:
        """Bytes that each connection grants now."""

    def may_send(self, connection: "CarrierTransport") -> bool:
        """Whether a connection may publish; if not, it is flushed again when it may."""

    def publish(self, peer: "CarrierPeer", message: bytes) -> None:
        """Send a message to a peer."""

    def ended(self, connection: "CarrierTransport") -> None:
        """Forget a connection."""


class Closed(msgspec.Struct, array_like=True):
    """The end of a connection."""

    sender: str
    sentence: str
    hint: str
    is_whole: bool
    """Whether all was sent: a last line without its end counts."""


class CarrierPeer:
    """Another process, as long as there are connections to it."""

    def __init__(self, name: str, subject: str, epoch: int) -> None:
        self.name, self.subject = name, subject
        self.epoch = epoch
        """Our epoch with it: connections that we had with it before are over."""
        self.connections: dict[bytes, CarrierTransport] = {}
        self.unsettled: dict[bytes, CarrierTransport] = {}
        """Those with chunks that are not confirmed."""
        self.closes: dict[bytes, bytes] = {}
        """The messages that end connections and are not confirmed."""
        self.has_come = True
        """Whether a message of it came since it was last looked at."""
        self.silence = 0.0


class CarrierTransport(Transport):
    """One end of a connection that the broker carries. Made by `CarrierDialer.open`, and by a `CarrierListener`."""

    def __init__(self, exchange: _Exchange, peer: CarrierPeer, id: bytes) -> None:
        super().__init__()
        self.id: Final = id
        self._exchange = exchange
        self.peer: Final = peer
        self._epoch: int | None = None
        """The epoch of the peer that this connection belongs to; None while it is being opened."""
        self._framer = LineFramer(exchange.limits.frame)
        self._arrived = bytearray()
        """What came and was not handed over yet: never more than was granted."""
        self._is_paused = self._is_scheduled = self._is_closing = False
        self._room: asyncio.Event | None = None  # when first waited for: most connections never are
        self._ending: ConnectionClosed | None = None
        """Why nothing more will arrive or leave. What arrived before is handed over first."""
        self._is_whole = False
        # Our chunks: sent, confirmed, and sent before the last look at them; our bytes: sent, and granted by the peer.
        self._number = self._confirmed = self._noted = 0
        self._sent = self._allowed = 0
        # The peer's chunks: received; its bytes: taken by our reader, and granted by us.
        self._received = self._taken = 0
        self.granted = exchange.window

    # What leaves.

    @property
    def deaf(self) -> bool:
        return self._ending is not None or self.lost is not None

    def flush_soon(self) -> None:
        """Send `out` at the end of this turn of the loop, in one message; or at once when it is much."""
        self.gather()
        if len(self.out) >= OUTPUT_HIGH:
            self.flush()

    def flush(self) -> None:
        if self.deaf:
            self.out.clear()
        while self.out and self._sent < self._allowed and self._exchange.may_send(self):
            size = min(len(self.out), self._allowed - self._sent, self._exchange.chunk)
            self._number += 1
            self._sent += size
            with memoryview(self.out) as out:
                message = b"".join((self._head(DATA), out[:size]))
            del self.out[:size]
            self._exchange.publish(self.peer, message)
            self.peer.unsettled[self.id] = self
        if self.out:
            self.peer.unsettled[self.id] = self  # it waits for more to be granted, and that may be lost on the way
        if self._room is not None and len(self.out) < OUTPUT_HIGH:
            self._room.set()

    def _head(self, kind: int) -> bytes:
        self.granted = max(self.granted, self._taken + self._exchange.window)
        return HEAD.pack(kind, self.id, self._number, self._received, self.granted)

    async def drain(self) -> None:
        self.flush()
        await asyncio.sleep(0)
        await self._sent_but(OUTPUT_HIGH)
        if self.deaf:
            raise self._why()

    async def _sent_but(self, rest: int) -> None:
        """Wait until less than this is left to be sent, or the connection has ended."""
        while len(self.out) >= rest and not self.deaf:
            self._room = self._room or asyncio.Event()
            self._room.clear()
            await self._room.wait()

    def _why(self) -> AcpError:
        return fresh(self._ending or self.lost or ConnectionClosed("the connection is closed"))

    def probe(self) -> None:
        """Ask about chunks that were sent a while ago and are not confirmed, and about more room."""
        if self._noted > self._confirmed or (self.out and self._sent == self._allowed):
            self._exchange.publish(self.peer, self._head(PROBE) + self._exchange.name.encode())
        self._noted = self._number

    # What arrives.

    def established(self, epoch: int, granted: int) -> None:
        """Take what the peer has to know of it when it was opened."""
        self._epoch = epoch
        self._allowed = max(self._allowed, granted)
        self.flush()

    def is_older(self, epoch: int) -> bool:
        """Whether it belongs to an epoch of the peer before this one."""
        return self._epoch is not None and self._epoch < epoch

    def message_received(self, kind: int, number: int, received: int, granted: int, rest: bytes) -> None:
        """Take a message of the peer."""
        if kind == GONE:
            self.end(ConnectionClosed("the other end has no such connection any more"), reports=False)
            return
        is_next = number == self._received + (kind == DATA)
        if kind == CLOSE:
            self._closed_by_peer(rest, is_next)
        elif not is_next:
            self.end(ConnectionClosed("a message on the way was lost"))
        else:
            self._confirmed = received
            if kind == DATA:
                self._received = number
                self._data_received(rest)
            elif kind == PROBE:
                self._exchange.publish(self.peer, self._head(STATE))
            if granted > self._allowed:
                self._allowed = granted
                self.flush()
            if received == self._number and not self.out:
                self.peer.unsettled.pop(self.id, None)

    def _data_received(self, data: bytes) -> None:
        if self._taken + len(self._arrived) + len(data) > self.granted:
            self.end(ConnectionClosed("the other end sent more than it was granted"))
        elif self._is_closing:
            self._take(data)  # and drop it: the peer may have to send this much before its own close
        elif self._arrived or self._is_paused or self.sink is None:
            self._arrived += data
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        """Hand bytes to the reader, and grant more for them when that is worth a message."""
        self._taken += len(data)
        if not self._is_closing:
            for block in self._framer.blocks(data):
                if self.lost is None and self.sink is not None:
                    self.sink.block_received(block)
        window = self._exchange.window
        if not self.deaf and self._taken + window - self.granted >= window // 2:
            self._exchange.publish(self.peer, self._head(STATE))

    def _deliver_soon(self) -> None:
        if not self._is_scheduled and self.sink is not None:
            self._is_scheduled = True
            self.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Hand over what has arrived, and behind it that nothing more will."""
        self._is_scheduled = False
        if self.sink is None or self._is_held():
            return
        if self._arrived:
            data, self._arrived = bytes(self._arrived), bytearray()
            self._take(data)
        if self._ending is not None and not self._is_held():  # the sink may have changed that
            if self._is_whole and not self._is_closing:
                for frame in self._framer.end():
                    self.sink.block_received(frame)
            self._lose(self._ending)

    def _is_held(self) -> bool:
        return self._is_paused or self.lost is not None

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._deliver_soon()

    def _start_reading(self) -> None:
        self._deliver_soon()

    # The end.

    def end(self, error: ConnectionClosed, *, is_whole: bool = False, reports: bool = True) -> None:
        """End it for this reason. `is_whole`: nothing is missing. `reports`: the peer has to be informed."""
        if self._ending is not None:
            return
        self._ending, self._is_whole = error, is_whole
        self.out.clear()
        self._exchange.ended(self)
        if reports:
            sentence, hint = sentence_and_hint(error)
            closed = Closed(self._exchange.name, sentence, hint or "", is_whole)
            message = self._head(CLOSE) + msgspec.json.encode(closed)
            self.peer.closes[self.id] = message
            self._exchange.publish(self.peer, message)
        if self._room is not None:
            self._room.set()
        self._deliver()

    def _closed_by_peer(self, data: bytes, is_next: bool) -> None:
        try:
            closed = msgspec.json.decode(data, type=Closed)
        except BAD_INPUT:
            closed = Closed("", "the other end closed the connection", "", False)
        self._exchange.publish(self.peer, self._head(GONE))
        error = ConnectionClosed(closed.sentence, hint=closed.hint)
        self.end(error, is_whole=is_next and closed.is_whole, reports=False)

    async def close(self) -> None:
        if self._ending is None and not self._is_closing:
            self._is_closing = True
            data, self._arrived = bytes(self._arrived), bytearray()
            self._take(data)
            self.flush()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._exchange.limits.close):
                    await self._sent_but(1)
        finally:
            is_whole = not self.out
            if not self.deaf and not is_whole:
                _log.warning("%d bytes for `%s` were unsent when it was closed", len(self.out), self.peer.name)
            self._arrived.clear()
            self._lose(ConnectionClosed("the connection is closed"))
            self.end(ConnectionClosed("the other end closed the connection"), is_whole=is_whole)

    async def abort(self, reason: str) -> None:
        self._is_closing = True
        self._arrived.clear()
        self._lose(ConnectionClosed(reason))
        self.end(ConnectionClosed(reason))
        await self.close()
