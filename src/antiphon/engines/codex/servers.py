"""The MCP servers of a session as Codex's configuration has them. They go to it over its pipe, so nothing secret is written down."""

from typing import TYPE_CHECKING, Any

from antiphon.engines.naming import free_name
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["servers_of"]


def servers_of(servers: "Iterable[v1.McpServer]") -> dict[str, dict[str, Any]]:
    """Name → what Codex is told of it."""
    found = dict[str, dict[str, Any]]()
    for server in servers:
        match server:
            case v1.StdioServer():
                told: dict[str, Any] = {
                    "command": server.command,
                    "args": list(server.args),
                    "env": {each.name: each.value for each in server.env},
                }
            case v1.HttpServer():
                told = {"url": server.url, "http_headers": {each.name: each.value for each in server.headers}}
            case _:  # a kind that was never offered: it has been refused before
                continue
        found[free_name(server.name, found)] = told
    return found
