"""What people and models say to each other: text, images, sound, and pointers to things or the things themselves."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Choice, Items, Model, Unknown
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Annotations", "AudioBlock", "BlobResource", "ContentBlock", "EmbeddedResource", "ImageBlock", "ResourceContents",
    "ResourceLink", "Role", "TextBlock", "TextResource",
]  # fmt: skip


@unknown_reads_as("assistant")
class Role(Word):
    """Whom a piece of content is meant for."""

    ASSISTANT = "assistant"
    USER = "user"


class Annotations(Model, frozen=True):
    """Hints on how to show content; none of them changes what it says."""

    audience: Items[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None


class TextBlock(Model, frozen=True, tag_field="type", tag="text"):
    """Plain text or Markdown."""

    text: str
    annotations: Annotations | None = None


class ImageBlock(Model, frozen=True, tag_field="type", tag="image"):
    """A picture, base64 in `data`."""

    data: str
    mime_type: str
    uri: str | None = None
    annotations: Annotations | None = None


class AudioBlock(Model, frozen=True, tag_field="type", tag="audio"):
    """Sound, base64 in `data`."""

    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceLink(Model, frozen=True, tag_field="type", tag="resource_link"):
    """A pointer to something the agent can fetch by itself."""

    name: str
    uri: str
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    title: str | None = None
    annotations: Annotations | None = None


class TextResource(Model, frozen=True):
    """The text of a resource."""

    text: str
    uri: str
    mime_type: str | None = None


class BlobResource(Model, frozen=True):
    """The bytes of a resource, base64."""

    blob: str
    uri: str
    mime_type: str | None = None


if TYPE_CHECKING:
    ResourceContents: TypeAlias = TextResource | BlobResource
else:

    class ResourceContents(Choice):
        """Text or bytes, told apart by which of the two is there."""

        by_key = {"text": TextResource, "blob": BlobResource}  # noqa: RUF012


class EmbeddedResource(Model, frozen=True, tag_field="type", tag="resource"):
    """A resource sent along whole, so nobody has to fetch it."""

    resource: ResourceContents
    annotations: Annotations | None = None


if TYPE_CHECKING:
    ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource | Unknown
else:
    ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource
