"""Content blocks: text, images, audio, links to resources and embedded resources; and the system prompt made of them."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Choice, Items, Model, Unknown, unstable
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Annotations",
    "AudioBlock",
    "BlobResource",
    "ContentBlock",
    "EmbeddedResource",
    "ImageBlock",
    "ResourceContents",
    "ResourceLink",
    "Role",
    "SystemPrompt",
    "SystemPromptMode",
    "TextBlock",
    "TextResource",
]


@unknown_reads_as("assistant")
class Role(Word):
    """The role that a piece of content is meant for."""

    ASSISTANT = "assistant"
    USER = "user"


class Annotations(Model, frozen=True):
    """Hints on how to show content; none of them changes its meaning."""

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
        """Text or bytes, distinguished by which of the two is present."""

        by_key = {"text": TextResource, "blob": BlobResource}  # noqa: RUF012


class EmbeddedResource(Model, frozen=True, tag_field="type", tag="resource"):
    """A resource sent along whole, so that it need not be fetched."""

    resource: ResourceContents
    annotations: Annotations | None = None


if TYPE_CHECKING:
    ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource | Unknown
else:
    ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource


# Instructions that the client gives the model. All of it is unstable.


# Reads as itself: an agent must refuse a mode it does not know, never take it for another.
@unstable
@unknown_reads_as(None)
class SystemPromptMode(Word):
    """What becomes of the agent's own instructions."""

    APPEND = "append"
    OVERRIDE = "override"


@unstable
class SystemPrompt(Model, frozen=True):
    """The client's instructions."""

    mode: SystemPromptMode
    content: list[ContentBlock]
