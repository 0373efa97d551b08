"""The Claude Code engine's front: who it is and how its sessions are opened. Imports no event loop, and looks for no CLI before `initialize` is answered."""

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from antiphon import __version__
from antiphon.engines.base import Engine
from antiphon.errors import AcpError
from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.claude.history import History
    from antiphon.engines.claude.session import ClaudeSession
    from antiphon.engines.cli_program import FoundProgram
    from antiphon.protocol import v1

__all__ = ["ALIASES", "API_KEY", "CONSOLE", "METHODS", "SUBSCRIPTION", "Claude"]

# --- The ways to sign in to Claude Code that clients are told of. Imported before `initialize` is answered, so it imports little


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


class Claude(Engine):
    """One process of the real CLI per session. Sessions are Claude's own, also those that were begun in a terminal."""

    name = "antiphon-claude"
    version = __version__
    title = "Claude Code"
    takes = ("image", "resource")
    also_takes = ("audio",)
    mcp = ("http", "sse")
    auth_methods = METHODS
    auth_aliases = ALIASES
    steers = True
    unique_ids = True
    read_only = "plan"

    def __init__(self) -> None:
        self._history: History | None = None

    # Sessions.

    async def new(self, session: "AgentSession") -> "ClaudeSession":
        claude = await self._begin(session)
        await claude.create()
        return claude

    async def load(self, session: "AgentSession") -> "ClaudeSession":
        claude = await self._begin(session)
        await claude.restore(tell=True)
        return claude

    async def resume(self, session: "AgentSession") -> "ClaudeSession":
        claude = await self._begin(session)
        await claude.restore(tell=False)
        return claude

    async def fork(self, session: "AgentSession", source: str) -> "ClaudeSession":
        claude = await self._begin(session)
        await claude.copy(source)
        return claude

    async def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        import asyncio

        return await asyncio.to_thread(self._kept().list, query)

    async def delete(self, session_id: str) -> None:
        import asyncio

        from antiphon.engines.cli_program import SessionSettings

        await asyncio.to_thread(self._kept().delete, session_id)
        await asyncio.to_thread(SessionSettings(session_id).forget)

    async def warm_up(self) -> None:
        """Look for the CLI, and import what every session needs."""
        await _find()
        from antiphon.engines.claude.session import ClaudeSession  # noqa: F401 - takes its time

    async def _begin(self, session: "AgentSession") -> "ClaudeSession":
        found, version = await _find()
        from antiphon.engines.claude.session import ClaudeSession
        from antiphon.engines.cli_program import CliMemory

        return ClaudeSession(session, found, self._kept(), CliMemory(found.cli.name, version))

    def _kept(self) -> "History":
        if self._history is None:
            from antiphon.engines.claude.history import History

            self._history = History()
        return self._history

    # The account.

    async def authenticate(self, method_id: str) -> None:
        import asyncio

        from antiphon.engines.claude.login import check_signed_in

        found, _ = await _find()
        await asyncio.to_thread(check_signed_in, found, method_id)

    async def signed_in(self) -> bool:
        try:
            await self.authenticate("")
        except AcpError:  # not, not installed, or it does not say
            return False
        return True

    async def logout(self) -> None:
        import asyncio

        from antiphon.engines.claude.login import sign_out

        found, _ = await _find()
        await asyncio.to_thread(sign_out, found)


async def _find() -> "tuple[FoundProgram, str]":
    """The CLI and its version, each time anew: it may have been installed or updated since. A program that is asked does not hold up others."""
    import asyncio

    from antiphon.engines.cli_program import CLAUDE, ask_version, check_version, find_cli, known_version

    found = find_cli(CLAUDE)
    version = known_version(found)
    if version is None:
        version = await asyncio.to_thread(ask_version, found)
    return found, check_version(found, version)
