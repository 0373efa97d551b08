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
    from antiphon.transports.base import Transport

__all__ = ["CONTENT_KINDS", "MCP_KINDS", "Agent", "Hooks", "capabilities", "run"]

# What an agent tells a client that it can do, computed from what it does. Knows no event loop: an editor waits for this.

CONTENT_KINDS: Final = ("image", "audio", "resource")
"""Kinds of content that a prompt may hold besides text and links."""

MCP_KINDS: Final = ("http", "sse")
"""Kinds of MCP server besides child processes."""

S = TypeVar("S", bound=Support)


def capabilities(does: Callable[[str], bool], takes: "Collection[str]", mcp: "Collection[str]") -> AgentCapabilities:
    """What to advertise: `does` says whether a hook is filled in, `takes` and `mcp` what is accepted."""
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
            fork=support(ForkSupport, "fork_session"),
            delete=support(DeleteSupport, "delete_session"),
            close=CloseSupport(),  # ending the turn and forgetting the session needs no help
            additional_directories=DirectoriesSupport(),  # every agent finds them in `session.directories`
        ),
        auth=AgentAuthCapabilities(logout=support(LogoutSupport, "logout")),
    )


def _check(name: str, given: "Collection[str]", known: "Collection[str]") -> None:
    for word in given:
        if word not in known:
            raise LocalProtocolError(f"`{name}` has no `{word}`", hint=f"it may hold {', '.join(known)}")


# What an agent may do: the questions of a client, as functions to fill in. Knows no connection and no event loop.
# Every hook may be `def` or `async def`. Only `prompt` is needed; which of the others are filled in is what the client is told.
# Raise `RequestError` in any of them to refuse with a code and a message of your own.


class Hooks:
    """The base of `Agent`: override what you need."""

    def prompt(self, turn: "AgentTurn") -> "Maybe[Outcome]":
        """Work on what the user says. What it returns is why the turn ended; nothing means that all is well."""
        raise _missing("session/prompt")

    def new_session(self, session: "AgentSession") -> "Maybe[None]":
        """A session begins. Give it modes, settings or commands here; whatever is said in it leaves after the answer."""

    def load_session(self, session: "AgentSession") -> "Maybe[None]":
        """An earlier session is opened: tell its history with `session.update`, all of it before you return."""
        raise _missing("session/load")

    def resume_session(self, session: "AgentSession") -> "Maybe[None]":
        """An earlier session is opened, and the client does not want to hear its history."""
        raise _missing("session/resume")

    def fork_session(self, session: "AgentSession", source: str) -> "Maybe[None]":
        """A session begins where the session `source` stands."""
        raise _missing("session/fork")

    def close_session(self, session: "AgentSession") -> "Maybe[None]":
        """A session ends, and its turn has: free what it holds. Also when the client is gone."""

    def set_mode(self, session: "AgentSession", mode_id: str) -> "Maybe[None]":
        """The user switches the mode, to one of those on offer. Refuse by raising."""

    def set_model(self, session: "AgentSession", model_id: str) -> "Maybe[None]":
        """The user picks a model, in the way of older clients."""

    def set_config_option(self, session: "AgentSession", config_id: str, value: bool | str) -> "Maybe[None]":
        """The user changes a setting, to one of the values on offer."""

    def cancel(self, session: "AgentSession") -> "Maybe[None]":
        """The user calls off whatever runs in a session, and no prompt does. Prompts are called off by cancelling their hook."""

    def waits(self, turn: "AgentTurn", before: int) -> "Maybe[None]":
        """A prompt has come while others run or wait, `before` of them: it is its turn when they are over. Say so, if you like."""

    def steer(self, turn: "AgentTurn") -> "Maybe[bool]":
        """The user adds something while a turn runs: say it to the one that runs. False: it is too late, and nothing was taken."""
        raise _missing("_session/steering")

    # Those that concern no session that is open.

    def list_sessions(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        """The sessions there are, newest first: a page of them, or all. Of all, those of the directory that is asked for are picked."""
        raise _missing("session/list")

    def delete_session(self, session_id: str) -> "Maybe[None]":
        """Forget a session for good. One that does not exist is no error."""
        raise _missing("session/delete")

    def session_directory(self, session_id: str) -> "Maybe[str | None]":
        """The directory of an earlier session, for clients that open it without naming one. None: look into `list_sessions`."""
        return None

    def authenticate(self, method_id: str) -> "Maybe[None]":
        """Sign in by one of the methods on offer."""

    def logout(self) -> "Maybe[None]":
        """Sign out."""
        raise _missing("logout")

    def close(self) -> "Maybe[None]":
        """The last client is gone, and its sessions are closed: free what they shared. Another client may still come."""


def _missing(method: str) -> RequestError:
    return RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)


F = TypeVar("F", bound="Callable[..., Any]")

_TAKES_ANY = 0x04
"""The flag of a function with `*args`."""

_HOOKS = tuple(name for name in vars(Hooks) if not name.startswith("_"))


class Agent(Hooks):
    """Answers prompts. Subclass it, or decorate functions that are named after a hook:

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
    """Kinds of content that a prompt may hold though clients are not told so, because only words about them reach the model."""
    mcp: "Collection[str]" = ()
    auth_methods: "Sequence[AuthMethod]" = ()
    auth_aliases: "Mapping[str, str]" = MappingProxyType({})
    """Other ids of ways to sign in, which clients know from elsewhere → those on offer."""
    ahead: "Callable[[], Maybe[None]] | None" = None
    """What to do once a client is there, before it asks for anything. Nobody waits for it or hears that it failed."""
    _clients = 0
    """How many are being served."""

    def __init__(
        self,
        name: str | None = None,
        version: str = "0",
        *,
        title: str | None = None,
        takes: "Collection[str] | None" = None,
        mcp: "Collection[str] | None" = None,
        auth_methods: "Sequence[AuthMethod] | None" = None,
    ) -> None:
        self.info = Implementation(name or type(self).__name__.lower(), version, title)
        if takes is not None:
            self.takes = takes
        if mcp is not None:
            self.mcp = mcp
        if auth_methods is not None:
            self.auth_methods = auth_methods
        self._extensions: dict[str, Callable[[Any], object]] = {}
        """Method → handler, of methods that are not the protocol's."""
        self.capabilities = capabilities(self.does, self.takes, self.mcp)

    def __repr__(self) -> str:
        return f"<agent {self.info.name!r}>"

    def on(self, hook: F) -> F:
        """Let a function be the hook of its name."""
        name = getattr(hook, "__name__", str(hook))
        if name not in _HOOKS:
            raise LocalProtocolError(f"an agent has no hook `{name}`", hint=f"name the function {', '.join(_HOOKS)}")
        _check_arguments(name, hook)
        setattr(self, name, hook)
        self.capabilities = capabilities(self.does, self.takes, self.mcp)
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
        """Whether a hook is filled in."""
        return hook in vars(self) or getattr(type(self), hook) is not getattr(Hooks, hook)

    def initialize(self, asked: "Initialize") -> InitializeResult:
        """The answer to `initialize`."""
        from antiphon.protocol.v1.version import V1

        return InitializeResult(
            V1.number,  # whatever version the client asks for
            agent_capabilities=self.capabilities,
            auth_methods=[each for each in self.auth_methods if _possible(each, asked)],
            agent_info=self.info,
            meta={"steering": {"supported": True}} if self.does("steer") else None,
        )

    async def serve(self, transport: "Transport") -> None:
        """Serve one client over a transport until it is gone."""
        from antiphon.agent.service import serve

        await serve(self, transport)

    def run(self) -> None:
        """Serve whoever started this program over its stdin and stdout, until they close it."""
        run(self)


def _check_arguments(name: str, hook: "Callable[..., Any]") -> None:
    """A wrong signature would be heard of by the client, with the first request. Not by `inspect`, which takes long to import."""
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
    """Signing in by a terminal needs a client that opens one. Some say so in their own way, and want the whole command in theirs."""
    from antiphon.protocol.v1.auth import TerminalAuth

    if not isinstance(method, TerminalAuth) or asked.client_capabilities.auth.terminal:
        return True
    said = asked.client_capabilities.meta or {}
    return said.get("terminal-auth") is True and "terminal-auth" in (method.meta or {})


# An agent on stdin and stdout: the handshake before the event loop, the rest after it.

EXIT_GRACE: Final = 2.0
"""Seconds that what still runs may take to end after the client is gone and everything was cancelled."""


def run(agent: "Agent") -> None:
    """Answer `initialize`, import the rest, and serve until stdin is closed."""
    from antiphon.connection.early import answer_initialize
    from antiphon.protocol.v1.methods import INITIALIZE

    asked: Initialize | None = None

    def initialize(question: "Initialize") -> "InitializeResult":
        nonlocal asked
        answer = agent.initialize(question)
        asked = question
        return answer

    if not agent.does("prompt"):
        raise LocalProtocolError("an agent needs `prompt`", hint="fill it in, in a subclass or with `@agent.on`")
    if os.isatty(0):
        sys.stderr.write(
            f"{agent.info.name} speaks ACP and waits for a client on stdin: start it from an editor. Ctrl-D ends it.\n"
        )
    with suppress(KeyboardInterrupt):
        already_read = answer_initialize(INITIALIZE, initialize)

        import asyncio

        from antiphon.agent.service import serve
        from antiphon.transports.stdio import open_stdio

        async def converse() -> None:
            await serve(agent, open_stdio(already_read=already_read), asked)
            await _leave()

        asyncio.run(converse())


async def _leave() -> None:
    """The client is gone, and so are we: a task that will not end does not keep the process."""
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
