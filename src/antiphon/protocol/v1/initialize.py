"""The handshake: versions, names, and what each side can do."""

import msgspec

from antiphon.protocol.base import Items, JsonObject, Legacy, Model, Uint, Unstable, unstable
from antiphon.protocol.v1.auth import AuthMethod
from antiphon.protocol.v1.support import (
    ArchiveSupport,
    AuthStatusSupport,
    BooleanConfigSupport,
    CloseSupport,
    CompactionSupport,
    DeleteSupport,
    DirectoriesSupport,
    ForkSupport,
    FormSupport,
    ListSupport,
    LogoutSupport,
    NoticeSupport,
    OverrideSupport,
    PlanSupport,
    ProvidersSupport,
    ResumeSupport,
    StatusSupport,
    SubagentSupport,
    TitleSupport,
    UrlSupport,
)

__all__ = [
    "AgentAuthCapabilities", "AgentCapabilities", "AuthCapabilities", "ClientCapabilities",
    "ClientSessionCapabilities", "ConfigCapabilities", "ElicitationCapabilities", "FileCapabilities",
    "Implementation", "Initialize", "InitializeResult", "McpCapabilities", "PromptCapabilities",
    "SessionCapabilities", "SystemPromptCapabilities", "SystemPromptModeCapabilities",
]  # fmt: skip


class Implementation(Model, frozen=True):
    """The name and version of a program."""

    name: str
    version: str
    title: str | None = None


class PromptCapabilities(Model, frozen=True):
    """What a prompt may hold besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(Model, frozen=True):
    """Kinds of MCP server the agent reaches besides child processes."""

    http: bool = False
    sse: bool = False
    acp: Unstable[bool] = False


class FileCapabilities(Model, frozen=True):
    """File methods that the client answers."""

    read_text_file: bool = False
    write_text_file: bool = False


class ConfigCapabilities(Model, frozen=True):
    """Kinds of setting the client shows besides selections."""

    boolean: BooleanConfigSupport | None = None


class ClientSessionCapabilities(Model, frozen=True):
    """What the client shows of a session."""

    compaction: CompactionSupport | None = None
    config_options: ConfigCapabilities | None = None
    notices: NoticeSupport | None = None


class AuthCapabilities(Model, frozen=True):
    """Kinds of sign-in the client helps with."""

    terminal: bool = False


class ElicitationCapabilities(Model, frozen=True):
    """Ways in which the client can ask the user something."""

    form: FormSupport | None = None
    url: UrlSupport | None = None


class ClientCapabilities(Model, frozen=True):
    """What the client can do."""

    fs: FileCapabilities = FileCapabilities()
    terminal: bool = False
    auth: AuthCapabilities = AuthCapabilities()
    session: ClientSessionCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    subagents: Unstable[SubagentSupport | None] = None
    plan: Unstable[PlanSupport | None] = None
    prompt: Legacy[PromptCapabilities | None] = None
    mcp: Legacy[McpCapabilities | None] = None


@unstable
class SystemPromptModeCapabilities(Model, frozen=True):
    """What the client's system prompt may do to the agent's, besides adding to it."""

    override: OverrideSupport | None = None


@unstable
class SystemPromptCapabilities(Model, frozen=True):
    """The client may give a system prompt."""

    mode: SystemPromptModeCapabilities | None = None


class SessionCapabilities(Model, frozen=True):
    """Session methods that the agent answers besides the ones all agents do."""

    list: ListSupport | None = None
    delete: DeleteSupport | None = None
    additional_directories: DirectoriesSupport | None = None
    resume: ResumeSupport | None = None
    close: CloseSupport | None = None
    system_prompt: Unstable[SystemPromptCapabilities | None] = None
    fork: Unstable[ForkSupport | None] = None
    archive: Unstable[ArchiveSupport | None] = None
    status: Unstable[StatusSupport | None] = None
    title: Unstable[TitleSupport | None] = None
    subagents: Legacy[JsonObject | None] = None


class AgentAuthCapabilities(Model, frozen=True):
    """Account methods that the agent answers besides signing in."""

    logout: LogoutSupport | None = None
    status: Unstable[AuthStatusSupport | None] = None


class AgentCapabilities(Model, frozen=True):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: Unstable[ProvidersSupport | None] = None
    modes: Legacy[bool | None] = None
    plan: Legacy[bool | None] = None


class Initialize(Model, frozen=True):
    """Open the conversation, with the newest version the client speaks."""

    protocol_version: Uint
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


def _none() -> "list[AuthMethod]":
    return []  # not `list` itself: what is empty by that is left out


class InitializeResult(Model, frozen=True):
    """The version both will speak, and what the agent can do."""

    protocol_version: Uint
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: Items[AuthMethod] = msgspec.field(default_factory=_none)
    """Always sent, also where it is empty: clients may tell an agent that needs no login from one that does not say."""
    agent_info: Implementation | None = None
