"""The Codex engine: name and version, how its sessions are opened, and the login methods for clients.

Imports no event loop, and looks for no CLI before `initialize` is answered.
"""

from typing import TYPE_CHECKING, Final

from antiphon import __version__
from antiphon.engines.cli_engine import CliEngine, find, terminal_login
from antiphon.protocol.v1.auth import AgentAuth

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex.hub import CodexHub
    from antiphon.engines.codex.session import CodexSession
    from antiphon.protocol import v1

__all__ = ["API_KEY", "CHATGPT", "DEVICE", "KEYS", "METHODS", "OWN_KEY", "Codex"]

KEYS: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""The variables that may hold an API key; the first that is set is taken."""

OWN_KEY: Final = KEYS[0]
"""The variable that is for Codex alone. It is used without a request where there is no login, as `codex exec` does, and not stored."""

CHATGPT: Final = terminal_login(
    "codex",
    "chatgpt-login",
    "ChatGPT account",
    "Sign in with your ChatGPT account, in a terminal and a browser.",
    "--login",
)
DEVICE: Final = terminal_login(
    "codex",
    "device-login",
    "ChatGPT account, by a code",
    "Sign in with a browser on another machine: a terminal shows the code to type there.",
    "--login",
    "device",
)
API_KEY: Final = AgentAuth(
    "api-key", "OpenAI API key", f"Takes the key from {' or '.join(KEYS)} in the environment of the agent."
)

METHODS: Final = (CHATGPT, DEVICE, API_KEY)


class Codex(CliEngine["CodexSession"]):
    """The Codex engine: one server for all sessions. Sessions are threads, stored by Codex."""

    name = "antiphon-codex"
    version = __version__
    title = "Codex"
    takes = ("image", "resource")
    also_takes = ("audio",)
    mcp = ("http",)
    auth_methods = METHODS
    steers = True
    cuts_forks = True
    appends_system_prompt = True
    unique_ids = True
    read_only = "plan"

    def __init__(self) -> None:
        self._hub: CodexHub | None = None

    # Sessions.

    async def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        hub = await self._shared()
        from antiphon.engines.codex.stored_threads import list_threads

        return await list_threads(hub, query)

    async def delete(self, session_id: str) -> None:
        hub = await self._shared()
        from antiphon.engines.codex.stored_threads import delete_thread

        await delete_thread(hub, session_id)

    async def close(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            await hub.close()

    async def warm_up(self) -> None:
        """Start the server, and ask it what every session has to know."""
        hub = await self._starting()
        from antiphon.engines.codex.session import CodexSession  # noqa: F401 - takes its time

        await hub.models()

    async def _make(self, session: "AgentSession") -> "CodexSession":
        hub = await self._starting()
        from antiphon.engines.codex.session import CodexSession

        return CodexSession(session, hub)

    async def _starting(self) -> "CodexHub":
        """Return the hub, with a server that starts while the rest is imported."""
        import asyncio

        hub = await self._shared()
        hub.start_soon()
        await asyncio.sleep(0)  # now
        return hub

    async def _shared(self) -> "CodexHub":
        """Return the one hub. It is made when the CLI has been found, which may be at the second try: people install it in between."""
        if self._hub is None:
            from antiphon.engines.cli_program import CODEX

            found, _ = await find(CODEX)
            from antiphon.engines.codex.hub import CodexHub

            if self._hub is None:  # another caller was quicker
                self._hub = CodexHub(found)
        return self._hub

    # The account.

    async def authenticate(self, method_id: str) -> None:
        hub = await self._shared()
        from antiphon.engines.codex.login import sign_in

        await sign_in(hub, method_id)

    async def _check_signed_in(self) -> None:
        from antiphon.engines.codex.login import must_be_signed_in
        from antiphon.engines.codex.server import client_errors

        with client_errors():
            await must_be_signed_in(await self._shared())

    async def logout(self) -> None:
        hub = await self._shared()
        from antiphon.engines.codex.login import sign_out

        await sign_out(hub)
