"""The Codex engine's front: who it is and how its sessions are opened. Imports no event loop, and looks for no CLI before `initialize` is answered."""

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from antiphon import __version__
from antiphon.engines.base import Engine
from antiphon.protocol.v1.auth import AgentAuth, TerminalAuth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.agent.session import AgentSession
    from antiphon.engines.cli_program import FoundProgram
    from antiphon.engines.codex.hub import CodexHub
    from antiphon.engines.codex.session import CodexSession
    from antiphon.protocol import v1

__all__ = ["API_KEY", "CHATGPT", "DEVICE", "KEYS", "METHODS", "Codex"]

# --- The ways to sign in to Codex that clients are told of. Imported before `initialize` is answered, so it imports little

KEYS: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""The variables that may hold an API key; the first that is set is taken."""


def _in_a_terminal(id: str, name: str, description: str, *words: str) -> TerminalAuth:
    # Some clients open terminals and do not say so in the protocol's way: they look for the whole command in the `_meta`.
    whole = ["-P", "-m", "antiphon", "agent", "--engine", "codex", *words]
    meta = {"terminal-auth": {"command": sys.executable, "args": whole, "label": name}}
    return TerminalAuth(id, name, description, [*words], meta=meta)


CHATGPT: Final = _in_a_terminal(
    "chatgpt-login", "ChatGPT account", "Sign in with your ChatGPT account, in a terminal and a browser.", "--login"
)
DEVICE: Final = _in_a_terminal(
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


class Codex(Engine):
    """One server for all sessions. Sessions are Codex's own threads, also those that were begun in a terminal."""

    name = "antiphon-codex"
    version = __version__
    title = "Codex"
    takes = ("image", "resource")
    also_takes = ("audio",)
    mcp = ("http",)
    auth_methods = METHODS
    steers = True
    unique_ids = True
    read_only = "plan"

    def __init__(self) -> None:
        self._hub: CodexHub | None = None

    # Sessions.

    async def new(self, session: "AgentSession") -> "CodexSession":
        codex = await self._begin(session)
        async with _opening(codex):
            await codex.create()
        return codex

    async def load(self, session: "AgentSession") -> "CodexSession":
        codex = await self._begin(session)
        async with _opening(codex):
            await codex.restore(telling=True)
        return codex

    async def resume(self, session: "AgentSession") -> "CodexSession":
        codex = await self._begin(session)
        async with _opening(codex):
            await codex.restore()
        return codex

    async def fork(self, session: "AgentSession", source: str) -> "CodexSession":
        codex = await self._begin(session)
        async with _opening(codex):
            await codex.copy(source)
        return codex

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

    async def _begin(self, session: "AgentSession") -> "CodexSession":
        hub = await self._starting()
        from antiphon.engines.codex.session import CodexSession

        return CodexSession(session, hub)

    async def _starting(self) -> "CodexHub":
        """The hub, with a server that starts while the rest is imported."""
        import asyncio

        hub = await self._shared()
        hub.start_soon()
        await asyncio.sleep(0)  # now
        return hub

    async def _shared(self) -> "CodexHub":
        """The one hub. It is made when the program has been found, which may be at the second try: people install it in between."""
        if self._hub is None:
            found = await _find()
            from antiphon.engines.codex.hub import CodexHub

            if self._hub is None:  # somebody else was quicker
                self._hub = CodexHub(found)
        return self._hub

    # The account.

    async def authenticate(self, method_id: str) -> None:
        hub = await self._shared()
        from antiphon.engines.codex.login import sign_in

        await sign_in(hub, method_id)

    async def signed_in(self) -> bool:
        from antiphon.engines.codex.login import must_be_signed_in
        from antiphon.engines.codex.server import client_errors
        from antiphon.errors import AcpError

        try:
            with client_errors():
                await must_be_signed_in(await self._shared())
        except AcpError:  # not, not installed, or its server does not start
            return False
        return True

    async def logout(self) -> None:
        hub = await self._shared()
        from antiphon.engines.codex.login import sign_out

        await sign_out(hub)


@asynccontextmanager
async def _opening(codex: "CodexSession") -> "AsyncIterator[None]":
    """Open it in this block: what fails, or is called off, leaves nothing open, because nobody else would close it."""
    try:
        yield
    except BaseException:
        await codex.close()
        raise


async def _find() -> "FoundProgram":
    """The CLI, if it is new enough. A program that is asked for its version does not hold up others."""
    import asyncio

    from antiphon.engines.cli_program import CODEX, ask_version, check_version, find_cli, known_version

    found = find_cli(CODEX)
    version = known_version(found)
    if version is None:
        version = await asyncio.to_thread(ask_version, found)
    check_version(found, version)
    return found
