"""Rows about MCP servers, in every request that opens a session; and about terminals, which name variables the same way."""

from collections.abc import Iterator
from typing import Any

from antiphon.protocol.v1.dialects import BANJO_NOTES, GO_CLIENT, OPENCODE
from tests.dialects.row import Row, wire

__all__ = ["MCP_ROWS", "TERMINAL_ROWS"]

Servers = list[Any] | dict[str, Any]

STDIO = {"name": "files", "command": "/bin/files", "args": ["--stdio"], "env": [{"name": "A", "value": "1"}]}
HTTP = {"type": "http", "name": "api", "url": "https://mcp.example.com/v1", "headers": [{"name": "X", "value": "y"}]}

SERVERS: list[tuple[str, str, tuple[str, ...], Servers, list[Any]]] = [
    (
        "a map", GO_CLIENT, ("MCP servers as a map", "MCP variables or headers as a map"),
        {
            "files": {"type": "stdio", "command": "/bin/files", "args": ["--stdio"], "env": {"A": "1"}},
            "api": {"type": "http", "url": "https://mcp.example.com/v1", "headers": {"X": "y"}},
            "old": {"type": "sse", "url": "https://mcp.example.com/sse", "headers": {}},
        },
        [STDIO, HTTP, {"type": "sse", "name": "old", "url": "https://mcp.example.com/sse", "headers": []}],
    ),
    ("an empty map", GO_CLIENT, ("MCP servers as a map",), {}, []),
    (
        "local and remote", OPENCODE,
        (
            "MCP server local or remote", "MCP environment", "MCP variables or headers as a map", "MCP server without name",
        ),
        [
            {"type": "local", "command": "/bin/files", "args": ["--stdio"], "environment": {"A": "1"}},
            {"type": "remote", "url": "https://mcp.example.com/v1", "headers": {"X": "y"}},
        ],
        [STDIO, HTTP | {"name": "mcp.example.com"}],
    ),
    (
        "local and remote, the least", OPENCODE,
        ("MCP server local or remote", "MCP server without its lists", "MCP server without name"),
        [
            {"type": "local", "command": "npx"}, {"type": "local", "command": "npx"},
            {"type": "remote", "url": "http://me:secret@localhost:8080/mcp?k=v"},
        ],
        [
            {"name": "npx", "command": "npx", "args": [], "env": []},
            {"name": "npx-2", "command": "npx", "args": [], "env": []},
            {"type": "http", "name": "localhost:8080", "url": "http://me:secret@localhost:8080/mcp?k=v", "headers": []},
        ],
    ),
    (
        "a url alone", BANJO_NOTES, ("MCP server with a url alone", "MCP server without its lists"),
        [{"name": "old", "url": "https://mcp.example.com/sse"}],
        [{"type": "sse", "name": "old", "url": "https://mcp.example.com/sse", "headers": []}],
    ),
    (
        "variables that are no strings", GO_CLIENT, ("MCP variables or headers as a map",),
        [STDIO | {"env": {"PORT": 80, "DEBUG": True, "NOTHING": None}}],
        [STDIO | {"env": [{"name": "PORT", "value": "80"}, {"name": "DEBUG", "value": "true"}]}],
    ),
    ("a type that needs no rule", GO_CLIENT, (), [STDIO | {"type": "stdio"}], [STDIO]),
    ("nil slices", GO_CLIENT, (), [STDIO | {"args": None, "env": None}], [STDIO | {"args": [], "env": []}]),
]  # fmt: skip


def _rows() -> Iterator[Row]:
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        start = {"cwd": "/w"} if method == "session/new" else {"sessionId": "s", "cwd": "/w"}
        for name, source, rules, sent, seen in SERVERS:
            # Where the list is optional an empty one is not sent again.
            shown = {"mcpServers": seen} if seen or method in ("session/new", "session/load") else {}
            params = wire({**start, "mcpServers": sent})
            yield Row(f"{name} in {method}", source, method, "params", params, start | shown, rules)
    for method, start in (("session/new", {}), ("session/load", {"sessionId": "s"})):
        start = {**start, "cwd": "/w"}
        yield Row(
            f"no servers in {method}",
            BANJO_NOTES,
            method,
            "params",
            wire(start),
            start | {"mcpServers": []},
            ("no MCP servers",),
        )


MCP_ROWS = list(_rows())

TERMINAL_ROWS = [
    Row(
        "variables and a limit", OPENCODE, "terminal/create", "params",
        b'{"sessionId":"s","command":"ls","args":["-l"],"env":{"A":"1"},"cwd":"/w","outputBytesLimit":1024}',
        {
            "sessionId": "s", "command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "1"}], "cwd": "/w",
            "outputByteLimit": 1024,
        },
        ("variables as a map", "outputBytesLimit"),
    ),
    Row(
        "a limit alone", OPENCODE, "terminal/create", "params", b'{"sessionId":"s","command":"ls","outputBytesLimit":1024}',
        {"sessionId": "s", "command": "ls", "outputByteLimit": 1024}, ("outputBytesLimit",),
    ),
    Row(
        "output of a command at work", OPENCODE, "terminal/output", "result", b'{"output":"a"}',
        {"output": "a", "truncated": False}, ("flat exit status",),
    ),
    Row(
        "output with both ways to say how it ended", OPENCODE, "terminal/output", "result",
        b'{"output":"a","truncated":true,"exitCode":1,"signal":"SIGHUP"}',
        {"output": "a", "truncated": True, "exitCode": 1, "signal": "SIGHUP"},
    ),
    Row(
        "output of a command that ended", OPENCODE, "terminal/output", "result", b'{"output":"a","exitCode":1}',
        {"output": "a", "truncated": False, "exitStatus": {"exitCode": 1}}, ("flat exit status",),
    ),
    Row(
        "output of a command that was ended", OPENCODE, "terminal/output", "result", b'{"output":"a","signal":"SIGTERM"}',
        {"output": "a", "truncated": False, "exitStatus": {"signal": "SIGTERM"}}, ("flat exit status",),
    ),
]  # fmt: skip
