"""One agent behind the gateway: its process is started when it is needed, started again after a crash, and ended when it is idle.

A crash is never repaired by sending anything again. The running turn is reported as interrupted; a session is opened in the new process
when it is needed.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from antiphon import __version__
from antiphon.aio import background
from antiphon.catalogue.known import KNOWN
from antiphon.config.shapes import GATEWAY
from antiphon.connection.negotiation import ClientNegotiation
from antiphon.connection.reports import ReportLog
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError
from antiphon.gateway.agents.link import AgentLink, end_process
from antiphon.gateway.agents.usage import excess
from antiphon.gateway.base import AgentSource, Principal
from antiphon.gateway.requests import AgentQuestions
from antiphon.life import Life
from antiphon.protocol import v1
from antiphon.protocol.translate.choice import by_answer
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.rpc.envelope import BAD_INPUT
from antiphon.transports.base import Transport
from antiphon.transports.process import ProcessTransport

if TYPE_CHECKING:
    from antiphon.gateway.client import RemoteClient
    from antiphon.gateway.hub import Hub
    from antiphon.gateway.session import HubSession

__all__ = ["AGENT_PROCESS_LIFE", "AgentProcess", "AgentProcessEvent", "AgentProcessState"]

RESTART_WAIT: Final = 5.0
"""Seconds that a request waits for an agent that is to be started again. Beyond them it is refused, and says when to come back."""

_log = logging.getLogger(__name__)


class AgentProcessState(Enum):
    """The state of an agent in its life."""

    PARKED = "parked"
    """No process runs, and none is needed."""
    STARTING = "starting"
    RUNNING = "running"
    CRASHED = "crashed"
    """The process ended by itself; another is started when its time has come."""
    CLOSED = "closed"


class AgentProcessEvent(Enum):
    """What can happen to an agent."""

    START = "start"
    INITIALIZE = "initialize"
    LOSE = "end by itself"
    PARK = "be parked"
    CLOSE = "be closed"


_S, _E = AgentProcessState, AgentProcessEvent
AGENT_PROCESS_LIFE: Final = Life(
    "agent of the gateway",
    _S.PARKED,
    {
        _S.PARKED: {_E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.STARTING: {_E.INITIALIZE: _S.RUNNING, _E.LOSE: _S.CRASHED, _E.CLOSE: _S.CLOSED},
        _S.RUNNING: {_E.LOSE: _S.CRASHED, _E.PARK: _S.PARKED, _E.CLOSE: _S.CLOSED},
        _S.CRASHED: {_E.START: _S.STARTING, _E.CLOSE: _S.CLOSED},
        _S.CLOSED: {_E.CLOSE: _S.CLOSED, _E.LOSE: _S.CLOSED},
    },
    "A crashed agent is started again after 1, 2, 4 … 60 seconds.",
)


_PendingOpen: TypeAlias = "tuple[Callable[[HubSession | None], None], Callable[[AcpError], None], Principal | None]"
"""What is called with a session, what is called if there is an error, and for whom it is."""


class _AgentInfo(msgspec.Struct):
    title: str | None = None


class _Introduction(msgspec.Struct, rename="camel"):
    agent_info: _AgentInfo | None = None


class _HeldSession:
    """A session that is being opened, closed or deleted, and what waits for that."""

    __slots__ = ("holders", "over", "waiting")

    def __init__(self) -> None:
        self.holders = 0
        self.over = asyncio.Event()
        self.waiting: list[_PendingOpen] = []


class AgentProcess:
    """One agent, by its name. There is one process of it at most."""

    def __init__(self, hub: "Hub", name: str, source: AgentSource) -> None:
        self.hub = hub
        self.name = name
        self.sessions: dict[bytes, HubSession] = {}
        """The sessions in memory, by the bytes of their ids."""
        self.clients: set[RemoteClient] = set()
        self.questions = AgentQuestions(self)
        self.link: AgentLink | None = None
        self.result = b""
        """The result of `initialize`, as the agent wrote it."""
        self.abilities = v1.AgentCapabilities()
        self.uncommitted = 0
        """Bytes that wait for the disk."""
        self._source = source
        self._state = AGENT_PROCESS_LIFE.start
        self._starting: asyncio.Task[None] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._started = 0.0
        self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._held: dict[str, _HeldSession] = {}
        """The sessions that are being opened, closed or deleted."""

    @property
    def state(self) -> AgentProcessState:
        """The state of the agent in its life."""
        return self._state

    @property
    def title(self) -> str:
        """Its name for people: the one that it gave itself, else the one that it is known by."""
        try:
            info = msgspec.json.decode(self.result or b"{}", type=_Introduction).agent_info
        except BAD_INPUT:
            info = None
        if info is not None and info.title:
            return info.title
        return KNOWN[self.name].title if self.name in KNOWN else self.name

    @property
    def can_reopen(self) -> bool:
        """Whether a session can be continued in another process."""
        return self.abilities.load_session or self.abilities.session_capabilities.resume is not None

    # Starting.

    async def ready(self) -> AgentLink:
        """Return the connection to the running process; start one if there is none.

        Raises:
            AcpError: it does not start, or it crashed and its time has not come.
        """
        self._used = self._now()
        if self._state is AgentProcessState.RUNNING and self.link is not None:
            return self.link
        if self._state is AgentProcessState.CLOSED:
            raise RequestError(
                Code.INTERNAL_ERROR,
                "the gateway is shutting down",
                {"recoverable": True, "action": "reconnect"},
                hint="connect again in a minute",
            )
        wait = self._not_before - self._now()
        if wait > RESTART_WAIT and self._starting is None:
            raise RequestError(
                Code.INTERNAL_ERROR,
                f"agent `{self.name}` has crashed {self._failures} times",
                {"recoverable": True, "action": "try again later"},
                hint=f"it is started again in {wait:.0f} seconds",
            )
        if self._starting is None:
            self._starting = background(self._start(), self._tasks)
        await asyncio.shield(self._starting)
        if self.link is None:
            raise ConnectionClosed(f"agent `{self.name}` ended while it was started")
        return self.link

    async def introduced(self) -> bytes:
        """Return the result of `initialize`. It is that of an earlier process, or says little, if the agent does not start and there are
        sessions to be read.

        Raises:
            AcpError: it does not start, and has no stored sessions.
        """
        try:
            await self.ready()
        except AcpError:
            if not self.result and not await self.hub.rows.list(self.name):
                raise
        return self.result or b'{"protocolVersion":%d,"agentCapabilities":{}}' % V1.number

    async def _start(self) -> None:
        try:
            wait = self._not_before - self._now()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._make_room()
            self._does(AgentProcessEvent.START)
            self._started = self._now()
            try:
                await self._initialize(await self._source())
            except (AcpError, TimeoutError) as error:
                if self._state is AgentProcessState.STARTING:
                    self._crashed()
                if isinstance(error, AcpError):
                    raise
                raise RequestError(
                    Code.REQUEST_TIMEOUT, f"agent `{self.name}` did not answer `initialize` in time"
                ) from error
        finally:
            self._starting = None

    async def _initialize(self, agent: Transport) -> None:
        """Introduce the gateway. An agent that refuses version 1 of ACP is translated; nothing stands between us and any other."""
        choose = partial(by_answer, asyncio.get_running_loop().time)
        transport = ClientNegotiation(agent, choose, observer=ReportLog(), reopen=self._source)
        transport.answers_when_lost = False  # a turn whose agent ends is reported as interrupted
        link = AgentLink(self, transport)
        transport.attach(link)
        try:
            params = msgspec.json.encode(_INITIALIZE)
            result = await link.call("initialize", params, self.hub.limits.start_timeout)
            self.abilities = m.INITIALIZE.decode_result(result).agent_capabilities
        except BaseException:
            self.hub.run(transport.close(), to_the_end=True)
            raise
        if self._state is not AgentProcessState.STARTING:  # closed meanwhile
            self.hub.run(transport.close(), to_the_end=True)
            raise ConnectionClosed("the gateway is shutting down")
        link.transport = transport.settled()
        self._does(AgentProcessEvent.INITIALIZE)
        self.result, self.link = result, link
        self._look_again()
        if link.process is not None:
            self.hub.run(self._watch(link, link.process))

    async def _make_room(self) -> None:
        """End an agent that is idle if as many run as may.

        Raises:
            RequestError: none is idle.
        """
        limit = self.hub.limits.agents
        while len(running := [each for each in self.hub.agents.values() if each.has_process]) >= limit:
            idle = [each for each in running if each.can_park]
            if not idle:
                hint = "close sessions of another agent, or start the gateway with a larger `--limit agents=…`"
                raise RequestError(Code.INTERNAL_ERROR, f"{len(running)} agents run already", hint=hint)
            await min(idle, key=lambda each: each._used).park()

    async def _watch(self, link: AgentLink, transport: ProcessTransport) -> None:
        """Look from time to time at what the process uses, and end it when that is too much."""
        limits = self.hub.limits
        while self.link is link:
            await asyncio.sleep(limits.usage_interval)
            over = await asyncio.to_thread(lambda: excess(transport.members(), limits))
            if over and self.link is link:
                await end_process(self.name, link, f"it {over}")

    # The end of a process.

    def link_lost(self, link: AgentLink, error: ConnectionClosed) -> None:
        """Handle the end of a process: its turns are interrupted, and it is started again if it is in use."""
        self.hub.run(link.transport.close(), to_the_end=True)
        if link is not self.link:
            return  # of one that never got as far, or that we ended
        self.link = None
        _log.warning("agent `%s` ended: %s", self.name, error.sentence)
        self._crashed(is_blamed=link.is_blamed)
        self.questions.agent_lost()
        for session in tuple(self.sessions.values()):
            session.agent_lost()

    def _crashed(self, *, is_blamed: bool = True) -> None:
        self._does(AgentProcessEvent.LOSE)
        limits = self.hub.limits
        healthy = self._now() - self._started >= limits.healthy
        self._failures = int(is_blamed) if healthy else self._failures + is_blamed
        if not is_blamed:
            self._not_before = self._now()
            if self.in_use:
                self._restart()
            return
        delay = min(limits.first_delay * 2 ** min(self._failures - 1, 20), limits.longest_delay)
        delay *= random.uniform(0.8, 1.2)  # noqa: S311  # so that agents which died together do not start together
        self._not_before = self._now() + delay
        if self.in_use:
            self._set_timer(delay, self._restart)

    def _restart(self) -> None:
        if self._state is AgentProcessState.CRASHED and self._starting is None:
            self._starting = background(self._start(), self._tasks)

    @property
    def in_use(self) -> bool:
        """Whether a client is attached to one of its sessions, or a turn runs."""
        return any(session.in_use for session in self.sessions.values())

    @property
    def has_process(self) -> bool:
        """Whether its process runs, or is being started."""
        return self._state in (AgentProcessState.STARTING, AgentProcessState.RUNNING)

    @property
    def can_park(self) -> bool:
        """Whether its process runs, and can end without a loss."""
        return self.link is not None and not self.in_use and all(map(self._can_open_again, self.sessions.values()))

    # Parking.

    def _look_again(self) -> None:
        self._set_timer(self.hub.limits.idle / 4, self._park_if_idle)

    def _park_if_idle(self) -> None:
        if self._state is not AgentProcessState.RUNNING:
            return
        if self.in_use:
            self._used = self._now()
        if self._now() - self._used >= self.hub.limits.idle and self.can_park:
            self.hub.run(self.park(), to_the_end=True)
        else:
            self._look_again()

    async def park(self) -> None:
        """End the process. Its sessions stay stored, and are opened in another one when they are needed."""
        link, self.link = self.link, None
        if link is None:
            return
        self._does(AgentProcessEvent.PARK)
        _log.info("agent `%s` is idle: its process ends", self.name)
        self.questions.agent_lost()
        for session in tuple(self.sessions.values()):
            session.agent_lost()
            session.release_if_idle()
        await link.transport.close()

    async def close(self) -> None:
        """End the process and all that it started."""
        self._does(AgentProcessEvent.CLOSE)
        if self._timer is not None:
            self._timer.cancel()
        link, self.link = self.link, None
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if link is not None:
            await link.transport.close()

    # Sessions.

    def session_of(self, session_id: str | None) -> "HubSession | None":
        """Return a session that is in memory."""
        return None if session_id is None else self.sessions.get(session_id.encode())

    def with_session(
        self,
        session_id: str,
        then: "Callable[[HubSession | None], None]",
        failed: Callable[[AcpError], None] = lambda error: None,
        *,
        by: Principal | None = None,
    ) -> None:
        """Call `then` with a session, at once if it is in memory; with None if the gateway does not have it. Calls keep their order.

        `failed` is called instead if it is not known whether there is one, or too many are open: in all, or by this principal.
        """
        held = self._held.get(session_id)
        if held is not None:
            held.waiting.append((then, failed, by))
        elif (found := self.session_of(session_id)) is not None:
            then(found)
        else:
            self.hold(session_id)
            self.hub.run(self._open(session_id, then, failed, by), after=lambda: self.let_go(session_id))

    def hold(self, session_id: str) -> None:
        """Let calls of `with_session` wait until `let_go` is called as often: the session is being opened, closed or deleted."""
        self._held.setdefault(session_id, _HeldSession()).holders += 1

    def let_go(self, session_id: str) -> None:
        """End a `hold`. The calls that waited look for the session anew: it may be in memory, in the store or gone."""
        held = self._held[session_id]
        held.holders -= 1
        if held.holders:
            return
        del self._held[session_id]
        held.over.set()
        for then, failed, by in held.waiting:
            with self._reported(session_id, failed):
                self.with_session(session_id, then, failed, by=by)

    @asynccontextmanager
    async def alone(self, session_id: str) -> "AsyncIterator[None]":
        """Hold a session as long as the block lasts, after those who hold it now."""
        while (held := self._held.get(session_id)) is not None:
            await held.over.wait()
        self.hold(session_id)
        try:
            yield
        finally:
            self.let_go(session_id)

    async def _open(
        self,
        session_id: str,
        then: "Callable[[HubSession | None], None]",
        failed: Callable[[AcpError], None],
        by: Principal | None,
    ) -> None:
        """Bring a session into memory. A failure to read it is raised, so that the session is not made anew."""
        with self._reported(session_id, failed):
            found = await self.hub.open_stored(self, session_id, by)
            if found is None and self.session_of(session_id) is not None:
                self._held[session_id].waiting.insert(0, (then, failed, by))  # until the one of the agent is stored
            else:
                then(found)

    @contextmanager
    def _reported(self, session_id: str, failed: Callable[[AcpError], None]) -> "Iterator[None]":
        try:
            yield
        except AcpError as error:
            _log.error("session `%s` cannot be opened: %s", session_id, error)
            failed(error)
        except Exception:
            _log.exception("a request about session `%s` failed", session_id)
            failed(RequestError(Code.INTERNAL_ERROR, "Internal error"))

    def close_idle(self, count: int, token: str = "") -> None:
        """Take sessions out of memory that nothing uses and that the agent can open again, the oldest first; those of one token, if it is named."""
        unused = (session for session in self._unused() if not token or session.opened_by == token)
        for session in (*islice(unused, count),):
            self._close_unused(session)

    def close_unused(self, seconds: float) -> None:
        """Close the sessions that were not used for so long. One that the agent cannot close is still open there, and stays."""
        now, can_close = self._now(), self.abilities.session_capabilities.close is not None
        for session in self.sessions.values():
            if session.in_use:
                session.idle_since = now
        for session in (*self._unused(),):
            if now - session.idle_since >= seconds and (can_close or not session.is_open):
                self._close_unused(session)

    def _unused(self) -> "Iterator[HubSession]":
        """Yield the sessions that can leave memory without a loss."""
        for session in self.sessions.values():
            is_stored = not session.is_open or self._can_open_again(session)
            if is_stored and not session.in_use and session.id not in self._held:
                yield session

    def _can_open_again(self, session: "HubSession") -> bool:
        """Whether the agent can open a session in another process, as it is. One that was never used is opened anew, without what was chosen in it."""
        return not session.settings.were_chosen if session.row.is_unused else self.can_reopen

    def _close_unused(self, session: "HubSession") -> None:
        """Take a session out of memory, and let the agent forget it too, if it can. Nothing waits for that."""
        if self.link is not None and session.is_open and self.abilities.session_capabilities.close is not None:
            self.link.send_request("session/close", {"sessionId": session.agent_id}, lambda *_: None)
        self.hub.forget(session)

    def broadcast(self, line: bytes) -> None:
        """Send a notification that is about no session to every client, but for the holders of shares."""
        for client in tuple(self.clients):
            if client.principal.sessions is None:
                client.put(line)

    def stored(self, size: int) -> None:
        """Count bytes that are on the disk now."""
        self.uncommitted -= size
        if self.link is not None:
            self.link.room()

    # Small things.

    def _does(self, event: AgentProcessEvent) -> None:
        self._state = AGENT_PROCESS_LIFE.next(self._state, event)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call)


_INITIALIZE: Final = v1.Initialize(
    V1.number,
    client_capabilities=v1.ClientCapabilities(
        fs=v1.FileCapabilities(read_text_file=True, write_text_file=True),
        terminal=True,
        session=v1.ClientSessionCapabilities(
            compaction=v1.CompactionSupport(),
            config_options=v1.ConfigCapabilities(boolean=v1.BooleanConfigSupport()),
            notices=v1.NoticeSupport(),
        ),
        elicitation=v1.ElicitationCapabilities(form=v1.FormSupport(), url=v1.UrlSupport()),
    ),
    client_info=v1.Implementation(GATEWAY.name, __version__, GATEWAY.title),
)
"""What the gateway offers to every agent. Which client can answer a request is decided when it comes."""
