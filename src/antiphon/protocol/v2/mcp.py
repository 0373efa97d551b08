"""MCP servers of a session, and chains of proxies."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import Model, OrDefault, Unknown
from antiphon.protocol.v1.client_services import EnvVariable
from antiphon.protocol.v1.mcp import AcpServer, HttpHeader

__all__ = ["AcpServer", "EnvVariable", "HttpHeader", "HttpServer", "McpServer", "StdioServer"]


class HttpServer(Model, frozen=True, tag_field="type", tag="http"):
    """A server reached by streamable HTTP."""

    name: str
    url: str
    headers: OrDefault[list[HttpHeader]] = msgspec.field(default_factory=list)


class StdioServer(Model, frozen=True, tag_field="type", tag="stdio"):
    """A server that the agent starts as a child process."""

    name: str
    command: str
    args: OrDefault[list[str]] = msgspec.field(default_factory=list)
    env: OrDefault[list[EnvVariable]] = msgspec.field(default_factory=list)


if TYPE_CHECKING:
    McpServer: TypeAlias = HttpServer | AcpServer | StdioServer | Unknown
else:
    McpServer = HttpServer | AcpServer | StdioServer
