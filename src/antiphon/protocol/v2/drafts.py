"""What only the unstable schema of version 2 has: subagents, messages between sessions, system prompts, and smaller drafts.

Released agents send some of it unasked, so it is read. It is sent only where it was asked for. Types that are the same in version 1 are
those of version 1.
"""

import msgspec

from antiphon.protocol.base import UNSET, Exact, Items, Model, OrDefault, UnsetType, unstable
from antiphon.protocol.v1.auth import AuthAccount, AuthState, AuthStatus, AuthStatusResult, AuthStatusUpdate
from antiphon.protocol.v1.content import SystemPromptMode
from antiphon.protocol.v1.mcp import (
    AcpServer,
    McpError,
    McpMessage,
    McpMessageResult,
    McpNotice,
    SuccessorCall,
    SuccessorNotice,
)
from antiphon.protocol.v1.session import (
    ArchiveFilter,
    ArchiveSession,
    ArchiveSessionResult,
    SessionState,
    SessionStatus,
    SetTitle,
    SetTitleResult,
    UnarchiveSession,
    UnarchiveSessionResult,
)
from antiphon.protocol.v1.updates import PlanFile, PlanMarkdown, SubagentSessionCapabilities, Usage
from antiphon.protocol.v2.base import MessageId, PlanId, SessionId, UpdateModel
from antiphon.protocol.v2.content import ContentBlock
from antiphon.protocol.v2.mcp import McpServer
from antiphon.protocol.v2.settings import AvailableCommand, ConfigOption
from antiphon.protocol.v2.state import SubagentState

__all__ = [
    "AcpServer", "ArchiveFilter", "ArchiveSession", "ArchiveSessionResult", "AuthAccount", "AuthState", "AuthStatus",
    "AuthStatusResult", "AuthStatusUpdate", "ForkSession", "ForkSessionResult", "McpError", "McpMessage",
    "McpMessageResult", "McpNotice", "PlanFile", "PlanMarkdown", "PlanRemoved", "SessionMessage", "SessionMessageChunk",
    "SessionState", "SessionStatus", "SessionStatusResult", "SetTitle", "SetTitleResult", "SubagentSessionCapabilities",
    "SubagentUpdate", "SuccessorCall", "SuccessorNotice", "SystemPrompt", "SystemPromptMode", "UnarchiveSession",
    "UnarchiveSessionResult", "Usage",
]  # fmt: skip


@unstable
class SystemPrompt(Model, frozen=True):
    """The client's instructions."""

    mode: SystemPromptMode
    content: list[ContentBlock]


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
    config_options: Items[ConfigOption] = msgspec.field(default_factory=list)
    available_commands: Items[AvailableCommand] = msgspec.field(default_factory=list)


@unstable
class SessionStatusResult(Model, frozen=True):
    """Whether the session is open, and what it does."""

    status: SessionState
    state: SubagentState | None = None


@unstable
class PlanRemoved(UpdateModel, frozen=True, tag="plan_removed"):
    """A plan is no longer followed."""

    plan_id: PlanId


@unstable
class SubagentUpdate(UpdateModel, frozen=True, tag="subagent_update"):
    """A child session appeared or changed: an absent field stays as it was."""

    session_id: SessionId
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    capabilities: SubagentSessionCapabilities | None | UnsetType = UNSET
    state: SubagentState | None | UnsetType = UNSET
    cwd: Exact[str | None | UnsetType] = UNSET
    additional_directories: Exact[list[str] | None | UnsetType] = UNSET


@unstable
class SessionMessage(UpdateModel, frozen=True, tag="session_message"):
    """A message between sessions, new or changed: an absent field stays as it was."""

    message_id: MessageId
    sender_session_id: SessionId | None | UnsetType = UNSET
    recipient_session_id: SessionId | None | UnsetType = UNSET
    sender_message_id: MessageId | None | UnsetType = UNSET
    recipient_message_id: MessageId | None | UnsetType = UNSET
    content: Items[ContentBlock] | None | UnsetType = UNSET


@unstable
class SessionMessageChunk(UpdateModel, frozen=True, tag="session_message_chunk"):
    """A piece to add to a message between sessions."""

    message_id: MessageId
    content: ContentBlock
