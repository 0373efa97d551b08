"""Waits of tests that have no event to wait for: until a condition holds, all else in the loop waits, or a tree of processes has ended."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from antiphon.transports.tree import processes_with
from tests.limits import limit

__all__ = ["idle", "turns", "until", "wait_until_gone"]

SHORTEST, LONGEST, WAITED_SHARE = 0.001, 0.02, 20
"""Seconds between two looks at a condition: a twentieth of the time waited so far. Several processes wait at once, and one that looks every
millisecond takes a tenth of a processor from what it waits for."""

_waiting: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()
"""How many tasks of a loop wait until it is idle: each has one callback that is ready."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    async with asyncio.timeout(limit()):
        while not condition():  # for what has no event
            waited = loop.time() - begin
            await asyncio.sleep(min(max(waited / WAITED_SHARE, SHORTEST), LONGEST))


async def idle() -> None:
    """Wait until every other task of this loop waits: no callback is ready, and no descriptor is.

    What a test says did not happen has then had every chance to.
    """
    loop: Any = asyncio.get_running_loop()
    _waiting[loop] = _waiting.get(loop, 0) + 1
    try:
        async with asyncio.timeout(limit()):
            await asyncio.sleep(0)
            while len(loop._ready) >= _waiting[loop] or loop._selector.select(0):  # noqa: ASYNC110
                await asyncio.sleep(0)
    finally:
        _waiting[loop] -= 1


async def turns(count: int) -> None:
    """Let the loop turn: once is the first step of a task that was just started, a random number a random moment. No clock."""
    for _ in range(count):
        await asyncio.sleep(0)


def wait_until_gone(mark: str, seconds: float) -> bool:
    """Return whether the whole tree of processes ends by itself within the time."""
    deadline = time.monotonic() + seconds
    while processes_with(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(LONGEST)
    return True
