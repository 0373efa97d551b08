"""`stream_event` lines: the answer as the model writes it. The busiest lines there are, so they hold only what is read."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.engines.claude.wire.base import Part
from antiphon.engines.claude.wire.blocks import Block, Message, TextBlock, Usage

if TYPE_CHECKING:
    from antiphon.protocol.base import Unknown as UnknownPart

__all__ = [
    "BlockDelta", "BlockStart", "BlockStop", "Delta", "Event", "InputDelta", "MessageDelta", "MessageStart", "MessageStop",
    "Ping", "SignatureDelta", "StreamEvent", "TextDelta", "ThinkingDelta",
]  # fmt: skip


class TextDelta(Part, frozen=True, tag_field="type", tag="text_delta"):
    """More of a text."""

    text: str


class ThinkingDelta(Part, frozen=True, tag_field="type", tag="thinking_delta"):
    """More of a thought."""

    thinking: str = ""


class InputDelta(Part, frozen=True, tag_field="type", tag="input_json_delta"):
    """More of a tool's input; the pieces joined are one JSON object."""

    partial_json: str = ""


class SignatureDelta(Part, frozen=True, tag_field="type", tag="signature_delta"):
    """The seal on a thought."""


if TYPE_CHECKING:
    Delta: TypeAlias = TextDelta | ThinkingDelta | InputDelta | SignatureDelta | UnknownPart
else:
    Delta = TextDelta | ThinkingDelta | InputDelta | SignatureDelta


class MessageStart(Part, frozen=True, tag_field="type", tag="message_start"):
    """A message begins."""

    message: Message | None = None


class BlockStart(Part, frozen=True, tag_field="type", tag="content_block_start"):
    """A block begins; a tool's name and id are known here, its input is not."""

    index: int = 0
    content_block: Block = msgspec.field(default_factory=TextBlock)


class BlockDelta(Part, frozen=True, tag_field="type", tag="content_block_delta"):
    """More of a block."""

    delta: Delta
    index: int = 0


class BlockStop(Part, frozen=True, tag_field="type", tag="content_block_stop"):
    """A block is complete."""

    index: int = 0


class StopDelta(Part, frozen=True):
    """Why the message ended."""

    stop_reason: str | None = None


class MessageDelta(Part, frozen=True, tag_field="type", tag="message_delta"):
    """How the message ended and what it used."""

    delta: StopDelta | None = None
    usage: Usage | None = None


class MessageStop(Part, frozen=True, tag_field="type", tag="message_stop"):
    """The message is complete."""


class Ping(Part, frozen=True, tag_field="type", tag="ping"):
    """Still there."""


_Known: TypeAlias = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping

if TYPE_CHECKING:
    Event: TypeAlias = _Known | UnknownPart
else:
    Event = _Known


class StreamEvent(Part, frozen=True, tag_field="type", tag="stream_event"):
    """One event of the model's stream; `parent_tool_use_id` says whose, if a sub-agent's."""

    event: Event
    parent_tool_use_id: str | None = None
