"""The hub: finds agents, sessions and clients for each other, and ends them together. It knows no messages of the protocol.

When the gateway was killed while turns ran, `start` records that they were interrupted. Nothing is sent to an agent again.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from types import TracebackType
from typing import Final, Self

import msgspec

from antiphon.errors import AcpError, Code, RequestError
from antiphon.gateway.access.messages import ClientRules
from antiphon.gateway.access.quotas import Quotas
from antiphon.gateway.agents.host import GatewayRoots
from antiphon.gateway.agents.process import AgentProcess
from antiphon.gateway.agents.usage import memory_of
from antiphon.gateway.base import (
    AgentSource,
    Gates,
    GatewaySession,
    GatewaySessions,
    HubAudit,
    HubFacts,
    HubJournal,
    HubLimits,
    HubLinks,
    HubPlace,
    HubTraces,
    LiveSession,
    Principal,
)
from antiphon.gateway.client import RemoteClient
from antiphon.gateway.events import PROMPT, notification, with_session
from antiphon.gateway.methods.files import FileNames
from antiphon.gateway.methods.rows import RowFeed
from antiphon.gateway.methods.search import SearchIndex
from antiphon.gateway.moves.adoption import SessionMoves
from antiphon.gateway.moves.interruption import find_interruption
from antiphon.gateway.session import HubSession
from antiphon.gateway.settings import HubSettings
from antiphon.gateway.turns import SHUTTING_DOWN
from antiphon.journal.base import PAGE, JournalEntry, Lease
from antiphon.local.problems import FileProblem
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.rpc.envelope import ErrorObject
from antiphon.transports.base import Transport

__all__ = ["Hub"]

DRAIN: Final = 60.0
"""Seconds that turns may go on when the gateway is to end."""

FORK: Final = " (fork)"
"""What stands behind the title of a session in the title of its fork."""

STORE_LIMIT: Final = 10.0
"""Seconds for what is recorded and not stored yet when the gateway ends."""

LAST_EVENTS: Final = 1.0
"""Seconds for the end of a turn whose session is deleted: it is shown when it is stored."""

_CLOSED: Final = ErrorObject(Code.REQUEST_CANCELLED, "The session was closed")
_log = logging.getLogger(__name__)


async def _ask_people(agent: str, cwd: str, ask: Ask) -> PermissionGate:
    return PermissionGate(ask=ask, agent=agent)


class Hub:
    """Agents, sessions and clients of one gateway."""

    def __init__(
        self,
        agents: Mapping[str, AgentSource],
        rows: GatewaySessions,
        journal: HubJournal,
        *,
        roots: GatewayRoots | Sequence[str],
        limits: HubLimits | None = None,
        gates: Gates = _ask_people,
        audit: HubAudit | None = None,
        client_rules: ClientRules | None = None,
        traces: HubTraces | None = None,
        client_files: bool = False,
        facts: HubFacts | None = None,
        place: HubPlace | None = None,
    ) -> None:
        self.rows = rows
        self.journal = journal
        self.roots = roots if isinstance(roots, GatewayRoots) else GatewayRoots(roots)
        self.limits = limits or HubLimits()
        self.gates = gates
        self.tasks: set[asyncio.Task[object]] = set()
        """All that goes on by itself. It ends with the hub."""
        self.agents = {name: AgentProcess(self, name, source) for name, source in agents.items()}
        self.is_draining = False
        self.audit = audit
        self.client_rules = client_rules or ClientRules()
        self.traces = traces
        self.client_files = client_files
        """Whether files and terminals are those of the attached client, where it offers them."""
        self.facts = facts or HubFacts(default=next(iter(agents), ""))
        self.feed = RowFeed(self, self._in_memory, _live)
        """The clients that follow the list of sessions."""
        self.search = SearchIndex(self)
        self.files = FileNames(self)
        self.moves = None if place is None else SessionMoves(self, place)
        """Sessions that come from other workers and go to them; None on a single machine."""
        self.links: HubLinks | None = None
        """Makes links and answers admins; the program around the hub sets it when it can be reached."""
        rows.removed = self.feed.removed
        self.quotas = Quotas(self.limits)
        self.opened: Counter[str] = Counter()
        """The sessions in memory, by the number of the token that brought them there."""
        self._clients: set[RemoteClient] = set()
        self._to_the_end: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def run(
        self,
        work: Coroutine[object, object, object],
        *,
        to_the_end: bool = False,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Run something by itself. It is cancelled when the hub is closed, or waited for if it has to come to its end.

        `after` is called behind it, even if it was cancelled before it began.
        """
        task = asyncio.get_running_loop().create_task(work)
        tasks = self._to_the_end if to_the_end else self.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_report)
        if after is not None:
            task.add_done_callback(lambda _: after())

    # Clients.

    async def serve(self, transport: Transport, principal: Principal, agent: str) -> None:
        """Serve one connection until it ends.

        Raises:
            RequestError: there is no such agent, or there are too many connections.
        """
        process = self.agents.get(agent)
        try:
            if process is None:
                raise RequestError(Code.RESOURCE_NOT_FOUND, f"there is no agent `{agent}` here")
            is_ending = self.is_draining and self.moves is None  # a worker decides which ones it still takes
            if len(self._clients) >= self.limits.connections or is_ending:
                raise RequestError(Code.INTERNAL_ERROR, "too many connections", hint="try again in a minute")
        except RequestError:
            await transport.close()
            raise
        client = RemoteClient(process, transport, principal)
        self._clients.add(client)
        try:
            await client.serve()
        finally:
            self._clients.discard(client)

    def drop_prompts(self, token_id: str, why: str) -> None:
        """Drop the prompts that wait of a token that is good no longer. Turns that run go on."""
        for session in self._sessions():
            session.turns.drop_of(token_id, why)

    def refuse_often(self, principal: Principal, method: str) -> str:
        """Count a request in a session, and return why it is refused; empty if it is not."""
        if method != "session/prompt":
            return self.quotas.refuse_change(principal, method)
        # A prompt at a worker waits: it is begun by the next one if not here.
        refuses = self.is_draining and self.moves is None
        return "the gateway is shutting down" if refuses else self.quotas.refuse_prompt(principal)

    def note(self, principal: Principal, action: str, key: str, detail: str) -> None:
        """Hand something that was done to the audit."""
        if self.audit is not None:
            self.audit(principal, action, key, detail)

    @property
    def _name(self) -> str:
        """What this process is, for people."""
        return "gateway" if self.moves is None else "worker"

    def counts(self) -> dict[str, int]:
        """Return numbers for people who watch the gateway."""
        sessions = self._sessions()
        return {
            "agents": sum(agent.link is not None for agent in self.agents.values()),
            "clients": len(self._clients),
            "sessions": len(sessions),
            "turns": sum(session.turns.running is not None for session in sessions),
            "attachments": sum(len(session.attachments) for session in sessions),
            "uncommitted": sum(agent.uncommitted for agent in self.agents.values()),
        }

    async def agents_now(self) -> Sequence[Mapping[str, object]]:
        """Return how the agents are now, and how many processes and how much memory they have."""
        members = [(agent, _members(agent)) for agent in self.agents.values()]
        memory = await asyncio.to_thread(lambda: [memory_of(pids) for _, pids in members])
        return [
            {"name": agent.name, "title": agent.title, "default": agent.name == self.facts.default}
            | {"state": agent.state.value, "processes": len(pids), "memory": used}
            for (agent, pids), used in zip(members, memory, strict=True)
        ]

    @property
    def health(self) -> str:
        """`ok`, or what is wrong: the gateway is about to stop, or its disk takes no events."""
        if any(session.is_failing for session in self._sessions()):
            return "cannot store"
        return "draining" if self.is_draining else "ok"

    # Sessions.

    def inside_roots(self, *directories: str) -> list[str]:
        """Return the real paths of directories.

        Raises:
            RequestError: one is outside of the roots, or cannot be used.
        """
        try:
            return [str(self.roots.resolve(directory)) for directory in directories]
        except FileProblem as error:
            raise RequestError(Code.INVALID_PARAMS, error.sentence, hint=error.hint) from error

    def _in_memory(self, row: GatewaySession) -> HubSession | None:
        agent = self.agents.get(row.agent)
        session = None if agent is None else agent.session_of(row.session_id)
        return None if session is None or session.key != row.key else session

    def begin(self, agent: AgentProcess, session_id: str, cwd: str, by: Principal | None) -> HubSession:
        """Put a new session into memory, for this principal. An older one with the same id is archived when the new one is stored.

        Raises:
            RequestError: there are too many.
        """
        token = "" if by is None else by.root_id
        if has_too_many_sessions(self.opened, token, self.limits):
            for each in self.agents.values():
                each.close_idle(max(1, self.limits.token_sessions // 16), token)
        if has_too_many_sessions(self.opened, token, self.limits):
            why = f"this token has {self.opened[token]} sessions open"
            raise RequestError(Code.INTERNAL_ERROR, why, hint="close some, or leave some of them")
        older = agent.session_of(session_id)
        if older is not None:
            older.detach_all()  # their next requests are about the new one
            del agent.sessions[session_id.encode()]
            self.run(self._end_replaced(older), to_the_end=True)
        if self._open_sessions() >= self.limits.sessions:
            for each in self.agents.values():
                each.close_idle(max(1, self.limits.sessions // 16))
        if self._open_sessions() >= self.limits.sessions:
            raise RequestError(Code.INTERNAL_ERROR, "too many sessions are open", hint="close some")
        session = HubSession(self, agent, session_id, cwd, token)
        self.opened[token] += 1
        agent.sessions[session_id.encode()] = session
        return session

    def _open_sessions(self) -> int:
        return sum(len(agent.sessions) for agent in self.agents.values())

    def _sessions(self) -> list[HubSession]:
        return [session for agent in self.agents.values() for session in agent.sessions.values()]

    async def store_new(
        self,
        session: HubSession,
        directories: tuple[str, ...],
        owner: Principal,
        source: HubSession | None = None,
        *,
        hidden: bool = False,
    ) -> int:
        """Store a session that begins, with the history of another one if it is a fork. Return how many events that has.

        `hidden`: nothing finds it before its row is shown.

        Raises:
            AcpError: it cannot be stored.
        """
        session.is_hidden = hidden
        lease: Lease | None = None
        row: GatewaySession | None = None
        try:
            await self.quotas.count_sessions(session.opened_by)
            place = (session.agent.name, session.id, session.row.cwd)
            row = await self.rows.create(*place, directories, owner.name, hidden=hidden)
            lease = await self.journal.claim(row.key, by=self._name)
            if self.moves is not None:
                await self.moves.settle(session, row, lease)
            last = await self._copy(source.key, session.id, lease) if source is not None else 0
            if session.is_over:
                raise RequestError(Code.REQUEST_CANCELLED, f"session `{session.id}` was closed while it was stored")
        except BaseException:
            self.forget(session)
            if lease is not None:
                await self.journal.release(lease)
            if row is not None:  # a part of a history would look like all of it
                with suppress(AcpError):
                    await self.rows.delete(row.key)
            raise
        # As they are now: the agent may have changed them while the row was stored.
        state, title = session.settings.stored(), session.row.title
        row = msgspec.structs.replace(row, state=state, title=title, agent_title=title)
        row = row if source is None else _forked(row, source.row)
        self.rows.save(row)
        session.begin(row, lease, last)
        if row.title != title:  # behind the titles of its source, which are among its events
            update = {"sessionUpdate": "session_info_update", "title": row.title}
            session.record(notification("session/update", {"sessionId": session.id, "update": update}))
        self.feed.changed(session)
        if source is not None:
            self.search.note(row.key)
        return last

    async def show(self, session: HubSession) -> None:
        """Let everything find a session that was stored as a hidden one.

        Raises:
            AcpError: it cannot be stored.
        """
        session.is_hidden = False
        await self.rows.show(session.key)
        self.feed.changed(session)

    async def _copy(self, source: str, session_id: str, lease: Lease) -> int:
        """Copy the updates and messages of a session into one with another id."""
        after = last = 0
        while page := await self.journal.read(source, after, PAGE):
            after = page[-1].number
            kept = [entry for entry in page if not entry.data[:1].isalpha() or entry.data[:1] == PROMPT]
            for _, run in groupby(kept, _minute_of):  # one commit for each: a long session has thousands of times
                entries = [*run]
                events = [with_session(each.data, session_id) for each in entries]
                last = await self.journal.append(lease, events, entries[0].time)
        return last

    async def open_stored(
        self, agent: AgentProcess, session_id: str, by: Principal | None, lease: Lease | None = None, why: str = ""
    ) -> HubSession | None:
        """Bring a stored session into memory, for this principal. Returns None where nothing is stored, or the agent has meanwhile opened another session with this id.

        `lease`: it was claimed already, because of what became of its worker; it is released if it is not brought.

        Raises:
            AcpError: it cannot be read or stored, or too many sessions are open.
        """
        if lease is None:
            row = await self.rows.find(agent.name, session_id)
            if row is None or agent.session_of(session_id) is not None:
                return None
            lease = await (
                self.journal.claim(row.key, by=self._name) if self.moves is None else self.moves.claim(row.key)
            )
        session: HubSession | None = None
        try:
            row = await self.rows.find(agent.name, session_id)  # again: until it was claimed it could be deleted
            if row is None or row.key != lease.session:
                return None
            if self.moves is not None:
                row = await self.moves.take(row, lease, why)
            elif row.turn or HubSettings(row.state).asked_after >= 0:
                row = await self._interrupt(row, lease)
            last = await self.journal.length(row.key)
            await self.quotas.count_sessions("" if by is None else by.root_id, 1)
            if agent.session_of(session_id) is None:
                session = self.begin(agent, session_id, row.cwd, by)
                session.begin(row, lease, last)
            return session
        finally:
            if session is None:
                await self.journal.release(lease)

    def forget(self, session: HubSession, *, keep: bool = True) -> None:
        """Remove a session from memory at once. What is stored stays; without `keep` nothing more is stored."""
        agent = session.agent
        if agent.sessions.get(session.id.encode()) is session:
            del agent.sessions[session.id.encode()]
        session.end(_CLOSED, keep=keep)
        if not session.released.is_set():  # until then it cannot be claimed again
            agent.hold(session.id)
            self.run(session.released.wait(), to_the_end=True, after=lambda: agent.let_go(session.id))

    async def end(self, session: HubSession) -> None:
        """Close a session: a turn that runs in it is interrupted, what was recorded is stored.

        Raises:
            RequestError: it cannot be stored now. The session stays open.
        """
        try:
            async with asyncio.timeout(STORE_LIMIT):
                await _settle(session, "the session was closed")
        except TimeoutError as error:
            raise RequestError(
                Code.INTERNAL_ERROR,
                f"session `{session.id}` is not closed: its last events cannot be stored now",
                hint="look at the disk of the gateway, and close it again",
            ) from error
        self.forget(session)
        await session.released.wait()

    async def _end_replaced(self, session: HubSession) -> None:
        """End a session whose id the agent has given to another one."""
        try:
            async with asyncio.timeout(STORE_LIMIT):
                await _settle(session, "its agent has opened another session under its id")
        except TimeoutError:
            _log.error("session `%s` is replaced before all of its events could be stored", session.id)
        session.end(_CLOSED)

    async def delete(self, session: HubSession) -> None:
        """Delete a session and its events, those that are not stored yet too. Clients see that its turn has ended, if the disk takes that."""
        if session.turns.running is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_EVENTS):
                    await _settle(session, "the session was deleted")
        session.turns.interrupt("the session was deleted")
        self.forget(session, keep=False)
        await self.rows.delete(session.key)

    async def delete_stored(self, row: GatewaySession) -> None:
        """Delete a session by its row, whether it is in memory or not.

        Raises:
            AcpError: it cannot be deleted now.
        """
        agent = self.agents.get(row.agent)
        live = None if agent is None else agent.session_of(row.session_id)
        if agent is None or (row.archived and (live is None or live.key != row.key)):  # not one that is being loaded
            await self.rows.delete(row.key)
            return
        async with agent.alone(row.session_id):
            session = agent.session_of(row.session_id)
            if session is not None and session.key == row.key:
                await self.delete(session)
            else:
                await self.rows.delete(row.key)

    # The start and the end of the gateway.

    async def start(self) -> None:
        """Record the turns that ran when the gateway ended as interrupted.

        One session that cannot be changed now keeps none of the others from being used: it is tried again when it is opened.

        Raises:
            AcpError: the store cannot be used.
        """
        if self.moves is not None:  # what other workers had is theirs until it is adopted, and gateways have the search
            self._look_at_sessions()
            return
        for row in await self.rows.interrupted():
            lease = await self.journal.claim(row.key, by=self._name)
            try:
                await self._interrupt(row, lease)
            except (AcpError, msgspec.DecodeError) as error:
                _log.error("the turn of session `%s` is not recorded as interrupted yet: %s", row.session_id, error)
            finally:
                await self.journal.release(lease)
        self.search.start()
        self._look_at_sessions()

    async def _interrupt(self, row: GatewaySession, lease: Lease) -> GatewaySession:
        """Record the turn of a row as interrupted and the requests that waited as over, and return the row without them."""
        found = await find_interruption(self.journal, row, "the gateway ended")
        if found.events:
            await self.journal.append(lease, found.events, round(time.time(), 3))
        self.rows.save(found.row)
        return found.row

    def _look_at_sessions(self) -> None:
        """Close sessions that were not used for long, from time to time."""
        for agent in self.agents.values():
            agent.close_unused(self.limits.session_idle)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.limits.session_idle / 4, self._look_at_sessions)

    async def drain(self, seconds: float = DRAIN) -> None:
        """Wait for the turns that run, and begin no more: prompts that wait are refused when it is their turn."""
        self.is_draining = True
        if self.moves is not None:
            self.moves.hand_over_idle(self._sessions())
        try:
            async with asyncio.timeout(seconds):
                for session in self._sessions():
                    await session.turns.until_idle()
        except TimeoutError:
            _log.warning("turns still run after %g seconds: they are interrupted", seconds)

    async def close(self) -> None:
        """End all agents with all that they started, and all connections. Turns that run are recorded as interrupted."""
        self.is_draining = True
        self.feed.close()
        if self._timer is not None:
            self._timer.cancel()
        if self.moves is not None:
            for session in self._sessions():
                session.turns.clear_queue()
        try:
            async with asyncio.timeout(STORE_LIMIT):
                await asyncio.gather(
                    *(_settle(session, f"the {self._name} was stopped") for session in self._sessions())
                )
        except TimeoutError:
            _log.error("not all events could be stored before the end")
        for client in (*self._clients,):
            client.close_soon("the gateway is stopped")
        await self._cancel_tasks()  # first: one of them may be opening a session
        for session in self._sessions():
            session.end(SHUTTING_DOWN)
        await asyncio.gather(*(agent.close() for agent in self.agents.values()))
        for agent in self.agents.values():
            agent.sessions.clear()
        while self.tasks or self._to_the_end:
            await self._cancel_tasks()
            if self._to_the_end:
                await asyncio.wait(self._to_the_end)

    async def _cancel_tasks(self) -> None:
        while self.tasks:
            for task in (*self.tasks,):
                task.cancel()
            await asyncio.wait(
                self.tasks
            )  # and not `gather`, which would not let their callbacks run where all have ended


def _live(session: HubSession) -> LiveSession:
    waiting = sum(1 for _ in session.requests.waiting())
    return LiveSession(session.row, session.last, waiting, session.turns.running is not None, session.is_hidden)


def has_too_many_sessions(opened: Mapping[str, int], token: str, limits: HubLimits) -> bool:
    """Whether a token has brought as many sessions into memory as it may. Without tokens there is one user."""
    return bool(token) and opened.get(token, 0) >= limits.token_sessions


async def _settle(session: HubSession, why: str) -> None:
    """Interrupt the turn of a session, cancel the requests of its agent, and wait until all of that is stored."""
    session.turns.interrupt(why)
    await session.requests.end_all()
    await session.settled()


def _members(agent: AgentProcess) -> Sequence[int]:
    """Return the ids of the processes of an agent; none if it has none on this machine."""
    process = None if agent.link is None else agent.link.process
    return () if process is None else process.members()


def _forked(row: GatewaySession, source: GatewaySession) -> GatewaySession:
    """Return the row of a fork with the title and the text of its source. A title that the agent has given to it stays, unless a person named the source."""
    named, given = (f"{each}{FORK}" if each else "" for each in (source.title, source.agent_title))
    title = named if source.renamed else row.title or named
    return msgspec.structs.replace(
        row,
        title=title,
        agent_title=row.agent_title or given,
        renamed=source.renamed,
        text=source.text,
        updated=time.time(),
    )


def _minute_of(entry: JournalEntry) -> int:
    return int(entry.time // 60)


def _report(task: "asyncio.Task[object]") -> None:
    """Log an error that nothing waits for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a task of the gateway failed", exc_info=error)
