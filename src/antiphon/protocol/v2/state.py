"""The foreground state of a session, and the work in its background."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Model, Unknown, Unstable, unstable
from antiphon.protocol.v1.updates import Usage
from antiphon.protocol.v2.base import Failure, SessionId, TerminalId, ToolCallId, UpdateModel
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "ActionRequiredState", "BackgroundSubagent", "BackgroundTerminal", "BackgroundToolCall", "BackgroundWork",
    "ForegroundState", "IdleState", "RunningState", "StateUpdate", "StopReason", "SubagentState", "UnknownState",
]  # fmt: skip


@unknown_reads_as(None)
class StopReason(Word):
    """Why foreground work ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    ERROR = "error"


class BackgroundTerminal(Model, frozen=True, tag_field="type", tag="terminal"):
    """A command that still runs."""

    terminal_id: TerminalId


class BackgroundToolCall(Model, frozen=True, tag_field="type", tag="tool_call"):
    """A call that still runs."""

    tool_call_id: ToolCallId


@unstable
class BackgroundSubagent(Model, frozen=True, tag_field="type", tag="subagent"):
    """A child session that still works."""

    session_id: SessionId


if TYPE_CHECKING:
    BackgroundWork: TypeAlias = BackgroundTerminal | BackgroundToolCall | BackgroundSubagent | Unknown
else:
    BackgroundWork = BackgroundTerminal | BackgroundToolCall | BackgroundSubagent


# The state of a session in its own updates. One object carries two tags, `sessionUpdate` and `state`, so the second one is a word here.


@unknown_reads_as(None)
class ForegroundState(Word):
    """What a session does. A word outside the list is neither idle nor the state before it."""

    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    IDLE = "idle"
    UNDETERMINED = "unknown"
    """Only in the unstable schema."""


class StateUpdate(UpdateModel, frozen=True, tag="state_update"):
    """The whole foreground state; a repeated one is not a new event. `stop_reason`, `error` and `usage` go with `idle` alone."""

    state: ForegroundState
    background: list[BackgroundWork] | None = None
    stop_reason: StopReason | None = None
    error: Failure | None = None
    usage: Unstable[Usage | None] = None


# The same states where they stand alone: in what an agent reports of a child session.


class RunningState(Model, frozen=True, tag_field="state", tag="running"):
    """The session works."""

    background: list[BackgroundWork] | None = None


class IdleState(Model, frozen=True, tag_field="state", tag="idle"):
    """The session waits for a prompt; `error` goes with the reason `error` alone."""

    stop_reason: StopReason | None = None
    error: Failure | None = None
    usage: Unstable[Usage | None] = None
    background: list[BackgroundWork] | None = None


class ActionRequiredState(Model, frozen=True, tag_field="state", tag="requires_action"):
    """Nothing in the foreground can go on without the user."""

    background: list[BackgroundWork] | None = None


@unstable
class UnknownState(Model, frozen=True, tag_field="state", tag="unknown"):
    """The agent itself does not know."""

    background: list[BackgroundWork] | None = None


if TYPE_CHECKING:
    SubagentState: TypeAlias = RunningState | IdleState | ActionRequiredState | UnknownState | Unknown
else:
    SubagentState = RunningState | IdleState | ActionRequiredState | UnknownState
