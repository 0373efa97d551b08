"""MCP servers of a session, MCP messages carried over ACP, and chains of proxies."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from antiphon.protocol.base import (
    UNSET,
    Choice,
    Exact,
    Json,
    JsonObject,
    Model,
    OrDefault,
    Unknown,
    UnsetType,
    unstable,
)
from antiphon.protocol.v1.base import McpRequestId, McpServerId, SecretModel
from antiphon.protocol.v1.client_services import EnvVariable
from antiphon.protocol.v1.initialize import Initialize, InitializeResult

__all__ = [
    "AcpServer",
    "HttpHeader",
    "HttpServer",
    "InitializeProxy",
    "InitializeProxyResult",
    "McpError",
    "McpMessage",
    "McpMessageResult",
    "McpNotice",
    "McpServer",
    "SseServer",
    "StdioServer",
    "SuccessorCall",
    "SuccessorNotice",
]


class HttpHeader(SecretModel, frozen=True):
    """A header to send along; its value is often a token, so it is never printed."""

    __secret__: ClassVar[tuple[str, ...]] = ("value",)

    name: str
    value: str


class HttpServer(Model, frozen=True, tag_field="type", tag="http"):
    """A server reached by streamable HTTP."""

    name: str
    url: str
    headers: OrDefault[list[HttpHeader]]


class SseServer(Model, frozen=True, tag_field="type", tag="sse"):
    """A server reached by the older HTTP with server-sent events."""

    name: str
    url: str
    headers: OrDefault[list[HttpHeader]]


@unstable
class AcpServer(Model, frozen=True, tag_field="type", tag="acp"):
    """A server that lives in an ACP component and is reached through `mcp/message`."""

    name: str
    server_id: McpServerId


class StdioServer(Model, frozen=True):
    """A server that the agent starts as a child process."""

    name: str
    command: str
    args: OrDefault[list[str]]
    env: OrDefault[list[EnvVariable]]


if TYPE_CHECKING:
    McpServer: TypeAlias = HttpServer | SseServer | AcpServer | StdioServer | Unknown
else:

    class McpServer(Choice):
        """A server; without a `type` it is a command to start. `AcpServer` is unstable."""

        tag = "type"
        by_tag = {"http": HttpServer, "sse": SseServer, "acp": AcpServer}  # noqa: RUF012
        otherwise = StdioServer
        otherwise_tag = "stdio"


@unstable
class McpMessage(Model, frozen=True):
    """An MCP request on its way to a server that the client's side runs."""

    server_id: McpServerId
    request_id: McpRequestId
    method: str
    params: Exact[JsonObject | None] = None


@unstable
class McpNotice(Model, frozen=True):
    """An MCP message about a request that is still open."""

    server_id: McpServerId
    request_id: McpRequestId
    method: str
    params: Exact[JsonObject | None] = None


@unstable
class McpError(Model, frozen=True):
    """Why the MCP server refused."""

    code: int
    message: str
    data: Exact[Json | UnsetType] = UNSET


@unstable
class McpMessageResult(Model, frozen=True):
    """The MCP server's answer: either `result`, which may be null, or `error`."""

    result: Exact[Json | UnsetType] = UNSET
    error: Exact[McpError | None] = None


# Chains of proxies between a client and an agent. All of it is unstable.


@unstable
class InitializeProxy(Initialize, frozen=True):
    """Open the connection to a component that has another one behind it."""


@unstable
class InitializeProxyResult(InitializeResult, frozen=True):
    """The proxy's answer, once the one behind it has answered."""


@unstable
class SuccessorCall(Model, frozen=True):
    """A request for, or from, the next component in the chain; its answer comes back unchanged."""

    method: str
    params: Exact[Json | UnsetType] = UNSET


@unstable
class SuccessorNotice(Model, frozen=True):
    """A notification for, or from, the next component in the chain."""

    method: str
    params: Exact[Json | UnsetType] = UNSET
