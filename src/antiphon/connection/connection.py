"""One end of a connection: requests and responses, notifications in order, cancellation, back-pressure, observers.

It knows no version of the protocol: the `Version` that it is given knows which notification carries updates, and everything else
by the methods themselves.

Rule 1: notifications are handled in the order of the wire, and before the response that follows them.
Rule 2: every request of the peer gets exactly one response.
Rule 3: when the connection ends every request that waits for a response fails with the reason.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Any, Final, Self, TypeVar, overload

from msgspec import UNSET, Raw

from antiphon.connection.answers import Answers
from antiphon.connection.inbox import INBOX_LIMIT, Inbox
from antiphon.connection.outbox import Direction, Outbox, RoutedOutbox, Tap
from antiphon.connection.reports import LenientlyRead, Observer, Unhandled
from antiphon.connection.router import Router
from antiphon.connection.stream import CANCEL_GRACE, AnyBacklog, Backlog, Stream
from antiphon.connection.updates import SessionSender, Updates
from antiphon.errors import (
    AcpError,
    ConnectionClosed,
    LocalProtocolError,
    RequestError,
    RequestRefused,
    RequestTimeout,
    fresh,
)
from antiphon.life import Life
from antiphon.protocol.base import encode_into
from antiphon.protocol.methods import AnyCall, AnyNotice, Call, Notice, StreamCall
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.version import SessionUpdates, Version
from antiphon.rpc.envelope import Frame, Noise, Notification, Overlong, RequestId, head_of_notification
from antiphon.rpc.peer import (
    FIRST_ID,
    ErrorReceived,
    NotificationReceived,
    Peer,
    Rejected,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Stray,
)
from antiphon.transports.base import OUTPUT_HIGH, Transport

__all__ = [
    "CONNECTION_LIFE", "EOF_GRACE", "Connection", "ConnectionEvent", "ConnectionState", "Direction", "Tap",
]  # fmt: skip

P = TypeVar("P")
R = TypeVar("R")
U = TypeVar("U", bound=SessionUpdates)

EOF_GRACE: Final = 0.5
"""Seconds that handlers may go on after the peer's last frame, so that `printf … | agent` gets its responses."""


class ConnectionState(Enum):
    """The state of a connection in its life."""

    NEW = "new"
    OPEN = "open"
    PEER_GONE = "without a peer"
    """The peer has sent its last frame. What it asked for may still be answered, for `EOF_GRACE`."""
    LOST = "lost"
    """Nothing can be sent any more; the transport is still to be closed."""
    CLOSING = "closing"
    CLOSED = "closed"


class ConnectionEvent(Enum):
    """What can happen to a connection."""

    START = "start"
    PEER_ENDS = "lose its peer"
    GIVE_UP = "give up"
    CLOSE = "close"
    FINISH = "finish"


_S, _E = ConnectionState, ConnectionEvent
CONNECTION_LIFE: Final = Life(
    "connection",
    _S.NEW,
    {
        _S.NEW: {_E.START: _S.OPEN, _E.PEER_ENDS: _S.PEER_GONE, _E.CLOSE: _S.CLOSING},
        _S.OPEN: {_E.PEER_ENDS: _S.PEER_GONE, _E.CLOSE: _S.CLOSING},
        _S.PEER_GONE: {_E.GIVE_UP: _S.LOST, _E.CLOSE: _S.CLOSING},
        _S.LOST: {_E.CLOSE: _S.CLOSING},
        _S.CLOSING: {_E.PEER_ENDS: _S.CLOSING, _E.GIVE_UP: _S.CLOSING, _E.CLOSE: _S.CLOSING, _E.FINISH: _S.CLOSED},
        _S.CLOSED: {_E.GIVE_UP: _S.CLOSED, _E.CLOSE: _S.CLOSED},
    },
    "While it closes, handlers end, the transport sends what is left, and a child process goes down its ladder.",
)


def _head_of(notice: AnyNotice) -> bytes:
    if not isinstance(notice, Notice):
        raise LocalProtocolError(f"`{getattr(notice, 'name', notice)}` is not a notification: use request")
    notice.head = head_of_notification(notice.name)
    return notice.head


class Connection:
    """One end of a connection over a transport. `async with` it: it starts reading on entry and closes on exit.

    `version`: the version of the protocol (`antiphon.protocol.v1.version.V1`). `tolerant`: lines that are not JSON are
    skipped as log lines, not answered with an error. That is what a client wants of a program that it started, so it is the default
    there and only there. `timeout`: the seconds for every response that has a timeout
    by default (`timeouts`), None for no timeout at all.
    """

    def __init__(
        self,
        transport: Transport,
        router: Router | None = None,
        *,
        version: Version,
        tolerant: bool | None = None,
        observer: Observer | None = None,
        inbox_limit: int = INBOX_LIMIT,
        timeout: Timeout = UNSET,
    ) -> None:
        self.router = router or Router()
        self.inbox = Inbox(transport, inbox_limit)
        self._timeout = timeout
        self._transport = transport
        self.version = version
        self._state = CONNECTION_LIFE.start
        self._outbox = (RoutedOutbox if transport.routed else Outbox)(transport, self.inbox, observer)
        self._peer = Peer(tolerant=transport.noisy if tolerant is None else tolerant, encode_into=encode_into)
        self._answers = Answers(self._peer, self._outbox, self.router, self.inbox)
        self._updates = Updates(version, self.router, self.inbox, self._outbox, self._frame)
        self.block_received = self._updates.block_received
        """Takes lines from the transport."""
        self._pending: dict[RequestId, asyncio.Future[Raw]] = {}
        self._backlogs: dict[RequestId, AnyBacklog] = {}
        self._closing: asyncio.Task[None] | None = None
        self._gone: ConnectionClosed | None = None
        self._over = asyncio.Event()

    # Life.

    def start(self) -> None:
        """Begin to read. `async with` does it."""
        self._does(ConnectionEvent.START)
        self._outbox.open()
        self._transport.attach(self)

    def _does(self, event: ConnectionEvent) -> None:
        self._state = CONNECTION_LIFE.next(self._state, event)

    @property
    def state(self) -> ConnectionState:
        """The state of the connection in its life."""
        return self._state

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection: handlers are cancelled, the transport is closed with all that belongs to it."""
        self._does(ConnectionEvent.CLOSE)
        if self._closing is None:
            # A task of its own: if our caller is cancelled everything still comes to its end.
            self._closing = self._transport.loop.create_task(self._close(), name="close a connection")
        if asyncio.current_task() not in self._answers.tasks:
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._answers.end()
        self.inbox.open_wide()
        await self._transport.close()
        self.connection_lost(ConnectionClosed("this connection was closed"))
        await self._answers.end()
        self._does(ConnectionEvent.FINISH)

    async def wait_closed(self) -> None:
        """Until the peer is gone and the handlers have ended."""
        await self._over.wait()
        await self._answers.wait_idle()

    @property
    def closed(self) -> bool:
        """Whether the peer is gone."""
        return self._gone is not None

    @property
    def transport(self) -> Transport:
        """The transport that moves the bytes: a `ProcessTransport` has the child's `stderr`, `status` and `pid`."""
        return self._transport.origin

    def settle(self) -> None:
        """Send and receive without what stood below for the handshake alone."""
        if not self.closed and self._closing is None:
            self._transport = self.inbox.transport = self._outbox.transport = self._transport.settled()

    @property
    def translated(self) -> bool:
        """Whether the peer speaks another version of the protocol than this end, and a translator is between them."""
        return bool(getattr(self._transport, "translates", False))

    # Observers.

    def tap(self, see: Tap) -> Callable[[], None]:
        """Let `see` have every frame from now on; the returned function ends it."""
        return self._outbox.tap(see)

    @property
    def counts(self) -> Counter[str]:
        """How often each kind of report was made."""
        return self._outbox.counts

    @property
    def noise(self) -> deque[bytes]:
        """The last lines that were not messages."""
        return self._outbox.noise

    # What we send.

    async def request(self, call: Call[P, R], params: P, *, timeout: Timeout = UNSET) -> R:
        """Send a request and wait for its response. Cancelling the wait cancels the request.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `timeouts` has for the method.

        Raises:
            RequestError: the peer refused.
            RequestTimeout: there was no response in time. The request is cancelled, and the connection can still be used.
            ConnectionClosed: the peer is gone.
            RemoteProtocolError: its response makes no sense.
        """
        id, answer = self._ask(call, params)
        timer = self._time(id, call, timeout)
        self.inbox.wait_begins()
        try:
            return await self._outcome(call, id, answer)
        finally:
            self.inbox.wait_ends()
            if timer is not None:
                timer.cancel()

    @overload
    def stream(
        self, call: StreamCall[P, R, U], params: P, session_id: str | None = None, *, timeout: Timeout = UNSET
    ) -> Stream[U, R]: ...

    @overload
    def stream(
        self, call: Call[P, R], params: P, session_id: str | None = None, *, timeout: Timeout = UNSET
    ) -> Stream[SessionUpdates, R]: ...

    def stream(
        self, call: Call[P, R], params: P, session_id: str | None = None, *, timeout: Timeout = UNSET
    ) -> Stream[Any, R]:
        """Send a request and iterate over the session's updates until its response. They wait there, not in the router's handler.

        The session is the one in `params` unless given. Updates go to the oldest turn of a session that is still open.
        `timeout` is that of `request`; a prompt has none by default.
        """
        session = session_id or getattr(params, "session_id", None)
        if not isinstance(session, str):
            raise LocalProtocolError(f"`{call.name}` names no session: give `session_id`")
        return Stream(*self.begin(call, params, session, timeout=timeout))

    def begin(
        self, call: Call[P, R], params: P, session_id: str, *, timeout: Timeout = UNSET
    ) -> "tuple[AnyBacklog, asyncio.Task[R]]":
        """Send a request as `stream` does. Returns where the session's updates wait until its response, and the response."""
        id, answer = self._ask(call, params)
        outcome = self._transport.loop.create_task(self._outcome(call, id, answer), name=call.name)
        outcome.add_done_callback(partial(self._turn_over, id, self._time(id, call, timeout)))
        backlog: AnyBacklog = Backlog(self.inbox, session_id, partial(self._cancel_turn, call, session_id, outcome))
        self._backlogs[id] = backlog
        return backlog, outcome

    def _turn_over(self, id: int, timer: asyncio.TimerHandle | None, outcome: "asyncio.Task[object]") -> None:
        if timer is not None:
            timer.cancel()
        if outcome.cancelled():
            self._cancel_request(id)  # here too: a task cancelled before its first step does not get to it
        else:
            outcome.exception()  # seen, even if the stream is not read on

    def _cancel_turn(self, call: AnyCall, session_id: str, outcome: "asyncio.Task[object]") -> None:
        """Cancel a turn whose updates are no longer read: as its protocol does, so that it ends with a response; else by its request."""
        if self._gone is not None or not self._post_cancel(call, session_id):
            outcome.cancel()
            return
        self._transport.loop.call_later(CANCEL_GRACE, outcome.cancel)

    def _post_cancel(self, call: AnyCall, session_id: str) -> bool:
        """Send the notification that ends this request early, if it has one."""
        if not isinstance(call, StreamCall) or call.cancel is None:
            return False
        self.post(call.cancel, call.cancel.params(session_id))
        return True

    def notify(self, notice: Notice[P], params: P) -> Awaitable[None]:
        """Send a notification, and wait while the peer is slow: memory stays bounded and the loop turns. Await it.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        return self._outbox.put(notice.head or _head_of(notice), b"}\n", params)

    def sender(self, session_id: str) -> SessionSender:
        """A sender of updates for one session: the same as `notify`, at half the price."""
        return SessionSender(self.version, self._outbox, session_id)

    def post(self, notice: Notice[P], params: P) -> None:
        """Send a notification without waiting, for places that cannot: what the peer does not take yet is kept in memory.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        _ = self.notify(notice, params)

    def _ask(self, call: Call[P, R], params: P) -> "tuple[int, asyncio.Future[Raw]]":
        if self._gone is not None:
            raise fresh(self._gone)
        if self._outbox.lost is not None:
            raise fresh(self._outbox.lost)
        if not isinstance(call, Call):
            raise LocalProtocolError(f"`{getattr(call, 'name', call)}` is not a request: use notify")
        id, frame = self._peer.new_request(call.name, params)
        answer: asyncio.Future[Raw] = self._transport.loop.create_future()
        self._pending[id] = answer
        self._outbox.send(frame, params)
        if id == FIRST_ID:
            self._transport.loop.call_soon(self._updates.expect)  # while the peer works on its first response
        return id, answer

    def _time(self, id: int, call: AnyCall, given: Timeout) -> asyncio.TimerHandle | None:
        timeout = call.timeout_for(given, self._timeout)
        return None if timeout is None else self._transport.loop.call_later(timeout, self._expire, id, call, timeout)

    def _expire(self, id: int, call: AnyCall, timeout: float) -> None:
        answer, backlog = self._pending.get(id), self._backlogs.get(id)
        if answer is None or answer.done():
            return
        if backlog is not None and self._gone is None:
            self._post_cancel(call, backlog.session_id)  # many agents know no other way to end a turn
        self._cancel_request(id)
        answer.set_exception(RequestTimeout(call.name, timeout))

    async def _outcome(self, call: Call[P, R], id: int, answer: "asyncio.Future[Raw]") -> R:
        try:
            raw = await answer
        except asyncio.CancelledError:
            self._cancel_request(id)
            raise
        reading = call.read_result(raw)
        if reading.rules:
            self._outbox.report(LenientlyRead(call.name, reading.rules))
        return reading.value

    def _cancel_request(self, id: int) -> None:
        self._pending.pop(id, None)
        if (backlog := self._backlogs.pop(id, None)) is not None:
            backlog.end()
        if self._gone is None and (frame := self._peer.cancel(id)) is not None:
            self._outbox.send(frame)

    # What the peer sends.

    def _frame(self, frame: Frame) -> None:
        """Handle a frame that is not a plain update."""
        if not isinstance(frame, Overlong) and frame.isspace():
            return
        try:
            match self._peer.receive(frame):
                case RequestReceived(request):
                    self._answers.begin(request)
                case ResultReceived(id, result):
                    self._settle(id, result)
                case NotificationReceived(notification):
                    self._notified(notification, len(notification.params))
                case ErrorReceived(id, error):
                    self._settle(id, RequestRefused(error.code, error.message, error.data))
                case RequestCancelled(id):
                    self._answers.cancel(id)
                case Rejected() as rejected:
                    self._rejected(rejected)
                case Noise() | Stray() as other:
                    self._outbox.report(other)
        except Exception as bug:  # of ours, in one line: the lines beside it must not be lost
            self._outbox.handler_failed("(a line)", bug)

    def _rejected(self, rejected: Rejected) -> None:
        reply = rejected.reply
        self._outbox.report(rejected)
        # This reply is not waited for. It is not worth memory for a peer that does not read.
        if reply is not None and self._outbox.lost is None and self._transport.unsent < OUTPUT_HIGH:
            self._outbox.send(reply)

    def _settle(self, id: RequestId, outcome: Raw | AcpError) -> None:
        backlog = self._backlogs.pop(id, None)
        if backlog is not None:
            backlog.end()  # now, in wire order: what follows the response is not of this turn
        answer = self._pending.pop(id, None)
        if answer is None or answer.done():
            return
        if isinstance(outcome, AcpError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    def _notified(self, notification: Notification, size: int) -> None:
        method = notification.method
        try:
            if method == self.version.update.name and self._updates.wanted:
                reading = self.version.update.read_params(notification.params)
                rules: tuple[str, ...] | None = reading.rules
                self._updates.one(reading.value, size)
            else:
                rules = self.router.notice(method, notification.params)
        except RequestError as error:
            self._outbox.report(Unhandled(notification, str(error)))
        except Exception as error:
            self._outbox.handler_failed(method, error)
        else:
            if rules is None:
                self._outbox.report(Unhandled(notification, "no handler"))
            elif rules:
                self._outbox.report(LenientlyRead(method, rules))

    # The end.

    def connection_lost(self, error: ConnectionClosed) -> None:
        """The transport reports that nothing more will arrive. Handlers that still run may answer for a moment."""
        if self._gone is not None:
            return
        self._updates.deliver_held()
        if self._state is ConnectionState.CLOSING:  # we closed it, whatever error the transport has
            error = ConnectionClosed("this connection was closed")
        self._gone = error
        self._does(ConnectionEvent.PEER_ENDS)
        self._outbox.over = True
        self._over.set()
        for id in tuple(self._pending):
            self._settle(id, fresh(error))
        if self._answers.busy:
            self._transport.loop.call_later(EOF_GRACE, self._give_up, error)
        else:
            self._give_up(error)

    def _give_up(self, error: ConnectionClosed) -> None:
        self._does(ConnectionEvent.GIVE_UP)
        self._outbox.lose(error)
        self._answers.cancel_all()
