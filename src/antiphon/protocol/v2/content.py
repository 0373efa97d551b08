"""Content blocks. Those of version 1, but for links to resources, which may have icons."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Items, Model, Uint, Unknown
from antiphon.protocol.v1.content import (
    Annotations,
    AudioBlock,
    BlobResource,
    EmbeddedResource,
    ImageBlock,
    ResourceContents,
    Role,
    TextBlock,
    TextResource,
)
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Annotations",
    "AudioBlock",
    "BlobResource",
    "ContentBlock",
    "EmbeddedResource",
    "Icon",
    "IconTheme",
    "ImageBlock",
    "ResourceContents",
    "ResourceLink",
    "Role",
    "TextBlock",
    "TextResource",
]


@unknown_reads_as(None)
class IconTheme(Word):
    """The background that an icon is drawn for."""

    LIGHT = "light"
    DARK = "dark"


class Icon(Model, frozen=True):
    """A picture that stands for a resource."""

    src: str
    mime_type: str | None = None
    sizes: Items[str] | None = None
    theme: IconTheme | None = None


class ResourceLink(Model, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to something the agent can fetch by itself."""

    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    icons: Items[Icon] | None = None
    mime_type: str | None = None
    size: Uint | None = None
    annotations: Annotations | None = None


if TYPE_CHECKING:
    ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource | Unknown
else:
    ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource
