"""A conversation: requests and answers, notifications in order, cancellation, back-pressure, observers.

Rule 1: notifications are handled in the order of the wire, and before the answer that follows them.
Rule 2: every question of the peer gets exactly one answer.
Rule 3: whoever waits is told: when the conversation ends every open question fails with the reason.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self, TypeVar

from msgspec import Raw

from antiphon.connection.answers import Answers
from antiphon.connection.inbox import INBOX_LIMIT, Inbox
from antiphon.connection.reports import Mended, Observer, Unheard
from antiphon.connection.router import Router
from antiphon.connection.stream import Stream
from antiphon.connection.updates import Updates
from antiphon.connection.voice import Voice
from antiphon.connection.wire import Direction, Tap, Wire
from antiphon.errors import AcpError, ConnectionClosed, RequestError
from antiphon.protocol.base import encode_into
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1.methods import SESSION_UPDATE
from antiphon.rpc.envelope import Frame, Line, Noise, Notification, Overlong, RequestId, head_of_notification
from antiphon.rpc.peer import FIRST_ID, Answered, Asked, Event, Peer, Refused, Rejected, Stray, Told, Withdrawn
from antiphon.transports.base import Transport
from antiphon.transports.framing import lines_of

__all__ = ["EOF_GRACE", "Connection", "Direction", "Tap"]

P = TypeVar("P")
R = TypeVar("R")

EOF_GRACE: Final = 0.5
"""Seconds that handlers may go on after the peer's last word, so that `printf … | agent` gets its answers."""


def _head_of(notice: Notice[Any]) -> bytes:
    notice.head = head_of_notification(notice.name)
    return notice.head


class Connection:
    """One end of a conversation over a transport. `async with` it: it starts reading on entry and closes on exit.

    `tolerant`: lines that are not JSON are skipped as somebody's log, not answered with an error (for clients).
    """

    def __init__(
        self,
        transport: Transport,
        router: Router | None = None,
        *,
        tolerant: bool = False,
        observer: Observer | None = None,
        inbox_limit: int = INBOX_LIMIT,
    ) -> None:
        self.router = router or Router()
        self.inbox = Inbox(transport, inbox_limit)
        self._transport = transport
        self._wire = Wire(transport, observer)
        self._peer = Peer(tolerant=tolerant, encode_into=encode_into)
        self._answers = Answers(self._peer, self._wire, self.router, self.inbox)
        self._updates = Updates(self.router, self.inbox, self._wire)
        self._pending: dict[RequestId, asyncio.Future[Raw]] = {}
        self._streams: dict[RequestId, Stream[Any]] = {}
        self._gone: ConnectionClosed | None = None
        self._over = asyncio.Event()

    # Life.

    def start(self) -> None:
        """Begin to read. `async with` does it."""
        self._transport.attach(self)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the conversation: handlers are cancelled, the transport is closed with all that belongs to it."""
        await self._answers.end()
        await self._transport.close()
        self.connection_lost(ConnectionClosed("the connection is closed"))

    async def wait_closed(self) -> None:
        """Until the peer is gone and the handlers have ended."""
        await self._over.wait()
        await self._answers.wait_idle()

    @property
    def closed(self) -> bool:
        """Whether the peer is gone."""
        return self._gone is not None

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

    async def request(self, call: Call[P, R], params: P) -> R:
        """Ask, and wait for the answer. Cancelling the wait withdraws the question.

        Raises:
            RequestError: the peer refused.
            ConnectionClosed: it is gone.
            RemoteProtocolError: its answer makes no sense.
        """
        id, answer = self._ask(call.name, params)
        self.inbox.wait_begins()
        try:
            return await self._outcome(call, id, answer)
        finally:
            self.inbox.wait_ends()

    def stream(self, call: Call[P, R], params: P, session_id: str) -> Stream[R]:
        """Ask, and iterate over the session's updates until the answer. Updates wait there, not in the router's handler."""
        id, answer = self._ask(call.name, params)
        outcome = self._transport.loop.create_task(self._outcome(call, id, answer), name=call.name)
        stream = self._streams[id] = Stream(self.inbox, session_id, outcome)
        return stream

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

    def _ask(self, method: str, params: object) -> "tuple[int, asyncio.Future[Raw]]":
        if self._gone is not None:
            raise self._gone
        id, frame = self._peer.ask(method, params)
        answer: asyncio.Future[Raw] = self._transport.loop.create_future()
        self._pending[id] = answer
        self._wire.send(frame)
        if id == FIRST_ID:
            self._transport.loop.call_soon(self._updates.expect)  # while the peer makes up its first answer
        return id, answer

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
        self._streams.pop(id, None)
        if self._gone is None and (frame := self._peer.withdraw(id)) is not None:
            self._wire.send(frame)

    # What they say.

    def block_received(self, block: Frame) -> None:
        """Lines from the transport. Updates take the fast road, in blocks if they can; everything else the general one."""
        if isinstance(block, Overlong):
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
        if not frame.isspace():
            self._event(self._peer.receive(frame), len(frame))

    def _event(self, event: Event, size: int) -> None:
        match event:
            case Asked(request):
                self._answers.begin(request)
            case Answered(id, result):
                self._settle(id, result)
            case Told(notification):
                self._told(notification, size)
            case Refused(id, error):
                self._settle(id, RequestError(error.code, error.message, error.data))
            case Withdrawn(id):
                self._answers.withdraw(id)
            case Rejected(_, reply):
                self._wire.report(event)
                if reply is not None and self._wire.lost is None:
                    self._wire.send(reply)
            case Noise() | Stray():
                self._wire.report(event)

    def _settle(self, id: RequestId, outcome: Raw | AcpError) -> None:
        stream = self._streams.pop(id, None)
        if stream is not None:
            stream.end()  # now, in wire order: what follows the answer is not of this turn
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
            if method == SESSION_UPDATE.name:
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
        self._gone = error
        self._over.set()
        for id in tuple(self._pending):
            self._settle(id, error)
        if self._answers.busy:
            self._transport.loop.call_later(EOF_GRACE, self._give_up, error)
        else:
            self._give_up(error)

    def _give_up(self, error: ConnectionClosed) -> None:
        self._wire.lose(error)
        self._answers.cancel_all()
