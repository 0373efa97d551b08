"""The handshake: versions, names, and what each side can do."""

import msgspec

from antiphon.protocol.base import Items, JsonObject, Legacy, Model, Uint, Unstable, unstable
from antiphon.protocol.v1.auth import AuthMethod

__all__ = [
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "ArchiveSupport",
    "AuthCapabilities",
    "AuthStatusSupport",
    "BooleanConfigSupport",
    "CancelSupport",
    "ClientCapabilities",
    "ClientSessionCapabilities",
    "CloseSupport",
    "CompactionSupport",
    "ConfigCapabilities",
    "DeleteSupport",
    "DirectoriesSupport",
    "ElicitationCapabilities",
    "FileCapabilities",
    "ForkSupport",
    "FormSupport",
    "Implementation",
    "Initialize",
    "InitializeResult",
    "ListSupport",
    "LogoutSupport",
    "McpCapabilities",
    "NoticeSupport",
    "OverrideSupport",
    "PlanSupport",
    "PromptCapabilities",
    "ProvidersSupport",
    "ResumeSupport",
    "SessionCapabilities",
    "StatusSupport",
    "SubagentSupport",
    "Support",
    "SystemPromptCapabilities",
    "SystemPromptModeCapabilities",
    "TitleSupport",
    "UrlSupport",
]

# Capabilities without details: that the object is there is the whole message.


class Support(Model, frozen=True):
    """Supported, if present."""


class ListSupport(Support, frozen=True):
    """`session/list`."""


class DeleteSupport(Support, frozen=True):
    """`session/delete`."""


class DirectoriesSupport(Support, frozen=True):
    """Sessions may have more directories than the one they start in."""


class ResumeSupport(Support, frozen=True):
    """`session/resume`."""


class CloseSupport(Support, frozen=True):
    """`session/close`."""


@unstable
class ForkSupport(Support, frozen=True):
    """`session/fork`."""


@unstable
class ArchiveSupport(Support, frozen=True):
    """`session/archive` and `session/unarchive`."""


@unstable
class StatusSupport(Support, frozen=True):
    """`session/status`."""


@unstable
class TitleSupport(Support, frozen=True):
    """`session/set_title`."""


@unstable
class OverrideSupport(Support, frozen=True):
    """A system prompt that replaces the agent's own."""


@unstable
class CancelSupport(Support, frozen=True):
    """A child session may be cancelled."""


@unstable
class AuthStatusSupport(Support, frozen=True):
    """`auth/status`."""


class LogoutSupport(Support, frozen=True):
    """`logout`."""


@unstable
class ProvidersSupport(Support, frozen=True):
    """The `providers/…` methods."""


class CompactionSupport(Support, frozen=True):
    """The client shows compactions."""


class NoticeSupport(Support, frozen=True):
    """The client shows notices."""


class BooleanConfigSupport(Support, frozen=True):
    """The client shows on/off settings."""


@unstable
class SubagentSupport(Support, frozen=True):
    """The client shows child sessions."""


@unstable
class PlanSupport(Support, frozen=True):
    """The client shows several plans and forms of plan."""


class FormSupport(Support, frozen=True):
    """The client shows forms."""


class UrlSupport(Support, frozen=True):
    """The client opens pages for the user."""


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
    """Open the connection, with the newest version the client supports."""

    protocol_version: Uint
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None


def _none() -> "list[AuthMethod]":
    return []  # not `list` itself: what is empty by that is left out


class InitializeResult(Model, frozen=True):
    """The version that both will use, and what the agent can do."""

    protocol_version: Uint
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: Items[AuthMethod] = msgspec.field(default_factory=_none)
    """Always sent, also where it is empty: clients may distinguish an agent that needs no login from one that does not report it."""
    agent_info: Implementation | None = None
