"""An agent that somebody else is spoken for to: all it tells and asks is passed on, and nothing is folded, kept, retried or decided here.

`ConnectedAgent` does those things for a user. Between an editor and an agent they are the editor's: a transcript would be kept twice, a
request sent twice, a question answered before it was asked. So this is `Link`, which starts, introduces and ends the program, and the way
from its words to their listener.

Rule 1: what is told of a session is told one after another, and each waits until its listener has taken the one before. What waits counts
against the connection's limit, so a slow editor slows the agent down.
Rule 2: who was asked something, or got an answer, can wait until all that came before it is told (`Ear.caught_up`).
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import UNSET, Raw

from antiphon.client.capabilities import Abilities
from antiphon.client.link import Link, LinkOptions, ProgramTarget, Retry
from antiphon.client.updates import EarlyUpdates
from antiphon.connection.connection import Connection
from antiphon.connection.inbox import Inbox
from antiphon.connection.router import Router
from antiphon.connection.stream import CANCEL_GRACE, Backlog
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.timeouts import Timeout
from antiphon.protocol.v1 import methods as m

__all__ = ["LiveAgent", "Relay", "RelayOwner", "Tell", "UpdateListener"]

P = TypeVar("P")
R = TypeVar("R")

Tell = Callable[[v1.Update], Awaitable[None] | None]
"""Takes an update. The next one waits for what it returns."""

_ASKED_OF_CLIENTS: Final[tuple[Call[Any, Any], ...]] = (
    m.REQUEST_PERMISSION, m.CREATE_ELICITATION, m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL, m.TERMINAL_OUTPUT,
    m.WAIT_FOR_EXIT, m.KILL_TERMINAL, m.RELEASE_TERMINAL,
)  # fmt: skip

_log = logging.getLogger(__name__)


class RelayOwner(Protocol):
    """Who has the agent, and answers what it asks."""

    def handle_request(self, call: Call[Any, Any], params: Any) -> Awaitable[Any]:
        """It asks what agents ask of clients."""

    def forward_request(self, method: str, params: Raw) -> Awaitable[object]:
        """It asks by a method that is not the protocol's."""

    def completed(self, news: v1.CompleteElicitation) -> None:
        """The user is done on a page that it asked for."""

    def forward_notification(self, method: str, params: Raw) -> None:
        """It tells something that is not the protocol's."""

    def agent_ended(self, agent: "LiveAgent") -> None:
        """It ended, whoever ended it."""


class UpdateListener:
    """Hears what is told of one session, and passes it on in its order."""

    def __init__(
        self,
        inbox: Inbox,
        session_id: str,
        tell: Tell,
        early: Iterable[v1.Update],
        closed: "Callable[[UpdateListener], None]",
    ) -> None:
        self._tell = tell
        self._closed = closed
        self._backlog: Backlog[v1.SessionUpdate] = Backlog(inbox, session_id, _nothing)
        self._taken = 0
        """How many were taken out of the backlog: those that are told, and the one that is being told."""
        self._told = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        for update in early:
            self._backlog.push((v1.SessionUpdate(session_id, update),), 0)
        self._telling = asyncio.get_running_loop().create_task(self._tell_all(), name=f"hear {session_id}")

    async def caught_up(self) -> None:
        """Until all that has come so far is told. What comes meanwhile is not waited for."""
        mark = self._taken + len(self._backlog)
        if mark > self._told and not self._telling.done():
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((mark, told))
            await told

    async def close(self) -> None:
        """Hear no more. What was not told yet is let go."""
        self._closed(self)
        self._backlog.abandon()
        self._backlog.end()
        self._telling.cancel()
        await asyncio.wait([self._telling])

    async def _tell_all(self) -> None:
        backlog = self._backlog
        try:
            while not backlog.over:
                await backlog.more()
                while backlog:
                    self._taken += 1
                    await self._tell_one(backlog.pop().update)
        finally:
            while self._waiting:
                self._say_told(self._waiting.popleft()[1])

    async def _tell_one(self, update: v1.Update) -> None:
        try:
            if (taking := self._tell(update)) is not None:
                await taking
        except AcpError as error:  # whoever it is for is gone
            _log.debug("an update was not passed on: %s", error)
        except Exception:  # what follows may be what somebody waits for
            _log.exception("an update could not be passed on: %.200r", update)
        self._told += 1
        while self._waiting and self._waiting[0][0] <= self._told:
            self._say_told(self._waiting.popleft()[1])

    @staticmethod
    def _say_told(told: "asyncio.Future[None]") -> None:
        if not told.done():
            told.set_result(None)


class LiveAgent:
    """The agent from one start to its end."""

    def __init__(self, connection: Connection, welcome: v1.InitializeResult, name: str, early: EarlyUpdates) -> None:
        self._connection = connection
        self._early = early
        self._listeners: dict[str, UpdateListener] = {}
        self.welcome = welcome
        self.abilities = Abilities(name, welcome.agent_capabilities)

    @property
    def ended(self) -> bool:
        """Whether nothing can be said to it any more."""
        return self._connection.closed

    def is_over(self, connection: Connection) -> bool:
        """Whether it is that of this connection."""
        return connection is self._connection

    async def listen(self, session_id: str, tell: Tell) -> UpdateListener:
        """From now on `tell` gets what is told of this session, first what was told already. Who heard it before hears no more."""
        while (before := self._listeners.pop(session_id, None)) is not None:  # another may begin while we wait
            await before.close()

        def closed(listener: UpdateListener) -> None:
            if self._listeners.get(session_id) is listener:
                del self._listeners[session_id]

        early = self._early.claim(session_id)
        listener = self._listeners[session_id] = UpdateListener(self._connection.inbox, session_id, tell, early, closed)
        return listener

    async def request(self, call: Call[P, R], params: P, *, timeout: Timeout = UNSET) -> R:
        """Send a request that has a response soon."""
        return await self._connection.request(call, params, timeout=timeout)

    async def work(self, call: Call[P, R], params: P, session_id: str, *, timeout: Timeout = UNSET) -> R:
        """Ask it for something that it tells much about, to those who listen, before it answers.

        While somebody waits for a usual answer reading never pauses. Here it may: those who listen go on without us.
        """
        stream = self._connection.stream(call, params, session_id, timeout=timeout)
        while await stream.take() is not None:  # nothing, unless nobody listens
            pass
        return stream.result

    def post(self, notice: Notice[P], params: P) -> None:
        """Tell it something.

        Raises:
            ConnectionClosed: it is gone.
        """
        self._connection.post(notice, params)

    async def wait_ended(self) -> None:
        """Until it is gone, and nothing that it asked is worked on."""
        await self._connection.wait_closed()

    async def end(self, link: Link) -> None:
        """End it, with the whole ladder."""
        await link.end(self._connection)


class Relay:
    """One agent, over as many lives as it takes."""

    def __init__(
        self,
        words: Sequence[str],
        owner: RelayOwner,
        hello: v1.Initialize,
        *,
        name: str,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._owner = owner
        self._early = EarlyUpdates()
        self._agent: LiveAgent | None = None
        self._link = Link(
            ProgramTarget(words, name, cwd, env),
            self._router(owner),
            hello,
            LinkOptions(None, Retry(()), None, CANCEL_GRACE),
        )

    def _router(self, owner: RelayOwner) -> Router:
        router = Router()
        for call in _ASKED_OF_CLIENTS:
            router.on_request(call, _passing(owner, call))
        router.on_notice(m.SESSION_UPDATE, self._early.keep)
        router.on_notice(m.COMPLETE_ELICITATION, owner.completed)
        router.other_request = owner.forward_request
        router.other_notice = owner.forward_notification
        return router

    @property
    def name(self) -> str:
        """What to call it."""
        return self._link.name

    async def alive(self) -> LiveAgent:
        """The agent, started (again) and introduced if need be.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
            ConnectionClosed: it ended before it answered; with its last words.
            RemoteProtocolError: it does not speak our version of the protocol.
        """
        connection = await self._link.alive()
        if self._agent is None or not self._agent.is_over(connection):
            self._early.clear()  # of sessions of an earlier life
            self._agent = LiveAgent(connection, self._link.welcome, self._link.name, self._early)
            _ = self._link.do(self._watch(self._agent), f"watch {self._link.name}")
        return self._agent

    async def _watch(self, agent: LiveAgent) -> None:
        await agent.wait_ended()
        self._owner.agent_ended(agent)

    async def end(self, agent: LiveAgent) -> None:
        """End an agent that does not listen, with the whole ladder. The next use starts it again."""
        await agent.end(self._link)

    async def close(self) -> None:
        """End it for good."""
        await self._link.close()


def _passing(owner: RelayOwner, call: Call[Any, Any]) -> Callable[[Any], Awaitable[Any]]:
    def ask(params: Any) -> Awaitable[Any]:
        return owner.handle_request(call, params)

    return ask


def _nothing() -> None:
    """A session that nobody hears goes on."""
