"""The prompts of one session, one at a time, and how they end.

Rule 1: a prompt that comes while another is worked on waits for its turn; nothing that a user typed is lost or mixed.
Rule 2: cancelling ends the turn that runs and those that wait. Each is answered `cancelled`, once, whatever its handler does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.aio import ignore_result
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1.session import PromptResult, StopReason

if TYPE_CHECKING:
    from antiphon.agent.turn import AgentTurn

__all__ = ["INJECTED", "MAX_WAITING", "STEERING", "TURN_GRACE", "PromptQueue", "read_steering", "too_late"]

TURN_GRACE: Final = 3.0
"""Seconds that a cancelled handler may take to clean up (end a process, say) before the turn is answered without it."""

MAX_WAITING: Final = 32
"""Prompts that may wait in one session. A person queues a few; a client that queues more has gone wrong."""

_log = logging.getLogger(__name__)

Play = Callable[["AgentTurn"], Awaitable[PromptResult]]
Wait = Callable[["AgentTurn", int], None]


class _Place:
    """A prompt's place in the line."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.front: asyncio.Future[None] = loop.create_future()
        self.cancelled: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()


class PromptQueue:
    """The line of one session."""

    def __init__(self) -> None:
        self._line: list[_Place] = []

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return bool(self._line)

    def cancel(self) -> None:
        """Call off what runs and what waits."""
        for place in self._line:
            if not place.cancelled.done():
                place.cancelled.set_result(None)

    async def cancel_and_wait(self) -> None:
        """Call off everything, and come back when all of it has been answered. The handlers' grace bounds the wait."""
        self.cancel()
        while self._line:
            place = self._line[-1]
            await asyncio.wait([place.over])

    async def take(self, turn: "AgentTurn", play: Play, wait: Wait | None = None) -> PromptResult:
        """Wait for our turn, play it, and say how it ended. `wait` hears that there is something to wait for, and how much."""
        if len(self._line) > MAX_WAITING:
            raise RequestError(
                Code.INVALID_REQUEST,
                "Invalid request",
                f"{MAX_WAITING} prompts wait in this session already: let some be answered, or cancel them",
            )
        place = _Place()
        self._line.append(place)
        if self._line[0] is place:
            place.front.set_result(None)
        elif wait is not None:
            wait(turn, len(self._line) - 1)
        try:
            if not place.front.done():
                await asyncio.wait([place.front, place.cancelled], return_when=asyncio.FIRST_COMPLETED)
            if place.cancelled.done():
                return PromptResult(StopReason.CANCELLED)
            return await _perform(turn, play, place.cancelled)
        finally:
            turn.end()
            self._line.remove(place)
            place.over.set_result(None)
            if self._line and not self._line[0].front.done():
                self._line[0].front.set_result(None)


async def _perform(turn: "AgentTurn", play: Play, cancelled: "asyncio.Future[None]") -> PromptResult:
    work = asyncio.ensure_future(play(turn))
    work.add_done_callback(ignore_result)  # it may fail in the very step in which we are cancelled
    ends: list[asyncio.Future[Any]] = [work, cancelled]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:  # also when the question itself is withdrawn, or the client is gone: then this task is being cancelled
        if not work.done():
            await _end(work, turn)
    if not cancelled.done() and not work.cancelled():
        return work.result()
    if work.done() and not work.cancelled() and (error := work.exception()) is not None:
        _log.info("a cancelled turn ended with an error", exc_info=error)
    return PromptResult(StopReason.CANCELLED)


async def _end(work: "asyncio.Future[PromptResult]", turn: "AgentTurn") -> None:
    work.cancel()
    grace = asyncio.ensure_future(asyncio.wait([work], timeout=TURN_GRACE))
    while not grace.done():
        with suppress(
            asyncio.CancelledError
        ):  # told to stop once more: we are stopping, and the next one waits until we have
            await asyncio.shield(grace)
    if not work.done():
        _log.error("the prompt's handler ignores its cancellation; the turn is answered without it")
        turn.end()


# --- Adding to a turn that runs: the extension that editors use for it. The protocol itself has no word for it yet

STEERING: Final = "_session/steering"
"""The method. Its params are those of a prompt."""

INJECTED: Final = {"outcome": "injected"}
_TOO_LATE: Final = {"outcome": "promptRequired", "reason": "noRunningTurn"}


def read_steering(params: msgspec.Raw) -> v1.Prompt:
    """What the user adds.

    Raises:
        RequestError: the params are something else.
    """
    try:
        asked = salvage(params, v1.Prompt)
    except msgspec.DecodeError as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error
    if not asked.prompt:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "`prompt` is empty")
    return asked


def too_late(asked: v1.Prompt) -> dict[str, str]:
    """The answer when no turn runs. A client that says so in advance prompts by itself; another is told, so that nothing is lost unseen.

    Raises:
        RequestError: it did not say so.
    """
    wish = (asked.meta or {}).get("steering")
    if isinstance(wish, dict) and wish.get("idleBehavior") == "promptRequired":
        return _TOO_LATE
    raise RequestError(
        Code.INVALID_REQUEST,
        "Invalid request",
        "there is no turn that it could be added to: send it with `session/prompt`",
    )
