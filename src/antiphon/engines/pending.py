"""Questions of a program that wait for the user: each is a task, several at a time, and any of them may be withdrawn."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial

from antiphon.aio import ignore_result

__all__ = ["Pending"]


class Pending:
    """The open questions of one session, by the key that the program knows them by."""

    def __init__(self) -> None:
        self._open: dict[Hashable, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, key: Hashable, asking: "Coroutine[object, object, None]") -> None:
        """Ask, beside everything else."""
        task = asyncio.get_running_loop().create_task(asking, name=f"ask {key}")
        self._open[key] = task
        task.add_done_callback(ignore_result)
        task.add_done_callback(partial(self._over, key))

    def _over(self, key: Hashable, task: "asyncio.Task[None]") -> None:
        if self._open.get(key) is task:  # the program may have asked again by the same key
            del self._open[key]

    def withdraw(self, key: Hashable) -> None:
        """The program does not want to know any more; nor does the client have to ask."""
        if (asking := self._open.get(key)) is not None:
            asking.cancel()

    def withdraw_all(self, which: Callable[[Hashable], bool] = lambda _: True) -> None:
        """Nor any other, or any of these."""
        for key, asking in list(self._open.items()):
            if which(key):
                asking.cancel()
