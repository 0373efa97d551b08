"""What an engine is: something that answers prompts and speaks ACP's own updates. Knows no connection and no event loop.

An engine's front module is imported before `initialize` is answered, so it imports little; its sessions live in modules of their own
that are imported when the first one is opened.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING

from antiphon.errors import Code, RequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from antiphon.agent.agent import Maybe, Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.protocol import v1

__all__ = ["Engine", "EngineSession"]


class EngineSession:
    """An engine at work in one session. What it says and asks goes through the turn and the session it was given."""

    def prompt(self, turn: "AgentTurn") -> "Maybe[Outcome]":
        """Work on what the user says. It is cancelled like any task; clean up and let the cancellation through."""
        raise _missing("session/prompt")

    def steer(self, turn: "AgentTurn") -> "Maybe[bool]":
        """The user adds something to the turn that runs. False: it is too late, and nothing was taken."""
        return False

    def cancel(self) -> "Maybe[None]":
        """The user calls off what it does by itself, between prompts."""

    def set_mode(self, mode_id: str) -> "Maybe[None]":
        """The user switches to a mode that is on offer."""

    def set_model(self, model_id: str) -> "Maybe[None]":
        """The user picks a model that is on offer."""

    def set_config_option(self, config_id: str, value: bool | str) -> "Maybe[None]":
        """The user changes a setting to a value that is on offer."""

    def close(self) -> "Maybe[None]":
        """Free what it holds."""


class Engine:
    """Fill in what it can do; what is not filled in is not offered to clients.

    The four ways to open a session are given a session that has a directory and a client: they may give it an id, modes,
    settings and commands, and return what answers its prompts.
    """

    name: str
    version: str = "0"
    title: str | None = None
    takes: "Collection[str]" = ()
    """Kinds of content besides text and links: "image", "audio", "resource"."""
    also_takes: "Collection[str]" = ()
    """Kinds that it does not announce but does not refuse either: the model is told that they were there."""
    mcp: "Collection[str]" = ()
    """Kinds of MCP server besides child processes: "http", "sse"."""
    auth_methods: "Sequence[v1.AuthMethod]" = ()
    auth_aliases: "Mapping[str, str]" = MappingProxyType({})
    """Other ids of ways to sign in, which clients know from elsewhere → ours."""
    steers: bool = False
    """Whether something can be added to a turn while it runs."""
    unique_ids: bool = False
    """Whether the ids of its tool calls and messages are unique in the world, and not only in a session."""
    guarded: bool = False
    """Whether it works by asking: what it wants to read, write and run passes through `session.request` or `session.admit`."""
    read_only: str | None = None
    """The mode in which it changes nothing, by its id."""

    def meet(self, asked: "v1.Initialize") -> None:
        """A client introduces itself, before it is answered. Do nothing that takes time."""

    keeps_with_us: bool = False
    """Whether its sessions are in our own store: then they are not conversations of somebody else's that others could go on with."""

    def new(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Begin a session. Every engine does this."""
        raise _missing("session/new")

    def load(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Open an earlier session and tell its history with `session.update`."""
        raise _missing("session/load")

    def resume(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Open an earlier session in silence."""
        raise _missing("session/resume")

    def fork(self, session: "AgentSession", source: str) -> "Maybe[EngineSession]":
        """Begin a session where another stands."""
        raise _missing("session/fork")

    def list(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        """The sessions there are, newest first."""
        raise _missing("session/list")

    def directory(self, session_id: str) -> "Maybe[str | None]":
        """The directory of an earlier session; None: it is in the list, or there is none."""
        return None

    def delete(self, session_id: str) -> "Maybe[None]":
        """Forget a session."""
        raise _missing("session/delete")

    def authenticate(self, method_id: str) -> "Maybe[None]":
        """Sign in."""

    def signed_in(self) -> "Maybe[bool]":
        """Whether it could answer a prompt now. One that has no ways to sign in always could; of others nothing is known here."""
        return not self.auth_methods

    def logout(self) -> "Maybe[None]":
        """Sign out."""
        raise _missing("logout")

    def warm_up(self) -> "Maybe[None]":
        """A client is there: do what its first session would have to wait for. Failing is no news; the session will."""

    def close(self) -> "Maybe[None]":
        """The last client is gone: free what the sessions shared. Another client may still come."""

    def does(self, what: str) -> bool:
        """Whether a method is filled in."""
        return getattr(type(self), what) is not getattr(Engine, what)


def _missing(method: str) -> RequestError:
    return RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
