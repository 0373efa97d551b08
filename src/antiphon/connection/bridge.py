"""A bridge: raw frames forwarded between two transports, with the ids of their requests kept apart.

Nothing is decoded that need not be and nothing is encoded again: the forwarded bytes are those that came, unknown members, formats of
numbers, order and repetition of keys, escapes and white space included. Only ids are replaced, where they stand:

Rule 1: a request gets a new id on the other side, and its response the old one, in the bytes that it was written in. A number stays a
number and a string a string; the new ones are counted together, so a peer that takes 1 and "1" for the same does no harm.
Rule 2: ids inside params that name a request follow it: those of `$/cancel_request`, and those that the version of the protocol knows
(`Version.request_ids`, the scope of an elicitation). A cancellation of nothing that is open goes no further.
Rule 3: a response that nothing waits for, a second request with the same id, and a line that has an id without being a message
are not forwarded: each could end a request that it does not belong to. They are reported, and answered with an error where that is possible.
Rule 4: what cannot hold an id is forwarded as it came, in whole blocks, valid or not: the other side judges it as it would without us.
Rule 5: while one side does not read, the other is not read: at most one block and one frame wait in memory, and nothing is dropped.
Rule 6: when one side ends, the requests of the other that it did not answer are answered with an error, its own that are still open
are cancelled, what is on its way is sent, and then the other side is closed. A side that only stops sending gets its responses first,
for `EOF_GRACE` seconds.
"""

import asyncio
from collections import Counter
from enum import Enum
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.connection.outbox import ANSWERS_LIMIT
from antiphon.connection.reports import Observer, Report
from antiphon.errors import Code, ConnectionClosed
from antiphon.life import Life
from antiphon.protocol.version import Version
from antiphon.rpc.envelope import (
    ErrorObject,
    Frame,
    Line,
    Malformed,
    Noise,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
)
from antiphon.rpc.peer import CANCEL_REQUEST, FIRST_ID, Rejected, Stray, id_key
from antiphon.rpc.spans import (
    UNREADABLE,
    Change,
    Span,
    key_of_written,
    may_hold_id,
    params_values_of,
    replaced,
    session_in,
    values_of,
)
from antiphon.transports.base import OUTPUT_HIGH, Transport

__all__ = ["BRIDGE_LIFE", "EOF_GRACE", "MAX_OPEN", "Bridge", "BridgeEvent", "BridgeState", "bridge"]

EOF_GRACE: Final = 0.5
"""Seconds that a side which has sent its last frame may still get responses, as a connection gives its own handlers."""

MAX_OPEN: Final = 10_000
"""Requests of one side that may wait for their responses. Each costs some hundred bytes here; the next one is refused."""


class BridgeState(Enum):
    """The state of a bridge in its life."""

    NEW = "new"
    OPEN = "open"
    HALF = "half open"
    """One side has sent its last frame, and gets what is still owed to it."""
    CLOSING = "closing"
    CLOSED = "closed"


class BridgeEvent(Enum):
    """What can happen to a bridge."""

    START = "start"
    SIDE_ENDS = "lose a side"
    CLOSE = "close"
    FINISH = "finish"


_S, _E = BridgeState, BridgeEvent
BRIDGE_LIFE: Final = Life(
    "bridge",
    _S.NEW,
    {
        _S.NEW: {_E.START: _S.OPEN},
        _S.OPEN: {_E.SIDE_ENDS: _S.HALF, _E.CLOSE: _S.CLOSING},
        _S.HALF: {_E.SIDE_ENDS: _S.HALF, _E.CLOSE: _S.CLOSING},
        _S.CLOSING: {_E.SIDE_ENDS: _S.CLOSING, _E.FINISH: _S.CLOSED},
        _S.CLOSED: {},
    },
    "The second side that ends, and the time that a half-open side has, both lead to closing.",
)


async def bridge(left: Transport, right: Transport, *, version: Version, observer: Observer | None = None) -> None:
    """Forward frames between two transports until one of them ends, then close both. Cancelling it closes both too."""
    await Bridge(left, right, version=version, observer=observer).run()


class Bridge:
    """Two transports that are each other's peer. `run` it once."""

    def __init__(
        self,
        left: Transport,
        right: Transport,
        *,
        version: Version,
        observer: Observer | None = None,
        keep_requests: bool = False,
    ) -> None:
        self.version = version
        self.keep_requests = keep_requests
        """Whether the right side is a server whose requests and turns outlive its clients. Then those of the left side go on when it ends,
        and those of the right side are left open for another client. Else the first are cancelled, and the others get an error."""
        self.counts: Counter[str] = Counter()
        """How often each kind of report was made."""
        self.ended_first: Transport | None = None
        """The side that ended before the other."""
        self._observer = observer
        self._left = _Side(self, left)
        self._right = _Side(self, right)
        self._left.other, self._right.other = self._right, self._left
        self._state = BRIDGE_LIFE.start
        self._ended = asyncio.Event()
        self._settled = asyncio.Event()
        """Whether nothing is owed any more to the side that ended first."""

    @property
    def state(self) -> BridgeState:
        """The state of the bridge in its life."""
        return self._state

    @property
    def open_requests(self) -> tuple[int, int]:
        """Requests that wait for their response: of the left side, and of the right one."""
        return len(self._left.open), len(self._right.open)

    async def run(self) -> None:
        """Forward frames until one side ends, then close both."""
        self._does(BridgeEvent.START)
        try:
            self._left.transport.attach(self._left)
            self._right.transport.attach(self._right)
            await self._ended.wait()
            await self._wait_for_responses()
        finally:
            self._does(BridgeEvent.CLOSE)
            for side in (self._left, self._right):
                side.end()
            # A task of its own: if our caller is cancelled again, closing still completes.
            await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _close(self) -> None:
        await asyncio.gather(self._left.transport.close(), self._right.transport.close())
        self._does(BridgeEvent.FINISH)

    async def _wait_for_responses(self) -> None:
        """Wait until the responses for a side that only stopped sending are on their way."""
        if self._left.lost and self._right.lost:
            return
        gone = self._left if self._left.lost else self._right
        if gone.open and not gone.transport.deaf:
            try:
                async with asyncio.timeout(EOF_GRACE):
                    await self._settled.wait()
            except TimeoutError:
                pass

    def _does(self, event: BridgeEvent) -> None:
        self._state = BRIDGE_LIFE.next(self._state, event)

    # Called by the sides.

    def is_right(self, side: "_Side") -> bool:
        """Whether this is the right side."""
        return side is self._right

    def side_ended(self, transport: Transport) -> None:
        """Handle the end of one side: it sends no more."""
        self.ended_first = self.ended_first or transport
        self._does(BridgeEvent.SIDE_ENDS)
        self._ended.set()
        self.look_if_settled()

    def look_if_settled(self) -> None:
        """Whether a side that ended has all its responses, or will get none because the other has ended too."""
        for side in (self._left, self._right):
            if side.lost and (not side.open or side.other.lost):
                self._settled.set()

    def report(self, report: Report) -> None:
        """Count what would otherwise pass in silence, and inform the observer."""
        self.counts[type(report).__name__] += 1
        if self._observer is not None:
            self._observer(report)


class _Open:
    """A request that waits for its response on the other side."""

    __slots__ = ("id", "new", "written")

    def __init__(self, id: RequestId, written: bytes, new: bytes) -> None:
        self.id = id
        self.written = written
        """The id in the bytes of its sender."""
        self.new = new
        """The id that it has on the other side, as bytes."""


class _Side:
    """One of the two transports: takes what arrives on it and puts it, with other ids, into the other one."""

    other: "_Side"

    def __init__(self, owner: Bridge, transport: Transport) -> None:
        self.transport = transport
        self.lost = False
        self.open: dict[object, _Open] = {}
        """Requests of this side that the other has not answered, by the id that they have there."""
        self._by_own: dict[object, _Open] = {}
        """The same by the id that they have here."""
        self._owner = owner
        self._last_id = FIRST_ID - 1
        self._held = False
        self._over = False

    @property
    def outlives_other(self) -> bool:
        """Whether its requests wait for another client when this one has ended."""
        return self._owner.keep_requests and self._owner.is_right(self)

    # What arrives.

    def block_received(self, block: Frame) -> None:
        """Whole lines. Most blocks hold only notifications, and pass without a look at each line."""
        if self.lost or self._over:
            return
        if isinstance(block, Overlong):
            self._message(decode(block), b"")
        elif self.other.transport.routed or may_hold_id(block):
            for line in bytes(block).split(b"\n"):
                if line and not line.isspace():
                    self._line(line)
        else:
            self.other.transport.out += block
            self.other.transport.flush_soon()
        self._hold_back()

    def _line(self, line: bytes) -> None:
        if not may_hold_id(line):
            self.other.put(line, line if self.other.transport.routed else None)
            return
        message = decode(line)
        try:
            self._message(message, line)
        except UNREADABLE as error:
            wrong = ErrorObject(Code.INVALID_REQUEST, "Invalid request", str(error))
            id = message.id if isinstance(message, Request | Response) else UNSET
            self._malformed(Malformed(wrong, id, line, answerable=isinstance(message, Request)))

    def _message(self, message: Request | Response | Notification | Malformed | Noise, line: bytes) -> None:
        match message:
            case Request():
                self._request(message, line)
            case Response():
                self._response(message, line)
            case Notification():
                self._notification(message, line)
            case Noise():
                self._owner.report(message)
                if not self.transport.noisy:
                    self._refuse(None, ErrorObject(Code.PARSE_ERROR, "Parse error", "not JSON"))
            case Malformed():
                self._malformed(message)

    def _request(self, request: Request, line: bytes) -> None:
        key = id_key(request.id)
        if key in self._by_own:
            # An error under this id would end the first one, which is still open: it keeps its response.
            error = ErrorObject(Code.INVALID_REQUEST, "Invalid request", f"id {request.id!r} is already in use")
            self._owner.report(Rejected(Malformed(error, request.id, bytes(request.params), answerable=False), None))
            return
        if len(self.open) >= MAX_OPEN:
            wrong = f"more than {MAX_OPEN} requests wait for their response"
            self._refuse(request.id, ErrorObject(Code.INTERNAL_ERROR, "Internal error", wrong))
            return
        if self.other.lost:
            if not self.outlives_other:
                self._refuse(request.id, _GONE)
            return
        try:
            spans = list(values_of(line, "id"))
            named = self._request_named_in(line, request.method)
        except _Unknown as error:
            self._refuse(request.id, ErrorObject(Code.INVALID_PARAMS, "Invalid params", str(error)))
            return
        self._last_id += 1
        new = b'"%d"' % self._last_id if isinstance(request.id, str) else b"%d" % self._last_id
        new_key: object = str(self._last_id) if isinstance(request.id, str) else self._last_id
        begin, end = spans[-1]
        opened = _Open(request.id, line[begin:end], new)
        self.open[new_key] = self._by_own[key] = opened
        self.other.put(replaced(line, [*((span, new) for span in spans), *named]), request.params)

    def _response(self, response: Response, line: bytes) -> None:
        spans = list(values_of(line, "id"))
        waiting = self.other.take(response.id)
        if waiting is None:
            if response.id is None and response.error is not None and not self.other.has_open(None):
                self.other.put(line, None)  # about something that could not be read: it ends no request
            else:
                self._owner.report(Stray(response.id, error=response.error))
            return
        self.other.put(replaced(line, [(span, waiting.written) for span in spans]), None, waiting.id)
        self._owner.look_if_settled()

    def _notification(self, notification: Notification, line: bytes) -> None:
        try:
            if notification.method == CANCEL_REQUEST:
                changes = [(span, self._open_for(line, span)) for span in params_values_of(line, "requestId")]
            else:
                changes = self._request_named_in(line, notification.method)
        except _Unknown:
            self._owner.report(Stray(None, late=True))
            return
        self.other.put(replaced(line, changes), notification.params)

    def _open_for(self, line: bytes, span: Span) -> bytes:
        """The id on the other side of a request that this side names by its own id."""
        found = self._by_own.get(key_of_written(line[slice(*span)]))
        if found is None:
            raise _Unknown("it names a request that is not open")
        return found.new

    def _request_named_in(self, line: bytes, method: str) -> list[Change]:
        """The places in params that name a request of the other side, with the id that it has there."""
        member = self._owner.version.request_ids.get(method)
        if member is None:
            return []
        changes: list[Change] = []
        for span in params_values_of(line, member):
            written = line[slice(*span)]
            if written != b"null":
                found = self.other.open.get(key_of_written(written))
                if found is None:
                    raise _Unknown(f"`{member}` names a request that is not open")
                changes.append((span, found.written))
        return changes

    def _malformed(self, message: Malformed) -> None:
        """Handle a message that cannot be read. If it was meant as a response, the request is over; else its sender gets an error."""
        waiting = None
        if not isinstance(message.id, UnsetType) and not message.asks:
            waiting = self.other.take(message.id)
        if waiting is not None:
            self.other.put(_error(waiting.written, message.error), None, waiting.id)
            self._owner.look_if_settled()
            return
        reply = error_frame(message.id, message.error) if message.answerable else None
        self._owner.report(Rejected(message, reply))
        # This reply is not waited for. It is not worth memory for a peer that does not read.
        if reply is not None and self.transport.unsent < OUTPUT_HIGH:
            self.put(reply, None, message.id)

    # What leaves.

    def put(self, frame: bytes, params: "Line | Raw | None", answers: RequestId | UnsetType = UNSET) -> None:
        """Send a frame to this side. `params` hold its session; `answers` is the id of the request that a response is for."""
        transport = self.transport
        if transport.routed:
            transport.route(frame, session_in(params), answers)
            return
        transport.out += frame
        transport.out += b"\n"
        transport.flush_soon()

    def take(self, id: RequestId) -> _Open | None:
        """The request of this side that has this id on the other: it is answered now."""
        waiting = self.open.pop(id_key(id), None)
        if waiting is not None:
            del self._by_own[id_key(waiting.id)]
        return waiting

    def has_open(self, id: RequestId) -> bool:
        """Whether a request that has this id here waits for its response."""
        return id_key(id) in self._by_own

    def forget(self) -> list[_Open]:
        """Remove and return all open requests of this side: the other will not answer them."""
        waiting = list(self.open.values())
        self.open.clear()
        self._by_own.clear()
        return waiting

    def _refuse(self, id: RequestId, error: ErrorObject) -> None:
        self.put(error_frame(id, error), None, id)

    # Back-pressure.

    def _hold_back(self) -> None:
        """Stop reading while the other side is slow, or while this side sends what we refuse and does not read that."""
        if self._held or self.lost:
            return
        if self.other.transport.unsent >= OUTPUT_HIGH and not self.other.transport.deaf:
            slow = self.other.transport
        elif self.transport.unsent >= ANSWERS_LIMIT and not self.transport.deaf:
            slow = self.transport
        else:
            return
        self._held = True
        self.transport.pause()
        slow.when_drained(self._go_on)

    def _go_on(self) -> None:
        self._held = False
        self._hold_back()
        if not self._held:
            self.transport.resume()

    # The end.

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Nothing more arrives here: the other side gets an error for each of its requests that were to be answered here."""
        self.lost = True
        for waiting in self.other.forget():
            if not self.other.outlives_other:
                self.other.put(_error(waiting.written, _GONE), None, waiting.id)
        self._owner.side_ended(self.transport)

    def end(self) -> None:
        """Take nothing more. The requests of this side that are still open are cancelled: the other is not to work for nothing."""
        self._over = True
        for waiting in self.forget():
            if not self.other.transport.deaf and not self._owner.keep_requests:
                cancel = b'{"jsonrpc":"2.0","method":"%b","params":{"requestId":%b}}'
                self.other.put(cancel % (CANCEL_REQUEST.encode(), waiting.new), None)
            if not self.transport.deaf and not self.outlives_other:
                self.put(_error(waiting.written, _GONE), None, waiting.id)


_GONE: Final = ErrorObject(
    Code.INTERNAL_ERROR, "Internal error", "the connection to the peer behind the bridge is closed"
)


def _error(written: bytes, error: ErrorObject) -> bytes:
    """A response with an error, under an id in the bytes of its sender."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (written, msgspec.json.encode(error))


class _Unknown(Exception):
    """Params that name a request which is not open."""
