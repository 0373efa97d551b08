"""Names that one side makes up and the other only repeats. All are strings; nobody may read meaning into them."""

from typing import TypeAlias

__all__ = [
    "AuthMethodId", "CompactionId", "ConfigId", "ElicitationId", "GroupId", "McpRequestId", "McpServerId",
    "MessageId", "ModeId", "ModelId", "OptionId", "PlanId", "ProviderId", "SessionId", "TerminalId", "ToolCallId",
    "ValueId",
]  # fmt: skip

AuthMethodId: TypeAlias = str
CompactionId: TypeAlias = str
ConfigId: TypeAlias = str
ElicitationId: TypeAlias = str
GroupId: TypeAlias = str
McpRequestId: TypeAlias = str
McpServerId: TypeAlias = str
MessageId: TypeAlias = str
ModeId: TypeAlias = str
ModelId: TypeAlias = str
OptionId: TypeAlias = str
PlanId: TypeAlias = str
ProviderId: TypeAlias = str
SessionId: TypeAlias = str
TerminalId: TypeAlias = str
ToolCallId: TypeAlias = str
ValueId: TypeAlias = str
