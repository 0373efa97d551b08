"""The updates of one turn as an async iterator that ends with the turn's answer.

Updates wait here in bytes that count against the connection's limit, so a slow consumer slows the wire and loses nothing. The
answer is put behind the updates that came before it. While somebody on the connection waits for another answer reading never
pauses: a consumer may ask the agent something in the middle of its own loop, with its buffer full.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING, Generic, TypeVar

from antiphon.errors import LocalProtocolError

if TYPE_CHECKING:
    from antiphon.connection.inbox import Inbox
    from antiphon.protocol.v1.session import SessionUpdate

__all__ = ["Stream"]

R = TypeVar("R")


class Stream(Generic[R]):
    """`async for update in stream`, then `stream.result`; or `await stream` for the result alone."""

    def __init__(self, inbox: "Inbox", session_id: str, answer: "asyncio.Task[R]") -> None:
        self._inbox = inbox
        self._session_id = session_id
        self._answer = answer
        self._waiting: deque[tuple[SessionUpdate, int]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._over = False
        inbox.add(session_id, self)
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, even if nobody reads on

    @property
    def result(self) -> R:
        """The turn's answer, once the updates are read to the end."""
        if not self._answer.done() or self._waiting:
            raise LocalProtocolError("the turn is not over: read the stream to its end, or await it")
        return self._answer.result()

    def push(self, update: "SessionUpdate", size: int) -> None:
        """One more update (called in wire order)."""
        self._waiting.append((update, size))
        wake = self._wake
        if wake is not None:
            self._wake = None
            if not wake.done():
                wake.set_result(None)

    def end(self) -> None:
        """The answer is here: what comes after it belongs to another turn."""
        self._inbox.remove(self._session_id, self)
        self._over = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def __aiter__(self) -> "Stream[R]":
        return self

    async def __anext__(self) -> "SessionUpdate":
        while not self._waiting:
            if self._over:
                await self._answer  # raises what the request raised
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        update, size = self._waiting.popleft()
        self._inbox.release(size)
        return update

    def __await__(self) -> Generator[object, None, R]:
        return self._drain().__await__()

    async def _drain(self) -> R:
        async for _ in self:
            pass
        return self._answer.result()

    async def close(self) -> None:
        """Leave the turn: its question is withdrawn and what still waits here is let go."""
        self.end()
        self._inbox.release(sum(size for _, size in self._waiting))
        self._waiting.clear()
        self._answer.cancel()
        await asyncio.wait([self._answer])

    async def __aenter__(self) -> "Stream[R]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
