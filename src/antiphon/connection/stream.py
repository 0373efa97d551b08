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
from collections.abc import Callable, Generator, Iterator, Sequence
from operator import length_hint
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

    __slots__ = ("__weakref__", "_cancel", "_head_size", "_inbox", "_loop", "_readers", "_runs", "head", "over", "session_id", "unwanted")  # fmt: skip

    def __init__(self, inbox: "Inbox", session_id: str, cancel: Callable[[], None]) -> None:
        self.session_id = session_id
        self.over = False
        self.unwanted = False
        self._inbox = inbox
        self._loop = asyncio.get_running_loop()  # once: each call asks the kernel for our process id
        self._cancel = cancel
        self.head: Iterator[U] = iter(())
        """The updates that come next. All readers take from this one iterator, so that each update is read once and in its order;
        one that finds it at its end calls `ready`."""
        self._head_size = 0
        self._runs: deque[tuple[Sequence[U], int]] = deque()
        """What waits behind them: updates that came together, and how many bytes they were."""
        self._readers: list[asyncio.Future[None]] = []
        inbox.add(session_id, self)

    def __len__(self) -> int:
        return length_hint(self.head) + sum(len(run) for run, _ in self._runs)

    @property
    def size(self) -> int:
        """The bytes that it takes of the connection's limit."""
        return self._head_size + sum(size for _, size in self._runs)

    @property
    def waiting(self) -> list[U]:
        """The updates that wait, the oldest first. They stay where they are."""
        from copy import copy  # late: an agent never needs it, and start-up counts

        return [*copy(self.head), *(update for run, _ in self._runs for update in run)]

    def push(self, updates: Sequence[U], size: int, *, at_once: bool = False) -> None:
        """Add updates that came together, in wire order; `size` is how many bytes they were.

        `at_once`: their reader goes on now. Where more is to come it reads all of it in one go later.
        """
        if self.unwanted:
            return
        self._runs.append((updates, size))
        self._inbox.take(size)
        if self._readers and not (at_once and self._step()):
            self._wake()

    def push_alone(self, update: U, size: int) -> None:
        """Add an update that came alone: a reader that waits for it goes on now. If it takes the update, that needs not be counted."""
        if not self._readers or self.unwanted:
            self.push((update,), size)
            return
        self.head = head = iter((update,))  # a reader waits, so there was nothing
        if not self._step():
            self._wake()
        if self.head is head and length_hint(head):
            self._head_size = size
            self._inbox.take(size)

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

    def ready(self) -> bool:
        """Whether updates wait; if so `head` has the next. Releases the bytes of those that came together and are all read."""
        if length_hint(self.head):
            return True
        if self._head_size:
            self._inbox.release(self._head_size)
            self._head_size = 0
        if not self._runs:
            return False
        run, self._head_size = self._runs.popleft()
        self.head = iter(run)
        return True

    def end(self) -> None:
        """The response is here: what comes after it belongs to another turn."""
        self._inbox.remove(self.session_id, self)
        self.over = True
        self.ready()  # a reader that goes no further has read some, too
        self._wake()

    def stop_reading(self) -> None:
        """Cancel the turn, because its updates are read no more. It stays until the response so that its rest goes nowhere else."""
        if self.unwanted:
            return
        self.unwanted = True
        self._inbox.release(self.size)
        self.head, self._head_size = iter(()), 0
        self._runs.clear()
        if not self.over:
            self._cancel()

    def arrival(self) -> "asyncio.Future[None]":
        """Return what a reader that is not `ready` awaits: the next update, or the end."""
        reader: asyncio.Future[None] = Future(loop=self._loop)
        self._readers.append(reader)
        return reader

    async def more(self) -> None:
        """Wait until there is an update or the end."""
        if not self.ready() and not self.over:
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
        if not self._answer.done() or self._backlog.ready():
            raise LocalProtocolError("the turn is not over: read the stream to its end, or await it")
        return self._answer.result()

    def __aiter__(self) -> "Stream[U, R]":
        return self

    async def __anext__(self) -> U:
        backlog = self._backlog
        try:
            while not backlog.ready():
                if backlog.over or backlog.unwanted:
                    await asyncio.shield(self._answer)  # raises what the request raised
                    raise StopAsyncIteration
                await backlog.more()
        except asyncio.CancelledError:
            backlog.stop_reading()  # a timeout around the loop: the rest will not be read
            raise
        return next(backlog.head)

    @property
    def answered(self) -> bool:
        """Whether the answer is here, read or not."""
        return self._backlog.over

    @property
    def waiting(self) -> list[U]:
        """Updates that have come and were not taken yet. They stay in the backlog."""
        return self._backlog.waiting

    async def take(self) -> U | None:
        """The next update, or None when the answer is here.

        Unlike iterating, a wait that is cancelled leaves the turn as it is: the caller decides what becomes of it.
        """
        backlog = self._backlog
        while not backlog.ready():
            if backlog.over or backlog.unwanted:
                await asyncio.shield(self._answer)  # raises what the request raised
                return None
            await backlog.more()
        return next(backlog.head)

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
        if (backlog.size or not backlog.over) and not loop.is_closed():
            # Not at once: the collector runs anywhere, also while another frame is encoded into the buffer that `cancel` goes to.
            loop.call_soon_threadsafe(backlog.stop_reading)
