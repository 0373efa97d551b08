"""The Claude Code engine: name and version, how its sessions are opened, and the login methods for clients.

Imports no event loop, and looks for no CLI before `initialize` is answered.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from antiphon import __version__
from antiphon.engines.cli_engine import CliEngine, find, terminal_login
from antiphon.protocol.v1.auth import AgentAuth

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.bounded import SessionIds
    from antiphon.engines.claude.history import History
    from antiphon.engines.claude.session import ClaudeSession
    from antiphon.engines.cli_program import FoundProgram
    from antiphon.protocol import v1

__all__ = ["ALIASES", "API_KEY", "CONSOLE", "METHODS", "SUBSCRIPTION", "Claude"]

SUBSCRIPTION: Final = terminal_login(
    "claude", "claude-ai-login", "Claude subscription", "Sign in with your Claude account, in a terminal.", "--login"
)
CONSOLE: Final = terminal_login(
    "claude",
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


class Claude(CliEngine["ClaudeSession"]):
    """The Claude Code engine: one process of the real CLI per session. Sessions are stored by Claude Code."""

    name = "antiphon-claude"
    version = __version__
    title = "Claude Code"
    takes = ("image", "resource")
    cuts_forks = True
    also_takes = ("audio",)
    mcp = ("http", "sse")
    auth_methods = METHODS
    auth_aliases = ALIASES
    steers = True
    appends_system_prompt = True
    unique_ids = True
    read_only = "plan"

    def __init__(self) -> None:
        self._history: History | None = None
        self._ids: SessionIds | None = None

    # Sessions.

    async def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        import asyncio

        return await asyncio.to_thread(self._stored().list, query)

    async def delete(self, session_id: str) -> None:
        import asyncio

        from antiphon.engines.cli_program import StoredSettings

        await asyncio.to_thread(self._stored().delete, session_id)
        await asyncio.to_thread(StoredSettings(session_id).forget)

    async def warm_up(self) -> None:
        """Look for the CLI, and import what every session needs."""
        await _find()
        from antiphon.engines.claude.session import ClaudeSession  # noqa: F401 - takes its time

    async def _make(self, session: "AgentSession") -> "ClaudeSession":
        found, version = await _find()
        from antiphon.engines.bounded import SessionIds
        from antiphon.engines.claude.session import ClaudeSession
        from antiphon.engines.cli_program import CliMemory

        if self._ids is None:
            self._ids = SessionIds()
        return ClaudeSession(session, found.path, CliMemory(found.cli.name, version), self._stored(), self._ids)

    def _stored(self) -> "History":
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

    async def _check_signed_in(self) -> None:
        await self.authenticate("")

    async def logout(self) -> None:
        import asyncio

        from antiphon.engines.claude.login import sign_out

        found, _ = await _find()
        await asyncio.to_thread(sign_out, found)


async def _find() -> "tuple[FoundProgram, str]":
    from antiphon.engines.cli_program import CLAUDE

    return await find(CLAUDE)
