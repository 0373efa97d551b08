"""An event loop in a thread of its own, for callers that have none, or one that is busy with them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar

from antiphon.client.handlers import answer_of
from antiphon.errors import ConnectionClosed, LocalProtocolError

__all__ = ["Worker", "in_thread"]

A = TypeVar("A")
T = TypeVar("T")

STOP_GRACE: Final = 10.0
"""Seconds that what runs may take to end, which is a little more than the whole ladder takes to end a program."""


class Worker:
    """Runs coroutines for one thread. `with` it: the loop ends with the block."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        # A daemon: a program that forgets to close us can still end.
        self._thread = threading.Thread(target=self._serve, name="antiphon", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._started.wait()

    def _serve(self) -> None:
        asyncio.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if rest:  # an agent that is just being ended
            await asyncio.wait(rest, timeout=STOP_GRACE)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine. Ctrl-C while we wait cancels it."""
        if self._loop is None or not self._thread.is_alive():
            work.close()
            raise ConnectionClosed("this connection is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise LocalProtocolError(
                "this is called by the thread that would have to answer it: `on_update` must not ask the agent"
            )
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        except BaseException:
            done.cancel()  # without effect if it was the coroutine that raised
            raise

    def stop(self) -> None:
        """End the loop and wait for it."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()


def in_thread(handler: Callable[[A], Any]) -> Callable[[A], Coroutine[Any, Any, Any]]:
    """A plain handler as one that the loop can wait for: it may block, as `input()` does.

    In a thread of its own that nobody has to wait for: a question that was released may never be answered.
    """
    if iscoroutinefunction(handler):
        return handler

    async def handle(asked: A) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def work() -> None:
            try:
                tell, value = answer.set_result, handler(asked)
            except BaseException as error:  # told to who waits
                tell, value = answer.set_exception, error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(lambda: answer.done() or tell(value))

        threading.Thread(target=work, name="antiphon handler", daemon=True).start()
        return await answer_of(await answer)

    return handle
