"""Agents that we know by name: their commands, how to get them, how to sign in. Facts, and nothing that looks at this machine.

The commands come from each program's own documents and were tried with the programs themselves.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, find_cli
from antiphon.config.environment import OWNERS
from antiphon.errors import Advice

if TYPE_CHECKING:
    from antiphon.config.shapes import Settings

__all__ = [
    "DEMO",
    "DEMO_COMMAND",
    "ENGINE",
    "JOINT",
    "KNOWN",
    "OURS",
    "KnownAgent",
    "PresentEngines",
    "default_agent",
    "installed",
    "keys_for",
    "named_by_user",
]

OURS: Final = "antiphon"
"""The name of our own agent, which joins the engines."""

JOINT: Final = ("-P", "-m", "antiphon", "agent")
"""Our own agent, after the name of this Python."""

ENGINE: Final = (*JOINT, "--engine")
"""An engine of ours, after the name of this Python. Without `-P` it would run whatever is called `msgspec.py` where it is started."""

DEMO_COMMAND: Final = (*ENGINE, "demo")
"""The demo agent, after the name of this Python."""


class KnownAgent(msgspec.Struct, frozen=True):
    """An agent that we know."""

    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]
    """Candidates: the first whose program is installed is used. None: it is an engine of ours, or our own agent."""
    install: str
    """How to get it, as it follows on "install it:"."""
    login: str = ""
    """How to sign in, when it wants that."""
    note: str = ""
    drives: Cli | None = None
    """The program that our engine of this name drives."""
    keys: tuple[str, ...] = ()
    """The owners of the variables that it gets, as `antiphon.config.environment` names them."""


EVERY: Final = tuple(OWNERS)
"""The owners for agents that work with the models of several providers."""

_AGENTS: Final = (
    KnownAgent(
        OURS, "Antiphon", (), "it is built in", note="our own agent: Claude Code and Codex in one session", keys=EVERY
    ),
    KnownAgent(
        "claude",
        CLAUDE.title,
        (),
        CLAUDE.install,
        "run `antiphon agent --engine claude --login`, or set ANTHROPIC_API_KEY",
        "through our own engine; `claude` itself has no ACP mode",
        CLAUDE,
        keys=("claude",),
    ),
    KnownAgent(
        "codex",
        CODEX.title,
        (),
        CODEX.install,
        "run `antiphon agent --engine codex --login`",
        "through our own engine; `codex` itself has no ACP mode",
        CODEX,
        keys=("codex",),
    ),
    KnownAgent(
        "gemini",
        "Gemini CLI",
        (("gemini", "--acp"),),
        "npm install -g @google/gemini-cli",
        "run `gemini` once and sign in, or set GEMINI_API_KEY",
        keys=("gemini",),
    ),
    KnownAgent(
        "opencode",
        "OpenCode",
        (("opencode", "acp"),),
        "npm install -g opencode-ai",
        "run `opencode auth login`",
        keys=EVERY,
    ),
    KnownAgent(
        "kimi",
        "Kimi Code",
        (("kimi", "acp"),),
        "npm install -g @moonshot-ai/kimi-code",
        "run `kimi login`",
        keys=("moonshot",),
    ),
    KnownAgent(
        "qwen",
        "Qwen Code",
        (("qwen", "--acp"),),
        "npm install -g @qwen-code/qwen-code",
        "run `qwen` once and sign in",
        keys=("qwen", "codex"),
    ),
    KnownAgent(
        "copilot",
        "GitHub Copilot",
        (("copilot", "--acp"),),
        "npm install -g @github/copilot",
        "run `copilot` once and use /login",
        keys=("github",),
    ),
    KnownAgent(
        "vibe",
        "Mistral Vibe",
        (("vibe-acp",),),
        "uv tool install mistral-vibe",
        "run `vibe --setup`, or set MISTRAL_API_KEY",
        keys=("mistral",),
    ),
    KnownAgent(
        "goose",
        "goose",
        (("goose", "acp"),),
        "see https://block.github.io/goose/",
        "run `goose configure`",
        keys=EVERY,
    ),
    KnownAgent(
        "claude-acp",
        "Claude Code (npm adapter)",
        (("claude-agent-acp",), ("claude-code-acp",)),
        "npm install -g @agentclientprotocol/claude-agent-acp",
        "run `claude auth login`, or set ANTHROPIC_API_KEY",
        "through the adapter from npm; `claude` is our own engine",
        keys=("claude",),
    ),
    KnownAgent(
        "codex-acp",
        "Codex (npm adapter)",
        (("codex-acp",),),
        "npm install -g @agentclientprotocol/codex-acp",
        "run `codex login`, or set OPENAI_API_KEY",
        "through the adapter from npm; `codex` is our own engine",
        keys=("codex",),
    ),
    KnownAgent(
        "fast-agent",
        "fast-agent",
        (("fast-agent-acp",),),
        "uv tool install fast-agent-mcp",
        "set the key of your model's provider, such as OPENAI_API_KEY",
        keys=EVERY,
    ),
)


def keys_for(words: Iterable[str]) -> tuple[str, ...]:
    """Return the owners of the keys that a command gets: known agents whose program or package it names."""
    named = {os.path.basename(word).partition("@")[0] for word in words}
    every = [(agent, {agent.name, *(command[0] for command in agent.commands)}) for agent in _AGENTS]
    return tuple(dict.fromkeys(key for agent, programs in every if programs & named for key in agent.keys))


KNOWN: Final = {agent.name: agent for agent in _AGENTS}
"""Name → agent, in the order in which they are listed. The demo is not among them: it is built in."""


# --- installed engines. Needed before `initialize` is answered, so it starts nothing ---------------------------------

DEMO: Final = "demo"
"""The engine that answers where no other is installed."""

_DRIVEN: Final[Mapping[str, Cli]] = MappingProxyType({cli.name: cli for cli in (CLAUDE, CODEX)})


class PresentEngines(msgspec.Struct, frozen=True):
    """The engines of an agent, at least one, the preferred first."""

    engines: tuple[str, ...]
    """Names, or command lines as they were written."""
    missing: Mapping[str, Advice] = MappingProxyType({})
    """Engines that were looked for and not found → why, with a hint."""


def installed(named: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> PresentEngines:
    """Return the engines with these names, in order; without names, the installed ones, or the demo.

    Of the named engines only those with a known program are looked for. The others report a missing program when they are started.
    """
    wanted = tuple(dict.fromkeys(named or _DRIVEN))
    missing = {name: why for name in wanted if (why := _why_not(name, environment)) is not None}
    there = tuple(name for name in wanted if name not in missing)
    # A user who named an engine wants that one: its own error helps more than a demo that answers instead.
    return PresentEngines(there or (wanted if named else (DEMO,)), MappingProxyType(missing))


def named_by_user() -> tuple[str, ...] | None:
    """Return the engines of the user's config file. Reads as little as it can: an editor is waiting."""
    from antiphon.config.reader import read_file, user_file

    file = read_file(user_file(), digest=False)
    if file is None or "duet" not in file.text:  # most files have no such table, and parsing TOML is slow
        return None
    from antiphon.config.reader import read

    return read(file.text).texts("duet", "engines") or None


def _why_not(name: str, environment: Mapping[str, str]) -> Advice | None:
    if name not in _DRIVEN:
        return None
    try:
        find_cli(_DRIVEN[name], environment)
    except CliMissing as error:
        return error.advice
    return None


# --- the agent that `run` and `chat` start by default ----------------------------------------------------------------


def default_agent(settings: "Settings", environment: Mapping[str, str] = os.environ) -> str:
    """Return the joint agent if it has an engine, else the demo."""
    return OURS if settings.duet.engines or installed(None, environment).engines != (DEMO,) else DEMO
