"""Settings as plain values, whose secrets are not shown, and the clients of our own."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = [
    "CHAT",
    "MODES",
    "NAME",
    "NOTHING",
    "ON_ASK",
    "REVIEWS",
    "RUN",
    "SCRIPTS",
    "DuetConfig",
    "McpServerConfig",
    "OwnAgent",
    "OwnClient",
    "RuleText",
    "Settings",
    "Source",
    "is_script",
]

Source: TypeAlias = Literal["user config", "project config"]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of agents, servers and engines: safe in a shell, in a path and on a screen."""

MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
"""The permission modes by name; `policy` defines what they mean."""

ON_ASK: Final = ("deny", "fail", "allow")
"""What happens to a permission request without a terminal."""

REVIEWS: Final = ("report", "fix")
"""What becomes of a reviewer's findings: they are shown, or handed back to the engine that did the work."""

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


class McpServerConfig(msgspec.Struct, frozen=True):
    """An MCP server that every session gets: `[mcp.NAME]`. A program with a command, or an address."""

    name: str
    type: Literal["stdio", "http", "sse"]
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    url: str | None = None
    headers: Mapping[str, str] = NOTHING

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {self.type!r}, …)"  # all the rest may hold secrets


class DuetConfig(msgspec.Struct, frozen=True):
    """The settings of the joint agent: `[duet]`. None means not set."""

    engines: tuple[str, ...] | None = None
    """Names, or command lines."""
    route: str | None = None
    primary: str | None = None
    auto_resume: bool | None = None
    review: Literal["report", "fix"] | None = None
    review_rounds: int | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    """The limit in US dollars."""
    tasks: tuple[str, ...] | None = None
    """The command that lists what is left to do."""
    nudge: bool | None = None
    nudge_cooldown: float | None = None
    nudge_max: int | None = None

    def __repr__(self) -> str:
        return f"Duet({self.route!r}, …)"  # command lines may hold secrets


class Settings(msgspec.Struct, frozen=True):
    """The merged config files. An empty `agent` means that none is set."""

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
    mcp: Mapping[str, McpServerConfig] = MappingProxyType({})
    duet: DuetConfig = DuetConfig()


# --- clients of our own ----------------------------------------------------------------------------------------------


class OwnClient(NamedTuple):
    """A client of our own: its name in `clientInfo`, and its title."""

    name: str
    title: str


CHAT: Final = OwnClient("antiphon-chat", "antiphon chat")
RUN: Final = OwnClient("antiphon-run", "antiphon run")
CHECK: Final = "antiphon-check"
"""The check has a handshake of its own, with this name in it."""

SCRIPTS: Final = (RUN.name, CHECK)
"""Clients that no person uses directly. Their sessions are marked in lists, and no new session goes on with one by itself."""


def is_script(client: str) -> bool:
    """Whether a client of this name is a script."""
    return client in SCRIPTS
