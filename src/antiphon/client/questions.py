"""What the agent has asked the user and waits for. When the turn is cancelled every open question is answered at once."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

__all__ = ["Questions"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Questions:
    """The open questions of one session."""

    def __init__(self) -> None:
        self._open: set[asyncio.Future[None]] = set()

    async def wait_for(self, answer: Awaitable[T], instead: T) -> T:
        """The user's answer, or `instead` if the question is released before there is one."""
        work = asyncio.ensure_future(answer)
        released: asyncio.Future[None] = work.get_loop().create_future()
        self._open.add(released)
        try:
            # A race, not a cancellation: a handler that takes its time to stop must not hold up the answer.
            await asyncio.wait((work, released), return_when=asyncio.FIRST_COMPLETED)
            # The agent has been told of the cancellation by now: an answer that came with it would come too late.
            taken = work.done() and not work.cancelled() and not released.done()
            return work.result() if taken else instead
        finally:
            self._open.discard(released)
            if not work.done() or released.done():
                work.add_done_callback(_forget)
                work.cancel()
            released.cancel()

    def release(self) -> None:
        """Answer all that are open without the user; their handlers are cancelled."""
        for released in tuple(self._open):
            if not released.done():
                released.set_result(None)


def _forget(work: "asyncio.Future[T]") -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        _log.error("a handler failed after its question was released", exc_info=error)
