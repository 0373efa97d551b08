"""All the news a session may bring. Each kind lives with its topic; this is the list."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.v1.commands import AvailableCommandsUpdate
from antiphon.protocol.v1.config import ConfigOptionUpdate
from antiphon.protocol.v1.legacy import CurrentModelUpdate
from antiphon.protocol.v1.messages import (
    AgentMessageChunk,
    AgentThoughtChunk,
    MessageChunk,
    SessionMessage,
    SessionMessageChunk,
    UserMessageChunk,
)
from antiphon.protocol.v1.modes import CurrentModeUpdate
from antiphon.protocol.v1.notices import CompactionSummaryChunk, CompactionUpdate, NoticeUpdate, SessionInfoUpdate
from antiphon.protocol.v1.plan import Plan, PlanRemoved, PlanUpdate
from antiphon.protocol.v1.subagents import SubagentUpdate
from antiphon.protocol.v1.tools import ToolCall, ToolCallUpdate
from antiphon.protocol.v1.updating import SettingsUpdate, StateUpdate, UpdateModel
from antiphon.protocol.v1.usage import UsageUpdate

__all__ = [
    "AgentMessageChunk", "AgentThoughtChunk", "AvailableCommandsUpdate", "CompactionSummaryChunk", "CompactionUpdate",
    "ConfigOptionUpdate", "CurrentModeUpdate", "CurrentModelUpdate", "MessageChunk", "NoticeUpdate", "Plan",
    "PlanRemoved", "PlanUpdate", "SessionInfoUpdate", "SessionMessage", "SessionMessageChunk", "SettingsUpdate",
    "StateUpdate", "SubagentUpdate",
    "ToolCall", "ToolCallUpdate", "Update", "UpdateModel", "UsageUpdate", "UserMessageChunk",
]  # fmt: skip

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
