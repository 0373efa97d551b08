"""The agent that people install: one ACP agent with every engine behind it. Its hooks open joint sessions and call them.

Imported before `initialize` is answered, so it imports no event loop, and starts no engine: it only looks which ones there are.
"""

from typing import TYPE_CHECKING, TypeVar, cast
from weakref import WeakValueDictionary

from antiphon import __version__
from antiphon.agent.agent import Agent
from antiphon.catalogue.known import DEMO, installed, named_by_user
from antiphon.duet.commands import handles, reserved
from antiphon.engines.known import make_engine
from antiphon.errors import AcpError, Advice, Code, RequestError, ResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence

    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.duet.opener import SessionOpener
    from antiphon.duet.session import JointSession
    from antiphon.engines.base import Engine
    from antiphon.protocol import v1
    from antiphon.store.database import Database

__all__ = ["JointAgent", "joint_agent"]

NAME = "antiphon"
T = TypeVar("T")


def joint_agent(names: "Sequence[str]" = ()) -> "JointAgent":
    """The agent over these engines; without names over those of the user's config file, or those that are installed.

    Raises:
        AcpError: one of them is not an engine.
    """
    present = installed(names or named_by_user())
    absent = dict(present.missing)
    engines: dict[str, Engine] = {}
    short = handles(present.engines, {*reserved(), "duet", "review"})
    for name in present.engines:
        try:
            engines[short[name]] = make_engine(name)
        except AcpError as error:
            if names:  # named on the command line, not in a config file
                raise
            absent[name] = error.advice
    return JointAgent(engines or {DEMO: make_engine(DEMO)}, absent)


class JointAgent(Agent):
    """One agent over every engine. `session.state` is the joint session."""

    cuts_forks = True  # by its own history, whatever the engines can do

    def __init__(self, engines: "Mapping[str, Engine]", absent: "Mapping[str, Advice] | None" = None) -> None:
        self.engines = engines
        self.absent = absent or {}
        """Engines that were looked for and are not here → why, with a hint."""
        self._opener: SessionOpener | None = None
        self._joint_sessions: WeakValueDictionary[str, JointSession] = WeakValueDictionary()
        self._database: Database | None = None
        every = list(engines.values())
        self._ways = dict(_ways(engines))
        self.auth_aliases = dict(_aliases(self._ways))
        self.also_takes = _all(engine.also_takes for engine in every)
        self.appends_system_prompt = all(engine.appends_system_prompt for engine in every)
        self.ahead = self._warm_up
        super().__init__(
            NAME,
            __version__,
            title="Antiphon",
            takes=_all(engine.takes for engine in every),
            mcp=_all(engine.mcp for engine in every),
            auth_methods=[shown for shown, _, _ in self._ways.values()],
        )
        self.extension("_antiphon/engines")(self._engine_states)

    def initialize(self, asked: "v1.Initialize") -> "v1.InitializeResult":
        for engine in self.engines.values():
            engine.meet(asked)
        return super().initialize(asked)

    def does(self, hook: str) -> bool:
        if hook == "steer":
            return any(engine.steers for engine in self.engines.values())
        if hook == "logout":
            return any(engine.does("logout") for engine in self.engines.values())
        return super().does(hook)

    async def _warm_up(self) -> None:
        """Import what the first session needs, and let the primary engine do the same."""
        from antiphon.aio import maybe_await

        self._opened()
        await maybe_await(next(iter(self.engines.values())).warm_up())

    def _opened(self) -> "SessionOpener":
        if self._opener is None:
            from antiphon.duet.opener import SessionOpener
            from antiphon.store.schema import open_database

            self._database = open_database()
            self._opener = SessionOpener(self.engines, self._database, self.absent)
        return self._opener

    async def close(self) -> None:
        database, self._database, self._opener = self._database, None, None
        try:
            for engine in self.engines.values():
                await _closed(engine)
        finally:
            if database is not None:
                await database.close()

    async def list_sessions(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        from antiphon.duet.session_list import list_sessions

        opening = self._opened()
        known = await clearly(opening.engine_sessions.engine_sessions())
        return await clearly(list_sessions(query, self.engines, opening.store, known))

    async def session_directory(self, session_id: str) -> str | None:
        row = await clearly(self._opened().store.get(session_id))
        return None if row is None else row.cwd

    async def delete_session(self, session_id: str) -> None:
        await clearly(self._opened().delete(session_id))

    # Accounts.

    async def authenticate(self, method_id: str) -> None:
        """Sign in with one of the engines' methods. Some clients try the first method only, and stop if it fails: where another engine is
        signed in they may go on, unless the user signed in at a terminal and wants to know whether that worked."""
        from antiphon.aio import maybe_await
        from antiphon.protocol.v1.auth import TerminalAuth

        shown, engine, own = self._ways[method_id]
        try:
            await maybe_await(engine.authenticate(own))
        except ResponseError as error:
            if error.code != Code.AUTH_REQUIRED or isinstance(shown, TerminalAuth):
                raise
            if not await self._another_is_signed_in(engine):
                raise

    async def _engine_states(self, params: object) -> "dict[str, object]":
        """Answer `_antiphon/engines`: every engine, and whether it could answer a prompt now. Each is asked at the same time.

        With the id of a session: if the engine that answers there is not signed in, and the user has not chosen it, one that is signed in
        answers from now on, as it would with the first prompt.
        """
        from antiphon.aio import maybe_await

        async def state(name: str, engine: "Engine") -> "dict[str, object]":
            signed_in = await maybe_await(engine.signed_in())
            return {"name": name, "title": engine.title or name, "signedIn": signed_in}

        import asyncio

        found = await asyncio.gather(*(state(*each) for each in self.engines.items()))
        joint = self._joint_sessions.get(str(params.get("sessionId"))) if isinstance(params, dict) else None
        if joint is not None:
            await joint.let_answer([str(each["name"]) for each in found if each["signedIn"]])
        return {"engines": found}

    async def _another_is_signed_in(self, engine: "Engine") -> bool:
        from antiphon.aio import maybe_await

        for other in self.engines.values():
            if other is not engine and await maybe_await(other.signed_in()):
                return True
        return False

    async def logout(self) -> None:
        from antiphon.aio import maybe_await

        for engine in self.engines.values():
            if engine.does("logout"):
                await maybe_await(engine.logout())

    # Sessions.

    async def new_session(self, session: "AgentSession") -> None:
        session.state = await clearly(self._opened().new(session))
        self._joint_sessions[session.id] = session.state

    async def load_session(self, session: "AgentSession") -> None:
        session.state = await clearly(self._opened().load(session, replay=True))

    async def resume_session(self, session: "AgentSession") -> None:
        session.state = await clearly(self._opened().load(session, replay=False))

    async def fork_session(self, session: "AgentSession", source: str) -> None:
        session.state = await clearly(self._opened().fork(session, source))

    async def close_session(self, session: "AgentSession") -> None:
        await _joint(session).close()

    # Turns.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        from antiphon.duet.prompt import PromptHandler

        return await clearly(PromptHandler(turn.session.state).prompt(turn))

    async def waits(self, turn: "AgentTurn", before: int) -> None:
        others = "one other prompt" if before == 1 else f"{before} other prompts"
        history = _joint(turn.session).history
        await history.notice("Queued", f"It is next after {others}.", stored=False)

    async def steer(self, turn: "AgentTurn") -> bool:
        from antiphon.duet.prompt import PromptHandler

        return await PromptHandler(turn.session.state).steer(turn)

    async def cancel(self, session: "AgentSession") -> None:
        await _joint(session).cancel()

    # Settings.

    async def set_mode(self, session: "AgentSession", mode_id: str) -> None:
        await clearly(_joint(session).set_mode(mode_id))

    async def set_model(self, session: "AgentSession", model_id: str) -> None:
        await clearly(_joint(session).set_model(model_id))

    async def set_config_option(self, session: "AgentSession", config_id: str, value: bool | str) -> None:
        await clearly(_joint(session).set_option(config_id, value))


async def _closed(engine: "Engine") -> None:
    from antiphon.aio import maybe_await

    try:
        await maybe_await(engine.close())
    except Exception:  # the others have to be closed all the same
        import logging

        logging.getLogger(__name__).exception("closing %s failed", engine.name)


async def clearly(work: "Awaitable[T]") -> T:
    """Await the work of a hook. An error is answered with its sentence and hint, and not as an internal error without them."""
    try:
        return await work
    except ResponseError:
        raise
    except AcpError as error:
        raise RequestError(Code.INTERNAL_ERROR, str(error)) from error


def _ways(engines: "Mapping[str, Engine]") -> "Iterator[tuple[str, tuple[v1.AuthMethod, Engine, str]]]":
    """Every engine's ways to sign in, each with an id of its own → how it is shown, its engine, and its id there."""
    taken: set[str] = set()
    for name, engine in engines.items():
        for method in engine.auth_methods:
            own = str(getattr(method, "id", ""))
            id = own if own not in taken else f"{name}-{own}"
            taken.add(id)
            yield id, (_named(method, id, name), engine, own)


def _aliases(ways: "Mapping[str, tuple[v1.AuthMethod, Engine, str]]") -> "Iterator[tuple[str, str]]":
    """Other ids of the ways that clients may use → ours. Where two engines know the same one, the first is meant."""
    taken = {*ways}
    for id, (_, engine, own) in ways.items():
        for alias, meant in engine.auth_aliases.items():
            if meant == own and alias not in taken:
                taken.add(alias)
                yield alias, id


def _named(method: "v1.AuthMethod", id: str, engine: str) -> "v1.AuthMethod":
    """The method as clients of the joint agent use it: the terminal starts us again, and has to name the engine."""
    import msgspec

    from antiphon.protocol.base import Unknown
    from antiphon.protocol.v1.auth import TerminalAuth

    if isinstance(method, TerminalAuth):
        return msgspec.structs.replace(method, id=id, args=["--engine", engine, *method.args])
    return method if isinstance(method, Unknown) else msgspec.structs.replace(method, id=id)


def _joint(session: "AgentSession") -> "JointSession":
    return cast("JointSession", session.state)


def _all(kinds: "Iterable[Collection[str]]") -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for each in kinds for kind in each))
