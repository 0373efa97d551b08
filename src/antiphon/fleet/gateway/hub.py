"""The hub of a gateway in a fleet: its clients, and the fleet as they see it. It runs no agents and owns no sessions.

Any number of gateways stand side by side: what one knows is copied from the broker, and a client that comes back may come to another.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from antiphon.catalogue.known import KNOWN
from antiphon.errors import AcpError, Code, RequestError
from antiphon.fleet.gateway.router import RoutedClient
from antiphon.gateway.access.quotas import Quotas
from antiphon.gateway.agents.process import AgentProcessState
from antiphon.gateway.base import (
    GatewaySession,
    GatewaySessions,
    HubAudit,
    HubFacts,
    HubLimits,
    HubLinks,
    LiveSession,
    Principal,
    SessionQuery,
)
from antiphon.gateway.methods.rows import RowFeed
from antiphon.gateway.methods.search import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

    from antiphon.fleet.control import WorkerControl
    from antiphon.fleet.gateway.address import FleetRoutes
    from antiphon.fleet.gateway.directories import FleetDirectories
    from antiphon.fleet.gateway.reader import SessionReader
    from antiphon.fleet.membership import WorkerState
    from antiphon.fleet.worker.summaries import SessionSummaries
    from antiphon.gateway.base import HubJournal
    from antiphon.transports.base import Transport

__all__ = ["FleetAgent", "FleetHub", "FleetView"]

BROKER_AWAY: Final = "the broker is away"

SHOWN: Final = 100
"""Rows that are read at once for those that follow the list."""

_log = logging.getLogger(__name__)


class FleetAgent(NamedTuple):
    """An agent of the fleet."""

    name: str
    state: AgentProcessState
    """Running if a session of it is in use, parked if none is, closed if no worker has it now."""

    @property
    def title(self) -> str:
        """Its name for people."""
        return KNOWN[self.name].title if self.name in KNOWN else self.name


class CopiedRows(GatewaySessions, Protocol):
    """The rows of all sessions of the fleet, as this gateway has copied them."""

    changed: "Callable[[GatewaySession | None, str], None] | None"
    """Called with each row that has changed and its key; None: the session was deleted."""

    async def all(self) -> "Sequence[GatewaySession]":
        """Return every row, those of archived sessions included."""


class FleetView(NamedTuple):
    """What a gateway has of a fleet."""

    workers: "Callable[[], Collection[WorkerState]]"
    """Returns those that live."""
    is_connected: "Callable[[], bool]"
    """Returns whether the broker is there."""
    routes: "FleetRoutes"
    reader: "SessionReader"
    directories: "FleetDirectories"
    control: "WorkerControl"
    summaries: "SessionSummaries"


class FleetHub:
    """The clients of one gateway, and what they see of the fleet."""

    def __init__(
        self,
        view: FleetView,
        rows: "CopiedRows",
        journal: "HubJournal",
        *,
        limits: HubLimits | None = None,
        audit: HubAudit | None = None,
        default: str = "",
        page: str = "",
        problem: "Callable[[], str]" = lambda: "",
        row_changed: "Callable[[GatewaySession], None]" = lambda row: None,
        row_deleted: "Callable[[str], Coroutine[object, object, None]] | None" = None,
    ) -> None:
        """`default` is the agent at `/acp`; empty: the first one by its name. `problem` returns what else people should know.

        `row_changed` gets each row that changes in the fleet, and `row_deleted` the key of each session that was deleted.
        """
        self.rows = rows
        self.journal = journal
        self.routes = view.routes
        self.files = view.directories
        self.limits = limits or HubLimits()
        self.quotas = Quotas(self.limits)
        self.links: HubLinks | None = None
        """Makes links and answers admins; the program around the hub sets it when it can be reached."""
        self.feed: RowFeed[LiveSession] = RowFeed(self, self._live, lambda live: live)
        self.search = SearchIndex(self)
        self.is_draining = False
        self._view = view
        self._audit = audit
        self._default = default
        self._page = page
        self._problem = problem
        self._on_row_changed = row_changed
        self._on_row_deleted = row_deleted
        self._known: set[str] = set()
        """The agents that have stored sessions: they can be read without a worker."""
        self._clients: set[RoutedClient] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._to_the_end: set[asyncio.Task[object]] = set()
        self._changed: set[str] = set()
        """Sessions whose summary has changed, and whose rows are to be read."""
        self._is_showing = False

    async def start(self) -> None:
        """Show the sessions of the fleet, from now on.

        Raises:
            AcpError: the store cannot be used.
        """
        self._known = {row.agent for row in await self.rows.all()}
        self.rows.changed = self._row_changed
        self.rows.removed = self.feed.removed
        self._view.summaries.changed = self._summary_changed
        self.search.start()

    async def close(self) -> None:
        """End all connections. What runs goes on at the workers."""
        self.is_draining = True
        self.feed.close()
        self.rows.changed = None
        self._view.summaries.changed = None
        for client in (*self._clients,):
            client.close_soon("the gateway is stopped")
        while self._tasks or self._to_the_end:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait({*self._tasks, *self._to_the_end})
        await self._view.reader.close()

    def run(
        self,
        work: "Coroutine[object, object, object]",
        *,
        to_the_end: bool = False,
        after: "Callable[[], None] | None" = None,
    ) -> None:
        """Run something by itself. It is cancelled when the hub is closed, or waited for if it has to come to its end."""
        task = asyncio.get_running_loop().create_task(work)
        tasks = self._to_the_end if to_the_end else self._tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_report)
        if after is not None:
            task.add_done_callback(lambda _: after())

    # Clients.

    async def serve(self, transport: "Transport", principal: Principal, agent: str) -> None:
        """Serve one connection until it ends. Where no worker has the agent, its `initialize` is refused with the reason.

        Raises:
            RequestError: there are too many connections.
        """
        if len(self._clients) >= self.limits.connections or self.is_draining:
            await transport.close()
            raise RequestError(Code.INTERNAL_ERROR, "too many connections", hint="try again in a minute")
        client = RoutedClient(self, transport, principal, agent)
        self._clients.add(client)
        try:
            await client.serve()
        finally:
            self._clients.discard(client)

    def drop_prompts(self, token_id: str, why: str) -> None:
        """Have the workers drop the prompts that wait of a token that is good no longer. Turns that run go on."""
        self._view.control.revoked(token_id, why)

    def note(self, principal: Principal, action: str, key: str, detail: str) -> None:
        """Hand something that was done to the audit."""
        if self._audit is not None:
            self._audit(principal, action, key, detail)

    async def drain(self, seconds: float = 0.0) -> None:
        """Take no more clients. No turn ends with this process, so nothing is waited for."""
        self.is_draining = True

    async def delete_stored(self, row: GatewaySession) -> None:
        """Delete a session by its row, wherever it is open.

        Raises:
            AcpError: it cannot be deleted now.
        """
        await self.rows.delete(row.key)

    # The fleet.

    @property
    def agents(self) -> "Mapping[str, FleetAgent]":
        """The agents of all workers, and those that have stored sessions."""
        found = {name: FleetAgent(name, AgentProcessState.CLOSED) for name in self._known}
        for worker in self._view.workers():
            for name in worker.agents:
                state = AgentProcessState.RUNNING if worker.turns else AgentProcessState.PARKED
                before = found.get(name)
                if before is None or before.state is not AgentProcessState.RUNNING:
                    found[name] = FleetAgent(name, state)
        return {name: found[name] for name in sorted(found)}

    @property
    def facts(self) -> HubFacts:
        """What a page shows of this gateway."""
        return HubFacts(default=self.default, page=self._page)

    @property
    def default(self) -> str:
        """The name of the agent that `/acp` leads to."""
        living = sorted({name for worker in self._view.workers() for name in worker.agents})
        return self._default or next(iter(living), "") or next(iter(sorted(self._known)), "")

    @property
    def health(self) -> str:
        """`ok`, or what is wrong."""
        if not self._view.is_connected():
            return BROKER_AWAY
        return self._problem() or ("draining" if self.is_draining else "ok")

    def counts(self) -> "dict[str, int]":
        """Return numbers for people who watch the fleet from this gateway."""
        workers = self._view.workers()
        return {
            "workers": len(workers),
            "agents": len({name for worker in workers for name in worker.agents}),
            "clients": len(self._clients),
            "links": sum(client.links for client in self._clients),
            "sessions": sum(worker.sessions for worker in workers),
            "turns": sum(worker.turns for worker in workers),
        }

    async def agents_now(self) -> "Sequence[Mapping[str, object]]":
        """Return the agents, each with the workers that have it."""
        default, workers = self.default, self._view.workers()
        return [
            {
                "name": agent.name,
                "title": agent.title,
                "default": agent.name == default,
                "state": agent.state.value,
                "workers": sorted(worker.name for worker in workers if agent.name in worker.agents),
            }
            for agent in self.agents.values()
        ]

    # Lists.

    def _live(self, row: GatewaySession) -> LiveSession | None:
        summary = self._view.summaries.get(row.key)
        return None if summary is None else LiveSession(row, summary.last, summary.waiting, summary.is_running)

    def _row_changed(self, row: GatewaySession | None, key: str) -> None:
        if row is None:
            if self._on_row_deleted is not None:
                self.run(self._on_row_deleted(key))
            return
        self._on_row_changed(row)
        self._known.add(row.agent)
        if not row.archived:
            self._summary_changed(key)
        if not row.turn:
            self.search.note(key)

    def _summary_changed(self, key: str) -> None:
        if self.feed.is_followed:
            self._changed.add(key)
            if not self._is_showing:
                self._is_showing = True
                self.run(self._show_changed(), after=self._shown)

    def _shown(self) -> None:
        self._is_showing = False

    async def _show_changed(self) -> None:
        """Hand the rows of sessions to those that follow the list."""
        while self._changed:
            keys = frozenset([*self._changed][:SHOWN])
            self._changed -= keys  # before they are read: one may change meanwhile
            try:
                found = await self.rows.listed(SessionQuery(tuple(self.agents), keys, limit=SHOWN))
            except AcpError as error:
                _log.warning("rows of sessions cannot be shown: %s", error.sentence)
                found = ()
            for row, number, _ in found:
                self.feed.changed(self._live(row) or LiveSession(row, number, 0, is_running=False))


def _report(task: "asyncio.Task[object]") -> None:
    """Log an error that nothing waits for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a task of the gateway failed", exc_info=error)
