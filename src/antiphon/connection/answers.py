"""Requests of the peer: each gets a handler, and exactly one response.

The only place where an exception becomes a wire error is `_to_wire`: the peer learns that it failed, the log learns why.
"""

import asyncio
import logging
from collections.abc import Awaitable
from types import CoroutineType
from typing import Final, cast

from msgspec import Raw, Struct

from antiphon.aio import start_task
from antiphon.connection.inbox import Inbox
from antiphon.connection.outbox import Outbox
from antiphon.connection.reports import LenientlyRead
from antiphon.connection.router import Router, Then
from antiphon.errors import Advice, Code, ConnectionClosed, NotSupported, RequestError, RequestRefused, RequestTimeout
from antiphon.protocol.base import encode
from antiphon.protocol.methods import Reply
from antiphon.rpc.envelope import ErrorObject, Request, RequestId
from antiphon.rpc.peer import CANCELLED, Peer, id_key

__all__ = ["HANDLER_GRACE", "Answers"]

HANDLER_GRACE: Final = 5.0
"""Seconds that cancelled handlers may take to clean up when we close."""

_log = logging.getLogger(__name__)


class Answers:
    """The requests of the peer that are being handled."""

    def __init__(self, peer: Peer, outbox: Outbox, router: Router, inbox: Inbox) -> None:
        self._peer = peer
        self._outbox = outbox
        self._router = router
        self._inbox = inbox
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def tasks(self) -> "tuple[asyncio.Task[None], ...]":
        """The handlers at work."""
        return tuple(self._tasks.values())

    @property
    def busy(self) -> bool:
        """Whether a request of the peer is being handled."""
        return bool(self._tasks)

    def begin(self, request: Request) -> None:
        """Find the handler and run it: a plain function on the spot, a coroutine as a task."""
        reply: Reply | None = None
        router, method = self._router, request.method
        try:
            if (found := router.calls.get(method)) is not None:
                call, handler = found
                reading = call.read_params(request.params)
                reply = reading.reply
                if reading.rules:
                    self._outbox.report(LenientlyRead(method, reading.rules))
                result = handler(reading.value)
            elif router.other_request is not None:
                result = router.other_request(method, request.params)
            else:
                raise RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
        except Exception as error:
            self._refuse(request, error)
            return
        # Not isinstance(…, Awaitable), which takes four times as long.
        if not isinstance(result, CoroutineType) and not hasattr(result, "__await__"):
            self._answer(request, result, reply)
            return
        work = cast("Awaitable[object]", result)
        task = start_task(self._outbox.transport.loop, self._work(request, work, reply), method)
        if task.done():
            self._finished(request, work, task)
            return
        self._tasks[id_key(request.id)] = task
        self._idle.clear()
        task.add_done_callback(lambda done: self._finished(request, work, done))
        self._inbox.requests_open(len(self._tasks))

    async def _work(self, request: Request, work: Awaitable[object], reply: Reply | None) -> None:
        try:
            result = await work
        except Exception as error:
            self._refuse(request, error)
        else:
            self._answer(request, result, reply)

    def _finished(self, request: Request, work: Awaitable[object], task: "asyncio.Task[None]") -> None:
        self._tasks.pop(id_key(request.id), None)
        self._inbox.requests_open(len(self._tasks))
        if not self._tasks:
            self._idle.set()
        # Here and not in `_work`: a task cancelled before its first step never gets there.
        if task.cancelled():
            if isinstance(work, CoroutineType):
                work.close()
            if self._outbox.lost is None:
                self._outbox.send(self._peer.refuse(request.id, CANCELLED), answers=request.id)
        elif (
            task.exception() is not None and self._outbox.lost is None
        ):  # it ends the program: `_work` takes all others
            internal = ErrorObject(Code.INTERNAL_ERROR, "Internal error")
            self._outbox.send(self._peer.refuse(request.id, internal), answers=request.id)

    def _answer(self, request: Request, result: object, reply: Reply | None) -> None:
        if self._outbox.lost is not None:
            return
        after = None
        if isinstance(result, Then):
            after = result.after
            result = result.result
        try:
            self._check(request, result)
            body = Raw(reply(encode(result))) if reply else result
            frame = self._peer.answer(request.id, body)
        except Exception as error:  # the result has no JSON form
            self._refuse(request, error)
        else:
            self._outbox.send(frame, None, request.id)
            if after is not None:
                try:
                    after()
                except Exception as error:
                    self._outbox.handler_failed(request.method, error)

    def _check(self, request: Request, result: object) -> None:
        """Raise if a handler forgot its `return`, or returned another method's result; the peer could only guess."""
        found = self._router.calls.get(request.method)
        expected = found[0].result if found is not None else None
        if (
            isinstance(expected, type)
            and issubclass(expected, Struct)
            and not isinstance(result, expected | Raw | dict)
        ):
            raise TypeError(f"it returned {type(result).__name__}, not {expected.__name__}")

    def _refuse(self, request: Request, error: Exception) -> None:
        # A handler that ends because the peer is gone has not failed; it may notice before we do, by a write.
        gone = self._outbox.over or self._outbox.transport.deaf
        if self._outbox.lost is not None or (gone and isinstance(error, ConnectionClosed)):
            return
        if not isinstance(error, RequestError):
            self._outbox.handler_failed(request.method, error)
        self._outbox.send(self._peer.refuse(request.id, _to_wire(error)), answers=request.id)

    def cancel(self, id: RequestId) -> None:
        """The peer has cancelled this request: cancel its handler."""
        task = self._tasks.get(id_key(id))
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Cancel every handler."""
        for task in tuple(self._tasks.values()):
            task.cancel()

    async def end(self) -> None:
        """Cancel all and wait for them, within the limit."""
        tasks = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        self.cancel_all()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=HANDLER_GRACE)
            for task in stuck:
                _log.error("the handler of `%s` ignores its cancellation", task.get_name())

    async def wait_idle(self) -> None:
        """Wait until no request of the peer is being handled."""
        await self._idle.wait()


def _to_wire(error: Exception) -> ErrorObject:
    if isinstance(error, RequestRefused):  # the peer's own text, so it may have it back; but it is not our refusal
        refused = Advice(f"what it needed was refused: {error.reason}", error.hint)
        return ErrorObject(Code.INTERNAL_ERROR, "Internal error", str(refused))
    if isinstance(error, NotSupported | RequestTimeout):  # our own error about the peer, with a hint
        return ErrorObject(Code.INTERNAL_ERROR, "Internal error", str(error))
    if isinstance(error, RequestError):
        return _on_one_line(error)
    return ErrorObject(Code.INTERNAL_ERROR, "Internal error")


def _on_one_line(error: RequestError) -> ErrorObject:
    """The first line is the message; what follows it, mostly a hint, goes into `data`, where clients that show one line lose nothing."""
    lines = [line for line in error.message.splitlines() if line.strip()]
    if len(lines) < 2:
        return ErrorObject(error.code, lines[0] if lines else error.message, error.data)
    data = error.data if isinstance(error.data, dict) else {} if error.data is None else {"details": error.data}
    begin = next((number for number, line in enumerate(lines) if number and line.startswith("hint: ")), len(lines))
    more = {}
    if details := "\n".join(lines[1:begin]):
        more["more" if "details" in data else "details"] = details
    if hint := "\n".join(lines[begin:]).removeprefix("hint: "):
        more["hint"] = hint
    return ErrorObject(error.code, lines[0], {**more, **data})
