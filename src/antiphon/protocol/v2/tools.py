"""Tool calls, what they produce, and the terminals that the agent shows. Every one of them is an upsert by its id."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import UNSET, Items, Json, Model, Skip, Uint, Unknown, UnsetType
from antiphon.protocol.v1.initialize import Support
from antiphon.protocol.v1.tools import TerminalItem, ToolKind
from antiphon.protocol.v2.base import PatchModel, TerminalId, ToolCallId, UpdateModel, UpdatePatch
from antiphon.protocol.v2.content import ContentBlock
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "AddChange",
    "ChangeBase",
    "ContentItem",
    "CopyChange",
    "DeleteChange",
    "Diff",
    "DiffChange",
    "DiffFileType",
    "DiffPatch",
    "DiffPatchFormat",
    "ExitStatus",
    "ModifyChange",
    "MoveChange",
    "TerminalCancelSupport",
    "TerminalCapabilities",
    "TerminalItem",
    "TerminalOutputChunk",
    "TerminalSize",
    "TerminalSnapshot",
    "TerminalUpdate",
    "ToolCallCancelSupport",
    "ToolCallCapabilities",
    "ToolCallContentChunk",
    "ToolCallPatch",
    "ToolCallUpdate",
    "ToolContent",
    "ToolKind",
    "ToolLocation",
    "ToolStatus",
]


@unknown_reads_as("in_progress")
class ToolStatus(Word):
    """How far a call is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


# What a call produced: content, changed files, terminals.


class ContentItem(Model, frozen=True, tag_field="type", tag="content"):
    """Ordinary content that a call produced."""

    content: ContentBlock


@unknown_reads_as(None)
class DiffFileType(Word):
    """What a changed file is."""

    TEXT = "text"
    BINARY = "binary"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


@unknown_reads_as(None)
class DiffPatchFormat(Word):
    """How a patch is written."""

    GIT_PATCH = "git_patch"


class ChangeBase(Model, frozen=True, kw_only=True, tag_field="operation"):
    """One changed file."""

    path: str
    file_type: DiffFileType | None = None
    mime_type: str | None = None


class AddChange(ChangeBase, frozen=True, kw_only=True, tag="add"):
    """A file is new."""


class DeleteChange(ChangeBase, frozen=True, kw_only=True, tag="delete"):
    """A file is gone."""


class ModifyChange(ChangeBase, frozen=True, kw_only=True, tag="modify"):
    """A file has other content."""


class MoveChange(ChangeBase, frozen=True, kw_only=True, tag="move"):
    """A file has another path."""

    old_path: str


class CopyChange(ChangeBase, frozen=True, kw_only=True, tag="copy"):
    """A file is a copy of another one."""

    old_path: str


if TYPE_CHECKING:
    DiffChange: TypeAlias = AddChange | DeleteChange | ModifyChange | MoveChange | CopyChange | Unknown
else:
    DiffChange = AddChange | DeleteChange | ModifyChange | MoveChange | CopyChange


class DiffPatch(Model, frozen=True):
    """The changes as text. Its paths are absolute and have no prefix."""

    format: DiffPatchFormat
    text: str


class Diff(Model, frozen=True, tag_field="type", tag="diff"):
    """Changed files; `changes` is complete, and `patch` has the lines where there is one."""

    changes: Skip[DiffChange]
    patch: DiffPatch | None = None


if TYPE_CHECKING:
    ToolContent: TypeAlias = ContentItem | Diff | TerminalItem | Unknown
else:
    ToolContent = ContentItem | Diff | TerminalItem


class ToolLocation(Model, frozen=True):
    """A place in a file that a call works on; lines count from 1."""

    path: str
    line: Uint | None = None


# Calls.


class ToolCallCancelSupport(Support, frozen=True):
    """`tool_call/cancel` for this call."""


class ToolCallCapabilities(Model, frozen=True):
    """What the client may do to a call."""

    cancel: ToolCallCancelSupport | None = None


class ToolCallPatch(PatchModel, frozen=True, kw_only=True):
    """A call, new or changed: an absent field stays as it was, `null` clears it, lists are replaced whole."""

    tool_call_id: ToolCallId
    name: str | None | UnsetType = UNSET
    title: str | None | UnsetType = UNSET
    kind: ToolKind | None | UnsetType = UNSET
    status: ToolStatus | None | UnsetType = UNSET
    content: Items[ToolContent] | None | UnsetType = UNSET
    locations: Items[ToolLocation] | None | UnsetType = UNSET
    raw_input: Json | UnsetType = UNSET
    raw_output: Json | UnsetType = UNSET
    capabilities: ToolCallCapabilities | None | UnsetType = UNSET


class ToolCallUpdate(ToolCallPatch, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """A call, new or changed, sent as an update."""


class ToolCallContentChunk(UpdateModel, frozen=True, tag="tool_call_content_chunk"):
    """One more item of what a call produced."""

    tool_call_id: ToolCallId
    content: ToolContent


# Terminals of the agent, which the client only shows.


class TerminalSnapshot(Model, frozen=True):
    """All output so far, base64; it replaces what was there."""

    data: str


class ExitStatus(Model, frozen=True):
    """How a command ended: with a code, by a signal, or somehow."""

    exit_code: int | None = None
    signal: str | None = None


class TerminalSize(Model, frozen=True):
    """Columns and rows."""

    cols: Uint
    rows: Uint


class TerminalCancelSupport(Support, frozen=True):
    """`terminal/cancel` for this terminal."""


class TerminalCapabilities(Model, frozen=True):
    """What the client may do to a terminal."""

    cancel: TerminalCancelSupport | None = None


class TerminalUpdate(UpdatePatch, frozen=True, kw_only=True, tag="terminal_update"):
    """A terminal, new or changed: an absent field stays as it was, `null` clears it."""

    terminal_id: TerminalId
    command: str | None | UnsetType = UNSET
    cwd: str | None | UnsetType = UNSET
    output: TerminalSnapshot | None | UnsetType = UNSET
    exit_status: ExitStatus | None | UnsetType = UNSET
    size: TerminalSize | None | UnsetType = UNSET
    capabilities: TerminalCapabilities | None | UnsetType = UNSET


class TerminalOutputChunk(UpdateModel, frozen=True, tag="terminal_output_chunk"):
    """More output, base64. It may begin and end within a character."""

    terminal_id: TerminalId
    data: str
