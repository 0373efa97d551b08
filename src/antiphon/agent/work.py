"""Work of an agent beside the answer to a prompt: by itself, in the background, and parts of it that the client cancels alone.

What runs is sent to clients of version 2: as states of the session, with the list of its background work, and as calls that can be
cancelled. Clients of version 1 get the updates alone; there is nothing in version 1 for the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from antiphon.agent.questions import end_turn
from antiphon.agent.turn import AgentTurn
from antiphon.aio import NO_WAIT
from antiphon.errors import AcpError, Code, RequestError, ResponseError
from antiphon.protocol.base import Json, JsonObject
from antiphon.protocol.extension import CANCEL_METHODS, TOOL_CALL, UPDATE, ExtensionUpdate, OpenWork

if TYPE_CHECKING:
    from types import TracebackType

    from antiphon.agent.session import AgentSession
    from antiphon.agent.tools import LiveCall

__all__ = ["BackgroundCall", "CancellablePart", "OwnWork", "SessionWork"]

WORK_GRACE: Final = 3.0
"""Seconds that background work may take to clean up when its session is closed."""

_log = logging.getLogger(__name__)


class _Block:
    """A block of code that can be cancelled from outside: it is left, and what comes after it runs. As `asyncio.timeout` does it."""

    def __init__(self) -> None:
        self.cancelled = False
        """Whether it was cancelled."""
        self.task: asyncio.Task[Any] | None = None
        """The task that runs in it."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when its end was sent."""
        self._before = 0

    def cancel(self) -> None:
        """Cancel what runs in the block."""
        if self.task is not None and not self.cancelled:
            self.cancelled = True
            self.task.cancel()

    def enter(self) -> None:
        """Begin the block."""
        self.task = task = asyncio.current_task()
        if task is not None:
            self._before = task.cancelling()

    def end(self) -> None:
        """Note that its end was sent."""
        if not self.over.done():
            self.over.set_result(None)

    async def leave(self, error: BaseException | None) -> bool:
        """End the block. True: it ended by our cancellation alone, so the code after it runs."""
        task, self.task = self.task, None
        if task is None or not self.cancelled:
            return False
        if error is None:  # it was cancelled in its last step, and the cancellation is still to come
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        if task.uncancel() > self._before:  # the turn is cancelled, too
            if error is None:
                raise asyncio.CancelledError
            return False
        return isinstance(error, asyncio.CancelledError)


class SessionWork:
    """What an agent does in a session, as its client is shown it. One for a session, also where several engines work in it."""

    def __init__(self, session: "AgentSession") -> None:
        self._session = session
        self._own: dict[_Block, None] = {}
        """Work of the agent by itself, in the foreground."""
        self._background: dict[OpenWork, _Block] = {}
        self._reported = False
        """Whether background work was ever reported: from then on it is, with every state."""
        self._cancellable: dict[OpenWork, Callable[[], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # What the client does.

    def cancel(self, work: OpenWork) -> None:
        """Cancel one piece of work, as the client asks for it.

        Raises:
            RequestError: -32602, it has ended, or was never offered to be cancelled.
        """
        cancel = self._cancellable.get(work)
        if cancel is None:
            raise RequestError(
                Code.INVALID_PARAMS, "Invalid params", f"there is no {work.kind} `{work.id:.80}` that can be cancelled"
            )
        cancel()

    def cancel_own(self) -> bool:
        """Cancel what the agent does by itself in the foreground: the client cancels the session. False: there is nothing."""
        for block in tuple(self._own):
            block.cancel()
        return bool(self._own)

    def cancel_background(self) -> None:
        """Cancel the work in the background."""
        for block in tuple(self._background.values()):
            block.cancel()

    async def end(self) -> None:
        """Cancel everything, and wait for the end of the tasks: the session is being closed."""
        for block in (*self._own, *self._background.values()):
            if block.task not in self._tasks:
                block.cancel()
        for task in self._tasks:
            task.cancel()
        ends = [*self._tasks, *(block.over for block in (*self._own, *self._background.values()))]
        stuck = (await asyncio.wait(ends, timeout=WORK_GRACE))[1] if ends else ()
        if stuck:
            _log.error("work of session `%s` ignores its cancellation; it is closed without it", self._session.id)

    # What the agent does.

    def start(self, work: "Coroutine[Any, Any, None]", name: str | None) -> None:
        """Start a task that ends with the session at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of session `%s` failed", self._session.id, exc_info=error)

    def begin_own(self, block: _Block) -> Awaitable[None]:
        """Note that the agent works by itself."""
        self._own[block] = None
        return self._send_state()

    def end_own(self, block: _Block, reason: str, error: "JsonObject | None") -> Awaitable[None]:
        """Note that it has ended."""
        self._own.pop(block, None)
        block.end()
        return self._send_state(reason, error)

    def begin_background(self, work: OpenWork, block: _Block) -> Awaitable[None]:
        """Note work in the background. The client knows the tool call by now."""
        self._background[work] = block
        self._reported = True
        return self._send_state()

    def end_background(self, work: OpenWork) -> Awaitable[None]:
        """Note that it has ended. The client knows its last status by now."""
        if (block := self._background.pop(work, None)) is not None:
            block.end()
        return self._send_state()

    def offer_cancel(self, work: OpenWork, cancel: Callable[[], None]) -> Awaitable[None]:
        """Let the client cancel one piece of work."""
        self._cancellable[work] = cancel
        return self._send_cancel(work, offered=True)

    def end_cancel(self, work: OpenWork) -> Awaitable[None]:
        """Let the client cancel it no longer."""
        if self._cancellable.pop(work, None) is None:
            return NO_WAIT
        return self._send_cancel(work, offered=False)

    # What the client gets.

    def _send_state(self, reason: str = "", error: "JsonObject | None" = None) -> Awaitable[None]:
        update: JsonObject = {"sessionUpdate": "state_update", "state": "running" if self._own else "idle"}
        if self._reported:
            update["background"] = [{"type": kind, CANCEL_METHODS[kind][1]: id} for kind, id in self._background]
        if not self._own and reason:
            update["stopReason"] = reason
        if not self._own and error is not None:
            update["error"] = error
        return self._send(update)

    def _send_cancel(self, work: OpenWork, *, offered: bool) -> Awaitable[None]:
        id = CANCEL_METHODS[work.kind][1]
        capabilities: Json = {"cancel": {}} if offered else {}
        return self._send({"sessionUpdate": f"{work.kind}_update", id: work.id, "capabilities": capabilities})

    def _send(self, update: JsonObject) -> Awaitable[None]:
        session = self._session
        if session.client.version < 2 or session.closed:
            return NO_WAIT
        return session.notify(UPDATE, ExtensionUpdate(session.id, update))


class CancellablePart:
    """The part of a tool call that the client can cancel alone: `async with call.cancellable()`."""

    def __init__(self, call: "LiveCall", session: "AgentSession") -> None:
        self._call = call
        self._session = session
        self._block = _Block()
        self._work = OpenWork(TOOL_CALL, session._shown_id(call.id))

    async def __aenter__(self) -> Self:
        self._block.enter()
        await self._session._shown()
        # Not awaited: a cancellation that came while the client is slow would find no block to leave.
        _ = self._session._work.offer_cancel(self._work, self.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> bool:
        # Not awaited: this may be a cancelled task, and a slow client must not hold it up.
        with suppress(AcpError):  # the client may be gone
            _ = self._session._work.end_cancel(self._work)
        return await self._block.leave(error)

    def cancel(self) -> None:
        """Cancel what runs in the block, as the client does it."""
        self._call.cancelled = True
        self._block.cancel()


class BackgroundCall:
    """A tool call that goes on beyond its turn: `async with session.background(…) as call`."""

    def __init__(self, session: "AgentSession", make: "Callable[[AgentTurn], LiveCall]") -> None:
        self._session = session
        self._turn = AgentTurn(session, ())
        self._call = make(self._turn)
        self._block = _Block()
        self._work = OpenWork(TOOL_CALL, session._shown_id(self._call.id))

    async def __aenter__(self) -> "LiveCall":
        session = self._session
        self._block.enter()
        await self._call.__aenter__()
        try:
            await self._call.start()
            await session._shown()
            # Not awaited, as in `CancellablePart`.
            _ = session._work.begin_background(self._work, self._block)
            _ = session._work.offer_cancel(self._work, self._cancel)
        except BaseException as error:  # there is no block to leave
            await self.__aexit__(type(error), error, None)
            raise
        return self._call

    def _cancel(self) -> None:
        self._call.cancelled = True
        self._block.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> bool:
        session = self._session
        if self._block.cancelled or isinstance(error, asyncio.CancelledError):  # the session may be closed
            self._call.cancelled = True
        left = await self._block.leave(error)
        try:
            await self._call.__aexit__(*((None, None, None) if left else (kind, error, trace)))
            await session._shown()
        finally:
            end_turn(self._turn)
            with suppress(AcpError):  # the client may be gone
                _ = session._work.end_cancel(self._work)
                _ = session._work.end_background(self._work)
        return left


class OwnWork:
    """Work that the agent does by itself, without a prompt: `async with session.work() as turn`."""

    def __init__(self, session: "AgentSession") -> None:
        self._session = session
        self._turn = AgentTurn(session, ())
        self._block = _Block()

    async def __aenter__(self) -> AgentTurn:
        self._block.enter()
        _ = self._session._work.begin_own(self._block)  # not awaited, as in `CancellablePart`
        return self._turn

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> bool:
        left = False
        try:
            left = await self._block.leave(error)
            with suppress(AcpError):  # the client may be gone
                await self._session._shown()
        finally:
            end_turn(self._turn)
            reason, failure = _end_of(None if left else error, cancelled=self._block.cancelled)
            with suppress(AcpError):
                _ = self._session._work.end_own(self._block, reason, failure)
        return left


def _end_of(error: BaseException | None, *, cancelled: bool) -> "tuple[str, JsonObject | None]":
    """Why work ended, in the words of version 2. The details of an error that is not the protocol's are for the log alone."""
    if cancelled or isinstance(error, asyncio.CancelledError):
        return "cancelled", None
    if error is None:
        return "end_turn", None
    if isinstance(error, ResponseError):
        return "error", {"code": error.code, "message": error.message}
    return "error", {"code": Code.INTERNAL_ERROR, "message": "Internal error"}
