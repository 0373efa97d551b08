"""MCP servers from a file, in the form that other tools have made usual: `{"mcpServers": {"name": {…}}}`.

A server has `command`, `args` and `env`, or `url` and `headers` with `type` `http` (as without one) or `sse`. `${VAR}` and
`${VAR:-otherwise}` in the values are variables of the environment. Whether the agent reaches such a server is asked elsewhere.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from antiphon.errors import AcpError
from antiphon.protocol import v1

__all__ = ["ServersError", "read_servers"]

HINT: Final = 'hint: it is JSON such as {"mcpServers": {"files": {"command": "mcp-files", "args": ["."]}}}'
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class ServersError(AcpError):
    """The file is not there, or lists no servers."""


class _Server(msgspec.Struct):
    name: str | None = None
    type: str | None = None
    command: str | None = None
    args: list[str] = msgspec.field(default_factory=list)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


def read_servers(path: str, environment: Mapping[str, str] = os.environ) -> list[v1.McpServer]:
    """The servers in a file.

    Raises:
        ServersError: it cannot be read, or says nothing that makes sense; with the name of the server.
    """
    try:
        with open(path, "rb") as file:
            told = msgspec.json.decode(file.read())
    except OSError as error:
        raise ServersError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", hint="check the path"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServersError(f"`{path}` is not JSON: {error}\n{HINT}") from error
    return [_server(path, name, server, environment) for name, server in _named(path, told)]


def _named(path: str, told: Any) -> list[tuple[str, Any]]:
    if isinstance(told, dict):
        told = told.get("mcpServers", told.get("servers", told))
    if isinstance(told, dict):
        return list(told.items())
    if isinstance(told, list):
        return [(server.get("name", "") if isinstance(server, dict) else "", server) for server in told]
    raise ServersError(f"`{path}` lists no MCP servers\n{HINT}")


def _server(path: str, name: str, told: Any, environment: Mapping[str, str]) -> v1.McpServer:
    try:
        server = msgspec.convert(_filled(told, environment), _Server)
    except (msgspec.ValidationError, KeyError) as error:
        why = f"the variable `{error.args[0]}` is not set" if isinstance(error, KeyError) else str(error)
        raise ServersError(f"the MCP server `{name}` in `{path}` makes no sense: {why}\n{HINT}") from None
    if server.command is not None:
        env = [v1.EnvVariable(key, value) for key, value in server.env.items()]
        return v1.StdioServer(name, server.command, server.args, env)
    if server.url is not None:
        headers = [v1.HttpHeader(key, value) for key, value in server.headers.items()]
        kind = v1.SseServer if server.type == "sse" else v1.HttpServer
        return kind(name, server.url, headers)
    raise ServersError(f"the MCP server `{name}` in `{path}` has neither `command` nor `url`\n{HINT}")


def _filled(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: environment.get(match[1], match[2]) or _missing(match), value)
    if isinstance(value, list):
        return [_filled(each, environment) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, environment) for key, each in value.items()}
    return value


def _missing(match: "re.Match[str]") -> str:
    if match[2] is None:
        raise KeyError(match[1])
    return ""
