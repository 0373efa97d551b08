"""Session updates: messages, plans, notices, usage, subagents, and the union of all kinds."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import UNSET, Exact, Items, Legacy, Model, Uint, Unknown, UnsetType, unstable
from antiphon.protocol.v1.base import (
    CompactionId,
    Failure,
    MessageId,
    PlanId,
    SessionId,
    SettingsUpdate,
    StateUpdate,
    UpdateModel,
)
from antiphon.protocol.v1.content import ContentBlock
from antiphon.protocol.v1.initialize import CancelSupport
from antiphon.protocol.v1.settings import (
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModelUpdate,
    CurrentModeUpdate,
)
from antiphon.protocol.v1.tools import ToolCall, ToolCallUpdate
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "ActionRequiredState",
    "AgentMessageChunk",
    "AgentThoughtChunk",
    "AvailableCommandsUpdate",
    "CompactionStatus",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "ConfigOptionUpdate",
    "Cost",
    "CurrentModeUpdate",
    "CurrentModelUpdate",
    "IdleReason",
    "IdleState",
    "MessageChunk",
    "NoticeSeverity",
    "NoticeUpdate",
    "Plan",
    "PlanContent",
    "PlanEntry",
    "PlanFile",
    "PlanItems",
    "PlanMarkdown",
    "PlanPriority",
    "PlanRemoved",
    "PlanStatus",
    "PlanUpdate",
    "RunningState",
    "SessionInfoUpdate",
    "SessionMessage",
    "SessionMessageChunk",
    "SettingsUpdate",
    "StateUpdate",
    "SubagentSessionCapabilities",
    "SubagentState",
    "SubagentUpdate",
    "ToolCall",
    "ToolCallUpdate",
    "UnknownState",
    "Update",
    "UpdateModel",
    "Usage",
    "UsageUpdate",
    "UserMessageChunk",
]

# Messages as they are streamed, piece by piece, and messages that sessions send each other.


class MessageChunk(UpdateModel, frozen=True):
    """The next piece of a message; a new `message_id` starts a new one."""

    content: ContentBlock
    message_id: MessageId | None = None


class UserMessageChunk(MessageChunk, frozen=True, tag="user_message_chunk"):
    """A piece of a user message, as in a replayed history."""


class AgentMessageChunk(MessageChunk, frozen=True, tag="agent_message_chunk"):
    """A piece of the answer."""


class AgentThoughtChunk(MessageChunk, frozen=True, tag="agent_thought_chunk"):
    """A piece of the model's thinking."""


@unstable
class SessionMessage(UpdateModel, frozen=True, tag="session_message"):
    """A message between sessions, new or changed: an absent field stays as it was."""

    message_id: MessageId
    sender_session_id: SessionId | None | UnsetType = UNSET
    recipient_session_id: SessionId | None | UnsetType = UNSET
    sender_message_id: MessageId | None | UnsetType = UNSET
    recipient_message_id: MessageId | None | UnsetType = UNSET
    content: Items[ContentBlock] | None | UnsetType = UNSET


@unstable
class SessionMessageChunk(UpdateModel, frozen=True, tag="session_message_chunk"):
    """A piece to add to a message between sessions."""

    message_id: MessageId
    content: ContentBlock


# Notices, compaction of the context, and the title of the session.


@unknown_reads_as("info")
class NoticeSeverity(Word):
    """How loudly to show a notice."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoticeUpdate(UpdateModel, frozen=True, tag="notice"):
    """Something the user should know that belongs to no message."""

    severity: NoticeSeverity
    title: str
    description: str | None = None


@unknown_reads_as(None)
class CompactionStatus(Word):
    """How far a compaction is."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CompactionUpdate(UpdateModel, frozen=True, tag="compaction_update"):
    """The context is being shortened: an absent field stays as it was."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: Items[ContentBlock] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET


class CompactionSummaryChunk(UpdateModel, frozen=True, tag="compaction_summary_chunk"):
    """The next piece of a compaction's summary."""

    compaction_id: CompactionId
    content: ContentBlock


class SessionInfoUpdate(SettingsUpdate, frozen=True, tag="session_info_update"):
    """The session's title or date changed: an absent field stays as it was."""

    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET


# The agent's plan: one list in the stable protocol, several plans of several forms in the unstable one.


@unknown_reads_as("medium")
class PlanPriority(Word):
    """How much an entry matters."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@unknown_reads_as("pending")
class PlanStatus(Word):
    """How far an entry is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanEntry(Model, frozen=True):
    """One step of a plan."""

    content: str
    priority: PlanPriority
    status: PlanStatus
    id: Legacy[str | None] = None


class Plan(UpdateModel, frozen=True, tag="plan"):
    """The whole plan; it replaces the one before."""

    entries: Items[PlanEntry]


@unstable
class PlanItems(Model, frozen=True, tag_field="type", tag="items"):
    """A plan as a list of things to do."""

    plan_id: PlanId
    entries: Items[PlanEntry]


@unstable
class PlanFile(Model, frozen=True, tag_field="type", tag="file"):
    """A plan that stands in a file."""

    plan_id: PlanId
    uri: str


@unstable
class PlanMarkdown(Model, frozen=True, tag_field="type", tag="markdown"):
    """A plan written out as Markdown."""

    plan_id: PlanId
    content: str


if TYPE_CHECKING:
    PlanContent: TypeAlias = PlanItems | PlanFile | PlanMarkdown | Unknown
else:
    PlanContent = PlanItems | PlanFile | PlanMarkdown


@unstable
class PlanUpdate(UpdateModel, frozen=True, tag="plan_update"):
    """One plan of several, new or replaced."""

    plan: PlanContent


@unstable
class PlanRemoved(UpdateModel, frozen=True, tag="plan_removed"):
    """A plan is no longer followed."""

    plan_id: PlanId


# Tokens and money.


class Cost(Model, frozen=True):
    """What a session has cost so far; `currency` is an ISO 4217 code."""

    amount: float
    currency: str


@unstable
class Usage(Model, frozen=True):
    """Tokens used up, added over the session."""

    total_tokens: Uint
    input_tokens: Uint
    output_tokens: Uint
    thought_tokens: Uint | None = None
    cached_read_tokens: Uint | None = None
    cached_write_tokens: Uint | None = None


class UsageUpdate(StateUpdate, frozen=True, tag="usage_update"):
    """How full the context window is."""

    used: Uint
    size: Uint
    cost: Cost | None = None


# Sessions that a session started: where they work and whether they are busy. All of it is unstable.


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
    """The agent itself does not know."""


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


# Unstable: PlanUpdate, PlanRemoved, SubagentUpdate, SessionMessage, SessionMessageChunk. Legacy: CurrentModelUpdate.
_Known: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallUpdate
    | Plan
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | NoticeUpdate
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
    | CurrentModelUpdate
)

if TYPE_CHECKING:
    from antiphon.protocol.base import Unknown

    Update: TypeAlias = _Known | Unknown
else:
    Update = _Known
