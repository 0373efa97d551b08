"""The updates of one turn as an async iterator that ends with the turn's response.

Updates wait here in bytes that count against the connection's limit, so a slow consumer slows the wire and loses nothing. The
response is put behind the updates that came before it. While another response is waited for on the connection reading never
pauses: a consumer may send a request in the middle of its own loop, with its buffer full.

Two objects, because two sides hold on to a turn. The connection has the `Backlog`, until the response is here. The consumer has the
`Stream`, until it stops reading, which it may do by `break`, by cancellation or by dropping it; the turn is then cancelled
and the rest of its updates is discarded.
"""

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from antiphon.aio import current_task
from antiphon.errors import LocalProtocolError
from antiphon.protocol.version import SessionUpdates

if TYPE_CHECKING:
    from antiphon.connection.inbox import Inbox

__all__ = ["CANCEL_GRACE", "AnyBacklog", "Backlog", "Stream"]

R = TypeVar("R")
U = TypeVar("U", bound=SessionUpdates)

CANCEL_GRACE: Final = 5.0
"""Seconds that an agent may take to respond to a turn that was cancelled. Until then its updates are discarded, not mixed into the
next turn; after that the request is cancelled and the session goes on without it."""


class Backlog(Generic[U]):
    """The part of a turn that the connection holds: the updates that wait, and whether they are still wanted.

    A reader that has found nothing awaits a future. By its result alone the reader would go on in the next step of the loop. Where
    every update wakes the reader, that step (a call of `epoll`, and the loop's own work) is a sixth of all the time that an update
    costs. So its task is stepped in the same step that reads from the peer, if no task is at work there and nothing else awaits the
    future. Few calls are made on that road, because after a pause the code of each has left the processor's cache.
    """

    __slots__ = ("__weakref__", "_cancel", "_counted", "_inbox", "_loop", "_readers", "_runs", "_size", "over", "session_id", "unwanted", "waiting")  # fmt: skip

    def __init__(self, inbox: "Inbox", session_id: str, cancel: Callable[[], None]) -> None:
        self.session_id = session_id
        self.over = False
        self.unwanted = False
        self._inbox = inbox
        self._loop = asyncio.get_running_loop()  # once: each call asks the kernel for our process id
        self._cancel = cancel
        self.waiting: deque[U] = deque()
        """The updates that wait, the oldest first. A reader that takes from it directly calls `settle` now and then;
        `arrival` does it, too."""
        self._runs: deque[tuple[int, int]] = deque()
        """How they came: so many updates, of so many bytes together."""
        self._counted = 0
        self._size = 0
        self._readers: list[asyncio.Future[None]] = []
        inbox.add(session_id, self)

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, updates: Sequence[U], size: int, *, at_once: bool = False) -> None:
        """Add updates that came together, in wire order; `size` is how many bytes they were.

        `at_once`: their reader goes on now. Where more is to come it reads all of it in one go later.
        """
        if self.unwanted:
            return
        self.waiting.extend(updates)
        self._runs.append((len(updates), size))
        self._count(len(updates), size)
        if self._readers and not (at_once and self._step()):
            self._wake()

    def push_alone(self, update: U, size: int) -> None:
        """Add an update that came alone: a reader that waits for it goes on now. If it takes the update, that needs not be counted."""
        if self.waiting or self.unwanted:
            self.push((update,), size)
            return
        waiting = self.waiting
        waiting.append(update)
        if self._step():
            if not waiting or waiting[0] is not update:
                return
        elif self._readers:
            self._wake()
        self._runs.appendleft((1, size))
        self._count(1, size)

    def _count(self, updates: int, size: int) -> None:
        self._counted += updates
        self._size += size
        inbox = self._inbox
        inbox.buffered += size
        if inbox.buffered > inbox.limit:
            inbox.decide()

    def _step(self) -> bool:
        """Step the task of the reader. False: there is not just one, or it cannot be stepped here."""
        readers = self._readers
        if len(readers) != 1 or current_task(self._loop) is not None:
            return False
        reader = readers[0]
        waiting = getattr(reader, "_callbacks", None)  # none if it is done
        if not waiting or len(waiting) != 1:
            return False
        readers.clear()
        step, context = waiting[0]
        reader.remove_done_callback(step)
        reader.set_result(None)
        context.run(step, reader)
        return True

    def _wake(self) -> None:
        """Let all readers go on in the next step of the loop."""
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():  # else its task was cancelled
                reader.set_result(None)

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
            inbox = self._inbox
            inbox.buffered -= self._size
            self._size = 0
            if inbox.paused:
                inbox.decide()
            return
        taken = max(self._counted - len(self.waiting), 0)  # less than 0: one that came alone is not counted yet
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
        self.settle()  # a reader that goes no further has taken some, too
        self._wake()

    def stop_reading(self) -> None:
        """Cancel the turn, because its updates are read no more. It stays until the response so that its rest goes nowhere else."""
        if self.unwanted:
            return
        self.unwanted = True
        self.waiting.clear()
        self.settle()
        if not self.over:
            self._cancel()

    def arrival(self) -> "asyncio.Future[None]":
        """Return what a reader that has found nothing awaits: the next update, or the end."""
        if self._counted:
            self.settle()
        reader: asyncio.Future[None] = Future(loop=self._loop)
        self._readers.append(reader)
        return reader

    async def more(self) -> None:
        """Wait until there is an update or the end."""
        if not self.waiting and not self.over:
            await self.arrival()


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
            backlog.stop_reading()  # a timeout around the loop: the rest will not be read
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
        self._backlog.stop_reading()
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
            loop.call_soon_threadsafe(backlog.stop_reading)
