"""The way in: connect to an agent and have it introduced."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET

from antiphon import __version__
from antiphon.client.agent import ConnectedAgent
from antiphon.client.capabilities import our_capabilities
from antiphon.client.files import Files
from antiphon.client.handlers import ClientService, Elicitation, Elicited, PermissionHandler, SignInHandler, reject
from antiphon.client.link import VERSION, Link, Retry, Target, target_of
from antiphon.client.updates import ClientSessions
from antiphon.connection.stream import CANCEL_GRACE
from antiphon.protocol import v1
from antiphon.protocol.timeouts import Timeout

if TYPE_CHECKING:
    from antiphon.client.terminals import Terminals
    from antiphon.connection.reports import Observer

__all__ = ["ElicitationHandler", "connect"]

ElicitationHandler: TypeAlias = (
    Elicitation | Callable[[v1.FormElicitation | v1.UrlElicitation], Elicited | Awaitable[Elicited]]
)
"""How the user is asked: by one handler for both kinds of question, or by one for each."""

DEFAULT_FILES: Final = Files()
DEFAULT_RETRY: Final = Retry()


@asynccontextmanager
async def connect(
    target: Target,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
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
) -> AsyncIterator[ConnectedAgent]:
    """Connect to an agent: its name, such as `"demo"`, the words of its command, or a transport. It is ended when the block is left.

    What the handlers are given for is what the agent may ask of us. Without any it may read files in the session's directories, its
    permission requests are rejected, and a request that needs a sign-in fails with `AuthRequired`. `cwd` and `env` are those of
    its process; it gets our whole environment unless `env` is given. `cancel_grace`: the seconds that it may take to end a cancelled
    turn before it is ended itself. `terminal_login`: agents may offer ways to sign in that `authenticate` runs in a terminal.

    `timeout`: the seconds that the agent may take to start, and to respond to each request but a prompt and a sign-in; None for no
    timeout. Each method that sends a request takes a `timeout` of its own. Without either they are those of `protocol.timeouts`.
    `transcript`: the most entries that a session's transcript keeps; 0 for none, None for all of them.

    Raises:
        SpawnFailed: there is no such program, or it may not be run.
        ProcessDied: it ended before it answered; with its last words.
        RequestTimeout: it did not respond to `initialize` in time.
        RemoteProtocolError: it does not speak our version of the protocol.
    """
    sessions = ClientSessions()
    asking = _elicitation(elicitation)
    service = ClientService(sessions, permission or reject, asking, files, terminals)
    hello = v1.Initialize(
        VERSION,
        client_capabilities=our_capabilities(files, terminals, asking, terminal_login=terminal_login),
        client_info=info or v1.Implementation("antiphon", __version__),
    )
    link = Link(
        target_of(target, cwd, env),
        service.router,
        hello,
        authenticate=authenticate,
        retry=retry,
        observer=observer,
        cancel_grace=cancel_grace,
        timeout=timeout,
    )
    agent = ConnectedAgent(link, sessions, terminals, cwd, transcript)
    try:
        await link.alive()
        yield agent
    finally:
        await agent.close()


def _elicitation(asking: ElicitationHandler | None) -> Elicitation | None:
    """Return the handlers of both kinds of question."""
    return asking if asking is None or isinstance(asking, Elicitation) else Elicitation(asking, asking)
