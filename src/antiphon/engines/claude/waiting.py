"""A prompt that waits for its end, with what the user added to it meanwhile: all of it has to be answered, by the process it was said to."""

import asyncio
from typing import TYPE_CHECKING

from antiphon.aio import ignore_result
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.engines.claude.process import Process
    from antiphon.engines.news import End
    from antiphon.errors import AcpError

__all__ = ["Waiting"]


class Waiting:
    """For one prompt. `end` is None if it never began, because it was called off."""

    def __init__(self, process: "Process", id: str) -> None:
        self.process = process
        self.id = id
        self._ids = {id}
        self._worst: End | None = None
        self.end: asyncio.Future[End | None] = asyncio.get_running_loop().create_future()
        self.end.add_done_callback(
            ignore_result
        )  # a turn that is cancelled waits for its end, and not for how it ended

    def add(self, id: str) -> None:
        """The user adds something."""
        self._ids.add(id)

    def owns(self, id: str) -> bool:
        """Whether it was said here."""
        return id in self._ids

    def answered(self, ids: "Sequence[str]", end: "End | None") -> None:
        """These have been answered, or, without ids, all of them: an older CLI does not tell.

        Of several ends the first one counts that is not a plain one, so that no trouble is hidden by what came after it.
        """
        self._ids -= set(ids or self._ids)
        if self._worst is None or _is_plain(self._worst):
            self._worst = end or self._worst
        if not self._ids and not self.end.done():
            self.end.set_result(self._worst)

    def fail(self, error: "AcpError") -> None:
        """There will be no end."""
        if not self.end.done():
            self.end.set_exception(error)


def _is_plain(end: "End") -> bool:
    return end.error is None and end.stop_reason in (None, v1.StopReason.END_TURN)
