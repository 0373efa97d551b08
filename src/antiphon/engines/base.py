"""The interface of an engine: it opens sessions and answers their prompts with updates of ACP. Knows no connection and no event loop.

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
    """The work of an engine in one session. Updates and requests go through the turn and the session that it was given."""

    def prompt(self, turn: "AgentTurn") -> "Maybe[Outcome]":
        """Answer a prompt of the user. It is cancelled like any task; clean up and let the cancellation through."""
        raise _missing("session/prompt")

    def steer(self, turn: "AgentTurn") -> "Maybe[bool]":
        """Add a message of the user to the turn that runs. False: it is too late, and nothing was added."""
        return False

    def cancel(self) -> "Maybe[None]":
        """Cancel what the engine does by itself, between prompts."""

    def set_mode(self, mode_id: str) -> "Maybe[None]":
        """Switch to a mode that is on offer."""

    def set_model(self, model_id: str) -> "Maybe[None]":
        """Switch to a model that is on offer."""

    def set_config_option(self, config_id: str, value: bool | str) -> "Maybe[None]":
        """Change a setting to a value that is on offer."""

    def close(self) -> "Maybe[None]":
        """End what the session runs, and release what it holds."""


class Engine:
    """An engine. Fill in the methods that it can do; what is not filled in is not offered to clients.

    The four ways to open a session are given a session that has a directory and a client: they may give it an id, modes,
    settings and commands, and return what answers its prompts.
    """

    name: str
    version: str = "0"
    title: str | None = None
    takes: "Collection[str]" = ()
    """Kinds of content besides text and links: "image", "audio", "resource"."""
    also_takes: "Collection[str]" = ()
    """Kinds that it does not announce and does not refuse either: the model is told that they were there."""
    mcp: "Collection[str]" = ()
    """Kinds of MCP server besides child processes: "http", "sse"."""
    auth_methods: "Sequence[v1.AuthMethod]" = ()
    auth_aliases: "Mapping[str, str]" = MappingProxyType({})
    """Ids of ways to sign in that clients know from other agents → ours."""
    steers: bool = False
    """Whether something can be added to a turn while it runs."""
    unique_ids: bool = False
    """Whether the ids of its tool calls and messages are unique in the world, and not only in a session."""
    guarded: bool = False
    """Whether all that it reads, writes and runs passes through `session.request` or `session.admit`."""
    read_only: str | None = None
    """The mode in which it changes nothing, by its id."""

    def meet(self, asked: "v1.Initialize") -> None:
        """Look at the `initialize` request of a client, before its response. Do nothing that takes time."""

    keeps_with_us: bool = False
    """Whether its sessions are in our own store, where no other program could go on with them."""

    def new(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Begin a session. Every engine does this."""
        raise _missing("session/new")

    def load(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Open an earlier session and send its history with `session.update`."""
        raise _missing("session/load")

    def resume(self, session: "AgentSession") -> "Maybe[EngineSession]":
        """Open an earlier session without sending its history."""
        raise _missing("session/resume")

    def fork(self, session: "AgentSession", source: str) -> "Maybe[EngineSession]":
        """Begin a session with the history of another."""
        raise _missing("session/fork")

    def list(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        """Return the sessions there are, newest first."""
        raise _missing("session/list")

    def directory(self, session_id: str) -> "Maybe[str | None]":
        """Return the directory of an earlier session; None: the list has it, or there is no such session."""
        return None

    def delete(self, session_id: str) -> "Maybe[None]":
        """Delete a session."""
        raise _missing("session/delete")

    def authenticate(self, method_id: str) -> "Maybe[None]":
        """Sign in."""

    def signed_in(self) -> "Maybe[bool]":
        """Whether it could answer a prompt now. An engine without ways to sign in always could; one with some overrides this."""
        return not self.auth_methods

    def logout(self) -> "Maybe[None]":
        """Sign out."""
        raise _missing("logout")

    def warm_up(self) -> "Maybe[None]":
        """Do ahead what the first session of a client would have to wait for. An error here is ignored: the session will raise it."""

    def close(self) -> "Maybe[None]":
        """Release what the sessions shared: the last client is gone. Another client may still come."""

    def does(self, what: str) -> bool:
        """Whether a method is filled in."""
        return getattr(type(self), what) is not getattr(Engine, what)


def _missing(method: str) -> RequestError:
    return RequestError(Code.METHOD_NOT_FOUND, "Method not found", method)
