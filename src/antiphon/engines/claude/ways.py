"""The ways to sign in to Claude Code that clients are told of. Imported before `initialize` is answered, so it imports little."""

import sys
from types import MappingProxyType
from typing import Final

from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth

__all__ = ["ALIASES", "API_KEY", "CONSOLE", "METHODS", "SUBSCRIPTION"]


def _in_a_terminal(id: str, name: str, description: str, *words: str) -> TerminalAuth:
    # Some clients open terminals and do not say so in the protocol's way: they look for the whole command in the `_meta`.
    whole = ["-P", "-m", "antiphon", "agent", "--engine", "claude", *words]
    meta = {"terminal-auth": {"command": sys.executable, "args": whole, "label": name}}
    return TerminalAuth(id, name, description, [*words], meta=meta)


SUBSCRIPTION: Final = _in_a_terminal(
    "claude-ai-login", "Claude subscription", "Sign in with your Claude account, in a terminal.", "--login"
)
CONSOLE: Final = _in_a_terminal(
    "console-login",
    "Anthropic Console",
    "Sign in to be billed by usage of the API, in a terminal.",
    "--login",
    "console",
)
API_KEY: Final = AgentAuth(
    "api-key", "Anthropic API key", "Set ANTHROPIC_API_KEY in the environment of the agent and start it again."
)

METHODS: Final = (SUBSCRIPTION, CONSOLE, API_KEY)

ALIASES: Final = MappingProxyType({"claude-login": SUBSCRIPTION.id})
"""Ids that clients know from other agents of Claude Code → ours."""
