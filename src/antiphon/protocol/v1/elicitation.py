"""Elicitation: questions to the user, by a form or on a page that the client opens."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from antiphon.protocol.base import UNSET, Choice, Exact, Items, Model, Uint, Unknown, UnsetType
from antiphon.protocol.v1.base import ElicitationId, RequestId, SessionId, ToolCallId
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Accepted",
    "BooleanProperty",
    "CompleteElicitation",
    "ContentValue",
    "CreateElicitation",
    "CreateElicitationResult",
    "Declined",
    "Dismissed",
    "ElicitationBase",
    "EnumOption",
    "Form",
    "FormElicitation",
    "IntegerProperty",
    "MultiSelectItems",
    "MultiSelectProperty",
    "NumberProperty",
    "Property",
    "StringFormat",
    "StringItems",
    "StringProperty",
    "TitledItems",
    "UrlElicitation",
]

# Forms that the client shows to the user: a small part of JSON Schema.


@unknown_reads_as(None)
class StringFormat(Word):
    """What a text field must hold."""

    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"


class EnumOption(Model, frozen=True):
    """A value and the words to show for it."""

    const: str
    title: str
    description: str | None = None


class StringProperty(Model, frozen=True, tag_field="type", tag="string"):
    """A text field; with `enum` or `one_of` a choice of one."""

    title: str | None = None
    description: str | None = None
    min_length: Exact[Uint | None] = None
    max_length: Exact[Uint | None] = None
    pattern: Exact[str | None] = None
    format: Exact[StringFormat | None] = None
    default: str | None = None
    enum: Exact[list[str] | None] = None
    one_of: Exact[list[EnumOption] | None] = None


class NumberProperty(Model, frozen=True, tag_field="type", tag="number"):
    """A field for any number."""

    title: str | None = None
    description: str | None = None
    minimum: Exact[float | None] = None
    maximum: Exact[float | None] = None
    default: float | None = None


class IntegerProperty(Model, frozen=True, tag_field="type", tag="integer"):
    """A field for whole numbers."""

    title: str | None = None
    description: str | None = None
    minimum: Exact[int | None] = None
    maximum: Exact[int | None] = None
    default: int | None = None


class BooleanProperty(Model, frozen=True, tag_field="type", tag="boolean"):
    """A checkbox."""

    title: str | None = None
    description: str | None = None
    default: bool | None = None


class StringItems(Model, frozen=True, tag_field="type", tag="string"):
    """Values that show as they are."""

    enum: list[str]


class TitledItems(Model, frozen=True):
    """Values with words to show for them."""

    any_of: list[EnumOption]


if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = StringItems | TitledItems | Unknown
else:

    class MultiSelectItems(Choice):
        """The values of a choice of several."""

        tag = "type"
        by_tag = {"string": StringItems}  # noqa: RUF012
        by_key = {"anyOf": TitledItems}  # noqa: RUF012


class MultiSelectProperty(Model, frozen=True, tag_field="type", tag="array"):
    """A choice of several."""

    items: MultiSelectItems
    title: str | None = None
    description: str | None = None
    min_items: Exact[Uint | None] = None
    max_items: Exact[Uint | None] = None
    default: Items[str] | None = None


if TYPE_CHECKING:
    Property: TypeAlias = (
        StringProperty | NumberProperty | IntegerProperty | BooleanProperty | MultiSelectProperty | Unknown
    )
else:
    Property = StringProperty | NumberProperty | IntegerProperty | BooleanProperty | MultiSelectProperty


class Form(Model, frozen=True):
    """The fields to fill in."""

    # A factory, because a plain default would be left out, and renderers of JSON Schema look for it.
    type: Literal["object"] = msgspec.field(default_factory=lambda: "object")
    title: str | None = None
    description: str | None = None
    properties: Exact[dict[str, Property]] = msgspec.field(default_factory=dict)
    required: Exact[list[str] | None] = None


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
    """The user declined."""


class Dismissed(Model, frozen=True, tag_field="action", tag="cancel"):
    """The user closed the question without an answer."""


if TYPE_CHECKING:
    CreateElicitationResult: TypeAlias = Accepted | Declined | Dismissed | Unknown
else:
    CreateElicitationResult = Accepted | Declined | Dismissed


class CompleteElicitation(Model, frozen=True):
    """The user is done on the page."""

    elicitation_id: ElicitationId
