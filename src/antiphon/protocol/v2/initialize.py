"""The handshake: versions, names, what each side can do, and how the user signs in."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec

from antiphon.protocol.base import Items, Model, OrDefault, Uint, Unknown, Unstable, unstable
from antiphon.protocol.v1.auth import Logout, LogoutResult
from antiphon.protocol.v1.base import SecretModel
from antiphon.protocol.v1.client_services import EnvVariable
from antiphon.protocol.v1.initialize import (
    ArchiveSupport,
    AuthStatusSupport,
    CancelSupport,
    DeleteSupport,
    DirectoriesSupport,
    ElicitationCapabilities,
    ForkSupport,
    FormSupport,
    Implementation,
    OverrideSupport,
    ProvidersSupport,
    StatusSupport,
    Support,
    SystemPromptCapabilities,
    SystemPromptModeCapabilities,
    TitleSupport,
    UrlSupport,
)
from antiphon.protocol.v2.base import AuthMethodId

__all__ = [
    "AgentAuth",
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "ArchiveSupport",
    "AudioSupport",
    "AuthLogin",
    "AuthLoginResult",
    "AuthMethod",
    "AuthStatusSupport",
    "CancelSupport",
    "ClientAuthCapabilities",
    "ClientCapabilities",
    "DeleteSupport",
    "DirectoriesSupport",
    "ElicitationCapabilities",
    "EmbeddedContextSupport",
    "ForkSupport",
    "FormSupport",
    "ImageSupport",
    "Implementation",
    "Initialize",
    "InitializeProxy",
    "InitializeProxyResult",
    "InitializeResult",
    "Logout",
    "LogoutResult",
    "McpAcpSupport",
    "McpCapabilities",
    "McpHttpSupport",
    "McpStdioSupport",
    "OverrideSupport",
    "PromptCapabilities",
    "ProvidersSupport",
    "SessionCapabilities",
    "StatusSupport",
    "Support",
    "SystemPromptCapabilities",
    "SystemPromptModeCapabilities",
    "TerminalAuth",
    "TerminalAuthSupport",
    "TitleSupport",
    "UrlSupport",
]  # fmt: skip

# Capabilities without details: absent and `null` mean no, an object means yes.


class ImageSupport(Support, frozen=True):
    """Images in prompts."""


class AudioSupport(Support, frozen=True):
    """Sound in prompts."""


class EmbeddedContextSupport(Support, frozen=True):
    """Embedded resources in prompts."""


class McpStdioSupport(Support, frozen=True):
    """MCP servers that the agent starts as child processes."""


class McpHttpSupport(Support, frozen=True):
    """MCP servers reached by streamable HTTP."""


@unstable
class McpAcpSupport(Support, frozen=True):
    """MCP servers reached through `mcp/message`."""


class TerminalAuthSupport(Support, frozen=True):
    """The client can run a sign-in in a terminal."""


# What the agent can do.


class PromptCapabilities(Model, frozen=True):
    """What a prompt may hold besides text and links."""

    image: ImageSupport | None = None
    audio: AudioSupport | None = None
    embedded_context: EmbeddedContextSupport | None = None


class McpCapabilities(Model, frozen=True):
    """Kinds of MCP server that the agent reaches."""

    stdio: McpStdioSupport | None = None
    http: McpHttpSupport | None = None
    acp: Unstable[McpAcpSupport | None] = None


class SessionCapabilities(Model, frozen=True):
    """The agent has sessions: new, list, resume, close, prompt and cancel; and what else it can do with them."""

    prompt: PromptCapabilities | None = None
    mcp: McpCapabilities | None = None
    delete: DeleteSupport | None = None
    additional_directories: DirectoriesSupport | None = None
    system_prompt: Unstable[SystemPromptCapabilities | None] = None
    fork: Unstable[ForkSupport | None] = None
    archive: Unstable[ArchiveSupport | None] = None
    status: Unstable[StatusSupport | None] = None
    title: Unstable[TitleSupport | None] = None


class AgentAuthCapabilities(Model, frozen=True):
    """Account methods that the agent answers besides signing in and out."""

    status: Unstable[AuthStatusSupport | None] = None


class AgentCapabilities(Model, frozen=True):
    """What the agent can do."""

    session: SessionCapabilities | None = None
    auth: AgentAuthCapabilities | None = None
    providers: Unstable[ProvidersSupport | None] = None


# What the client can do.


class ClientAuthCapabilities(Model, frozen=True):
    """Kinds of sign-in the client helps with."""

    terminal: TerminalAuthSupport | None = None


class ClientCapabilities(Model, frozen=True):
    """What the client can do."""

    auth: ClientAuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None


# Signing in.


class AgentAuth(Model, frozen=True, tag_field="type", tag="agent"):
    """The agent signs in by itself, for example through the browser."""

    method_id: AuthMethodId
    name: str
    description: str | None = None


class TerminalAuth(SecretModel, frozen=True, tag_field="type", tag="terminal"):
    """The client runs the agent's program with these arguments in a terminal, and the user signs in there."""

    __secret__: ClassVar[tuple[str, ...]] = ("env",)

    method_id: AuthMethodId
    name: str
    description: str | None = None
    args: OrDefault[list[str]] = msgspec.field(default_factory=list)
    env: OrDefault[list[EnvVariable]] = msgspec.field(default_factory=list)


if TYPE_CHECKING:
    AuthMethod: TypeAlias = AgentAuth | TerminalAuth | Unknown
else:
    AuthMethod = AgentAuth | TerminalAuth


class AuthLogin(Model, frozen=True):
    """Sign in with one of the agent's methods."""

    method_id: AuthMethodId


class AuthLoginResult(Model, frozen=True):
    """The user is signed in."""


class Initialize(Model, frozen=True):
    """Open the connection, with the newest version that the client supports."""

    protocol_version: Uint
    info: Implementation
    capabilities: ClientCapabilities = ClientCapabilities()


class InitializeResult(Model, frozen=True):
    """The version that both will use, and what the agent can do."""

    protocol_version: Uint
    info: Implementation
    capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: Items[AuthMethod] = msgspec.field(default_factory=list)


@unstable
class InitializeProxy(Initialize, frozen=True):
    """Open the connection to a component that has another one behind it."""


@unstable
class InitializeProxyResult(InitializeResult, frozen=True):
    """The proxy's response, once the one behind it has responded."""
