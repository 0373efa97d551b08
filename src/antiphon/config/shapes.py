"""Settings as plain values, whose secrets are not shown, and the clients of our own."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = [
    "APPEND_SYSTEM_PROMPT",
    "CHAT",
    "EDITING",
    "GATEWAY",
    "IMAGES",
    "MAX_COST",
    "MAX_TOKENS",
    "MAX_TURNS",
    "MODES",
    "NAME",
    "NOTHING",
    "NOTIFY",
    "ON_ASK",
    "REVIEWS",
    "RUN",
    "SCRIPTS",
    "USED_TOKENS",
    "ChatConfig",
    "DuetConfig",
    "McpServerConfig",
    "OwnAgent",
    "OwnClient",
    "RuleText",
    "Settings",
    "Source",
    "asked_of_engines",
    "is_one_person",
    "is_script",
]

Source: TypeAlias = Literal["user config", "project config", "policy file"]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of agents, servers and engines: safe in a shell, in a path and on a screen."""

MODES: Final = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
"""The permission modes by name; `policy` defines what they mean."""

ON_ASK: Final = ("deny", "fail", "allow")
"""What happens to a permission request without a terminal."""

REVIEWS: Final = ("report", "fix")
"""What becomes of a reviewer's findings: they are shown, or handed back to the engine that did the work."""

EDITING: Final = ("emacs", "vi")
"""The keys of the input line of `antiphon chat`."""

IMAGES: Final = ("auto", "kitty", "iterm", "sixel", "off")
"""How `antiphon chat` shows images: by what the terminal is, by a protocol, or not at all."""

NOTIFY: Final = ("auto", "bell", "osc9", "osc777", "off")
"""How `antiphon chat` notifies a user who looks elsewhere: by what the terminal is, by one way, or not at all."""

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

APPEND_SYSTEM_PROMPT: Final = "appendSystemPrompt"
MAX_COST: Final = "maxCost"
MAX_TOKENS: Final = "maxTokens"
MAX_TURNS: Final = "maxTurns"
"""Keys of `_meta.antiphon` of the request that opens a session: a text for the system prompt, and limits of each prompt. An agent that
adds the text to every system prompt has `appendSystemPrompt` in the `_meta.antiphon` of its response to `initialize`."""

USED_TOKENS: Final = "usedTokens"
"""Key of `_meta.antiphon` of a tool call that ended, for a client with `maxTokens`: tokens of the request that made the call. For engines
that know the size of the context, without which there is no `usage_update`, only at the end of a turn."""


def asked_of_engines(meta: Mapping[str, object]) -> dict[str, object]:
    """Return the part of a request's `_meta` that is meant for engines: the keys above, with values of their types."""
    ours = meta.get("antiphon")
    kinds: dict[str, tuple[type, ...]] = {
        APPEND_SYSTEM_PROMPT: (str,),
        MAX_COST: (int, float),
        MAX_TOKENS: (int,),
        MAX_TURNS: (int,),
    }
    if not isinstance(ours, dict):
        return {}
    return {key: ours[key] for key, kind in kinds.items() if type(ours.get(key)) in kind}


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


class ChatConfig(msgspec.Struct, frozen=True):
    """The settings of `antiphon chat`: `[chat]`, in the user's own file."""

    theme: str = "terminal"
    """The colours: a built-in theme, or a file of that name."""
    notify: str = "auto"
    """How the user is notified: a way of `NOTIFY`."""
    keys: str = "emacs"
    """How the input line is edited: `emacs` or `vi`."""
    images: str = "auto"
    """How images are shown: a protocol of `IMAGES`, `auto`, or `off`."""
    undo: bool = True
    """Whether snapshots of files are kept for an undo."""


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
    chat: ChatConfig = ChatConfig()


# --- clients of our own ----------------------------------------------------------------------------------------------


class OwnClient(NamedTuple):
    """A client of our own: its name in `clientInfo`, and its title."""

    name: str
    title: str


CHAT: Final = OwnClient("antiphon-chat", "antiphon chat")
RUN: Final = OwnClient("antiphon-run", "antiphon run")
CHECK: Final = "antiphon-check"
"""The check has a handshake of its own, with this name in it."""

GATEWAY: Final = OwnClient("antiphon-gateway", "Antiphon gateway")

SCRIPTS: Final = (RUN.name, CHECK)
"""Clients that no person uses directly. Their sessions are marked in lists, and no new session goes on with one by itself."""


def is_script(client: str) -> bool:
    """Whether a client of this name is a script."""
    return client in SCRIPTS


def is_one_person(client: str) -> bool:
    """Whether a client of this name is used by one person. One without a name may be anything; behind a gateway there are many people."""
    return bool(client) and client not in (*SCRIPTS, GATEWAY.name)
