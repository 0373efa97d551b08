"""An agent: hooks, filled in by a subclass or by decorated functions, and the two ways to serve it.

Nothing here imports the event loop. `run` answers `initialize` first and imports the rest while the editor reads the answer.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from antiphon.errors import Code, LocalProtocolError, RequestError
from antiphon.protocol.v1.initialize import (
    AgentAuthCapabilities,
    AgentCapabilities,
    CloseSupport,
    DeleteSupport,
    DirectoriesSupport,
    ForkSupport,
    Implementation,
    InitializeResult,
    ListSupport,
    LogoutSupport,
    McpCapabilities,
    PromptCapabilities,
    ResumeSupport,
    SessionCapabilities,
    Support,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable

    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.protocol import v1
    from antiphon.protocol.v1.initialize import Initialize

    T = TypeVar("T")
    Maybe: TypeAlias = T | Awaitable[T]
    """From a `def`, or from an `async def`."""
    Outcome: TypeAlias = v1.PromptResult | v1.StopReason | None
    """How a turn ended; None is `end_turn`."""
    from collections.abc import Mapping, Sequence

    from antiphon.protocol.v1.auth import AuthMethod
    from antiphon.transports.asgi import AcpEndpoint
    from antiphon.transports.base import Transport

__all__ = ["CONTENT_KINDS", "MCP_KINDS", "Agent", "Hooks", "capabilities", "run"]

# The capabilities of an agent, computed from the hooks that it fills in. No event loop here: an editor waits for this.

CONTENT_KINDS: Final = ("image", "audio", "resource")
"""Kinds of content that a prompt may hold besides text and links."""

MCP_KINDS: Final = ("http", "sse")
"""Kinds of MCP server besides child processes."""

S = TypeVar("S", bound=Support)


def capabilities(
    does: Callable[[str], bool], takes: "Collection[str]", mcp: "Collection[str]", *, cuts_forks: bool = False
) -> AgentCapabilities:
    """Compute what to advertise. `does` returns whether a hook is filled in; `takes` and `mcp` are what is accepted.

    `cuts_forks`: whether a fork may end before a prompt of its source.
    """
    _check("takes", takes, CONTENT_KINDS)
    _check("mcp", mcp, MCP_KINDS)

    def support(kind: type[S], hook: str) -> S | None:
        return kind() if does(hook) else None

    return AgentCapabilities(
        load_session=does("load_session"),
        prompt_capabilities=PromptCapabilities("image" in takes, "audio" in takes, "resource" in takes),
        mcp_capabilities=McpCapabilities("http" in mcp, "sse" in mcp),
        session_capabilities=SessionCapabilities(
            list=support(ListSupport, "list_sessions"),
            resume=support(ResumeSupport, "resume_session"),
            fork=_fork_support(does("fork_session"), cuts_forks),
            delete=support(DeleteSupport, "delete_session"),
            close=CloseSupport(),  # a session can be closed without a hook
            additional_directories=DirectoriesSupport(),  # they are in `session.directories`
        ),
        auth=AgentAuthCapabilities(logout=support(LogoutSupport, "logout")),
    )


def _fork_support(forks: bool, cuts_forks: bool) -> ForkSupport | None:
    if not forks or not cuts_forks:
        return ForkSupport() if forks else None
    from antiphon.transcript.fork_point import CUTS_FORKS

    return ForkSupport(meta=dict(CUTS_FORKS))


def _check(name: str, given: "Collection[str]", known: "Collection[str]") -> None:
    for word in given:
        if word not in known:
            raise LocalProtocolError(f"`{name}` has no `{word}`", hint=f"it may hold {', '.join(known)}")


# The hooks of an agent: the requests of a client, as functions to fill in. No connection and no event loop here.
# Every hook may be `def` or `async def`. Only `prompt` is needed; the others that are filled in are advertised to the client.
# Raise `RequestError` in any of them to refuse with a code and a message of your own.


class Hooks:
    """The base of `Agent`: override what you need."""

    def prompt(self, turn: "AgentTurn") -> "Maybe[Outcome]":
        """Work on a prompt. Return why the turn ended; None is `end_turn`."""
        raise _missing("session/prompt")

    def new_session(self, session: "AgentSession") -> "Maybe[None]":
        """Open a new session. Give it modes, options or commands here; what is sent in it leaves after the response."""

    def load_session(self, session: "AgentSession") -> "Maybe[None]":
        """Open an earlier session with its history: send all of that with `session.update` before you return."""
        raise _missing("session/load")

    def resume_session(self, session: "AgentSession") -> "Maybe[None]":
        """Open an earlier session without its history."""
        raise _missing("session/resume")

    def fork_session(self, session: "AgentSession", source: str) -> "Maybe[None]":
        """Open a new session that begins with the history of the session `source`."""
        raise _missing("session/fork")

    def close_session(self, session: "AgentSession") -> "Maybe[None]":
        """Release what a session holds: it is closed, and its turn has ended. Also called when the client is gone."""

    def set_mode(self, session: "AgentSession", mode_id: str) -> "Maybe[None]":
        """Change the mode to another one of those on offer. Raise to refuse."""

    def set_model(self, session: "AgentSession", model_id: str) -> "Maybe[None]":
        """Change the model to another one of those on offer, for older clients. Raise to refuse."""

    def set_config_option(self, session: "AgentSession", config_id: str, value: bool | str) -> "Maybe[None]":
        """Change an option to one of the values on offer. Raise to refuse."""

    def cancel(self, session: "AgentSession") -> "Maybe[None]":
        """Cancel what the agent does by itself in a session while no prompt runs. A prompt is cancelled by cancelling its hook."""

    def waits(self, turn: "AgentTurn", before: int) -> "Maybe[None]":
        """Note that a prompt waits for `before` others of its session, which run or wait. A notice to the user can be sent here."""

    def steer(self, turn: "AgentTurn") -> "Maybe[bool]":
        """Add what the user sends to the turn that runs. Return False if it is too late and nothing was taken."""
        raise _missing("_session/steering")

    # Hooks that are about no open session.

    def list_sessions(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        """List the sessions, newest first: a page of them, or all. Of all, those in the directory of the query are picked."""
        raise _missing("session/list")

    def delete_session(self, session_id: str) -> "Maybe[None]":
        """Delete a session for good. One that does not exist is not an error."""
        raise _missing("session/delete")

    def session_directory(self, session_id: str) -> "Maybe[str | None]":
        """Return the directory of an earlier session, for clients that open it without naming one. None: look into `list_sessions`."""
        return None

    def authenticate(self, method_id: str) -> "Maybe[None]":
        """Sign in by one of the methods on offer."""

    def logout(self) -> "Maybe[None]":
        """Sign out."""
        raise _missing("logout")

    def close(self) -> "Maybe[None]":
        """Release what sessions share: the last client is gone, and its sessions are closed. Another client may still come."""


def _missing(method: str) -> RequestError:
    return RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)


F = TypeVar("F", bound="Callable[..., Any]")

_TAKES_ANY = 0x04
"""The flag of a function with `*args`."""

_HOOKS = tuple(name for name in vars(Hooks) if not name.startswith("_"))


class Agent(Hooks):
    """An agent: it answers prompts. Subclass it, or decorate functions that are named after a hook:

        agent = Agent("hello")

        @agent.on
        async def prompt(turn):
            await turn.say("hello")

        agent.run()

    `takes`: kinds of content a prompt may hold besides text and links ("image", "audio", "resource"); others are refused.
    `mcp`: kinds of MCP server a session may have besides child processes ("http", "sse"); others are refused.
    """

    takes: "Collection[str]" = ()
    also_takes: "Collection[str]" = ()
    """Kinds of content that a prompt may hold though they are not advertised, because the model gets only a text about them."""
    mcp: "Collection[str]" = ()
    auth_methods: "Sequence[AuthMethod]" = ()
    auth_aliases: "Mapping[str, str]" = MappingProxyType({})
    """Other ids of methods to sign in, which clients know from elsewhere → the ids on offer."""
    cuts_forks: bool = False
    """Whether `fork_session` leaves out the prompts that the request names (`transcript.fork_point`), and what followed them."""
    appends_system_prompt: bool = False
    """Whether `_meta.antiphon.appendSystemPrompt` of the request that opens a session becomes a part of the model's system prompt."""
    ahead: "Callable[[], Maybe[None]] | None" = None
    """Called once a client is connected, before its first request after `initialize`. Not waited for; its failure is ignored."""
    versions: "Collection[int]" = (1, 2)
    """The versions of ACP that it speaks. What a client of version 2 sends is translated: hooks see version 1 alone."""
    _clients = 0
    """How many clients are being served."""

    def __init__(
        self,
        name: str | None = None,
        version: str = "0",
        *,
        title: str | None = None,
        takes: "Collection[str] | None" = None,
        mcp: "Collection[str] | None" = None,
        auth_methods: "Sequence[AuthMethod] | None" = None,
        versions: "Collection[int] | None" = None,
    ) -> None:
        self.info = Implementation(name or type(self).__name__.lower(), version, title)
        if takes is not None:
            self.takes = takes
        if mcp is not None:
            self.mcp = mcp
        if auth_methods is not None:
            self.auth_methods = auth_methods
        if versions is not None:
            if not versions or not set(versions) <= {1, 2}:
                raise LocalProtocolError(f"these are no versions of ACP: {tuple(versions)}", hint="give 1, 2 or both")
            self.versions = versions
        self._extensions: dict[str, Callable[[Any], object]] = {}
        """Method → handler, of methods that are not the protocol's."""
        self.capabilities = capabilities(self.does, self.takes, self.mcp, cuts_forks=self.cuts_forks)

    def __repr__(self) -> str:
        return f"<agent {self.info.name!r}>"

    def on(self, hook: F) -> F:
        """Let a function be the hook of its name."""
        name = getattr(hook, "__name__", str(hook))
        if name not in _HOOKS:
            raise LocalProtocolError(f"an agent has no hook `{name}`", hint=f"name the function {', '.join(_HOOKS)}")
        _check_arguments(name, hook)
        setattr(self, name, hook)
        self.capabilities = capabilities(self.does, self.takes, self.mcp, cuts_forks=self.cuts_forks)
        return hook

    def extension(self, method: str) -> "Callable[[F], F]":
        """Let a function handle requests or notifications of a method of your own, such as `_mine/ping`.

        It is given the params as plain JSON values. What it returns is the result of a request.
        """
        from antiphon.protocol.methods import check_extension

        check_extension(method)

        def register(handler: F) -> F:
            self._extensions[method] = handler
            return handler

        return register

    def does(self, hook: str) -> bool:
        """Return whether a hook is filled in."""
        return hook in vars(self) or getattr(type(self), hook) is not getattr(Hooks, hook)

    def initialize(self, asked: "Initialize") -> InitializeResult:
        """Make the response to `initialize`."""
        from antiphon.protocol.v1.version import V1

        return InitializeResult(
            V1.number,  # whatever version the client asks for
            agent_capabilities=self.capabilities,
            auth_methods=[each for each in self.auth_methods if _possible(each, asked)],
            agent_info=self.info,
            meta={
                **({"steering": {"supported": True}} if self.does("steer") else {}),
                **({"antiphon": {"appendSystemPrompt": True}} if self.appends_system_prompt else {}),
            }
            or None,
        )

    async def serve(self, transport: "Transport") -> None:
        """Serve one client over a transport until it is gone."""
        from antiphon.agent.service import serve

        await serve(self, transport)

    def serve_asgi(self, *, hosts: "Collection[str]" = (), origins: "Collection[str]" = ()) -> "AcpEndpoint":
        """Return an ASGI application that serves this agent over WebSocket and streamable HTTP, at whatever path it is mounted.

        It asks for no token: put your own authentication before it. A request has to name this machine (`localhost`, `127.0.0.1`,
        `::1`) or one of `hosts`, the names under which others reach it; `*` allows any, for a server in front that checks names. A
        browser's request from a page of another host is refused unless its origin is in `origins`.
        """
        from antiphon.transports.asgi import AcpEndpoint

        return AcpEndpoint(self.serve, hosts=hosts, origins=origins)

    def run(self) -> None:
        """Serve the client that started this program over stdin and stdout, until it closes them."""
        run(self)


def _check_arguments(name: str, hook: "Callable[..., Any]") -> None:
    """Refuse a hook with a wrong signature, which would fail at the first request. Without `inspect`, which takes long to import."""
    code = getattr(hook, "__code__", None)
    if code is None or code.co_flags & _TAKES_ANY:
        return
    given = getattr(Hooks, name).__code__
    names = given.co_varnames[1 : given.co_argcount]
    bound = 1 if hasattr(hook, "__self__") else 0
    most = code.co_argcount - bound
    least = most - len(getattr(hook, "__defaults__", None) or ())
    if not least <= len(names) <= most:
        raise LocalProtocolError(
            f"the hook `{name}` takes {most} arguments", hint=f"it is called with {len(names)}: ({', '.join(names)})"
        )


def _possible(method: "AuthMethod", asked: "Initialize") -> bool:
    """Whether the client can sign in by this method: some need a terminal. Some clients have a capability of their own for it."""
    from antiphon.protocol.v1.auth import TerminalAuth

    if not isinstance(method, TerminalAuth) or asked.client_capabilities.auth.terminal:
        return True
    meta = asked.client_capabilities.meta or {}
    return meta.get("terminal-auth") is True and "terminal-auth" in (method.meta or {})


# An agent on stdin and stdout: `initialize` before the event loop, the rest after it.

EXIT_GRACE: Final = 2.0
"""Seconds that what still runs may take to end after the client is gone and everything was cancelled."""


def run(agent: "Agent") -> None:
    """Answer `initialize`, import the rest, and serve until stdin is closed."""
    from antiphon.connection.early import answer_initialize
    from antiphon.protocol.v1.methods import INITIALIZE

    asked: Initialize | None = None

    def initialize(request: "Initialize") -> "InitializeResult":
        nonlocal asked
        if (request.protocol_version != 1 and 2 in agent.versions) or 1 not in agent.versions:
            raise LocalProtocolError("this handshake is for the connection")  # which knows other versions
        result = agent.initialize(request)
        asked = request
        return result

    if not agent.does("prompt"):
        raise LocalProtocolError("an agent needs `prompt`", hint="fill it in, in a subclass or with `@agent.on`")
    if os.isatty(0):
        sys.stderr.write(
            f"{agent.info.name} is an ACP agent and waits for a client on stdin: start it from an editor. Ctrl-D ends it.\n"
        )
    with suppress(KeyboardInterrupt):
        already_read = answer_initialize(INITIALIZE, initialize)

        import asyncio

        from antiphon.agent.service import serve
        from antiphon.transports.stdio import open_stdio

        async def serve_stdio() -> None:
            await serve(agent, open_stdio(already_read=already_read), asked)
            await _leave()

        asyncio.run(serve_stdio())


async def _leave() -> None:
    """End all tasks: the client is gone. A task that ignores its cancellation does not keep the process."""
    import asyncio
    import logging

    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    stuck = (await asyncio.wait(rest, timeout=EXIT_GRACE))[1] if rest else ()
    if stuck:
        names = ", ".join(task.get_name() for task in stuck)
        logging.getLogger(__name__).error("ending although these ignore their cancellation: %s", names)
        logging.shutdown()
        os._exit(1)
