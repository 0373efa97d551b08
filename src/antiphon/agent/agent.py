"""An agent: hooks, filled in by a subclass or by decorated functions, and the two ways to serve it.

Nothing here imports the event loop. `run` answers `initialize` first and imports the rest while the editor reads the answer.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.agent.capabilities import VERSION, capabilities
from antiphon.agent.hooks import Hooks, HooksApart
from antiphon.errors import LocalProtocolError
from antiphon.protocol.v1.initialize import Implementation, InitializeResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from antiphon.agent.hooks import Maybe
    from antiphon.protocol.v1.auth import AuthMethod
    from antiphon.protocol.v1.initialize import Initialize
    from antiphon.transports.base import Transport

__all__ = ["Agent"]

F = TypeVar("F", bound="Callable[..., Any]")

_TAKES_ANY = 0x04
"""The flag of a function with `*args`."""

_HOOKS = tuple(name for kind in (Hooks, HooksApart) for name in vars(kind) if not name.startswith("_"))


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
    clients = 0
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
        self.extensions: dict[str, Callable[[Any], object]] = {}
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
        """Let a function answer a method of your own, such as `_mine/ping`. It is given the params as plain JSON values."""
        if not method.startswith("_"):
            raise LocalProtocolError(f"`{method}` is a name of the protocol", hint="extensions begin with `_`")

        def register(handler: F) -> F:
            self.extensions[method] = handler
            return handler

        return register

    def does(self, hook: str) -> bool:
        """Whether a hook is filled in."""
        return hook in vars(self) or getattr(type(self), hook) is not getattr(Hooks, hook)

    def initialize(self, asked: "Initialize") -> InitializeResult:
        """The answer to `initialize`."""
        return InitializeResult(
            VERSION,
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
        from antiphon.agent.stdio import run

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
