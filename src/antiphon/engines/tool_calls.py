"""The life of a tool call, which the translators of both CLIs follow, and the calls of one session by their ids.

A CLI may report a call twice, report its end twice, or never. So every call has a state, and what the CLI reports is an event that the
table allows in that state or that the translator ignores; a client never gets the start or the end of a call twice.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from antiphon.engines.bounded import trim
from antiphon.life import Life
from antiphon.protocol import v1

__all__ = ["STATUS", "TOOL_CALL_LIFE", "OpenCall", "ToolCallChange", "ToolCallState", "ToolCalls"]


class ToolCallState(Enum):
    """How far a tool call is."""

    WRITING = "being written"
    WAITING = "waiting for permission"
    RUNNING = "running"
    CLOSED = "closed"
    """We reported its end, because the turn or the CLI ended first. Its real end may still come."""
    ENDING = "ending"
    """Closed like this while its command was running, so that its real end comes soon."""
    COMPLETED = "completed"
    FAILED = "failed"


class ToolCallChange(Enum):
    """What happens to a tool call."""

    RUN = "run"
    ASK = "ask for permission"
    SUCCEED = "succeed"
    FAIL = "fail"
    CLOSE = "be closed"
    CLOSE_RUNNING = "be closed while its command runs"
    FORGET = "be forgotten"


_STATE, _EVENT = ToolCallState, ToolCallChange
_ENDS: Final = {
    _EVENT.SUCCEED: _STATE.COMPLETED,
    _EVENT.FAIL: _STATE.FAILED,
    _EVENT.CLOSE: _STATE.CLOSED,
    _EVENT.CLOSE_RUNNING: _STATE.ENDING,
}
_LATE: Final = {_EVENT.SUCCEED: _STATE.COMPLETED, _EVENT.FAIL: _STATE.FAILED, _EVENT.FORGET: _STATE.FAILED}

TOOL_CALL_LIFE: Final[Life[ToolCallState, ToolCallChange]] = Life(
    "tool call",
    _STATE.WRITING,
    {
        _STATE.WRITING: {_EVENT.RUN: _STATE.RUNNING, _EVENT.ASK: _STATE.WAITING, **_ENDS},
        _STATE.WAITING: {_EVENT.RUN: _STATE.RUNNING, _EVENT.ASK: _STATE.WAITING, **_ENDS},
        _STATE.RUNNING: {_EVENT.RUN: _STATE.RUNNING, _EVENT.ASK: _STATE.WAITING, **_ENDS},
        _STATE.CLOSED: _LATE,
        _STATE.ENDING: _LATE,
        _STATE.COMPLETED: {_EVENT.FORGET: _STATE.COMPLETED},
        _STATE.FAILED: {_EVENT.FORGET: _STATE.FAILED},
    },
    about="Codex reports a call when it runs, Claude Code when the model begins to write it. Only Codex reports the end of a closed call.",
)

STATUS: Final[Mapping[ToolCallState, v1.ToolStatus]] = {
    _STATE.WRITING: v1.ToolStatus.PENDING,
    _STATE.WAITING: v1.ToolStatus.PENDING,
    _STATE.RUNNING: v1.ToolStatus.IN_PROGRESS,
    _STATE.CLOSED: v1.ToolStatus.FAILED,
    _STATE.ENDING: v1.ToolStatus.FAILED,
    _STATE.COMPLETED: v1.ToolStatus.COMPLETED,
    _STATE.FAILED: v1.ToolStatus.FAILED,
}
"""The status of the protocol for each state."""


class OpenCall:
    """A tool call that is not over. Each translator adds what it knows of its calls."""

    __slots__ = ("id", "state")

    def __init__(self, id: str) -> None:
        self.id = id
        self.state = TOOL_CALL_LIFE.start

    @property
    def status(self) -> v1.ToolStatus:
        """The status that a client gets."""
        return STATUS[self.state]

    @property
    def is_pending(self) -> bool:
        """Whether it is being written, or waits for permission."""
        return self.state in (ToolCallState.WRITING, ToolCallState.WAITING)

    def apply(self, event: ToolCallChange) -> v1.ToolStatus:
        """Change its state, and return its status now."""
        self.state = TOOL_CALL_LIFE.next(self.state, event)
        return self.status


C = TypeVar("C", bound=OpenCall)


class ToolCalls(Generic[C]):
    """The calls of one session: those that are open, and how the last ones ended."""

    def __init__(self) -> None:
        self._open: dict[str, C] = {}
        self._over: dict[str, ToolCallState] = {}

    def get(self, id: str | None) -> C | None:
        """Return a call that is not over."""
        return self._open.get(id) if id is not None else None

    def is_over(self, id: str) -> bool:
        """Whether its end was reported, by the CLI or by us."""
        return id in self._over

    def is_known(self, id: str) -> bool:
        """Whether its start was reported."""
        return id in self._open or id in self._over

    def all_open(self) -> list[C]:
        """Return the calls that are not over, the latest first."""
        return list(self._open.values())[::-1]

    def end(self, id: str, event: ToolCallChange) -> v1.ToolStatus:
        """End a call, also one that was never open or that is closed; return its status now."""
        call = self._open.pop(id, None)
        before = call.state if call is not None else self._over.pop(id, TOOL_CALL_LIFE.start)
        state = self._over[id] = TOOL_CALL_LIFE.next(before, event)
        trim(self._over)
        return STATUS[state]
