"""What settings are, once read and understood. Plain values; secrets are not shown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec

__all__ = ["MODES", "NOTHING", "ON_ASK", "McpServer", "OwnAgent", "RuleText", "Settings", "Source"]

Source: TypeAlias = Literal["user config", "project config"]

MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
"""The permission modes by name; what they mean is the policy's to say."""

ON_ASK: Final = ("deny", "fail", "allow")
"""What becomes of a question when nobody is there."""

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class RuleText(msgspec.Struct, frozen=True):
    """A rule as it was written, and where."""

    text: str
    source: Source
    where: str = ""
    """File and line, for people."""


class OwnAgent(msgspec.Struct, frozen=True):
    """An agent of the user's own: `[agents.NAME]`."""

    command: tuple[str, ...]
    env: Mapping[str, str] = NOTHING
    cwd: str | None = None
    title: str | None = None

    def __repr__(self) -> str:
        return f"OwnAgent({self.command[0]!r}, …)"  # arguments and variables may hold secrets


class McpServer(msgspec.Struct, frozen=True):
    """An MCP server that every session gets: `[mcp.NAME]`. A program with a command, or an address."""

    name: str
    type: Literal["stdio", "http", "sse"]
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    url: str | None = None
    headers: Mapping[str, str] = NOTHING

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {self.type!r}, …)"  # all the rest may hold secrets


class Settings(msgspec.Struct, frozen=True):
    """What the config files say, put together. An empty `agent` means that nobody chose one."""

    agent: str = ""
    mode: str | None = None
    """The agent's own mode, asked for in a new session; not the permission mode."""
    model: str | None = None
    allow: tuple[RuleText, ...] = ()
    deny: tuple[RuleText, ...] = ()
    ask: tuple[RuleText, ...] = ()
    permission_mode: str = "default"
    on_ask: str = "deny"
    agents: Mapping[str, OwnAgent] = MappingProxyType({})
    mcp: Mapping[str, McpServer] = MappingProxyType({})
