"""Starting a handler's task, without a turn of the loop where Python can (3.12 and later)."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

__all__ = ["start_task"]

if sys.version_info >= (3, 12):

    def start_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Run up to its first wait at once, the rest as a task."""
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)

else:

    def start_task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """A task that begins in the next turn of the loop."""
        return loop.create_task(work, name=name)
