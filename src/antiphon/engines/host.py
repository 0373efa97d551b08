"""One ACP agent over one engine. What the engine can do is what the agent offers. Imports no event loop."""

from typing import TYPE_CHECKING, Final, TypeVar, cast

from antiphon.agent.agent import Agent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.agent.agent import Maybe, Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.base import Engine, EngineSession
    from antiphon.protocol import v1
    from antiphon.protocol.v1.initialize import Initialize, InitializeResult

__all__ = ["Host"]

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
        await session.tell_model(model_id)  # as the agents do from whose time this way of choosing is

    def set_config_option(self, session: "AgentSession", config_id: str, value: bool | str) -> "Maybe[None]":
        return _at_work(session).set_config_option(config_id, value)

    def close_session(self, session: "AgentSession") -> "Maybe[None]":
        return _at_work(session).close()


def _at_work(session: "AgentSession") -> "EngineSession":
    return cast("EngineSession", session.state)


async def _awaited(value: "Maybe[T]") -> T:
    from antiphon.aio import maybe_await  # late: this module is imported before the event loop

    return await maybe_await(value)
