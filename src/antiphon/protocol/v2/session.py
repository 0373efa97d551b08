"""Sessions from start to end: opening, listing, prompting, changing, cancelling, closing."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import Choice, Exact, Items, Model, OrDefault, Skip, Unknown, Unstable
from antiphon.protocol.v1.session import (
    Cancel,
    CloseSession,
    CloseSessionResult,
    DeleteSession,
    DeleteSessionResult,
    ListSessions,
)
from antiphon.protocol.v2.base import ConfigId, MessageId, SessionId, TerminalId, ToolCallId
from antiphon.protocol.v2.content import ContentBlock
from antiphon.protocol.v2.drafts import SystemPrompt
from antiphon.protocol.v2.mcp import McpServer
from antiphon.protocol.v2.settings import AvailableCommand, ConfigOption
from antiphon.protocol.v2.updates import Update

__all__ = [
    "Cancel", "CancelTerminal", "CancelTerminalResult", "CancelToolCall", "CancelToolCallResult", "CloseSession",
    "CloseSessionResult", "DeleteSession", "DeleteSessionResult", "ListSessions", "ListSessionsResult", "NewSession",
    "NewSessionResult", "Prompt", "PromptResult", "ReplayFrom", "ReplayFromStart", "ResumeSession",
    "ResumeSessionResult", "SessionInfo", "SessionUpdate", "SetBoolean", "SetConfigBase", "SetConfigOption",
    "SetConfigOptionResult", "SetValue",
]  # fmt: skip


class NewSession(Model, frozen=True):
    """Open a session in a directory."""

    cwd: str
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    mcp_servers: OrDefault[list[McpServer]] = msgspec.field(default_factory=list)
    system_prompt: Unstable[Exact[SystemPrompt | None]] = None


class NewSessionResult(Model, frozen=True):
    """The session, and what can be changed about it. Updates of the session may come before it."""

    session_id: SessionId
    config_options: Items[ConfigOption] = msgspec.field(default_factory=list)
    available_commands: Items[AvailableCommand] = msgspec.field(default_factory=list)


class ReplayFromStart(Model, frozen=True, tag_field="type", tag="start"):
    """Replay all of the history."""


if TYPE_CHECKING:
    ReplayFrom: TypeAlias = ReplayFromStart | Unknown
else:

    class ReplayFrom(Choice):
        """Where a replay begins."""

        tag = "type"
        by_tag = {"start": ReplayFromStart}  # noqa: RUF012


class ResumeSession(Model, frozen=True):
    """Open an earlier session, with its history replayed or without."""

    session_id: SessionId
    cwd: str
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    mcp_servers: OrDefault[list[McpServer]] = msgspec.field(default_factory=list)
    replay_from: Exact[ReplayFrom | None] = None
    system_prompt: Unstable[Exact[SystemPrompt | None]] = None


class ResumeSessionResult(Model, frozen=True):
    """The session is open; its history and its state came before this response."""

    config_options: Items[ConfigOption] = msgspec.field(default_factory=list)
    available_commands: Items[AvailableCommand] = msgspec.field(default_factory=list)


class SessionInfo(Model, frozen=True):
    """A session in a list."""

    session_id: SessionId
    cwd: str
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    title: str | None = None
    updated_at: str | None = None
    archived: Unstable[bool | None] = None


class ListSessionsResult(Model, frozen=True):
    """A page of sessions; `next_cursor` asks for the next one, and the empty string is a cursor too."""

    sessions: Items[SessionInfo]
    next_cursor: Exact[str | None] = None


class Prompt(Model, frozen=True):
    """Insert a message of the user. The response comes once it is inserted; the work is reported by updates."""

    session_id: SessionId
    prompt: list[ContentBlock]


class PromptResult(Model, frozen=True):
    """The message is inserted, under this id."""

    message_id: MessageId


class CancelToolCall(Model, frozen=True):
    """Cancel one call, which offers that."""

    session_id: SessionId
    tool_call_id: ToolCallId


class CancelToolCallResult(Model, frozen=True):
    """The call will end; its final status confirms that it has."""


class CancelTerminal(Model, frozen=True):
    """Cancel one command, whose terminal offers that."""

    session_id: SessionId
    terminal_id: TerminalId


class CancelTerminalResult(Model, frozen=True):
    """The command will end; its exit status confirms that it has."""


class SetConfigBase(Model, frozen=True, kw_only=True, tag_field="type"):
    """The option to change."""

    session_id: SessionId
    config_id: ConfigId


class SetValue(SetConfigBase, frozen=True, kw_only=True, tag="id"):
    """Choose one of the values of an option."""

    value: str


class SetBoolean(SetConfigBase, frozen=True, kw_only=True, tag="boolean"):
    """Switch an option on or off."""

    value: bool


if TYPE_CHECKING:
    SetConfigOption: TypeAlias = SetValue | SetBoolean | Unknown
else:
    SetConfigOption = SetValue | SetBoolean


class SetConfigOptionResult(Model, frozen=True):
    """All options with their current values."""

    config_options: Skip[ConfigOption]


class SessionUpdate(Model, frozen=True):
    """An update of a session."""

    session_id: SessionId
    update: Update
