"""Forms that the client shows to the user: a small part of JSON Schema."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from antiphon.protocol.base import Choice, Exact, Items, Model, Uint, Unknown
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "BooleanProperty", "EnumOption", "Form", "IntegerProperty", "MultiSelectItems", "MultiSelectProperty",
    "NumberProperty", "Property", "StringFormat", "StringItems", "StringProperty", "TitledItems",
]  # fmt: skip


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
