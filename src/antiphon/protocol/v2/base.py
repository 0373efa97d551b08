"""What several topics of version 2 share: ids, the base of updates, and how requests fail. The ids are those of version 1."""

from typing import TypeAlias

import msgspec

from antiphon.protocol.base import UNSET, Json, JsonObject, Model, Uint, UnsetType
from antiphon.protocol.v1.base import (
    AuthMethodId,
    CompactionId,
    ConfigId,
    ElicitationId,
    GroupId,
    MessageId,
    OptionId,
    PlanId,
    SessionId,
    TerminalId,
    ToolCallId,
    ValueId,
)

__all__ = [
    "AuthMethodId",
    "CancelRequest",
    "CompactionId",
    "ConfigId",
    "ElicitationId",
    "Failure",
    "GroupId",
    "MessageId",
    "OptionId",
    "PatchModel",
    "PlanId",
    "RequestId",
    "SessionId",
    "SessionNotFoundData",
    "TerminalId",
    "ToolCallId",
    "UnsupportedVersionData",
    "UpdateModel",
    "UpdatePatch",
    "ValueId",
]

RequestId: TypeAlias = int | str
"""Never null: only an error that cannot be placed has that."""


class UpdateModel(Model, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """One update of a session; the tag has its kind."""


class PatchModel(Model, frozen=True, kw_only=True):
    """Something that is sent again when it changes. `_meta` changes by its keys: absent leaves all of them, `null` clears them."""

    meta: JsonObject | None | UnsetType = msgspec.field(default=UNSET, name="_meta")  # type: ignore[assignment]  # wider than that of Model


class UpdatePatch(PatchModel, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """An update of a session that patches what was sent before."""


class CancelRequest(Model, frozen=True):
    """The sender no longer wants the response to one of its requests."""

    request_id: RequestId


class Failure(Model, frozen=True):
    """An error inside a message, in the shape of a JSON-RPC error."""

    code: int
    message: str
    data: Json | UnsetType = UNSET


class UnsupportedVersionData(Model, frozen=True):
    """The data of error -32022: the version that was requested, and those that the agent has."""

    requested: Uint
    supported: list[Uint]


class SessionNotFoundData(Model, frozen=True):
    """The data of error -32002: the session that the agent does not have."""

    session_id: SessionId
