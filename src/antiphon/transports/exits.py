"""Being told that a child has exited, and that all is gone which it started."""

import asyncio
from collections.abc import Callable
from typing import Final

from antiphon.transports import tree
from antiphon.transports.guard import Child
from antiphon.transports.watcher import END_LIMIT

__all__ = ["all_gone", "release", "when_exited"]

RELEASE_LIMIT: Final = END_LIMIT + 1
"""Seconds that a supervisor may take to end what is left: a little more than it gives itself."""

LOOK_AGAIN: Final = 0.02
"""Seconds between two looks at what is left of a tree."""


def when_exited(loop: asyncio.AbstractEventLoop, child: Child, tell: Callable[[], None]) -> None:
    """Call `tell` on the loop once the child has exited. It is not reaped before it is released: its group keeps its number as long."""
    descriptor = child.fileno()

    def look() -> None:
        if child.ended():
            loop.remove_reader(descriptor)
            tell()

    loop.add_reader(descriptor, look)


async def release(child: Child) -> None:
    """Release a child that this loop was to be told of, and wait until its supervisor has ended what was left of it."""
    descriptor = child.fileno()
    if descriptor < 0:
        return
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.remove_reader(descriptor)
    child.dismiss()
    loop.add_reader(descriptor, lambda: gone.set() if child.dismissed() else None)
    try:
        async with asyncio.timeout(RELEASE_LIMIT):
            await gone.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)
        child.release()


async def all_gone(child: Child, seconds: float) -> bool:
    """Whether the whole tree ends by itself within the time. No thread waits for it: many may end at once, and threads are few."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while await asyncio.to_thread(tree.processes_with, child.mark, child.supervisor):
        left = deadline - loop.time()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, LOOK_AGAIN))
    return True
