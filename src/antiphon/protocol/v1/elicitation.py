"""Asking the user something: by a form, or on a page that the client opens."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import UNSET, Exact, Model, Unknown, UnsetType
from antiphon.protocol.v1.forms import Form
from antiphon.protocol.v1.ids import ElicitationId, SessionId, ToolCallId
from antiphon.protocol.v1.requests import RequestId

__all__ = [
    "Accepted", "CompleteElicitation", "ContentValue", "CreateElicitation", "CreateElicitationResult", "Declined",
    "Dismissed", "ElicitationBase", "FormElicitation", "UrlElicitation",
]  # fmt: skip


class ElicitationBase(Model, frozen=True, kw_only=True, tag_field="mode"):
    """The question, and what it is about: a session (and perhaps one of its calls) or a request."""

    message: str
    session_id: Exact[SessionId | None] = None
    tool_call_id: ToolCallId | None = None
    request_id: Exact[RequestId | UnsetType] = UNSET


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

ContentValue: TypeAlias = str | int | float | bool | list[str]


class Accepted(Model, frozen=True, tag_field="action", tag="accept"):
    """The user answered."""

    content: Exact[dict[str, ContentValue] | None] = None


class Declined(Model, frozen=True, tag_field="action", tag="decline"):
    """The user said no."""


class Dismissed(Model, frozen=True, tag_field="action", tag="cancel"):
    """The user closed the question without an answer."""


if TYPE_CHECKING:
    CreateElicitationResult: TypeAlias = Accepted | Declined | Dismissed | Unknown
else:
    CreateElicitationResult = Accepted | Declined | Dismissed


class CompleteElicitation(Model, frozen=True):
    """The user is done on the page."""

    elicitation_id: ElicitationId
