"""A conversation: requests and answers, notifications in order, cancellation, back-pressure, observers.

Rule 1: notifications are handled in the order of the wire, and before the answer that follows them.
Rule 2: every question of the peer gets exactly one answer.
Rule 3: whoever waits is told: when the conversation ends every open question fails with the reason.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Self, TypeVar

from msgspec import UNSET, Raw

from antiphon.connection.answers import Answers
from antiphon.connection.inbox import INBOX_LIMIT, Inbox
from antiphon.connection.outbox import Direction, Outbox, Tap
from antiphon.connection.reports import Mended, Observer, Unheard
from antiphon.connection.router import Router
from antiphon.connection.stream import CANCEL_GRACE, Backlog, Stream
from antiphon.connection.updates import Updates, Voice
from antiphon.errors import (
    AcpError,
    ConnectionClosed,
    LocalProtocolError,
    RequestError,
    RequestRefused,
    RequestTimeout,
    fresh,
)
from antiphon.protocol.base import encode_into
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.timeouts import Timeout, timeout_of
from antiphon.protocol.v1.methods import CANCEL, PROMPT, SESSION_UPDATE
from antiphon.rpc.envelope import Frame, Line, Noise, Notification, Overlong, RequestId, head_of_notification
from antiphon.rpc.peer import FIRST_ID, Answered, Asked, Event, Peer, Refused, Rejected, Stray, Told, Withdrawn
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import lines_of

__all__ = ["EOF_GRACE", "Connection", "Direction", "Tap"]

P = TypeVar("P")
R = TypeVar("R")

EOF_GRACE: Final = 0.5
"""Seconds that handlers may go on after the peer's last word, so that `printf … | agent` gets its answers."""


def _head_of(notice: Notice[Any]) -> bytes:
    if not isinstance(notice, Notice):
        raise LocalProtocolError(f"`{getattr(notice, 'name', notice)}` is not a notification: use request")
    notice.head = head_of_notification(notice.name)
    return notice.head


class Connection:
    """One end of a conversation over a transport. `async with` it: it starts reading on entry and closes on exit.

    `tolerant`: lines that are not JSON are skipped as somebody's log, not answered with an error. That is what a client wants of a
    program that it started, so it is the default there and only there. `timeout`: the seconds for every response that has a timeout
    by default (`timeouts`), None for no timeout at all.
    """

    def __init__(
        self,
        transport: Transport,
        router: Router | None = None,
        *,
        tolerant: bool | None = None,
        observer: Observer | None = None,
        inbox_limit: int = INBOX_LIMIT,
        timeout: Timeout = UNSET,
    ) -> None:
        self.router = router or Router()
        self.inbox = Inbox(transport, inbox_limit)
        self._timeout = timeout
        self._transport = transport
        self._wire = Outbox(transport, self.inbox, observer)
        self._peer = Peer(tolerant=transport.noisy if tolerant is None else tolerant, encode_into=encode_into)
        self._answers = Answers(self._peer, self._wire, self.router, self.inbox)
        self._updates = Updates(self.router, self.inbox, self._wire)
        self._pending: dict[RequestId, asyncio.Future[Raw]] = {}
        self._backlogs: dict[RequestId, Backlog] = {}
        self._closing: asyncio.Task[None] | None = None
        self._gone: ConnectionClosed | None = None
        self._over = asyncio.Event()

    # Life.

    def start(self) -> None:
        """Begin to read. `async with` does it."""
        self._wire.open()
        self._transport.attach(self)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the conversation: handlers are cancelled, the transport is closed with all that belongs to it."""
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
        """What it runs over: a `ProcessTransport` has the child's `stderr`, `status` and `pid`."""
        return self._transport

    # Observers.

    def tap(self, see: Tap) -> Callable[[], None]:
        """Let `see` have every frame from now on; the returned function ends it."""
        return self._wire.tap(see)

    @property
    def counts(self) -> Counter[str]:
        """How often each kind of report was made."""
        return self._wire.counts

    @property
    def noise(self) -> deque[bytes]:
        """The last lines that were no protocol."""
        return self._wire.noise

    # What we say.

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

    def stream(
        self, call: Call[P, R], params: P, session_id: str | None = None, *, timeout: Timeout = UNSET
    ) -> Stream[R]:
        """Send a request and iterate over the session's updates until its response. They wait there, not in the router's handler.

        The session is the one in `params` unless given. Updates go to the oldest turn of a session that is still open.
        `timeout` is that of `request`; a prompt has none by default.
        """
        session = session_id or getattr(params, "session_id", None)
        if not isinstance(session, str):
            raise LocalProtocolError(f"`{call.name}` names no session: give `session_id`")
        id, answer = self._ask(call, params)
        outcome = self._transport.loop.create_task(self._outcome(call, id, answer), name=call.name)
        outcome.add_done_callback(partial(self._turn_over, id, self._time(id, call, timeout)))
        backlog = self._backlogs[id] = Backlog(self.inbox, session, partial(self._call_off, call, session, outcome))
        return Stream(backlog, outcome)

    def _turn_over(self, id: int, timer: asyncio.TimerHandle | None, outcome: "asyncio.Task[Any]") -> None:
        if timer is not None:
            timer.cancel()
        if outcome.cancelled():
            self._withdraw(id)  # here too: a task cancelled before its first step does not get to it
        else:
            outcome.exception()  # seen, even if nobody reads on

    def _call_off(self, call: Call[Any, Any], session_id: str, outcome: "asyncio.Task[Any]") -> None:
        """A turn that nobody reads on: cancel it as ACP does, so that it ends with an answer; withdraw what has no such way."""
        if self._gone is not None or call.name != PROMPT.name:
            outcome.cancel()
            return
        self._post_cancel(session_id)
        self._transport.loop.call_later(CANCEL_GRACE, outcome.cancel)

    def _post_cancel(self, session_id: str) -> None:
        from antiphon.protocol.v1.session import Cancel

        self.post(CANCEL, Cancel(session_id))

    def notify(self, notice: Notice[P], params: P) -> Awaitable[None]:
        """Tell, and wait while the peer is slow: memory stays bounded and the loop turns. Await it.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        return self._wire.put(notice.head or _head_of(notice), b"}\n", params)

    def voice(self, session_id: str) -> Voice:
        """For an agent that has much to say in one session: the same as `notify`, at half the price."""
        return Voice(self._wire, session_id)

    def post(self, notice: Notice[P], params: P) -> None:
        """Tell without waiting, for places that cannot: what the peer does not take yet is kept in memory.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        _ = self.notify(notice, params)

    def _ask(self, call: Call[P, Any], params: P) -> "tuple[int, asyncio.Future[Raw]]":
        if self._gone is not None:
            raise fresh(self._gone)
        if self._wire.lost is not None:
            raise fresh(self._wire.lost)
        if not isinstance(call, Call):
            raise LocalProtocolError(f"`{getattr(call, 'name', call)}` is not a request: use notify")
        id, frame = self._peer.ask(call.name, params)
        answer: asyncio.Future[Raw] = self._transport.loop.create_future()
        self._pending[id] = answer
        self._wire.send(frame)
        if id == FIRST_ID:
            self._transport.loop.call_soon(self._updates.expect)  # while the peer makes up its first answer
        return id, answer

    def _time(self, id: int, call: Call[Any, Any], given: Timeout) -> asyncio.TimerHandle | None:
        timeout = timeout_of(call.name, given, self._timeout)
        return None if timeout is None else self._transport.loop.call_later(timeout, self._expire, id, call, timeout)

    def _expire(self, id: int, call: Call[Any, Any], timeout: float) -> None:
        answer, backlog = self._pending.get(id), self._backlogs.get(id)
        if answer is None or answer.done():
            return
        if backlog is not None and call.name == PROMPT.name and self._gone is None:
            self._post_cancel(backlog.session_id)  # many agents know no other way to end a turn
        self._withdraw(id)
        answer.set_exception(RequestTimeout(call.name, timeout))

    async def _outcome(self, call: Call[P, R], id: int, answer: "asyncio.Future[Raw]") -> R:
        try:
            raw = await answer
        except asyncio.CancelledError:
            self._withdraw(id)
            raise
        reading = call.read_result(raw)
        if reading.rules:
            self._wire.report(Mended(call.name, reading.rules))
        return reading.value

    def _withdraw(self, id: int) -> None:
        self._pending.pop(id, None)
        if (backlog := self._backlogs.pop(id, None)) is not None:
            backlog.end()
        if self._gone is None and (frame := self._peer.withdraw(id)) is not None:
            self._wire.send(frame)

    # What they say.

    def block_received(self, block: Frame) -> None:
        """Lines from the transport. Updates take the fast road, in blocks if they can; everything else the general one."""
        if isinstance(block, Overlong):
            if self._wire.taps:
                self._wire.show("in", block.head)
            self._event(self._peer.receive(block), 0)
        elif self._wire.taps:
            for line in lines_of(block):
                self._wire.show("in", line)
                self._line(line)
        elif block.find(b"\n") + 1 >= len(block):  # one line, not copied: it may be a file of 50 MiB
            self._line(block)
        else:
            self._updates.block(block, self._frame)

    def _line(self, line: Line) -> None:
        if not (self._updates.looks_like_one(line) and self._updates.line(line)):
            self._frame(line)

    def _frame(self, frame: Line) -> None:
        if frame.isspace():
            return
        try:
            self._event(self._peer.receive(frame), len(frame))
        except Exception as error:  # a fault of ours in one line must not cost its neighbours
            self._wire.handler_failed("(a line)", error)

    def _event(self, event: Event, size: int) -> None:
        match event:
            case Asked(request):
                self._answers.begin(request)
            case Answered(id, result):
                self._settle(id, result)
            case Told(notification):
                self._told(notification, size)
            case Refused(id, error):
                self._settle(id, RequestRefused(error.code, error.message, error.data))
            case Withdrawn(id):
                self._answers.withdraw(id)
            case Rejected(_, reply):
                self._wire.report(event)
                # Nobody waits for this reply. To a peer that does not even read it is not worth our memory.
                if reply is not None and self._wire.lost is None and self._transport.unsent < OUTPUT_HIGH:
                    self._wire.send(reply)
            case Noise() | Stray():
                self._wire.report(event)

    def _settle(self, id: RequestId, outcome: Raw | AcpError) -> None:
        backlog = self._backlogs.pop(id, None)
        if backlog is not None:
            backlog.end()  # now, in wire order: what follows the answer is not of this turn
        answer = self._pending.pop(id, None)
        if answer is None or answer.done():
            return
        if isinstance(outcome, AcpError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    def _told(self, notification: Notification, size: int) -> None:
        method = notification.method
        try:
            if method == SESSION_UPDATE.name and self._updates.wanted:
                reading = SESSION_UPDATE.read_params(notification.params)
                rules: tuple[str, ...] | None = reading.rules
                self._updates.one(reading.value, size)
            else:
                rules = self.router.notice(method, notification.params)
        except RequestError as error:
            self._wire.report(Unheard(notification, str(error)))
        except Exception as error:
            self._wire.handler_failed(method, error)
        else:
            if rules is None:
                self._wire.report(Unheard(notification, "no handler"))
            elif rules:
                self._wire.report(Mended(method, rules))

    # The end.

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Nothing more will arrive (the transport says so). What is being answered may still be, for a moment."""
        if self._gone is not None:
            return
        if self._closing is not None:  # our own doing, whatever the transport saw of it
            error = ConnectionClosed("this connection was closed")
        self._gone = error
        self._wire.over = True
        self._over.set()
        for id in tuple(self._pending):
            self._settle(id, fresh(error))
        if self._answers.busy:
            self._transport.loop.call_later(EOF_GRACE, self._give_up, error)
        else:
            self._give_up(error)

    def _give_up(self, error: ConnectionClosed) -> None:
        self._wire.lose(error)
        self._answers.cancel_all()
