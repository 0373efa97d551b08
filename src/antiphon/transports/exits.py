"""Being told that a child has exited and how, without reaping it: while the zombie stands, its group keeps its number.

And that all is gone which it started.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from antiphon.transports import tree

__all__ = ["all_gone", "exit_status", "when_exited"]

Child = subprocess.Popen[bytes]

LOOK_AGAIN: Final = 0.02
"""Seconds between two looks at what is left of a tree."""


def when_exited(loop: asyncio.AbstractEventLoop, child: Child, tell: Callable[[], None]) -> None:
    """Call `tell` on the loop once the child has exited."""
    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # macOS, an old kernel, a sandbox
        threading.Thread(target=_wait_in_thread, args=(loop, child, tell), daemon=True).start()
        return

    def exited() -> None:
        loop.remove_reader(fd)
        os.close(fd)
        tell()

    loop.add_reader(fd, exited)


def _wait_in_thread(loop: asyncio.AbstractEventLoop, child: Child, tell: Callable[[], None]) -> None:
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):  # reaped by somebody else: gone all the same
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    else:  # macOS before Python 3.13
        child.wait()
    with suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(tell)


def exit_status(child: Child) -> int | None:
    """How an exited child ended: its status, or the negative of the signal that ended it."""
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.poll()
    try:
        found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return child.poll()
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


async def all_gone(mark: str, seconds: float) -> bool:
    """Whether the whole tree ends by itself within the time. No thread waits for it: many may end at once, and threads are few."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while await asyncio.to_thread(tree.processes_with, mark):
        left = deadline - loop.time()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, LOOK_AGAIN))
    return True
