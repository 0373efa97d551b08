"""The history of sessions that no worker can open now: a hub without agents, over stores that it only reads.

A session waits for its machine where its directory is on no other. Its history is on the broker all the same, so the gateway shows it as
the hub of one machine does: with the same code, over a connection in memory. Nothing is claimed and nothing is recorded here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.errors import AcpError, RequestError
from antiphon.gateway.agents.process import AgentProcess
from antiphon.gateway.base import (
    GatewaySession,
    GatewaySessions,
    HubJournal,
    HubLimits,
    SearchableText,
)
from antiphon.gateway.hub import Hub
from antiphon.gateway.settings import HubSettings
from antiphon.journal.base import Lease, StaleLease
from antiphon.journal.owner import NoOwner
from antiphon.transports.memory import memory_pair

if TYPE_CHECKING:
    from antiphon.fleet.gateway.address import RouteAddress
    from antiphon.fleet.owner import Hello
    from antiphon.transports.base import Transport

__all__ = ["SessionReader"]

LOOK_INTERVAL: Final = 1.0
"""Seconds between two looks whether a worker can take a session that is only read."""

_log = logging.getLogger(__name__)


class SessionReader:
    """Connections that have the history of sessions and nothing else. Each is closed when its address leads to a worker again."""

    def __init__(self, rows: GatewaySessions, journal: HubJournal, limits: HubLimits) -> None:
        limits = msgspec.structs.replace(limits, first_delay=LOOK_INTERVAL, longest_delay=LOOK_INTERVAL)
        self._hub = Hub({}, _ReadRows(rows), _ReadJournal(journal), roots=(), limits=limits)
        self._readers: dict[Transport, RouteAddress] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None

    def connect(self, address: "RouteAddress", hello: "Hello") -> "Transport":
        """Open a connection for a client of an agent."""
        if hello.agent not in self._hub.agents:
            self._hub.agents[hello.agent] = AgentProcess(self._hub, hello.agent, _no_worker(hello.agent))
        ours, theirs = memory_pair()
        self._readers[ours] = address
        serving = asyncio.get_running_loop().create_task(self._serve(theirs, hello))
        self._tasks.add(serving)
        serving.add_done_callback(lambda task: self._ended(task, ours))
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return ours

    async def _serve(self, transport: "Transport", hello: "Hello") -> None:
        with suppress(RequestError):  # refused: it is closed, which its other end sees
            await self._hub.serve(transport, hello.principal, hello.agent)

    def _ended(self, task: "asyncio.Task[None]", transport: "Transport") -> None:
        self._tasks.discard(task)
        self._readers.pop(transport, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the history of a session could not be shown", exc_info=error)

    async def _look(self) -> None:
        """Close the connections whose sessions a worker can take, for as long as there are any."""
        while self._readers:
            await asyncio.sleep(LOOK_INTERVAL)
            for transport, address in (*self._readers.items(),):
                if address.is_unknown:
                    continue
                try:
                    await address.worker()
                except AcpError:
                    continue
                await transport.close()
        self._looking = None

    async def close(self) -> None:
        """End all connections."""
        tasks = [*self._tasks, *([self._looking] if self._looking is not None else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._hub.close()


def _no_worker(agent: str) -> "Callable[[], Awaitable[Transport]]":
    async def start() -> "Transport":
        raise NoOwner(f"no worker that is connected has the agent `{agent}`", hint="start one: antiphon worker")

    return start


class _ReadJournal:
    """The journal of sessions of others: leases of it are good for nothing."""

    def __init__(self, journal: HubJournal) -> None:
        self._journal = journal
        self.read = journal.read
        self.length = journal.length

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        return Lease(session, 0)

    async def release(self, lease: Lease) -> None:
        pass

    async def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> int:
        raise StaleLease(lease.session)

    def store(
        self,
        lease: Lease,
        events: Sequence[bytes],
        then: Callable[[int, BaseException | None], None],
        at: float = 0.0,
    ) -> None:
        raise StaleLease(lease.session)


class _ReadRows:
    """The rows of sessions of others. They can be deleted, and are not changed here."""

    def __init__(self, rows: GatewaySessions) -> None:
        self.removed: Callable[[str, str, str], None] | None = None
        self._rows = rows
        self.list = rows.list
        self.listed = rows.listed
        self.settings = rows.settings
        self.delete = rows.delete
        self.unread = rows.unread
        self.search = rows.search

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        """Return a row as one in which nothing goes on: what was under way is for the worker that takes the session."""
        row = await self._rows.find(agent, session_id)
        if row is None:
            return None
        settings = HubSettings(row.state)
        settings.asked_after = -1
        return msgspec.structs.replace(row, turn="", state=settings.stored())

    async def create(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        raise StaleLease(session_id)

    async def show(self, key: str) -> None:
        raise StaleLease(key)

    async def interrupted(self) -> Sequence[GatewaySession]:
        return ()

    def save(self, row: GatewaySession) -> None:
        pass

    async def add_text(self, key: str, texts: Sequence[SearchableText], number: int) -> None:
        raise StaleLease(key)
