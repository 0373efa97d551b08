"""Any ACP agent as an engine, its front: who it is and how its sessions are opened. Imports no event loop, and starts nothing before
`initialize` is answered.

So the answer is given before the agent is known, and what it can do with it. Offered is all that an agent may have, and what this one lacks
is made up for or refused with the reason when it is asked for:

- pictures, sound and embedded resources that it does not take become words (`prompts.py`);
- an MCP server over HTTP or SSE that it does not reach is refused, and further directories are left out with a notice;
- `session/load` and `session/resume` stand in for each other; without both an earlier session cannot be opened;
- a list that it does not have is empty; `session/fork`, `session/delete` and `logout` that it does not have are refused;
- ways to sign in are those that it told at its last start; its error -32000 names those that it has now, and `authenticate` takes them;
- what is added to a running turn, where it cannot be, comes back as "too late", and the editor sends it as a prompt.
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

# The ways to sign in to an agent, remembered from its last start: clients are told of them before it runs.
# Those that are a command in a terminal are not offered. A client would run it with the program that it knows, which is ours.

_KEY: Final = "authMethods"


class AuthMethods:
    """Those of one agent, which is known by its command."""

    def __init__(self, name: str, command: "Sequence[str]") -> None:
        self._notes = CliMemory(f"{name}-ways", f"{zlib.crc32(chr(0).join(command).encode()):08x}")

    def remembered(self) -> "list[AuthMethod]":
        """What it offered last time."""
        stored = (self._notes.load() or {}).get(_KEY)
        try:
            return [_read(each) for each in stored] if isinstance(stored, list) else []
        except msgspec.ValidationError:  # from another version of ours
            return []

    def offered(self, methods: "Sequence[AuthMethod]") -> "list[AuthMethod]":
        """Those of these that can be passed on."""
        return [each for each in methods if isinstance(each, AgentAuth | EnvVarAuth)]

    def remember(self, methods: "Sequence[AuthMethod]") -> None:
        """For the next time."""
        self._notes.save({_KEY: [msgspec.to_builtins(each) for each in methods]})


def _read(stored: object) -> "AuthMethod":
    if isinstance(stored, dict) and stored.get("type") == "env_var":
        return msgspec.convert(stored, EnvVarAuth)
    return msgspec.convert(stored, AgentAuth)


class AcpStart(msgspec.Struct, frozen=True):
    """How the agent is started, and what to call it."""

    title: str
    command: tuple[str, ...]
    env: dict[str, str]
    """What its environment has in addition."""
    cwd: str | None
    keys: tuple[str, ...] = ()
    """Whose keys it gets."""

    def whole_env(self) -> dict[str, str]:
        """Its environment: ours without the keys of other engines."""
        return harmless_git(environment_for(self.keys, own=self.env))


class AcpEngine(Engine):
    """One process for all sessions. Sessions are the agent's own."""

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

        if self._client is None:  # nobody introduced it to us; it is there all the same
            self._client = session.client.capabilities
        return AcpSession(session, self._shared())

    def _shared(self) -> "AcpHub":
        """The one hub. What the agent is told that it may ask for is what the first client can do."""
        if self._hub is None:
            from antiphon.engines.acp.hub import AcpHub
            from antiphon.protocol.v1.initialize import ClientCapabilities

            self._hub = AcpHub(self._start, self._client or ClientCapabilities(), self._know)
        return self._hub

    def _know(self, methods: "Sequence[v1.AuthMethod]") -> None:
        """The agent has told the ways to sign in. The list itself changes: it is the one that our agent answers by."""
        offered = self._methods.offered(methods)
        if self.auth_methods != offered:
            self.auth_methods[:] = offered
            self._methods.remember(offered)


@asynccontextmanager
async def _closing_on_error(acp: "AcpSession") -> "AsyncIterator[None]":
    """Open it in this block: what fails, or is called off, leaves nothing open, because nobody else would close it."""
    try:
        yield
    except BaseException:
        await acp.close()
        raise
