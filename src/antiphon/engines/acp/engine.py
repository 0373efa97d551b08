"""`AcpEngine`: any ACP agent as an engine, and its authentication methods. Imports no event loop, and starts nothing before
`initialize` is answered.

So the response is sent before the capabilities of the agent are known. It names every capability, and what this agent lacks
is replaced, or refused with the reason when a client uses it:

- pictures, sound and embedded resources that it does not take become text (`session.py`);
- an MCP server over HTTP or SSE that it does not reach is refused, and further directories are left out with a notice;
- `session/load` and `session/resume` replace each other; without both an earlier session cannot be opened;
- a list that it does not have is empty; `session/fork`, `session/delete` and `logout` that it does not have are refused;
- authentication methods are those of its last start; its error -32000 names the current ones, and `authenticate` takes them;
- an addition to a running turn that it does not take is refused as too late, and the editor sends it as a prompt.
"""

import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon import __version__
from antiphon.config.environment import environment_for, harmless_git
from antiphon.engines.base import Engine
from antiphon.engines.cli_program import CliMemory
from antiphon.protocol.v1.auth import AgentAuth, EnvVarAuth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from antiphon.agent.session import AgentSession
    from antiphon.engines.acp.hub import AcpHub
    from antiphon.engines.acp.session import AcpSession
    from antiphon.protocol import v1
    from antiphon.protocol.v1.auth import AuthMethod

__all__ = ["AcpEngine", "AcpStart", "AuthMethods"]

# The authentication methods of an agent, remembered from its last start: clients get them before it runs.
# Those that are a command in a terminal are not offered. A client would run it with the program that it knows, which is ours.

_KEY: Final = "authMethods"


class AuthMethods:
    """The authentication methods of one agent, which is known by its command."""

    def __init__(self, name: str, command: "Sequence[str]") -> None:
        self._notes = CliMemory(f"{name}-ways", f"{zlib.crc32(chr(0).join(command).encode()):08x}")

    def remembered(self) -> "list[AuthMethod]":
        """Return the methods of the last start."""
        stored = (self._notes.load() or {}).get(_KEY)
        try:
            return [_read(each) for each in stored] if isinstance(stored, list) else []
        except msgspec.ValidationError:  # from another version of ours
            return []

    def offered(self, methods: "Sequence[AuthMethod]") -> "list[AuthMethod]":
        """Return the methods that can be forwarded to clients."""
        return [each for each in methods if isinstance(each, AgentAuth | EnvVarAuth)]

    def remember(self, methods: "Sequence[AuthMethod]") -> None:
        """Store the methods for the next start."""
        self._notes.save({_KEY: [msgspec.to_builtins(each) for each in methods]})


def _read(stored: object) -> "AuthMethod":
    if isinstance(stored, dict) and stored.get("type") == "env_var":
        return msgspec.convert(stored, EnvVarAuth)
    return msgspec.convert(stored, AgentAuth)


class AcpStart(msgspec.Struct, frozen=True):
    """How the agent is started, and its title."""

    title: str
    command: tuple[str, ...]
    env: dict[str, str]
    """Variables that are added to its environment."""
    cwd: str | None
    keys: tuple[str, ...] = ()
    """Names of the API keys that it gets."""

    def whole_env(self) -> dict[str, str]:
        """Return its environment: ours without the keys of other engines."""
        return harmless_git(environment_for(self.keys, own=self.env))


class AcpEngine(Engine):
    """An engine over any ACP agent: one process for all sessions, which are the agent's own."""

    version = __version__
    takes = ("image", "audio", "resource")
    mcp = ("http", "sse")
    steers = True
    guarded = True

    def __init__(
        self,
        name: str,
        title: str,
        command: "Sequence[str]",
        env: "Mapping[str, str] | None" = None,
        cwd: str | None = None,
        keys: "Sequence[str]" = (),
    ) -> None:
        self.name = name
        self.title = title
        self._methods = AuthMethods(name, command)
        self.auth_methods: list[v1.AuthMethod] = self._methods.remembered()
        self._start = AcpStart(title, tuple(command), dict(env or {}), cwd, tuple(keys))
        self._client: v1.ClientCapabilities | None = None
        self._hub: AcpHub | None = None

    def meet(self, params: "v1.Initialize") -> None:
        self._client = params.client_capabilities

    # Sessions.

    async def new(self, session: "AgentSession") -> "AcpSession":
        acp = self._begin(session)
        async with _closing_on_error(acp):
            await acp.create()
        return acp

    async def load(self, session: "AgentSession") -> "AcpSession":
        acp = self._begin(session)
        async with _closing_on_error(acp):
            await acp.restore(replay=True)
        return acp

    async def resume(self, session: "AgentSession") -> "AcpSession":
        acp = self._begin(session)
        async with _closing_on_error(acp):
            await acp.restore(replay=False)
        return acp

    async def fork(self, session: "AgentSession", source: str) -> "AcpSession":
        acp = self._begin(session)
        async with _closing_on_error(acp):
            await acp.copy(source)
        return acp

    async def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        return await self._shared().list(query)

    async def delete(self, session_id: str) -> None:
        await self._shared().delete(session_id)

    async def warm_up(self) -> None:
        """Start the agent."""
        await self._shared().alive()
        from antiphon.engines.acp.session import AcpSession  # noqa: F401 - takes its time

    async def close(self) -> None:
        hub, self._hub = self._hub, None
        if hub is not None:
            await hub.close()

    # The account.

    async def authenticate(self, method_id: str) -> None:
        await self._shared().authenticate(method_id)

    async def logout(self) -> None:
        await self._shared().logout()

    # Parts of the above.

    def _begin(self, session: "AgentSession") -> "AcpSession":
        from antiphon.engines.acp.session import AcpSession

        if self._client is None:  # no `initialize` reached us, but there is a client
            self._client = session.client.capabilities
        return AcpSession(session, self._shared())

    def _shared(self) -> "AcpHub":
        """Return the one hub. The agent gets the capabilities of the first client."""
        if self._hub is None:
            from antiphon.engines.acp.hub import AcpHub
            from antiphon.protocol.v1.initialize import ClientCapabilities

            self._hub = AcpHub(self._start, self._client or ClientCapabilities(), self._know)
        return self._hub

    def _know(self, methods: "Sequence[v1.AuthMethod]") -> None:
        """Take the authentication methods of the agent. The list itself changes, because our agent responds with it."""
        offered = self._methods.offered(methods)
        if self.auth_methods != offered:
            self.auth_methods[:] = offered
            self._methods.remember(offered)


@asynccontextmanager
async def _closing_on_error(acp: "AcpSession") -> "AsyncIterator[None]":
    """Close the session if opening it in this block fails or is cancelled."""
    try:
        yield
    except BaseException:
        await acp.close()
        raise
