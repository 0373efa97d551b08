"""The session at the agent: opened the best way that the agent has, and opened again when its process ended."""

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from antiphon.client.session import SessionWorkspace, open_earlier
from antiphon.engines.acp.errors import need_method
from antiphon.engines.content import begins_with_command
from antiphon.errors import Code, ConnectionClosed, NotSupported, RequestRefused, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from antiphon.agent.settings import SessionSettings
    from antiphon.client.relay import LiveAgent, UpdateListener
    from antiphon.engines.acp.hub import AcpHub
    from antiphon.engines.acp.requests import AgentRequests
    from antiphon.engines.acp.session import AcpSession, UpdateForwarder

__all__ = ["ChosenSettings", "RemoteSession"]

# What the user has chosen in a session, restored when the agent was started again: it would come back with other rights.


class ChosenSettings(msgspec.Struct, frozen=True):
    """A mode, a model, and the values of settings."""

    mode: str | None
    model: str | None
    options: dict[str, bool | str]

    @classmethod
    def of(cls, settings: "SessionSettings") -> Self:
        """Return the current choices."""
        return cls(
            settings.modes.current_mode_id if settings.modes is not None else None,
            settings.models.current_model_id if settings.models is not None else None,
            {
                option.id: option.current_value
                for option in settings.options
                if isinstance(option, v1.SelectConfig | v1.BooleanConfig)
            },
        )

    async def restore(self, agent: "LiveAgent", id: str, settings: "SessionSettings") -> None:
        """Set every choice that differs at the agent, and note it in the settings of the session.

        Raises:
            RequestError: a choice is not available any more, or the agent refuses it.
        """
        if self.mode is not None and settings.modes is not None and settings.modes.current_mode_id != self.mode:
            settings.check_mode(self.mode)
            await agent.request(m.SET_MODE, v1.SetMode(id, self.mode))
            settings.choose_mode(self.mode)
        if self.model is not None and settings.models is not None and settings.models.current_model_id != self.model:
            settings.check_model(self.model)
            await agent.request(m.SET_MODEL, v1.SetModel(id, self.model))
            settings.choose_model(self.model)
        for option_id, value in self.options.items():
            if ChosenSettings.of(settings).options.get(option_id, value) != value:
                settings.check_option(option_id, value)
                answer = await agent.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(id, option_id, value))
                settings.options = list(answer.config_options) or settings.options


_Answer: TypeAlias = v1.NewSessionResult | v1.LoadSessionResult | v1.ResumeSessionResult | v1.ForkSessionResult

_log = logging.getLogger(__name__)


class RemoteSession:
    """The session at the agent behind one of ours."""

    def __init__(
        self, owner: "AcpSession", hub: "AcpHub", showing: "UpdateForwarder", answering: "AgentRequests"
    ) -> None:
        self.agent: LiveAgent | None = None
        self.id = ""
        """The agent's own id."""
        self._owner = owner
        self._session = owner.session
        self._hub = hub
        self._showing = showing
        self._answering = answering
        self._listener: UpdateListener | None = None
        self._closed = False
        self._reopening = asyncio.Lock()
        self._summary = ""
        """The summary for an agent that lost its session."""

    @contextmanager
    def with_summary(self, blocks: "Sequence[v1.ContentBlock]") -> "Iterator[list[v1.ContentBlock]]":
        """Return the prompt to send in this block, after a summary if the agent lost its session. A command has to come first."""
        if not self._summary or begins_with_command(blocks):
            yield list(blocks)
            return
        summary, self._summary = self._summary, ""
        try:
            # An empty line between: agents join the pieces of a prompt.
            yield [v1.TextBlock(f"{summary}\n\n"), *blocks]
        except RequestRefused:  # the agent may or may not have read it
            self._summary = self._summary or summary
            raise

    async def drained(self) -> None:
        """Wait until all updates so far are forwarded."""
        if self._listener is not None:
            await self._listener.drained()

    # Opening.

    async def create(self) -> None:
        """Open a new session."""
        agent = await self._hub.alive()
        place = await self._place(agent)
        self._session.id = await self._new(agent, place)

    async def copy(self, source: str) -> None:
        """Fork another session."""
        agent = await self._hub.alive()
        need_method(agent.abilities, "session/fork")
        place = await self._place(agent)
        with self._hub.sessions.opening(self._owner):
            answer = await agent.request(m.FORK_SESSION, place.fork(self._hub.sessions.id_of(source)))
        await self._listen(agent, answer.session_id)
        self._opened(agent, answer)
        self._session.id = answer.session_id

    async def restore(self, *, replay: bool) -> None:
        """Open an earlier session, with its history or not. An agent with only one of the two methods is opened by that."""
        agent = await self._hub.alive()
        place = await self._place(agent)
        id = self._hub.sessions.id_of(self._session.id)
        loads, resumes = agent.abilities.has("session/load"), agent.abilities.has("session/resume")
        if loads and (replay or not resumes):
            await self._load(agent, place, id, silent=not replay)
            return
        if not resumes:
            need_method(agent.abilities, "session/load")
        try:
            await self._resume(agent, place, id)
        except RequestRefused as error:
            if replay or not loads or error.code != Code.METHOD_NOT_FOUND:
                raise
            await self._load(
                agent, place, id, silent=True
            )  # some announce that they resume, and do not have the method
        if replay:
            await self._warn(
                "The earlier history cannot be shown", "the agent continues the session, but cannot replay it"
            )

    async def _place(self, agent: "LiveAgent") -> SessionWorkspace:
        """Return the directories and MCP servers of the session, as far as this agent takes them.

        Raises:
            NotSupported: it does not reach an MCP server.
        """
        place = SessionWorkspace(self._session.cwd, self._session.directories, self._session.mcp_servers)
        agent.abilities.need_workspace(place.servers, ())
        try:
            agent.abilities.need_workspace((), place.directories)
        except NotSupported:
            left = ", ".join(place.directories)
            await self._warn(
                "The session has one directory only", f"the agent takes no others, so these are left out: {left}"
            )
            return SessionWorkspace(place.cwd, (), place.servers)
        return place

    # The methods.

    async def _new(self, agent: "LiveAgent", place: SessionWorkspace) -> str:
        with self._hub.sessions.opening(self._owner):
            answer = await agent.request(m.NEW_SESSION, place.new())
        await self._listen(agent, answer.session_id)
        self._opened(agent, answer)
        return answer.session_id

    async def _resume(self, agent: "LiveAgent", place: SessionWorkspace, id: str) -> None:
        await self._listen(agent, id)
        answer = await agent.request(m.RESUME_SESSION, place.resume(id))
        self._opened(agent, answer)

    async def _load(self, agent: "LiveAgent", place: SessionWorkspace, id: str, *, silent: bool) -> None:
        listener = await self._listen(agent, id)
        self._showing.silent = silent
        try:
            answer = await agent.work(m.LOAD_SESSION, place.load(id), id)
            await listener.drained()
        finally:
            self._showing.silent = False
        self._opened(agent, answer)

    async def _listen(self, agent: "LiveAgent", id: str) -> "UpdateListener":
        await self._stop_listening()
        listener = await agent.listen(id, self._showing.forward)
        if self._closed:  # while we waited: this one would never be closed
            await listener.close()
            raise ConnectionClosed("the session is closed")
        self.id, self._listener = id, listener
        self._hub.sessions.put(self._owner, id)
        return listener

    async def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            self._hub.sessions.forget(self._owner, self.id)
            await listener.close()

    def _opened(self, agent: "LiveAgent", answer: _Answer) -> None:
        settings = self._session.host.settings
        settings.modes, settings.models = answer.modes, answer.models
        settings.options = list(answer.config_options or ())
        self.agent = agent
        self._answering.known = True

    async def close(self) -> None:
        """Forward no updates any more."""
        self._closed = True
        self._hub.closed(self._owner)
        await self._stop_listening()

    # Opening again.

    async def ready(self) -> "LiveAgent":
        """Return the agent, with the session open in it."""
        async with self._reopening:
            if self._closed:
                raise ConnectionClosed("the session is closed")
            agent = await self._hub.alive()
            if agent is not self.agent:
                await self._reopen(agent)
            return agent

    async def _reopen(self, agent: "LiveAgent") -> None:
        chosen = ChosenSettings.of(self._session.host.settings)
        place = await self._place(agent)
        if not await self._reopened(agent, place):
            await self._replaced(await self._new(agent, place))
        try:
            await chosen.restore(agent, self.id, self._session.host.settings)
        except ResponseError as error:
            await self._warn("A setting of this session was lost", f"the agent was started again: {error.reason}")

    async def _replaced(self, id: str) -> None:
        """Note the new remote session. The client keeps its id of the session; the owner of the remote session gets the new one."""
        self._summary = await self._session.host.lost_session(id)
        if self._session.id != id:
            self._hub.sessions.rename(self._session.id, id)
        how = "gets a summary of the session" if self._summary else "remembers nothing from before"
        await self._warn("A new session was begun", f"the agent was started again and {how}")

    async def _reopened(self, agent: "LiveAgent", place: SessionWorkspace) -> bool:
        id = self.id

        async def resume() -> bool:
            await self._resume(agent, place, id)
            return True

        async def load() -> bool:
            await self._load(agent, place, id, silent=True)
            return True

        return await open_earlier(agent.abilities, id, resume=resume, load=load) is True

    async def _warn(self, title: str, description: str) -> None:
        await self._session.notice(title, description, v1.NoticeSeverity.WARNING)
