"""The prompts of one session, one at a time, and how they end.

Rule 1: a prompt that comes while another is worked on waits for its turn; nothing that a user typed is lost or mixed.
Rule 2: cancelling ends the turn that runs and those that wait. Each is answered `cancelled`, once, whatever its handler does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.agent.questions import end_turn
from antiphon.aio import ignore_result
from antiphon.errors import Code, RequestError
from antiphon.life import Life
from antiphon.protocol import v1
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1.session import PromptResult, StopReason

if TYPE_CHECKING:
    from antiphon.agent.turn import AgentTurn

__all__ = [
    "AGENT_TURN_LIFE",
    "INJECTED",
    "MAX_WAITING",
    "STEERING",
    "TURN_GRACE",
    "AgentTurnEvent",
    "AgentTurnState",
    "PromptQueue",
    "read_steering",
    "too_late",
]

TURN_GRACE: Final = 3.0
"""Seconds that a cancelled handler may take to clean up (end a process, say) before the turn is answered without it."""

MAX_WAITING: Final = 32
"""Prompts that may wait in one session. A person queues a few; a client that queues more has gone wrong."""

_log = logging.getLogger(__name__)

Play = Callable[["AgentTurn"], Awaitable[PromptResult]]
Wait = Callable[["AgentTurn", int], None]


class AgentTurnState(Enum):
    """How far a prompt is at the agent."""

    WAITING = "waiting"
    """Another prompt of the session runs."""
    RUNNING = "running"
    CANCELLING = "being cancelled"
    """Its hook has `TURN_GRACE` to end."""
    ANSWERED = "answered"


class AgentTurnEvent(Enum):
    """What can happen to a prompt at the agent."""

    BEGIN = "begin"
    CANCEL = "be cancelled"
    ANSWER = "be answered"


_S, _E = AgentTurnState, AgentTurnEvent
AGENT_TURN_LIFE: Final = Life(
    "turn of an agent",
    _S.WAITING,
    {
        _S.WAITING: {_E.BEGIN: _S.RUNNING, _E.CANCEL: _S.CANCELLING, _E.ANSWER: _S.ANSWERED},
        _S.RUNNING: {_E.CANCEL: _S.CANCELLING, _E.ANSWER: _S.ANSWERED},
        _S.CANCELLING: {_E.CANCEL: _S.CANCELLING, _E.ANSWER: _S.ANSWERED},
        _S.ANSWERED: {_E.CANCEL: _S.ANSWERED},
    },
    "One prompt of a session runs at a time. A prompt whose request is cancelled, or whose client is gone, is answered from any state.",
)


class _QueuedPrompt:
    """A prompt that runs or waits, and the futures that others wait for."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.state = AGENT_TURN_LIFE.start
        self.front: asyncio.Future[None] = loop.create_future()
        self.cancelled: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()

    def begin(self) -> None:
        """Let it run: it is the first now."""
        self.state = AGENT_TURN_LIFE.next(self.state, _E.BEGIN)
        self.front.set_result(None)

    def cancel(self) -> None:
        """Cancel it, whether it runs or waits."""
        self.state = AGENT_TURN_LIFE.next(self.state, _E.CANCEL)
        if not self.cancelled.done():
            self.cancelled.set_result(None)

    def answer(self) -> None:
        """Note that it has its response."""
        self.state = AGENT_TURN_LIFE.next(self.state, _E.ANSWER)
        self.over.set_result(None)


class PromptQueue:
    """The line of one session."""

    def __init__(self) -> None:
        self._line: list[_QueuedPrompt] = []

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return bool(self._line)

    def cancel(self) -> None:
        """Call off what runs and what waits."""
        for place in self._line:
            place.cancel()

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
        place = _QueuedPrompt()
        self._line.append(place)
        if self._line[0] is place:
            place.begin()
        elif wait is not None:
            wait(turn, len(self._line) - 1)
        try:
            if not place.front.done():
                await asyncio.wait([place.front, place.cancelled], return_when=asyncio.FIRST_COMPLETED)
            if place.cancelled.done():
                return PromptResult(StopReason.CANCELLED)
            return await _perform(turn, play, place.cancelled)
        finally:
            end_turn(turn)
            self._line.remove(place)
            place.answer()
            if self._line and self._line[0].state is AgentTurnState.WAITING:
                self._line[0].begin()


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
        end_turn(turn)


# Adding to a turn that runs: the extension that editors use for it. The protocol itself has no word for it yet.

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
