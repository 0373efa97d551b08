"""The updates of one turn as an async iterator that ends with the turn's response.

Updates wait here in bytes that count against the connection's limit, so a slow consumer slows the wire and loses nothing. The
response is put behind the updates that came before it. While another response is waited for on the connection reading never
pauses: a consumer may send a request in the middle of its own loop, with its buffer full.

Two objects, because two sides hold on to a turn. The connection has the `Backlog`, until the response is here. The consumer has the
`Stream`, until it stops reading, which it may do by `break`, by cancellation or by dropping it; the turn is then cancelled
and the rest of its updates is discarded.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from antiphon.errors import LocalProtocolError
from antiphon.protocol.version import SessionUpdates

if TYPE_CHECKING:
    from contextvars import Context

    from antiphon.connection.inbox import Inbox

__all__ = ["CANCEL_GRACE", "AnyBacklog", "Backlog", "Stream"]

R = TypeVar("R")
U = TypeVar("U", bound=SessionUpdates)

CANCEL_GRACE: Final = 5.0
"""Seconds that an agent may take to respond to a turn that was cancelled. Until then its updates are discarded, not mixed into the
next turn; after that the request is cancelled and the session goes on without it."""


class Arrival:
    """What a reader awaits until there is more to read. Its task can go on at once, in the step of the loop that reads from the peer.

    A future of asyncio would let it go on in the next step. Where every update wakes the reader, that step (a call of `epoll`, and
    the loop's own work) is a sixth of all the time that an update costs. To asyncio this is a future like any other: its tasks take
    every object with these methods. While a task is at work no other can be stepped, so then its reader goes on in the next step.
    """

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_context", "_done", "_loop")

    def __init__(self) -> None:
        self._asyncio_future_blocking = False
        self._loop = asyncio.get_running_loop()
        self._done = False
        self._cancelled = False
        self._callback: Callable[[Arrival], object] | None = None
        self._context: Context | None = None

    def __await__(self) -> "Generator[Arrival, None, None]":
        if not self._done:
            self._asyncio_future_blocking = True
            yield self

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the task that may await it."""
        return self._loop

    def add_done_callback(self, callback: "Callable[[Arrival], object]", *, context: "Context | None" = None) -> None:
        """Take what wakes the task (asyncio calls this)."""
        self._callback, self._context = callback, context
        if self._done:
            self._loop.call_soon(callback, self, context=context)

    def remove_done_callback(self, callback: "Callable[[Arrival], object]") -> int:
        """Wake the task no more (asyncio calls this)."""
        removed = int(self._callback == callback)
        if removed:
            self._callback = None
        return removed

    def result(self) -> None:
        """Raise if the task was cancelled (asyncio calls this)."""
        if self._cancelled:
            raise asyncio.CancelledError

    def cancel(self, msg: object = None) -> bool:
        """Let the task go on with its cancellation (asyncio calls this)."""
        if self._done:
            return False
        self._done = self._cancelled = True
        if self._callback is not None:
            self._loop.call_soon(self._callback, self, context=self._context)
        return True

    def come(self, at_once: bool) -> bool:
        """Let the task go on: there is something to read. True: it has gone on, and this can be awaited again after `reset`."""
        if self._done:
            return False
        self._done = True
        callback, context = self._callback, self._context
        if callback is None:
            return False
        if not at_once or context is None or asyncio.current_task(self._loop) is not None:
            self._loop.call_soon(callback, self, context=context)
            return False
        context.run(callback, self)
        return True

    def reset(self) -> None:
        """Be as new. A reader that every update wakes would else make one for each."""
        self._done = False
        self._callback = None


class Backlog(Generic[U]):
    """The part of a turn that the connection holds: the updates that wait, and whether they are still wanted."""

    def __init__(self, inbox: "Inbox", session_id: str, cancel: Callable[[], None]) -> None:
        self.session_id = session_id
        self.over = False
        self.unwanted = False
        self._inbox = inbox
        self._cancel = cancel
        self.waiting: deque[U] = deque()
        """The updates that wait, the oldest first. A reader that takes from it directly calls `settle` now and then."""
        self._runs: deque[tuple[int, int]] = deque()
        """How they came: so many updates, of so many bytes together."""
        self._counted = 0
        self._size = 0
        self._readers: list[Arrival] = []
        self._spare: Arrival | None = None
        """What a reader has awaited, to be awaited again."""
        inbox.add(session_id, self)

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, updates: Sequence[U], size: int, *, at_once: bool = False) -> None:
        """Add updates that came together, in wire order; `size` is how many bytes they were.

        `at_once`: nothing came with them, so their reader goes on now. Where more is to come it reads all of it in one go later.
        """
        if self.unwanted:
            return
        self.waiting.extend(updates)
        self._runs.append((len(updates), size))
        self._counted += len(updates)
        self._size += size
        self._inbox.take(size)
        if self._readers:
            self._wake(at_once)

    def pop(self) -> U:
        """Take the oldest that waits."""
        update = self.waiting.popleft()
        self.settle()
        return update

    def settle(self) -> None:
        """Release the bytes of what was taken since the last time."""
        if not self.waiting:  # as nearly always
            self._counted = 0
            self._runs.clear()
            released, self._size = self._size, 0
            if released:
                self._inbox.release(released)
            return
        taken = self._counted - len(self.waiting)
        self._counted -= taken
        released = 0
        while taken:
            count, size = self._runs.popleft()
            if taken < count:
                part = size * taken // count
                self._runs.appendleft((count - taken, size - part))
                released += part
                break
            taken -= count
            released += size
        if released:
            self._size -= released
            self._inbox.release(released)

    def end(self) -> None:
        """The response is here: what comes after it belongs to another turn."""
        self._inbox.remove(self.session_id, self)
        self.over = True
        self._wake(False)

    def abandon(self) -> None:
        """Cancel the turn, because its updates are read no more. It stays until the response so that its rest goes nowhere else."""
        if self.unwanted:
            return
        self.unwanted = True
        self.waiting.clear()
        self.settle()
        if not self.over:
            self._cancel()

    def arrival(self) -> "Arrival":
        """Return what a reader that has found nothing awaits: the next update, or the end."""
        reader, self._spare = self._spare, None
        if reader is None:
            reader = Arrival()
        else:
            reader.reset()
        self._readers.append(reader)
        return reader

    async def more(self) -> None:
        """Wait until there is an update or the end."""
        if not self.waiting and not self.over:
            await self.arrival()

    def _wake(self, at_once: bool) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            if reader.come(at_once):
                self._spare = reader


AnyBacklog: TypeAlias = Backlog[Any]


class Stream(Generic[U, R]):
    """`async for update in stream`, then `stream.result`; or `await stream` for the result alone.

    Use it with `async with` to be sure that a turn which is left early is cancelled before you go on.
    """

    def __init__(self, backlog: Backlog[U], answer: "asyncio.Task[R]") -> None:
        self._backlog = backlog
        self._answer = answer

    @property
    def result(self) -> R:
        """The turn's answer, once the updates are read to the end."""
        if not self._answer.done() or self._backlog:
            raise LocalProtocolError("the turn is not over: read the stream to its end, or await it")
        return self._answer.result()

    def __aiter__(self) -> "Stream[U, R]":
        return self

    async def __anext__(self) -> U:
        backlog = self._backlog
        try:
            while not backlog:
                if backlog.over or backlog.unwanted:
                    await asyncio.shield(self._answer)  # raises what the request raised
                    raise StopAsyncIteration
                await backlog.more()
        except asyncio.CancelledError:
            backlog.abandon()  # a timeout around the loop: the rest will not be read
            raise
        return backlog.pop()

    @property
    def answered(self) -> bool:
        """Whether the answer is here, read or not."""
        return self._backlog.over

    @property
    def waiting(self) -> list[U]:
        """Updates that have come and were not taken yet. They stay in the backlog."""
        return list(self._backlog.waiting)

    def take_now(self) -> U | None:
        """The next update if it waits already."""
        return self._backlog.pop() if self._backlog else None

    async def take(self) -> U | None:
        """The next update, or None when the answer is here.

        Unlike iterating, a wait that is cancelled leaves the turn as it is: the caller decides what becomes of it.
        """
        backlog = self._backlog
        while not backlog:
            if backlog.over or backlog.unwanted:
                await asyncio.shield(self._answer)  # raises what the request raised
                return None
            await backlog.more()
        return backlog.pop()

    def __await__(self) -> Generator[object, None, R]:
        return self._drain().__await__()

    async def _drain(self) -> R:
        async for _ in self:
            pass
        return self._answer.result()

    async def close(self) -> None:
        """Leave the turn. A turn that is not over is cancelled and its response awaited, for at most `CANCEL_GRACE`."""
        self._backlog.abandon()
        await asyncio.wait([self._answer])

    async def __aenter__(self) -> "Stream[U, R]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        # Left by `break` and forgotten. Without this its backlog would count against the limit, and pause the connection for good.
        backlog, loop = self._backlog, self._answer.get_loop()
        if (backlog or not backlog.over) and not loop.is_closed():
            # Not at once: the collector runs anywhere, also while another frame is encoded into the buffer that `cancel` goes to.
            loop.call_soon_threadsafe(backlog.abandon)
