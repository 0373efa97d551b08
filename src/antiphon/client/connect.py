"""`connect`: open a connection to an agent, and send `initialize`."""

import os
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET

from antiphon import __version__
from antiphon.client.agent import ConnectedAgent
from antiphon.client.capabilities import DEFAULT_VERSIONS, checked_versions, our_capabilities
from antiphon.client.files import Files
from antiphon.client.handlers import (
    ClientService,
    Elicitation,
    Elicited,
    ExtensionHandler,
    PermissionHandler,
    SignInHandler,
    reject,
)
from antiphon.client.link import Link, LinkOptions, Retry, Target, target_of
from antiphon.client.updates import ClientSessions
from antiphon.connection.stream import CANCEL_GRACE
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1.version import V1

if TYPE_CHECKING:
    from ssl import SSLContext

    from antiphon.client.terminals import Terminals
    from antiphon.connection.reports import Observer

__all__ = ["ElicitationHandler", "PendingConnection", "connect"]

ElicitationHandler: TypeAlias = (
    Elicitation | Callable[[v1.FormElicitation | v1.UrlElicitation], Elicited | Awaitable[Elicited]]
)
"""The handler of questions to the user: one for both kinds of question, or one for each."""

DEFAULT_FILES: Final = Files()
DEFAULT_RETRY: Final = Retry()


class PendingConnection:
    """What `connect` returns: `async with connect(…) as agent`, or `agent = await connect(…)` and later `await agent.close()`."""

    def __init__(self, make: Callable[[], ConnectedAgent]) -> None:
        self._make = make
        self._agent: ConnectedAgent | None = None

    def __await__(self) -> Generator[Any, None, ConnectedAgent]:
        return self._open().__await__()

    async def _open(self) -> ConnectedAgent:
        agent = self._agent = self._make()
        try:
            await agent._link.connected()
        except BaseException:
            await agent.close()
            raise
        return agent

    async def __aenter__(self) -> ConnectedAgent:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        if self._agent is not None:
            await self._agent.close()


def connect(
    target: Target,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: "SSLContext | None" = None,
    plaintext: bool = False,
    permission: PermissionHandler | None = None,
    elicitation: ElicitationHandler | None = None,
    authenticate: SignInHandler | None = None,
    files: Files | None = DEFAULT_FILES,
    terminals: "Terminals | None" = None,
    info: v1.Implementation | None = None,
    retry: Retry = DEFAULT_RETRY,
    observer: "Observer | None" = None,
    cancel_grace: float = CANCEL_GRACE,
    terminal_login: bool = False,
    timeout: Timeout = UNSET,
    transcript: int | None = None,
    extensions: Mapping[str, ExtensionHandler] | None = None,
    versions: Sequence[int] = DEFAULT_VERSIONS,
) -> PendingConnection:
    """Connect to an agent: its name, such as `"demo"`, its address, the words of its command, an `Agent`, or a transport.

    `async with connect(…) as agent` closes it when the block is left; `agent = await connect(…)` leaves that to `agent.close()`.

    The handlers that are given determine which capabilities are advertised. Without any the agent may read files in the session's
    directories, its permission requests are rejected, and a request that needs a sign-in fails with `AuthRequired`.

    An address is `wss://host/acp` (WebSocket), `https://host/acp` (streamable HTTP) or `unix:///path`; `token`, `headers` and `tls` are for
    it, and with `plaintext` the token may go to another machine without TLS. `cwd`, `env`: those of the agent's process; it gets our whole
    environment unless `env` is given. `cancel_grace`: the seconds to end a cancelled turn before it is killed. `terminal_login`: agents may
    offer methods to sign in that `authenticate` runs in a terminal. `timeout`: the seconds that the agent may take to start, and to respond
    to each request but a prompt and a sign-in; None for no timeout. Each method that sends a request takes one of its own. `transcript`: the
    most entries that a session's transcript keeps; 0 for none, None for all. `extensions`: handlers of extension methods, which begin with
    `_`: given the params as plain JSON values, they return the result, or None for a notification. `versions`: those of ACP that the agent
    may speak, the preferred one first; version 2 is translated.

    Raises (when it is awaited or entered):
        SpawnFailed, ConnectionRefused: there is no such program, or the address was not reached.
        ProcessDied, RequestTimeout: it ended before it responded, with its last lines on stderr; it did not respond in time.
        RemoteProtocolError: it does not support our version of the protocol.
    """

    def make() -> ConnectedAgent:
        sessions, asking = ClientSessions(), _elicitation(elicitation)
        service = ClientService(sessions, permission or reject, asking, files, terminals, extensions)
        initialize = v1.Initialize(
            V1.number,
            client_capabilities=our_capabilities(files, terminals, asking, terminal_login=terminal_login),
            client_info=info or v1.Implementation("antiphon", __version__),
        )
        options = LinkOptions(authenticate, retry, observer, cancel_grace, timeout, checked_versions(versions))
        there = target_of(_with_access(target, token, headers, tls, plaintext=plaintext), cwd, env)
        link = Link(there, service.router, initialize, options)
        return ConnectedAgent(link, sessions, terminals, cwd, transcript)

    return PendingConnection(make)


def _with_access(
    target: Target,
    token: str | None,
    headers: Mapping[str, str] | None,
    tls: "SSLContext | None",
    *,
    plaintext: bool,
) -> Target:
    """Return the target, an address together with what it takes to be let in there."""
    if token is None and headers is None and tls is None:
        return target
    if not isinstance(target, str) or "://" not in target:
        raise LocalProtocolError("`token`, `headers` and `tls` are for the address of a remote agent")
    from antiphon.transports.remote import RemoteAddress  # brings TLS along

    return RemoteAddress(target, token=token, headers=headers, tls=tls, plaintext=plaintext)


def _elicitation(asking: ElicitationHandler | None) -> Elicitation | None:
    """Return the handlers of both kinds of question."""
    return asking if asking is None or isinstance(asking, Elicitation) else Elicitation(asking, asking)
