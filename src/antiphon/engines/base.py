"""The interface of an engine: it opens sessions and answers their prompts with updates of ACP. Knows no connection and no event loop.

An engine's front module is imported before `initialize` is answered, so it imports little; its sessions live in modules of their own
that are imported when the first one is opened.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from antiphon.agent.agent import Agent
from antiphon.errors import Code, RequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from antiphon.agent.agent import Maybe, Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.protocol import v1
    from antiphon.protocol.v1.initialize import Initialize, InitializeResult

__all__ = ["Engine", "EngineSession", "Host"]


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
    """Kinds of content that it neither announces nor refuses: the model gets a note that they were there."""
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
    """Whether all that it reads, writes and runs passes through `session.request` or `session.host.admit`."""
    cuts_forks: bool = False
    """Whether `fork` leaves out the prompts that the `meta` of the session names (`transcript.fork_point`), and what followed them."""
    appends_system_prompt: bool = False
    """Whether it adds the text that a client asks for to the model's system prompt."""
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


# One ACP agent over one engine.

T = TypeVar("T")

_ENGINE_DOES: Final = {
    "load_session": "load",
    "resume_session": "resume",
    "fork_session": "fork",
    "list_sessions": "list",
    "delete_session": "delete",
    "logout": "logout",
}
"""Hook → the method of the engine that it needs."""


class Host(Agent):
    """An agent whose hooks are an engine's. `session.state` is the engine's session."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.also_takes = engine.also_takes
        self.auth_aliases = engine.auth_aliases
        self.cuts_forks = engine.cuts_forks
        self.appends_system_prompt = engine.appends_system_prompt
        self.ahead = engine.warm_up if engine.does("warm_up") else None
        super().__init__(
            engine.name,
            engine.version,
            title=engine.title,
            takes=engine.takes,
            mcp=engine.mcp,
            auth_methods=engine.auth_methods,
        )

    def does(self, hook: str) -> bool:
        if hook == "steer":
            return self.engine.steers
        return self.engine.does(_ENGINE_DOES[hook]) if hook in _ENGINE_DOES else super().does(hook)

    def initialize(self, asked: "Initialize") -> "InitializeResult":
        self.engine.meet(asked)
        return super().initialize(asked)

    def list_sessions(self, query: "v1.ListSessions") -> "Maybe[v1.ListSessionsResult | Iterable[v1.SessionInfo]]":
        return self.engine.list(query)

    def session_directory(self, session_id: str) -> "Maybe[str | None]":
        return self.engine.directory(session_id)

    def delete_session(self, session_id: str) -> "Maybe[None]":
        return self.engine.delete(session_id)

    def authenticate(self, method_id: str) -> "Maybe[None]":
        return self.engine.authenticate(method_id)

    def logout(self) -> "Maybe[None]":
        return self.engine.logout()

    def close(self) -> "Maybe[None]":
        return self.engine.close()

    # Opening sessions.

    async def new_session(self, session: "AgentSession") -> None:
        session.state = await _awaited(self.engine.new(session))

    async def load_session(self, session: "AgentSession") -> None:
        session.state = await _awaited(self.engine.load(session))

    async def resume_session(self, session: "AgentSession") -> None:
        session.state = await _awaited(self.engine.resume(session))

    async def fork_session(self, session: "AgentSession", source: str) -> None:
        session.state = await _awaited(self.engine.fork(session, source))

    # In a session.

    def prompt(self, turn: "AgentTurn") -> "Maybe[Outcome]":
        return _at_work(turn.session).prompt(turn)

    def cancel(self, session: "AgentSession") -> "Maybe[None]":
        return _at_work(session).cancel()

    def steer(self, turn: "AgentTurn") -> "Maybe[bool]":
        return _at_work(turn.session).steer(turn)

    def set_mode(self, session: "AgentSession", mode_id: str) -> "Maybe[None]":
        return _at_work(session).set_mode(mode_id)

    async def set_model(self, session: "AgentSession", model_id: str) -> None:
        await _awaited(_at_work(session).set_model(model_id))
        from antiphon.agent.session import send_model  # here: the engines are imported before `initialize` is answered

        await send_model(session, model_id)  # as agents of the older protocol do

    def set_config_option(self, session: "AgentSession", config_id: str, value: bool | str) -> "Maybe[None]":
        return _at_work(session).set_config_option(config_id, value)

    def close_session(self, session: "AgentSession") -> "Maybe[None]":
        return _at_work(session).close()


def _at_work(session: "AgentSession") -> "EngineSession":
    return cast("EngineSession", session.state)


async def _awaited(value: "Maybe[T]") -> T:
    from antiphon.aio import maybe_await  # late: this module is imported before the event loop

    return await maybe_await(value)
