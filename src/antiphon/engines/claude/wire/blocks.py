"""Blocks of content, messages and stream events, shaped as in Anthropic's Messages API."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import Items, JsonObject
from antiphon.protocol.base import Unknown as UnknownPart

if TYPE_CHECKING:
    from antiphon.protocol.base import Unknown as UnknownPart

__all__ = [
    "Block",
    "BlockDelta",
    "BlockStart",
    "BlockStop",
    "ClaudeImageBlock",
    "ClaudeMessage",
    "ClaudeStruct",
    "ClaudeTextBlock",
    "ClaudeUsage",
    "Delta",
    "DocumentBlock",
    "Event",
    "InputDelta",
    "MessageDelta",
    "MessageStart",
    "MessageStop",
    "Ping",
    "RedactedThinkingBlock",
    "ServerToolUseBlock",
    "SignatureDelta",
    "StreamEvent",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "ToolResultBlock",
    "ToolUseBlock",
]

# What all structs share: unknown fields are ignored, and what is not essential may be missing.


class ClaudeStruct(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Base of every struct of the protocol. Frozen, and outside the garbage collector's rounds, because trees of them have no cycles."""


class ClaudeTextBlock(ClaudeStruct, frozen=True, tag_field="type", tag="text"):
    """A block of text."""

    text: str = ""


class ThinkingBlock(ClaudeStruct, frozen=True, tag_field="type", tag="thinking"):
    """A thought; empty where the model does not show it."""

    thinking: str = ""


class RedactedThinkingBlock(ClaudeStruct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """A thought that is encrypted."""


class ToolUseBlock(ClaudeStruct, frozen=True, tag_field="type", tag="tool_use"):
    """A tool is called."""

    id: str
    name: str
    input: JsonObject = msgspec.field(default_factory=dict)


class ServerToolUseBlock(ClaudeStruct, frozen=True, tag_field="type", tag="server_tool_use"):
    """A tool is called that runs at the model's side, such as its own web search."""

    id: str
    name: str
    input: JsonObject = msgspec.field(default_factory=dict)


class ToolResultBlock(ClaudeStruct, frozen=True, tag_field="type", tag="tool_result"):
    """The result of a call, as the model reads it: text, or a list of blocks."""

    tool_use_id: str
    content: str | list[JsonObject] | None = None
    is_error: bool | None = None


class ClaudeImageBlock(ClaudeStruct, frozen=True, tag_field="type", tag="image"):
    """A picture; `source` holds its type and its base64 data, or where it is."""

    source: JsonObject = msgspec.field(default_factory=dict)


class DocumentBlock(ClaudeStruct, frozen=True, tag_field="type", tag="document"):
    """A document; `source` holds it."""

    source: JsonObject = msgspec.field(default_factory=dict)
    title: str | None = None


_Known: TypeAlias = (
    ClaudeTextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ServerToolUseBlock
    | ToolResultBlock
    | ClaudeImageBlock
    | DocumentBlock
)

if TYPE_CHECKING:
    Block: TypeAlias = _Known | UnknownPart
else:
    Block = _Known


class ClaudeUsage(ClaudeStruct, frozen=True):
    """Tokens of one message, or of a whole turn in its result."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None

    @property
    def context(self) -> int:
        """How much of the context window was filled, the answer included."""
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens, self.output_tokens)
        return sum(part for part in parts if part and part > 0)


class ClaudeMessage(ClaudeStruct, frozen=True):
    """A message of one side. Each `assistant` line has one block of it, and they share the `id`."""

    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: str | list[Block] = ""
    stop_reason: str | None = None
    usage: ClaudeUsage | None = None

    @property
    def blocks(self) -> list[Block]:
        """The content as blocks, also where it came as bare text."""
        if isinstance(self.content, str):
            return [ClaudeTextBlock(text=self.content)] if self.content else []
        return self.content


class MessageOfBlocks(ClaudeStruct, frozen=True):
    """A message for `salvage`, which can repair a list by itself but not one in a union with text."""

    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: Items[Block] = msgspec.field(default_factory=list)
    stop_reason: str | None = None
    usage: ClaudeUsage | None = None


# `stream_event` lines: the answer as the model writes it. The busiest lines there are, so they hold only what is read.


class TextDelta(ClaudeStruct, frozen=True, tag_field="type", tag="text_delta"):
    """More of a text."""

    text: str


class ThinkingDelta(ClaudeStruct, frozen=True, tag_field="type", tag="thinking_delta"):
    """More of a thought."""

    thinking: str = ""


class InputDelta(ClaudeStruct, frozen=True, tag_field="type", tag="input_json_delta"):
    """More of a tool's input; the pieces joined are one JSON object."""

    partial_json: str = ""


class SignatureDelta(ClaudeStruct, frozen=True, tag_field="type", tag="signature_delta"):
    """The signature of a thought."""


if TYPE_CHECKING:
    Delta: TypeAlias = TextDelta | ThinkingDelta | InputDelta | SignatureDelta | UnknownPart
else:
    Delta = TextDelta | ThinkingDelta | InputDelta | SignatureDelta


class MessageStart(ClaudeStruct, frozen=True, tag_field="type", tag="message_start"):
    """A message begins."""

    message: ClaudeMessage | None = None


class BlockStart(ClaudeStruct, frozen=True, tag_field="type", tag="content_block_start"):
    """A block begins; the name and id of a tool call are known, its input is not."""

    index: int = 0
    content_block: Block = msgspec.field(default_factory=ClaudeTextBlock)


class BlockDelta(ClaudeStruct, frozen=True, tag_field="type", tag="content_block_delta"):
    """More of a block."""

    delta: Delta
    index: int = 0


class BlockStop(ClaudeStruct, frozen=True, tag_field="type", tag="content_block_stop"):
    """A block is complete."""

    index: int = 0


class StopDelta(ClaudeStruct, frozen=True):
    """Why the message ended."""

    stop_reason: str | None = None


class MessageDelta(ClaudeStruct, frozen=True, tag_field="type", tag="message_delta"):
    """How the message ended and what it used."""

    delta: StopDelta | None = None
    usage: ClaudeUsage | None = None


class MessageStop(ClaudeStruct, frozen=True, tag_field="type", tag="message_stop"):
    """The message is complete."""


class Ping(ClaudeStruct, frozen=True, tag_field="type", tag="ping"):
    """A sign of life."""


_KnownEvent: TypeAlias = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping

if TYPE_CHECKING:
    Event: TypeAlias = _KnownEvent | UnknownPart
else:
    Event = _KnownEvent


class StreamEvent(ClaudeStruct, frozen=True, tag_field="type", tag="stream_event"):
    """One event of the model's stream; `parent_tool_use_id` names the call of a sub-agent."""

    event: Event
    parent_tool_use_id: str | None = None
