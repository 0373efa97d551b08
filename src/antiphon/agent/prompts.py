"""The prompts of one session, one at a time, and how they end.

Rule 1: a prompt that comes while another runs waits until that has ended; nothing that a user typed is lost or mixed.
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
from antiphon.protocol.base import BAD_INPUT
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
"""Seconds that a cancelled handler may take to clean up (to end a process, for example) before the turn is answered without it."""

MAX_WAITING: Final = 32
"""Prompts that may wait in one session. A person queues a few; a client that queues more is broken."""

_log = logging.getLogger(__name__)

Run = Callable[["AgentTurn"], Awaitable[PromptResult]]
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
    """The prompts of one session that run or wait, in order."""

    def __init__(self) -> None:
        self._line: list[_QueuedPrompt] = []

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return bool(self._line)

    def cancel(self) -> None:
        """Cancel the prompt that runs and those that wait."""
        for queued in self._line:
            queued.cancel()

    async def cancel_and_wait(self) -> None:
        """Cancel all prompts, and wait until they are answered. The grace of the hooks bounds the wait."""
        self.cancel()
        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Wait until no prompt runs or waits."""
        while self._line:
            await asyncio.wait([self._line[-1].over])

    async def take(self, turn: "AgentTurn", run: Run, wait: Wait | None = None) -> PromptResult:
        """Run a prompt when those before it have ended, and return its result. `wait` is called if there are any, with their number."""
        if len(self._line) > MAX_WAITING:
            raise RequestError(
                Code.INVALID_REQUEST,
                "Invalid request",
                f"{MAX_WAITING} prompts wait in this session already: let some be answered, or cancel them",
            )
        queued = _QueuedPrompt()
        self._line.append(queued)
        if self._line[0] is queued:
            queued.begin()
        elif wait is not None:
            wait(turn, len(self._line) - 1)
        try:
            if not queued.front.done():
                await asyncio.wait([queued.front, queued.cancelled], return_when=asyncio.FIRST_COMPLETED)
            if queued.cancelled.done():
                return PromptResult(StopReason.CANCELLED)
            return await _perform(turn, run, queued.cancelled)
        finally:
            end_turn(turn)
            self._line.remove(queued)
            queued.answer()
            if self._line and self._line[0].state is AgentTurnState.WAITING:
                self._line[0].begin()


async def _perform(turn: "AgentTurn", run: Run, cancelled: "asyncio.Future[None]") -> PromptResult:
    work = asyncio.ensure_future(run(turn))
    work.add_done_callback(ignore_result)  # it may fail in the very step in which this task is cancelled
    ends: list[asyncio.Future[Any]] = [work, cancelled]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:  # also when the request is cancelled or the client is gone: then this task is being cancelled
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
        ):  # cancelled once more: the work is ending already, and the next prompt waits for it
            await asyncio.shield(grace)
    if not work.done():
        _log.error("the hook of a prompt ignores its cancellation; the turn is answered without it")
        end_turn(turn)


# Additions to a turn that runs: the extension method that editors use. The protocol itself has none yet.

STEERING: Final = "_session/steering"
"""The extension method. Its params are those of a prompt."""

INJECTED: Final = {"outcome": "injected"}
_TOO_LATE: Final = {"outcome": "promptRequired", "reason": "noRunningTurn"}


def read_steering(params: msgspec.Raw) -> v1.Prompt:
    """Read the params of an addition.

    Raises:
        RequestError: the params are something else.
    """
    try:
        asked = salvage(params, v1.Prompt)
    except BAD_INPUT as error:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error
    if not asked.prompt:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "`prompt` is empty")
    return asked


def too_late(asked: v1.Prompt) -> dict[str, str]:
    """Return the response to an addition that came when no turn ran, for a client that then sends a prompt by itself.

    Raises:
        RequestError: the client did not announce that in `_meta`; without an error the text would be lost unseen.
    """
    steering = (asked.meta or {}).get("steering")
    if isinstance(steering, dict) and steering.get("idleBehavior") == "promptRequired":
        return _TOO_LATE
    raise RequestError(
        Code.INVALID_REQUEST,
        "Invalid request",
        "there is no turn that it could be added to: send it with `session/prompt`",
    )
