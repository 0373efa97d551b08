"""Elicitation: questions to the user, by a form or on a page that the client opens. The fields of forms are those of version 1."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from antiphon.protocol.base import UNSET, Exact, Json, Model, Unknown, UnsetType
from antiphon.protocol.v1.elicitation import (
    BooleanProperty,
    CompleteElicitation,
    Declined,
    Dismissed,
    EnumOption,
    IntegerProperty,
    MultiSelectItems,
    MultiSelectProperty,
    NumberProperty,
    Property,
    StringFormat,
    StringItems,
    StringProperty,
    TitledItems,
)
from antiphon.protocol.v2.base import ElicitationId, RequestId, SessionId, ToolCallId

__all__ = [
    "Accepted", "BooleanProperty", "CompleteElicitation", "CreateElicitation", "CreateElicitationResult", "Declined",
    "Dismissed", "ElicitationBase", "EnumOption", "Form", "FormElicitation", "IntegerProperty", "MultiSelectItems",
    "MultiSelectProperty", "NumberProperty", "Property", "StringFormat", "StringItems", "StringProperty", "TitledItems",
    "UrlElicitation",
]  # fmt: skip


class Form(Model, frozen=True):
    """The fields to fill in."""

    type: Literal["object"]
    properties: dict[str, Property]
    title: str | None = None
    description: str | None = None
    required: Exact[list[str] | None] = None


class ElicitationBase(Model, frozen=True, kw_only=True, tag_field="mode"):
    """The question, and what it is about: a session (and perhaps one of its calls) or a request."""

    message: str
    session_id: Exact[SessionId | None] = None
    tool_call_id: ToolCallId | None = None
    request_id: Exact[RequestId | None | UnsetType] = UNSET


class FormElicitation(ElicitationBase, frozen=True, kw_only=True, tag="form"):
    """Show a form."""

    requested_schema: Form


class UrlElicitation(ElicitationBase, frozen=True, kw_only=True, tag="url"):
    """Open a page. What the user does there, the client never sees."""

    elicitation_id: ElicitationId
    url: str


if TYPE_CHECKING:
    CreateElicitation: TypeAlias = FormElicitation | UrlElicitation | Unknown
else:
    CreateElicitation = FormElicitation | UrlElicitation


class Accepted(Model, frozen=True, tag_field="action", tag="accept"):
    """The user answered."""

    content: Exact[dict[str, Json] | None] = None


if TYPE_CHECKING:
    CreateElicitationResult: TypeAlias = Accepted | Declined | Dismissed | Unknown
else:
    CreateElicitationResult = Accepted | Declined | Dismissed
