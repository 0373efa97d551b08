"""What a user says, piece by piece."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.engines.codex.wire.base import Part

if TYPE_CHECKING:
    from antiphon.protocol.base import Unknown

__all__ = ["AudioInput", "ImageInput", "LocalAudio", "LocalImage", "Mention", "SkillInput", "TextInput", "UserInput"]


class TextInput(Part, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str = ""


class ImageInput(Part, frozen=True, tag_field="type", tag="image"):
    """A picture: its address, which may hold the data, or its number in the service's own store."""

    url: str | None = None
    file_id: str | None = None


class LocalImage(Part, frozen=True, tag_field="type", tag="localImage"):
    """A picture in a file."""

    path: str


class AudioInput(Part, frozen=True, tag_field="type", tag="audio"):
    """Sound, by its address, which may hold the data."""

    url: str


class LocalAudio(Part, frozen=True, tag_field="type", tag="localAudio"):
    """Sound in a file."""

    path: str


class SkillInput(Part, frozen=True, tag_field="type", tag="skill"):
    """A skill to use."""

    name: str
    path: str


class Mention(Part, frozen=True, tag_field="type", tag="mention"):
    """Something that is only named."""

    name: str
    path: str


if TYPE_CHECKING:
    UserInput: TypeAlias = (
        TextInput | ImageInput | LocalImage | AudioInput | LocalAudio | SkillInput | Mention | Unknown
    )
else:
    UserInput = TextInput | ImageInput | LocalImage | AudioInput | LocalAudio | SkillInput | Mention
