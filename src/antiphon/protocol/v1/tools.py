"""Tool calls: what the agent does, how far it is, what came of it."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import UNSET, Items, Json, Legacy, Model, Uint, Unknown, UnsetType
from antiphon.protocol.v1.base import TerminalId, ToolCallId, UpdateModel
from antiphon.protocol.v1.content import ContentBlock
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "ContentItem", "Diff", "TerminalItem", "ToolCall", "ToolCallPatch", "ToolCallUpdate", "ToolContent", "ToolKind",
    "ToolLocation", "ToolStatus",
]  # fmt: skip


@unknown_reads_as("other", write="edit", command="execute", file="other")
class ToolKind(Word):
    """The sort of work a tool does; it picks the icon and the way a call is shown."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


@unknown_reads_as("pending", cancelled="failed")
class ToolStatus(Word):
    """How far a call is. It may wait for its input or for permission before it runs."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class ContentItem(Model, frozen=True, tag_field="type", tag="content"):
    """Ordinary content that a call produced."""

    content: ContentBlock


class Diff(Model, frozen=True, tag_field="type", tag="diff"):
    """A file before and after; no `old_text` means that the file is new."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalItem(Model, frozen=True, tag_field="type", tag="terminal"):
    """A live terminal, shown in place."""

    terminal_id: TerminalId


if TYPE_CHECKING:
    ToolContent: TypeAlias = ContentItem | Diff | TerminalItem | Unknown
else:
    ToolContent = ContentItem | Diff | TerminalItem


class ToolLocation(Model, frozen=True):
    """A place in a file that a call works on, so an editor can follow along."""

    path: str
    line: Uint | None = None


class ToolCall(UpdateModel, frozen=True, tag="tool_call"):
    """A call begins."""

    tool_call_id: ToolCallId
    title: str
    kind: ToolKind = ToolKind.OTHER
    status: ToolStatus = ToolStatus.PENDING
    name: str | None = None
    content: Items[ToolContent] = msgspec.field(default_factory=list)
    locations: Items[ToolLocation] = msgspec.field(default_factory=list)
    raw_input: Json | UnsetType = UNSET
    raw_output: Json | UnsetType = UNSET
    # What the Go client reference calls kind, raw_input and content. Read here because such a message is legal as it stands.
    tool_kind: Legacy[ToolKind | None] = None
    input: Legacy[Json | UnsetType] = UNSET
    output: Legacy[Json | UnsetType] = UNSET


class ToolCallPatch(Model, frozen=True):
    """What changed in a call: an absent field stays as it was, lists are replaced whole."""

    tool_call_id: ToolCallId
    kind: ToolKind | None | UnsetType = UNSET
    status: ToolStatus | None | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    content: Items[ToolContent] | None | UnsetType = UNSET
    locations: Items[ToolLocation] | None | UnsetType = UNSET
    raw_input: Json | UnsetType = UNSET
    raw_output: Json | UnsetType = UNSET
    tool_kind: Legacy[ToolKind | None | UnsetType] = UNSET
    input: Legacy[Json | UnsetType] = UNSET
    output: Legacy[Json | UnsetType] = UNSET


# Not an UpdateModel: a struct has one base, and code that applies patches wants both to be a ToolCallPatch.
class ToolCallUpdate(ToolCallPatch, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """A patch to a call, sent as an update."""

    timestamp: Legacy[Json | UnsetType] = UNSET
