"""Sessions from start to end: opening, listing, prompting, changing, closing."""

import msgspec

from antiphon.protocol.base import UNSET, Exact, Items, Json, Legacy, Model, OrDefault, UnsetType, Unstable, unstable
from antiphon.protocol.v1.base import ConfigId, ModeId, SessionId
from antiphon.protocol.v1.content import ContentBlock, SystemPrompt
from antiphon.protocol.v1.mcp import McpServer
from antiphon.protocol.v1.settings import ConfigOption, ModelChoice, ModelState, ModeState
from antiphon.protocol.v1.updates import Update, Usage
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "ArchiveFilter", "ArchiveSession", "ArchiveSessionResult", "Cancel", "CloseSession", "CloseSessionResult",
    "DeleteSession", "DeleteSessionResult", "ForkSession", "ForkSessionResult", "ListSessions", "ListSessionsResult",
    "LoadSession", "LoadSessionResult", "NewSession", "NewSessionResult", "Prompt", "PromptResult", "ResumeSession",
    "ResumeSessionResult", "SessionId", "SessionInfo", "SessionState", "SessionStatus", "SessionStatusResult",
    "SessionUpdate", "SetConfigOption", "SetConfigOptionResult", "SetMode", "SetModeResult", "SetTitle",
    "SetTitleResult", "StopReason", "UnarchiveSession", "UnarchiveSessionResult", "Usage",
]  # fmt: skip


class NewSession(Model, frozen=True):
    """Open a session in a directory."""

    cwd: str
    mcp_servers: OrDefault[list[McpServer]]
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    system_prompt: Unstable[Exact[SystemPrompt | None]] = None
    mode_id: Legacy[str | None] = None
    model: Legacy[ModelChoice | None] = None


class NewSessionResult(Model, frozen=True):
    """The session, and what can be changed about it."""

    session_id: SessionId
    modes: ModeState | None = None
    config_options: Items[ConfigOption] | None = None
    models: Legacy[ModelState | None] = None


class LoadSession(Model, frozen=True):
    """Open an earlier session and have its history replayed."""

    session_id: SessionId
    cwd: str
    mcp_servers: OrDefault[list[McpServer]]
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    system_prompt: Unstable[Exact[SystemPrompt | None]] = None


class LoadSessionResult(Model, frozen=True):
    """Loaded; the history came before this answer."""

    modes: ModeState | None = None
    config_options: Items[ConfigOption] | None = None
    models: Legacy[ModelState | None] = None
    session_id: Legacy[SessionId | None] = None


class ResumeSession(Model, frozen=True):
    """Open an earlier session without its history."""

    session_id: SessionId
    cwd: str
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    mcp_servers: OrDefault[list[McpServer]] = msgspec.field(default_factory=list)
    system_prompt: Unstable[Exact[SystemPrompt | None]] = None


class ResumeSessionResult(Model, frozen=True):
    """The session is resumed."""

    modes: ModeState | None = None
    config_options: Items[ConfigOption] | None = None
    models: Legacy[ModelState | None] = None
    session_id: Legacy[SessionId | None] = None


@unstable
class ForkSession(Model, frozen=True):
    """Open a new session that starts where another one stands."""

    session_id: SessionId
    cwd: str
    additional_directories: OrDefault[list[str]] = msgspec.field(default_factory=list)
    mcp_servers: OrDefault[list[McpServer]] = msgspec.field(default_factory=list)
    system_prompt: Exact[SystemPrompt | None] = None


@unstable
class ForkSessionResult(Model, frozen=True):
    """The new session."""

    session_id: SessionId
    modes: ModeState | None = None
    config_options: Items[ConfigOption] | None = None
    models: Legacy[ModelState | None] = None


@unstable
@unknown_reads_as(None)
class ArchiveFilter(Word):
    """Whether a list has the archived sessions."""

    EXCLUDE = "exclude"
    INCLUDE = "include"
    ONLY = "only"


class ListSessions(Model, frozen=True):
    """Ask for the sessions, a page at a time."""

    cwd: Exact[str | None] = None
    cursor: Exact[str | None] = None
    archived: Unstable[Exact[ArchiveFilter | None]] = None


class SessionInfo(Model, frozen=True):
    """A session in a list."""

    session_id: SessionId
    cwd: str
    additional_directories: Items[str] = msgspec.field(default_factory=list)
    title: str | None = None
    updated_at: str | None = None
    archived: Unstable[bool | None] = None


class ListSessionsResult(Model, frozen=True):
    """A page of sessions; `next_cursor` asks for the next one."""

    sessions: Items[SessionInfo]
    next_cursor: str | None = None


class CloseSession(Model, frozen=True):
    """Close a session and release what it holds."""

    session_id: SessionId


class CloseSessionResult(Model, frozen=True):
    """The session is closed."""


class DeleteSession(Model, frozen=True):
    """Remove a session from the list for good."""

    session_id: SessionId


class DeleteSessionResult(Model, frozen=True):
    """The session is deleted."""


@unstable
class ArchiveSession(Model, frozen=True):
    """Put a session away."""

    session_id: SessionId


@unstable
class ArchiveSessionResult(Model, frozen=True):
    """The session is archived."""


@unstable
class UnarchiveSession(Model, frozen=True):
    """Take a session back out."""

    session_id: SessionId


@unstable
class UnarchiveSessionResult(Model, frozen=True):
    """The session is back in the list."""


@unstable
@unknown_reads_as(None)
class SessionState(Word):
    """Whether the agent has a session in memory."""

    OPEN = "open"
    SAVED = "saved"


@unstable
class SessionStatus(Model, frozen=True):
    """Ask whether a session is open."""

    session_id: SessionId


@unstable
class SessionStatusResult(Model, frozen=True):
    """Whether the session is open."""

    status: SessionState


class SetMode(Model, frozen=True):
    """Change the mode."""

    session_id: SessionId
    mode_id: ModeId


class SetModeResult(Model, frozen=True):
    """The mode is changed."""


class SetConfigOption(Model, frozen=True):
    """Change a setting."""

    session_id: SessionId
    config_id: ConfigId
    value: bool | str
    # Open, because any other word is allowed and means nothing.
    type: Exact[str | None] = None

    def __post_init__(self) -> None:
        # Without the word, the other side would look for a value named `true`.
        if isinstance(self.value, bool) and self.type is None:
            msgspec.structs.force_setattr(self, "type", "boolean")


class SetConfigOptionResult(Model, frozen=True):
    """All settings with their current values."""

    config_options: Items[ConfigOption]


@unstable
class SetTitle(Model, frozen=True):
    """Name a session."""

    session_id: SessionId
    title: str


@unstable
class SetTitleResult(Model, frozen=True):
    """The name as the agent keeps it."""

    title: str


class Prompt(Model, frozen=True):
    """Let the agent work on the user's prompt."""

    session_id: SessionId
    prompt: list[ContentBlock]


@unknown_reads_as("end_turn", auth_required="refusal", tool_error="end_turn")
class StopReason(Word):
    """Why a turn ended."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


class PromptResult(Model, frozen=True):
    """The turn is over."""

    stop_reason: StopReason
    usage: Unstable[Usage | None] = None
    session_id: Legacy[SessionId | None] = None
    messages: Legacy[Json | UnsetType] = UNSET


class Cancel(Model, frozen=True):
    """Stop the turn; the prompt still gets its answer."""

    session_id: SessionId


class SessionUpdate(Model, frozen=True):
    """An update of a session."""

    session_id: SessionId
    update: Update
