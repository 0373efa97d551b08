"""A conversation: requests and answers, notifications in order, cancellation, back-pressure, observers.

Rule 1: notifications are handled in the order of the wire, and before the answer that follows them.
Rule 2: every question of the peer gets exactly one answer; exceptions become wire errors in `_to_wire` and nowhere else.
Rule 3: whoever waits is told: when the conversation ends every open question fails with the reason.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from types import CoroutineType, TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from antiphon.connection.inbox import INBOX_LIMIT, Inbox
from antiphon.connection.reports import HandlerFailed, Mended, Observer, Report, Unheard
from antiphon.connection.router import Router
from antiphon.connection.stream import Stream
from antiphon.connection.tasks import start_task
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.protocol.base import BAD_INPUT, decoder, encode, encode_into
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1.session import SessionUpdate
from antiphon.rpc.envelope import ErrorObject, Frame, Noise, Notification, Overlong, Request, RequestId, head_of_notification
from antiphon.rpc.peer import CANCELLED, Answered, Asked, Event, Peer, Refused, Rejected, Stray, Told, Withdrawn
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import lines_of

__all__ = ["Connection", "Direction", "Tap"]

P = TypeVar("P")
R = TypeVar("R")

Direction = Literal["in", "out"]
Tap = Callable[[Direction, float, bytes], None]
"""Sees a frame: which way it went, when (seconds since the epoch), and its bytes."""

NOISE_KEPT: Final = 50
"""Lines that were no protocol, kept for whoever looks for the reason of something."""

EOF_GRACE: Final = 0.5
"""Seconds that handlers may go on after the peer's last word, so that `printf … | agent` gets its answers."""

HANDLER_GRACE: Final = 5.0
"""Seconds that cancelled handlers may take to clean up when we close."""

_log = logging.getLogger(__name__)


class _HotUpdate(Struct, gc=False):
    """A whole `session/update` frame, typed in one stage. Anything unusual about it is left to the general road."""

    method: Literal["session/update"]
    params: SessionUpdate
    jsonrpc: Literal["2.0"] | UnsetType = UNSET
    id: UnsetType = UNSET


_hot = decoder(_HotUpdate)
_HOT_MARK: Final = b'"session/update"'
_HOT_WITHIN: Final = 64
"""The method stands this near to the start of a frame, in every peer we know that sends many."""


class Connection:
    """One end of a conversation over a transport. `async with` it: it starts reading on entry and closes on exit."""

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
        self.counts: Counter[str] = Counter()
        """How often each kind of report was made."""
        self.noise: deque[bytes] = deque(maxlen=NOISE_KEPT)
        self._transport = transport
        self._peer = Peer(tolerant=tolerant, encode_into=encode_into)
        self._observer = observer
        self._taps: list[Tap] = []
        self._pending: dict[RequestId, asyncio.Future[Raw]] = {}
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._heads: dict[str, bytes] = {}
        self._lost: ConnectionClosed | None = None
        self._closed = asyncio.Event()

    # Life.

    def start(self) -> None:
        """Begin to read. `async with` does it."""
        self._transport.attach(self)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """End the conversation: handlers are cancelled, the transport is closed with all that belongs to it."""
        await self._end_tasks()
        await self._transport.close()
        self.connection_lost(ConnectionClosed("the connection is closed"))
        await self._closed.wait()

    async def wait_closed(self) -> None:
        """Until the conversation is over and its handlers have ended."""
        await self._closed.wait()

    @property
    def closed(self) -> bool:
        """Whether the peer is gone."""
        return self._lost is not None

    def tap(self, see: Tap) -> Callable[[], None]:
        """Let `see` have every frame from now on; the returned function ends it."""
        self._taps.append(see)
        return lambda: self._taps.remove(see)

    # What we say.

    async def request(self, call: Call[P, R], params: P) -> R:
        """Ask, and wait for the answer. Cancelling the wait withdraws the question.

        Raises:
            RequestError: the peer refused.
            ConnectionClosed: it is gone.
            RemoteProtocolError: its answer makes no sense.
        """
        self.inbox.wait_begins()
        try:
            return await self._ask(call, params)
        finally:
            self.inbox.wait_ends()

    def stream(self, call: Call[P, R], params: P, session_id: str) -> Stream[R]:
        """Ask, and iterate over the session's updates until the answer. Updates wait here, not in the router's handler."""
        answer = asyncio.ensure_future(self._ask(call, params))
        stream = Stream(self.inbox, session_id, answer)
        self.inbox.add(session_id, stream)
        return stream

    async def notify(self, notice: Notice[P], params: P) -> None:
        """Tell, and wait while the peer is slow: memory stays bounded and the loop turns.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        self.post(notice, params)
        if len(self._transport.out) >= OUTPUT_HIGH:
            await self._transport.drain()

    def post(self, notice: Notice[P], params: P) -> None:
        """Tell without waiting, for places that cannot: what the peer does not take yet is kept in memory.

        Raises:
            ConnectionClosed: the peer is gone.
        """
        if self._lost is not None:
            raise self._lost
        name = notice.name
        head = self._heads.get(name)
        if head is None:
            head = self._heads[name] = head_of_notification(name)
        out = self._transport.out
        start = len(out)
        out += head
        try:
            encode_into(params, out, -1)
        except BaseException:
            del out[start:]  # half a frame would corrupt the next
            raise
        out += b"}\n"
        if self._taps:
            self._show("out", bytes(out[start:-1]))
        self._transport.flush_soon()

    async def _ask(self, call: Call[P, R], params: P) -> R:
        if self._lost is not None:
            raise self._lost
        id, frame = self._peer.ask(call.name, params)
        answer: asyncio.Future[Raw] = self._transport.loop.create_future()
        self._pending[id] = answer
        self._send(frame)
        try:
            raw = await answer
        except asyncio.CancelledError:
            self._withdraw(id)
            raise
        reading = call.read_result(raw)
        if reading.rules:
            self._report(Mended(call.name, reading.rules))
        return reading.value

    def _withdraw(self, id: int) -> None:
        self._pending.pop(id, None)
        if self._lost is None and (frame := self._peer.withdraw(id)) is not None:
            self._send(frame)

    def _send(self, frame: bytes | bytearray) -> None:
        """Send at once: somebody waits for it. What was posted before goes first."""
        if self._taps:
            self._show("out", bytes(frame))
        transport = self._transport
        if isinstance(frame, bytearray) and not transport.out:
            frame += b"\n"
            transport.out = frame
        else:
            transport.out += frame
            transport.out += b"\n"
        transport.flush()

    # What they say.

    def block_received(self, block: Frame) -> None:
        """Lines from the transport. The first road is for streams of updates; the second takes everything."""
        if not self._taps and isinstance(block, bytes):
            try:
                if block.find(b"\n") + 1 < len(block):
                    frames = _hot.decode_lines(block)
                    self._updates(frames, len(block) // len(frames))
                    return
                if block.find(_HOT_MARK, 0, _HOT_WITHIN) > 0:
                    self._updates([_hot.decode(block)], len(block))
                    return
            except BAD_INPUT:
                pass
        for frame in [block] if isinstance(block, Overlong) else lines_of(block):
            self._frame_received(frame)

    def _updates(self, frames: list[_HotUpdate], size: int) -> None:
        found = self.router.notice_for("session/update")
        if self.inbox.streams or found is None:
            for frame in frames:
                self._update(frame.params, size)
            return
        handle = found[1]
        rest = iter(frames)
        while True:
            try:
                for frame in rest:
                    handle(frame.params)
            except Exception as error:
                self._handler_failed("session/update", error)
            else:
                return

    def _update(self, update: SessionUpdate, size: int) -> None:
        streams = self.inbox.streams.get(update.session_id)
        if streams:
            streams[0].push(update, size)
            self.inbox.take(size)
        elif (found := self.router.notice_for("session/update")) is not None:
            try:
                found[1](update)
            except Exception as error:
                self._handler_failed("session/update", error)
        else:
            self._report(Unheard(Notification("session/update", Raw(encode(update))), "no handler"))

    def _frame_received(self, frame: Frame) -> None:
        if self._taps and isinstance(frame, bytes):
            self._show("in", frame)
        self._event(self._peer.receive(frame), frame)

    def _event(self, event: Event, frame: Frame) -> None:
        match event:
            case Told(notification):
                self._told(notification, len(frame) if isinstance(frame, bytes) else 0)
            case Answered(id, result):
                self._settle(id, result, None)
            case Refused(id, error):
                self._settle(id, None, RequestError(error.code, error.message, error.data))
            case Asked(request):
                self._asked(request)
            case Withdrawn(id):
                if (task := self._tasks.get(_key(id))) is not None:
                    task.cancel()
            case Rejected(_, reply):
                self._report(event)
                if reply is not None:
                    self._send(reply)
            case Noise(raw):
                self.noise.append(raw)
                self._report(event)
            case Stray():
                self._report(event)

    def _settle(self, id: RequestId, result: Raw | None, error: RequestError | None) -> None:
        answer = self._pending.pop(id, None)
        if answer is None or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result if result is not None else Raw(b"null"))

    def _told(self, notification: Notification, size: int) -> None:
        method = notification.method
        found = self.router.notice_for(method)
        try:
            if method == "session/update" and self.inbox.streams:
                from antiphon.protocol.v1.methods import SESSION_UPDATE

                reading = SESSION_UPDATE.read_params(notification.params)
                rules: tuple[str, ...] | None = reading.rules
                self._update(reading.value, size)
            else:
                rules = self.router.notice(method, notification.params)
        except RequestError as error:
            self._report(Unheard(notification, str(error)))
        except Exception as error:
            self._handler_failed(method, error)
        else:
            if rules is None:
                self._report(Unheard(notification, "no handler"))
            elif rules:
                self._report(Mended(method, rules))

    def _asked(self, request: Request) -> None:
        id, method = request.id, request.method
        reply = None
        try:
            found = self.router.call(method)
            if found is not None:
                call, handler = found
                reading = call.read_params(request.params)
                reply = reading.reply
                if reading.rules:
                    self._report(Mended(method, reading.rules))
                result = handler(reading.value)
            elif self.router.other_request is not None:
                result = self.router.other_request(method, request.params)
            else:
                raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        except Exception as error:
            self._refuse(id, method, error)
            return
        if isinstance(result, CoroutineType) or isinstance(result, Awaitable):
            self._start(id, method, result, reply)
        else:
            self._answer(id, method, result, reply)

    def _start(self, id: RequestId, method: str, work: Awaitable[object], reply: Any) -> None:
        task = start_task(self._transport.loop, self._work(id, method, work, reply), method)
        if task.done():
            self._worked(id, method, task)
            return
        self._tasks[_key(id)] = task
        task.add_done_callback(lambda done: self._worked(id, method, done))
        self.inbox.requests_open(len(self._tasks))

    async def _work(self, id: RequestId, method: str, work: Awaitable[object], reply: Any) -> None:
        try:
            result = await work
        except Exception as error:
            self._refuse(id, method, error)
        else:
            self._answer(id, method, result, reply)

    def _worked(self, id: RequestId, method: str, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(_key(id), None)
        self.inbox.requests_open(len(self._tasks))
        if task.cancelled() and self._lost is None:
            self._send(self._peer.refuse(id, CANCELLED))
        elif not task.cancelled() and (error := task.exception()) is not None:
            raise error
        if self._lost is not None and not self._tasks:
            self._closed.set()

    def _answer(self, id: RequestId, method: str, result: object, reply: Any) -> None:
        if self._lost is not None:
            return
        try:
            self._send(self._peer.answer(id, Raw(reply(encode(result))) if reply else result))
        except Exception as error:  # the result has no JSON form
            self._handler_failed(method, error)
            self._send(_internal_error_frame(id))

    def _refuse(self, id: RequestId, method: str, error: Exception) -> None:
        if not isinstance(error, RequestError):
            self._handler_failed(method, error)
        if self._lost is None:
            self._send(self._peer.refuse(id, _to_wire(error)))

    # The end.

    def connection_lost(self, error: ConnectionClosed) -> None:
        """Nothing more will arrive (the transport says so)."""
        if self._lost is not None:
            return
        self._lost = error
        self._peer.forget()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(error)
        self._pending.clear()
        if self._tasks:
            self._transport.loop.call_later(EOF_GRACE, self._cancel_tasks)
        else:
            self._closed.set()

    def _cancel_tasks(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()

    async def _end_tasks(self) -> None:
        tasks = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        self._cancel_tasks()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=HANDLER_GRACE)
            for task in stuck:
                _log.error("handler `%s` ignores its cancellation", task.get_name())

    # Observers.

    def _show(self, direction: Direction, frame: bytes) -> None:
        now = time.time()
        for see in list(self._taps):
            try:
                see(direction, now, frame)
            except Exception:
                _log.exception("a tap failed")

    def _report(self, report: Report) -> None:
        self.counts[type(report).__name__] += 1
        if self._observer is not None:
            self._observer(report)

    def _handler_failed(self, method: str, error: Exception) -> None:
        _log.error("the handler of `%s` failed", method, exc_info=error)
        self._report(HandlerFailed(method, error))


def _to_wire(error: Exception) -> ErrorObject:
    """The one place where an exception becomes an answer. The peer learns that it failed; the log learns why."""
    if isinstance(error, RequestError):
        return ErrorObject(error.code, error.message, error.data)
    return ErrorObject(Code.INTERNAL_ERROR, "Internal error")


def _internal_error_frame(id: RequestId) -> bytes:
    from antiphon.rpc.envelope import error_frame

    return error_frame(id, ErrorObject(Code.INTERNAL_ERROR, "Internal error"))


def _key(id: RequestId) -> object:
    return (float, id) if isinstance(id, float) else id
