"""An agent whose updates and requests are forwarded to another client: nothing is folded, stored, retried or decided here.

`ConnectedAgent` does those things for a user. Between an editor and an agent they are the editor's: a transcript would be stored twice, a
request sent twice, a question answered before it was shown. So this is `Link`, which starts, initializes and ends the program, and the way
from its updates to their listener.

Rule 1: updates of a session are forwarded one after another, and each waits until the listener has taken the one before. What waits counts
against the connection's limit, so a slow editor slows the agent down.
Rule 2: the owner of a request or a response can wait until every update before it is forwarded (`UpdateListener.drained`).
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

__all__ = ["ForwardUpdate", "LiveAgent", "Relay", "RelayOwner", "UpdateListener"]

P = TypeVar("P")
R = TypeVar("R")

ForwardUpdate = Callable[[v1.Update], Awaitable[None] | None]
"""A function that takes an update. The next one waits for what it returns."""

_CLIENT_METHODS: Final[tuple[Call[Any, Any], ...]] = (
    m.REQUEST_PERMISSION, m.CREATE_ELICITATION, m.READ_TEXT_FILE, m.WRITE_TEXT_FILE, m.CREATE_TERMINAL, m.TERMINAL_OUTPUT,
    m.WAIT_FOR_EXIT, m.KILL_TERMINAL, m.RELEASE_TERMINAL,
)  # fmt: skip

_log = logging.getLogger(__name__)


class RelayOwner(Protocol):
    """The owner of the agent, which handles its requests."""

    def handle_request(self, call: Call[Any, Any], params: Any) -> Awaitable[Any]:
        """Handle a request that agents send to clients."""

    def forward_request(self, method: str, params: Raw) -> Awaitable[object]:
        """Handle a request with an extension method."""

    def completed(self, params: v1.CompleteElicitation) -> None:
        """Handle that the user is done on a page."""

    def forward_notification(self, method: str, params: Raw) -> None:
        """Handle a notification with an extension method."""

    def agent_ended(self, agent: "LiveAgent") -> None:
        """Handle the end of the agent, whatever caused it."""


class UpdateListener:
    """Forwards the updates of one session in their order."""

    def __init__(
        self,
        inbox: Inbox,
        session_id: str,
        forward: ForwardUpdate,
        early: Iterable[v1.Update],
        closed: "Callable[[UpdateListener], None]",
    ) -> None:
        self._forward = forward
        self._closed = closed
        self._backlog: Backlog[v1.SessionUpdate] = Backlog(inbox, session_id, _nothing)
        self._taken = 0
        """How many updates were taken out of the backlog: those that are forwarded, and the one that is being forwarded."""
        self._forwarded = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        for update in early:
            self._backlog.push((v1.SessionUpdate(session_id, update),), 0)
        self._task = asyncio.get_running_loop().create_task(self._forward_all(), name=f"forward {session_id}")

    async def drained(self) -> None:
        """Wait until all updates so far are forwarded, without those that come meanwhile."""
        mark = self._taken + len(self._backlog)
        if mark > self._forwarded and not self._task.done():
            forwarded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((mark, forwarded))
            await forwarded

    async def close(self) -> None:
        """Forward nothing any more. What waits is dropped."""
        self._closed(self)
        self._backlog.stop_reading()
        self._backlog.end()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _forward_all(self) -> None:
        backlog = self._backlog
        try:
            while not backlog.over:
                await backlog.more()
                while backlog.ready():
                    self._taken += 1
                    await self._forward_one(next(backlog.head).update)
        finally:
            while self._waiting:
                self._resolve(self._waiting.popleft()[1])

    async def _forward_one(self, update: v1.Update) -> None:
        try:
            if (taking := self._forward(update)) is not None:
                await taking
        except AcpError as error:  # the receiver is gone
            _log.debug("an update was not forwarded: %s", error)
        except Exception:  # a task may wait for what follows
            _log.exception("an update could not be forwarded: %.200r", update)
        self._forwarded += 1
        while self._waiting and self._waiting[0][0] <= self._forwarded:
            self._resolve(self._waiting.popleft()[1])

    @staticmethod
    def _resolve(forwarded: "asyncio.Future[None]") -> None:
        if not forwarded.done():
            forwarded.set_result(None)


class LiveAgent:
    """An agent from one start to its end."""

    def __init__(
        self, connection: Connection, initialized: v1.InitializeResult, name: str, early: EarlyUpdates
    ) -> None:
        self._connection = connection
        self._early = early
        self._listeners: dict[str, UpdateListener] = {}
        self.initialized = initialized
        self.abilities = Abilities(name, initialized.agent_capabilities)

    @property
    def ended(self) -> bool:
        """Whether nothing can be sent to the agent any more."""
        return self._connection.closed

    def is_over(self, connection: Connection) -> bool:
        """Whether this is the agent of a connection."""
        return connection is self._connection

    async def listen(self, session_id: str, forward: ForwardUpdate) -> UpdateListener:
        """Forward the updates of this session to `forward` from now on, those that came early first. The listener before is closed."""
        while (earlier := self._listeners.pop(session_id, None)) is not None:  # another may begin while we wait
            await earlier.close()

        def closed(listener: UpdateListener) -> None:
            if self._listeners.get(session_id) is listener:
                del self._listeners[session_id]

        early = self._early.claim(session_id)
        listener = self._listeners[session_id] = UpdateListener(
            self._connection.inbox, session_id, forward, early, closed
        )
        return listener

    async def request(self, call: Call[P, R], params: P, *, timeout: Timeout = UNSET) -> R:
        """Send a request that has a response soon."""
        return await self._connection.request(call, params, timeout=timeout)

    async def work(self, call: Call[P, R], params: P, session_id: str, *, timeout: Timeout = UNSET) -> R:
        """Send a request whose response comes after many updates, which the listeners get.

        Reading never pauses while a usual request waits for its response. Here it may: the listeners go on without us.
        """
        stream = self._connection.stream(call, params, session_id, timeout=timeout)
        while await stream.take() is not None:  # nothing, unless there is no listener
            pass
        return stream.result

    def post(self, notice: Notice[P], params: P) -> None:
        """Send a notification.

        Raises:
            ConnectionClosed: the agent is gone.
        """
        self._connection.post(notice, params)

    async def wait_ended(self) -> None:
        """Wait until the agent is gone, and none of its requests is being handled."""
        await self._connection.wait_closed()

    async def kill(self, link: Link) -> None:
        """Kill the agent: its connection is closed without the first wait."""
        await link.kill(self._connection)


class Relay:
    """One agent, started again as often as necessary."""

    def __init__(
        self,
        command: Sequence[str],
        owner: RelayOwner,
        initialize: v1.Initialize,
        *,
        name: str,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._owner = owner
        self._early = EarlyUpdates()
        self._agent: LiveAgent | None = None
        self._link = Link(
            ProgramTarget(command, name, cwd, env),
            self._router(owner),
            initialize,
            LinkOptions(None, Retry(()), None, CANCEL_GRACE, extended=False),  # what it sends is for others
        )

    def _router(self, owner: RelayOwner) -> Router:
        router = Router()
        for call in _CLIENT_METHODS:
            router.on_request(call, _forwarding(owner, call))
        router.on_notice(m.SESSION_UPDATE, self._early.keep)
        router.on_notice(m.COMPLETE_ELICITATION, owner.completed)
        router.other_request = owner.forward_request
        router.other_notice = owner.forward_notification
        return router

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self._link.name

    async def alive(self) -> LiveAgent:
        """Return the agent, started (again) and initialized if necessary.

        Raises:
            SpawnFailed: there is no such program, or it may not be run.
            ConnectionClosed: it ended before it responded; with its last output.
            RemoteProtocolError: it does not support our version of the protocol.
        """
        connection = await self._link.connected()
        if self._agent is None or not self._agent.is_over(connection):
            self._early.clear()  # of sessions of an earlier process
            self._agent = LiveAgent(connection, self._link.initialized, self._link.name, self._early)
            _ = self._link.run(self._watch(self._agent), f"watch {self._link.name}")
        return self._agent

    async def _watch(self, agent: LiveAgent) -> None:
        await agent.wait_ended()
        self._owner.agent_ended(agent)

    async def end(self, agent: LiveAgent) -> None:
        """Kill an agent that does not respond. The next use starts it again."""
        await agent.kill(self._link)

    async def close(self) -> None:
        """Close the link to the agent for good."""
        await self._link.close()


def _forwarding(owner: RelayOwner, call: Call[Any, Any]) -> Callable[[Any], Awaitable[Any]]:
    def forward(params: Any) -> Awaitable[Any]:
        return owner.handle_request(call, params)

    return forward


def _nothing() -> None:
    """Do nothing: a session without a listener goes on."""
