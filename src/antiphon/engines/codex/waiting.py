"""A prompt that waits for the end of its turn. The server may tell the end before we know which turn is ours."""

import asyncio
from typing import TYPE_CHECKING

from antiphon.aio import ignore_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.news import End
    from antiphon.errors import AcpError

__all__ = ["Waiting"]


class Waiting:
    """For one turn."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.end: asyncio.Future[End] = loop.create_future()
        self.end.add_done_callback(ignore_result)  # a prompt that was called off asks for no error
        self._id: asyncio.Future[str | None] = loop.create_future()
        self._ends: dict[str, End] = {}
        self._started: str | None = None
        self._next = False

    async def id(self) -> str | None:
        """The turn's id, once it is known."""
        return await asyncio.shield(self._id)

    def is_turn(self, id: str | None) -> None:
        """This is the turn. None: there is none, and all is done."""
        if not self._id.done():
            self._id.set_result(id)
        if id in self._ends:
            self._finish(self._ends[id])
        elif id is None:
            from antiphon.engines.news import End

            self._finish(End())

    def is_next_turn(self) -> None:
        """It is the turn that starts now: the server does not say which."""
        self._next = True
        if self._started is not None:
            self.is_turn(self._started)

    def started(self, id: str) -> None:
        """A turn of the thread begins."""
        self._started = id
        if self._next and not self._id.done():
            self.is_turn(id)

    def ended(self, ids: "Sequence[str]", end: "End") -> None:
        """A turn of the thread is over."""
        self._ends.update(dict.fromkeys(ids, end))
        if self._id.done() and self._id.result() in ids:
            self._finish(end)

    def failed(self, id: str, error: "AcpError") -> None:
        """A turn of the thread is over, in a way that nobody understands."""
        if not self._id.done() or self._id.result() == id:
            self.fail(error)

    def fail(self, error: "AcpError") -> None:
        """There will be no end."""
        if not self._id.done():
            self._id.set_result(None)
        if not self.end.done():
            self.end.set_exception(error)

    def _finish(self, end: "End") -> None:
        if not self.end.done():
            self.end.set_result(end)
