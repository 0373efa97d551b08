"""Small helpers for asyncio: values that may have to be awaited, tasks whose end is awaited elsewhere or not at all."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar, cast

__all__ = ["NO_WAIT", "NoWait", "background", "current_task", "ignore_result", "maybe_await", "start_task"]

T = TypeVar("T")


async def maybe_await(value: T | Awaitable[T]) -> T:
    """Return what a handler gave, whether it is `def` or `async def`."""
    return await value if isinstance(value, Awaitable) else value


class NoWait:
    """An awaitable that is done: awaiting it costs no turn of the event loop."""

    __slots__ = ()

    def __await__(self) -> "Generator[object, None, None]":
        return _NOTHING


_NOTHING: Final = cast("Generator[object, None, None]", iter(()))

NO_WAIT: Final = NoWait()
"""The return value of a function that has nothing to wait for."""


def ignore_result(task: "asyncio.Future[Any]") -> None:
    """Mark the error of a task as seen, for a task that may end when nothing waits for it any more."""
    if not task.cancelled():
        task.exception()


_BACKGROUND: Final["set[asyncio.Task[object]]"] = set()


def background(
    work: "Coroutine[object, object, T]", tasks: "set[asyncio.Task[object]]" = _BACKGROUND
) -> "asyncio.Task[T]":
    """Start a task that goes on when its caller is cancelled. Its error is not reported when nothing waits for it.

    `tasks` holds the task until it ends: the event loop itself only has a weak reference.
    """
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    task.add_done_callback(ignore_result)
    return task


if sys.version_info >= (3, 12):
    from asyncio import current_task as current_task

    def start_task(
        loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, None], name: str
    ) -> "asyncio.Task[None]":
        """Run a coroutine up to its first wait at once, and the rest as a task."""
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)

else:
    # There `asyncio.current_task` is a function in Python, which costs a microsecond where its code has left the cache.
    current_task: "Callable[[asyncio.AbstractEventLoop], asyncio.Task[object] | None]"
    current_task = vars(asyncio.tasks)["_current_tasks"].get

    def start_task(
        loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, None], name: str
    ) -> "asyncio.Task[None]":
        """Start a task that begins in the next turn of the event loop."""
        return loop.create_task(work, name=name)
