"""What several topics share: ids, secrets, the base of updates, and request ids.

An id is made by one side and only repeated by the other. All are strings without a meaning of their own.
"""

from typing import ClassVar, TypeAlias

from antiphon.protocol.base import UNSET, Json, Legacy, Model, UnsetType

__all__ = [
    "HIDDEN",
    "AuthMethodId",
    "CancelRequest",
    "CompactionId",
    "ConfigId",
    "ElicitationId",
    "Failure",
    "GroupId",
    "McpRequestId",
    "McpServerId",
    "MessageId",
    "ModeId",
    "ModelId",
    "OptionId",
    "PlanId",
    "ProviderId",
    "RequestId",
    "SecretModel",
    "SessionId",
    "SettingsUpdate",
    "StateUpdate",
    "TerminalId",
    "ToolCallId",
    "UpdateModel",
    "ValueId",
]

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


# Messages that carry secrets: they print what they are, never what they hide.

HIDDEN = "***"


class SecretModel(Model, frozen=True):
    """A message whose `__secret__` fields stay out of every printed form, so no log or traceback can leak them."""

    __secret__: ClassVar[tuple[str, ...]] = ()

    def __rich_repr__(self) -> list[tuple[str, Json]]:
        """What `rich` and `repr` show: a secret that is there shows as stars, one that is absent as absent."""
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, HIDDEN if value and name in self.__secret__ else value) for name, value in shown]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


# What every session update shares, and whether it is history or state. The class has it; there is no other list.


class UpdateModel(Model, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """One update of a session; the tag has its kind."""

    timestamp: Legacy[Json | UnsetType] = UNSET


class StateUpdate(UpdateModel, frozen=True, kw_only=True):
    """How a session stands now. Every other update is history: a message or something that was done."""


class SettingsUpdate(StateUpdate, frozen=True, kw_only=True):
    """State that is sent anew whenever the session is opened, so it is never stored."""


# What messages contain about requests: their ids, their cancellation, and how they failed.

RequestId: TypeAlias = int | str | None


class CancelRequest(Model, frozen=True):
    """The asker no longer wants the answer to one of its requests."""

    request_id: RequestId


class Failure(Model, frozen=True):
    """An error inside a message, in the shape of a JSON-RPC error."""

    code: int
    message: str
    data: Json | UnsetType = UNSET
