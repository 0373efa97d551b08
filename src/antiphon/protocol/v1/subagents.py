"""Sessions that a session started: where they work and whether they are busy. All of it is unstable."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import UNSET, Exact, Model, Unknown, UnsetType, unstable
from antiphon.protocol.v1.ids import SessionId
from antiphon.protocol.v1.requests import Failure
from antiphon.protocol.v1.support import CancelSupport
from antiphon.protocol.v1.updating import UpdateModel
from antiphon.protocol.v1.usage import Usage
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "ActionRequiredState", "IdleReason", "IdleState", "RunningState", "SubagentSessionCapabilities", "SubagentState",
    "SubagentUpdate", "UnknownState",
]  # fmt: skip


@unstable
@unknown_reads_as(None)
class IdleReason(Word):
    """Why a child stopped: the reasons of a prompt, and failure."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    ERROR = "error"


@unstable
class RunningState(Model, frozen=True, tag_field="state", tag="running"):
    """The child is working."""


@unstable
class IdleState(Model, frozen=True, tag_field="state", tag="idle"):
    """The child waits for its next message; `error` goes with the reason `error` alone."""

    stop_reason: IdleReason | None = None
    error: Failure | None = None
    usage: Usage | None = None


@unstable
class ActionRequiredState(Model, frozen=True, tag_field="state", tag="requires_action"):
    """The child waits for the user."""


@unstable
class UnknownState(Model, frozen=True, tag_field="state", tag="unknown"):
    """The agent itself cannot say."""


if TYPE_CHECKING:
    SubagentState: TypeAlias = RunningState | IdleState | ActionRequiredState | UnknownState | Unknown
else:
    SubagentState = RunningState | IdleState | ActionRequiredState | UnknownState


@unstable
class SubagentSessionCapabilities(Model, frozen=True):
    """What the client may do to the child."""

    cancel: CancelSupport | None = None


@unstable
class SubagentUpdate(UpdateModel, frozen=True, tag="subagent_update"):
    """A child session appeared or changed: an absent field stays as it was."""

    session_id: SessionId
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    capabilities: SubagentSessionCapabilities | None | UnsetType = UNSET
    state: SubagentState | None | UnsetType = UNSET
    cwd: Exact[str | None | UnsetType] = UNSET
    additional_directories: Exact[list[str] | None | UnsetType] = UNSET
