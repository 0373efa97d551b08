"""Session updates: messages, plans, notices, usage, and the union of all kinds."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import UNSET, Items, Model, Skip, Uint, Unknown, UnsetType
from antiphon.protocol.v1.updates import CompactionStatus, Cost, NoticeSeverity, PlanPriority
from antiphon.protocol.v2.base import CompactionId, MessageId, PlanId, UpdateModel, UpdatePatch
from antiphon.protocol.v2.content import ContentBlock
from antiphon.protocol.v2.drafts import (
    PlanFile,
    PlanMarkdown,
    PlanRemoved,
    SessionMessage,
    SessionMessageChunk,
    SubagentUpdate,
)
from antiphon.protocol.v2.settings import AvailableCommandsUpdate, ConfigOptionUpdate
from antiphon.protocol.v2.state import StateUpdate
from antiphon.protocol.v2.tools import TerminalOutputChunk, TerminalUpdate, ToolCallContentChunk, ToolCallUpdate
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "AgentMessageChunk",
    "AgentMessageUpdate",
    "AgentThoughtChunk",
    "AgentThoughtUpdate",
    "AvailableCommandsUpdate",
    "CompactionStatus",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "ConfigOptionUpdate",
    "Cost",
    "MessageChunk",
    "MessageUpdate",
    "NoticeSeverity",
    "NoticeUpdate",
    "PlanContent",
    "PlanEntry",
    "PlanItems",
    "PlanPriority",
    "PlanStatus",
    "PlanUpdate",
    "SessionInfoUpdate",
    "StateUpdate",
    "TerminalOutputChunk",
    "TerminalUpdate",
    "ToolCallContentChunk",
    "ToolCallUpdate",
    "Update",
    "UsageUpdate",
    "UserMessageChunk",
    "UserMessageUpdate",
]  # fmt: skip

# Messages: whole, or piece by piece. A message is known by its kind and its id; those of several messages may interleave.


class MessageChunk(UpdateModel, frozen=True):
    """The next piece of a message."""

    message_id: MessageId
    content: ContentBlock


class UserMessageChunk(MessageChunk, frozen=True, tag="user_message_chunk"):
    """A piece of a user message."""


class AgentMessageChunk(MessageChunk, frozen=True, tag="agent_message_chunk"):
    """A piece of the agent's message."""


class AgentThoughtChunk(MessageChunk, frozen=True, tag="agent_thought_chunk"):
    """A piece of the model's thinking."""


class MessageUpdate(UpdatePatch, frozen=True, kw_only=True):
    """A message, new or changed: absent content stays as it was, `null` and an empty list clear it, a list replaces all of it."""

    message_id: MessageId
    content: Items[ContentBlock] | None | UnsetType = UNSET


class UserMessageUpdate(MessageUpdate, frozen=True, kw_only=True, tag="user_message"):
    """A user message."""


class AgentMessageUpdate(MessageUpdate, frozen=True, kw_only=True, tag="agent_message"):
    """A message of the agent."""


class AgentThoughtUpdate(MessageUpdate, frozen=True, kw_only=True, tag="agent_thought"):
    """The model's thinking."""


# Plans, of which a session may have several.


@unknown_reads_as("pending")
class PlanStatus(Word):
    """How far an entry is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class PlanEntry(Model, frozen=True):
    """One step of a plan."""

    content: str
    priority: PlanPriority
    status: PlanStatus


class PlanItems(Model, frozen=True, tag_field="type", tag="items"):
    """A plan as a list of things to do."""

    plan_id: PlanId
    entries: Skip[PlanEntry]


if TYPE_CHECKING:
    PlanContent: TypeAlias = PlanItems | PlanFile | PlanMarkdown | Unknown
else:
    PlanContent = PlanItems | PlanFile | PlanMarkdown


class PlanUpdate(UpdateModel, frozen=True, tag="plan_update"):
    """One plan, new or replaced."""

    plan: PlanContent


# Notices, compaction of the context, the title of the session, and usage.


class NoticeUpdate(UpdateModel, frozen=True, tag="notice"):
    """Something the user should know that belongs to no message."""

    severity: NoticeSeverity
    title: str
    description: str | None = None


class CompactionUpdate(UpdatePatch, frozen=True, kw_only=True, tag="compaction_update"):
    """The context is being shortened: an absent field stays as it was."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: Items[ContentBlock] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET


class CompactionSummaryChunk(UpdateModel, frozen=True, tag="compaction_summary_chunk"):
    """The next piece of a compaction's summary."""

    compaction_id: CompactionId
    content: ContentBlock


class SessionInfoUpdate(UpdatePatch, frozen=True, kw_only=True, tag="session_info_update"):
    """The session's title or date changed: an absent field stays as it was."""

    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET


class UsageUpdate(UpdateModel, frozen=True, tag="usage_update"):
    """How full the context window is; an absent cost stays as it was."""

    used: Uint
    size: Uint
    cost: Cost | None | UnsetType = UNSET


# Unstable: PlanRemoved, SubagentUpdate, SessionMessage, SessionMessageChunk.
_Known: TypeAlias = (
    UserMessageChunk
    | UserMessageUpdate
    | AgentMessageChunk
    | AgentMessageUpdate
    | AgentThoughtChunk
    | AgentThoughtUpdate
    | StateUpdate
    | ToolCallContentChunk
    | ToolCallUpdate
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | NoticeUpdate
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
)

if TYPE_CHECKING:
    Update: TypeAlias = _Known | Unknown
else:
    Update = _Known
