"""An event loop in a thread of its own, for callers without one, or with one that is busy.

A handler may raise what ends a program: `sys.exit()`, Ctrl-C in `input()`. In its thread that would end the thread and nothing else.
So it is carried over: what the caller waits for is cancelled, as by Ctrl-C, and the caller gets the exception.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from inspect import iscoroutinefunction
from typing import Any, Final, Generic, TypeVar

from antiphon.aio import background, maybe_await
from antiphon.errors import ConnectionClosed, LocalProtocolError

__all__ = ["Worker"]

_log = logging.getLogger(__name__)

A = TypeVar("A")
T = TypeVar("T")

STOP_GRACE: Final = 10.0
"""Seconds that tasks may take to end: a little more than all grace periods of a process together."""

JOIN_GRACE: Final = 2 * STOP_GRACE
"""Seconds that the thread may take to end. It is a daemon: one that hangs in a file system that does not respond is left behind."""


class _Call(Generic[T]):
    """A coroutine that a caller in another thread waits for."""

    def __init__(
        self, work: Coroutine[Any, Any, T], *, closing: bool, instead: Callable[[], object] | None = None
    ) -> None:
        self.over = threading.Event()
        self.closing = closing
        """Whether an exception of a handler does not cancel it."""
        self.carried: BaseException | None = None
        """The exception of a handler, for the caller."""
        self._work = work
        self._instead = instead
        self._task: asyncio.Task[T] | None = None
        self._cancelled = self._lost = False

    # On the loop.

    def begin(self) -> None:
        """Begin the work, unless it was cancelled before."""
        if self._cancelled:
            self.lose()
        else:
            self._task = asyncio.get_running_loop().create_task(self._work)
            self._task.add_done_callback(lambda _: self.over.set())

    def cancel(self) -> None:
        """Cancel the work."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()
        if self._instead is not None:
            self._instead()  # also here: a task that is cancelled before its first step does nothing at all

    # In any thread, when there is no loop or no work.

    def lose(self) -> None:
        """End the call without a result: there is no loop."""
        if self._task is None:
            self._work.close()
        self._lost = not self._cancelled
        self.over.set()

    @property
    def done(self) -> bool:
        """Whether the work has a result or an error of its own, whatever a handler has raised meanwhile."""
        return self._task is not None and self._task.done() and not self._task.cancelled()

    def result(self) -> T:
        """Return the result of the work, or raise its error."""
        if self._task is None or not self._task.done() or self._lost:
            raise ConnectionClosed("this connection is closed")
        if self._task.cancelled():
            raise CancelledError
        return self._task.result()


class Worker:
    """Runs coroutines for one thread. `close` runs on the loop when the worker stops, so that Ctrl-C cannot keep it from being begun."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._lock = threading.Lock()
        self._ended = self._stopped = False
        self._failure: BaseException | None = None
        """Why there is no loop."""
        self._calls: set[_Call[Any]] = set()
        """The calls that threads wait for."""
        self._pending: BaseException | None = None
        """The exception of a handler that came while no caller waited."""
        # A daemon: a program that forgets to close us can still end.
        self._thread = threading.Thread(target=self._serve, name="antiphon", daemon=True)

    # The loop.

    def start(self) -> None:
        """Start the thread and its loop.

        Raises:
            OSError: there is no descriptor left for an event loop.
        """
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def _serve(self) -> None:
        try:
            with asyncio.Runner() as runner:
                loop = runner.get_loop()
                serving = loop.create_task(self._until_stopped())
                while not serving.done():
                    try:
                        loop.run_until_complete(serving)
                    except (SystemExit, KeyboardInterrupt) as error:  # out of a callback: the loop itself is in order
                        self._carry(error)
        except BaseException as error:
            if self._started.is_set():
                _log.error("the event loop of a connection failed", exc_info=error)
            else:
                self._failure = error
        finally:
            self._end()

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._started.set()
        if not self._stopped:  # by a caller that did not wait for the start
            await self._stop.wait()
        if self._close is not None:
            _ = background(self._close())
        limit = self._loop.time() + STOP_GRACE
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        while rest and (seconds := limit - self._loop.time()) > 0:  # such as the end of an agent, and what that begins
            await asyncio.wait(rest, timeout=seconds)
            rest = asyncio.all_tasks() - {asyncio.current_task()}

    def _end(self) -> None:
        """End all calls: there is no loop any more."""
        with self._lock:
            self._ended = True
            calls = tuple(self._calls)
        for call in calls:
            if not call.over.is_set():
                call.lose()
        self._started.set()

    def stop(self) -> None:
        """Stop the loop, and wait for the end of its thread."""
        self.stop_soon()
        if self._thread.is_alive():
            self._thread.join(JOIN_GRACE)

    def stop_soon(self) -> None:
        """Stop the loop, also one whose thread is only being started."""
        self._stopped = True
        if self._stop is not None:
            self._call_on_loop(self._stop.set)

    # The callers.

    def run(
        self, work: Coroutine[Any, Any, T], *, closing: bool = False, instead: Callable[[], object] | None = None
    ) -> T:
        """Run a coroutine on the loop, and wait for it. Ctrl-C cancels it, and so does a handler that ends the program.

        `closing`: nothing that a handler raises ends it, so that what has to be closed is. `instead` is called on the loop if the
        work is cancelled, or not even begun because of what a handler has raised before.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise LocalProtocolError(
                "this is called by the thread that would have to handle it: `on_update` must not send requests to the agent"
            )
        if not closing:
            try:
                self.raise_pending()
            except BaseException:
                work.close()
                if instead is not None:
                    self._call_on_loop(instead)
                raise
        call = _Call(work, closing=closing, instead=instead)
        try:
            self._begin(call)
            call.over.wait()
        except BaseException:
            self._call_on_loop(call.cancel)  # without effect where it was not even begun
            raise
        finally:
            with self._lock:
                self._calls.discard(call)
                carried, call.carried = call.carried, None
                if carried is not None and call.done:  # a turn that was begun must not be lost: the next call raises it
                    self._pending, carried = carried, None
        try:
            if carried is not None:
                raise carried
            return call.result()
        finally:
            del carried, call  # of the frames that a traceback holds: a cycle would keep the turn of this call

    def _begin(self, call: _Call[Any]) -> None:
        with self._lock:
            if not self._ended and self._call_on_loop(call.begin):
                self._calls.add(call)
                return
        call.lose()

    def _call_on_loop(self, do: Callable[[], object]) -> bool:
        """Call a function on the loop. False: the loop has ended."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(do)
        except RuntimeError:  # it is closed
            return False
        return self._loop is not None

    def raise_pending(self) -> None:
        """Raise the exception of a handler that came while no caller waited."""
        with self._lock:
            pending, self._pending = self._pending, None
        try:
            if pending is not None:
                raise pending
        finally:
            del pending

    def _carry(self, error: BaseException) -> None:
        """Give an exception of a handler that ends the program to the callers that wait now, else to the next one."""
        with self._lock:
            calls = [call for call in self._calls if not call.closing]
            for call in calls:
                call.carried = error
            if not calls:
                self._pending = error
        # On the loop, and not by waking the callers: what they do next comes after what their cancelled calls still send.
        for call in calls:
            self._call_on_loop(call.cancel)

    # Handlers.

    def in_thread(self, handler: Callable[[A], Any]) -> Callable[[A], Coroutine[Any, Any, Any]]:
        """Make a handler that the loop can wait for from one that may block, as `input()` does.

        It runs in a thread of its own that is not waited for: a question that was released may never be answered.
        """

        async def handle(asked: A) -> Any:
            if iscoroutinefunction(handler):
                return await self._answer(handler(asked))
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[Any] = loop.create_future()

            def work() -> None:
                finish: Callable[[Any], Any]
                try:
                    finish, value = answer.set_result, handler(asked)
                except StopIteration as error:  # a future takes any exception but this
                    finish, value = answer.set_exception, RuntimeError(f"a handler raised {error!r}")
                except Exception as error:
                    finish, value = answer.set_exception, error
                except BaseException as error:
                    self._carry(error)
                    finish, value = answer.cancel, None
                with suppress(RuntimeError):  # the loop is closed: nothing waits any more
                    loop.call_soon_threadsafe(lambda: answer.done() or finish(value))

            threading.Thread(target=work, name="antiphon handler", daemon=True).start()
            return await self._answer(maybe_await(await answer))

        return handle

    async def _answer(self, answer: Coroutine[Any, Any, T]) -> T:
        try:
            return await answer
        except (SystemExit, KeyboardInterrupt) as error:
            self._carry(error)
            raise asyncio.CancelledError from None

    def on_loop(self, handler: Callable[[A], Any]) -> Callable[[A], Any]:
        """Make a handler that is called on the loop. An exception that ends the program does not cost the updates behind this one."""
        if iscoroutinefunction(handler):
            return handler  # refused where it is used

        def handle(value: A) -> None:
            try:
                handler(value)
            except (SystemExit, KeyboardInterrupt) as error:
                self._carry(error)

        return handle
