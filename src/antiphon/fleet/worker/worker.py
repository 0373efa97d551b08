"""One worker, from its start to its end: a hub whose clients come over the broker, and all that keeps it a member of the fleet."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from antiphon.config.directories import private_opener
from antiphon.errors import AcpError, RequestError
from antiphon.fleet.archive import read_archive
from antiphon.fleet.broker import Broker
from antiphon.fleet.carrier import CarrierListener
from antiphon.fleet.connection import CarrierLimits, CarrierTransport
from antiphon.fleet.control import Answer, ControlListener, WorkerNotice, WorkerRequest
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.membership import INTERVAL, LEASE, Heartbeat, Members, WorkerState
from antiphon.fleet.owner import Hello
from antiphon.fleet.rows import FleetRows
from antiphon.fleet.worker.isolation import WorkerIsolation
from antiphon.fleet.worker.orphans import OrphanedSessions
from antiphon.fleet.worker.place import WorkerPlace, machine_name
from antiphon.fleet.worker.summaries import SummarySender
from antiphon.fleet.worker.usage import FleetUsage
from antiphon.gateway.agents.host import GatewayRoots
from antiphon.gateway.base import AgentSource, HubLimits
from antiphon.gateway.data import GatewayData
from antiphon.gateway.hub import DRAIN, STORE_LIMIT, Hub
from antiphon.gateway.moves.adoption import SessionMoves
from antiphon.journal.owner import OwnedElsewhere
from antiphon.protocol.base import BAD_INPUT

__all__ = ["NAME_FILE", "SLOTS", "FleetWorker", "WorkerOptions"]

NAME_FILE: Final = "worker.json"
"""The file in the data directory with the name of the last start. Who has the directory locked knows that this start has ended."""

SLOTS: Final = 100
"""Sessions in use at the same time, unless another number is given."""

CLOSE_LIMIT: Final = STORE_LIMIT + 5.0
"""Seconds for the end of the hub. Where the broker is away its last events cannot be stored, and are dropped then."""

_log = logging.getLogger(__name__)


class WorkerOptions(msgspec.Struct, frozen=True):
    """What a worker is to be."""

    name: str = ""
    """Its name for people, and for its key; empty: that of the machine."""
    host: str = ""
    """The name of the machine; empty: found out."""
    labels: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    workspaces: dict[str, str] = {}
    """Directories that several machines share, by their names."""
    slots: int = SLOTS
    limits: HubLimits = HubLimits()
    lease: float = LEASE
    interval: float = INTERVAL
    drain: float = DRAIN
    """Seconds that turns may go on when the worker is to end."""


class _Started(msgspec.Struct):
    name: str


class FleetWorker:
    """A worker of a fleet, as long as the block lasts. `hub_options` is what its hub takes beside that."""

    def __init__(
        self,
        broker: Broker,
        data: GatewayData,
        agents: Mapping[str, AgentSource],
        options: WorkerOptions,
        **hub_options: Any,
    ) -> None:
        host = options.host or machine_name()
        self.name = f"{options.name or host}.{token_hex(3)}"
        """One for each start: the name for people, and a random word."""
        self.options = options
        self.asked_to_end = asyncio.Event()
        """Set when another process has asked it to drain: it is to end then."""
        self._broker = broker
        self._data = data
        self._about = WorkerState(
            self.name,
            host=host,
            agents=tuple(agents),
            labels=options.labels,
            roots=options.roots,
            workspaces=options.workspaces,
            slots=options.slots,
            replaces=self._read_earlier(),
            pid=os.getpid(),
            lease=options.lease,
        )
        self.members = Members(broker, options.lease, options.interval)
        self.journal = FleetJournal(broker, self.name, self.members.is_alive, archive=partial(read_archive, broker))
        self.rows = FleetRows(broker, self.journal, data)
        limits = msgspec.structs.replace(options.limits, sessions=min(options.limits.sessions, options.slots))
        roots = hub_options.pop("roots", None) or GatewayRoots([*options.roots, *options.workspaces.values()])
        place = WorkerPlace(self._about)
        self.hub = Hub(agents, self.rows, self.journal, roots=roots, limits=limits, place=place, **hub_options)
        self.moves = self.hub.moves or SessionMoves(self.hub, place)
        self.usage = self.hub.quotas.shared = FleetUsage(broker, self.name, self.hub, self.members.is_alive)
        self.heartbeat = Heartbeat(broker, self.state, options.interval)
        self.orphans = OrphanedSessions(broker, self.members, self.rows, self.moves, self.state)
        self._parts: list[Callable[[], Awaitable[None]]] = []
        """What ends the parts that were started, in the order of the starts."""
        self.answers: dict[str, Answer] = {
            "status": self._status,
            "drain": self._asked_to_drain,
            "directories": self._has_directories,
            "list": self._list_directories,
        }
        """What answers the requests of other processes, by their names."""
        self.isolation: WorkerIsolation | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def state(self) -> WorkerState:
        """Return how it is now."""
        agents = self.hub.agents.values()
        sessions = [each for agent in agents for each in agent.sessions.values()]
        opening = sum(agent.link.opening for agent in agents if agent.link is not None)
        return msgspec.structs.replace(
            self._about,
            sessions=len(sessions),
            used=sum(session.in_use for session in sessions) + opening,
            turns=sum(session.turns.running is not None for session in sessions),
            draining=self.hub.is_draining,
            problem=self.journal.appends.problem or next(iter(self._broker.problems), ""),
        )

    # The start.

    def _read_earlier(self) -> str:
        """Return the name of the start before this one, whose data directory this one has locked; empty if there was none."""
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self._data.directory / NAME_FILE).read_bytes(), type=_Started).name
        return ""

    def _write_name(self) -> None:
        with open(self._data.directory / NAME_FILE, "wb", opener=private_opener) as file:
            file.write(msgspec.json.encode(_Started(self.name)))

    async def _start(self) -> None:
        if self._about.replaces:
            self.members.ended(self._about.replaces)
        self.journal.lost = self.moves.lost
        await self.rows.start()
        self._parts.append(self.rows.close)
        await self.usage.start()
        self._parts.append(self.usage.close)
        await self.hub.start()
        self._write_name()
        self._listen()
        self.heartbeat.start()
        self.orphans.start()
        self._parts.append(self.orphans.close)
        self.isolation = WorkerIsolation(self._broker, self.members, self.heartbeat, self.hub, self.journal)
        self._parts.append(self.isolation.close)
        _log.info("worker `%s` on `%s` has started", self.name, self._about.host)

    def _listen(self) -> None:
        summaries = SummarySender(self._broker, self.name, self.hub)
        control = ControlListener(self._broker, self.name, self.answers, self._noticed)
        limits = CarrierLimits(ping=self.options.interval, silence=self.options.lease)
        listener = CarrierListener(self._broker, self.name, self._accept, limits=limits)

        async def end_summaries() -> None:
            summaries.close()

        self._parts += [end_summaries, control.close, listener.close]

    # Clients.

    def _accept(self, transport: CarrierTransport, hello: bytes) -> None:
        """Serve a connection.

        Raises:
            AcpError: it is refused.
        """
        try:
            found = msgspec.json.decode(hello, type=Hello)
        except BAD_INPUT as error:
            raise AcpError(
                f"worker `{self.name}` cannot read who connects: {error}", hint="update the gateway"
            ) from error
        if (
            self.hub.is_draining and found.session not in self.journal.claimed
        ):  # else its turn can be watched to its end
            raise OwnedElsewhere(f"worker `{self.name}` is about to end", hint="another one is found")
        if found.agent not in self.hub.agents:
            raise OwnedElsewhere(f"worker `{self.name}` has no agent `{found.agent}`", hint="another one is found")
        if found.opens and self.state().used >= self.options.slots:  # gateways know that a beat later
            raise OwnedElsewhere(f"all slots of worker `{self.name}` are taken", hint="another one is found")
        self.hub.run(self._serve(transport, found))

    async def _serve(self, transport: CarrierTransport, hello: Hello) -> None:
        try:
            await self.hub.serve(transport, hello.principal, hello.agent)
        except RequestError as error:
            _log.warning("a connection of `%s` was refused: %s", hello.principal.name, error.sentence)

    # Requests of other processes.

    async def _status(self, request: WorkerRequest) -> Mapping[str, object]:
        """Return how it is, for people who look at the fleet."""
        isolation = self.isolation
        return {
            "worker": self.state(),
            "counts": self.hub.counts(),
            "health": self.hub.health,
            "unstored": self.journal.unstored,
            "adopted": self.orphans.adopted,
            "waiting": self.orphans.waiting,
            "frozen": [] if isolation is None else isolation.frozen,
            "agents": await self.hub.agents_now(),
            "sessions": sorted(self.journal.claimed),
        }

    async def _asked_to_drain(self, request: WorkerRequest) -> Mapping[str, object]:
        """Drain, and end then: the program waits for `asked_to_end`."""
        turns = self.hub.counts()["turns"]
        self.asked_to_end.set()
        return {"draining": True, "turns": turns}

    async def _has_directories(self, request: WorkerRequest) -> Mapping[str, object]:
        if self.hub.client_files:  # they may be on the client's machine alone
            return {"exist": True}

        def look() -> Mapping[str, object]:
            # Not `Path.is_dir`, which raises for a name that is too long, as a client may send it.
            exist = all(map(os.path.isdir, request.directories))
            return {"exist": exist, "real": [*map(os.path.realpath, request.directories)] if exist else []}

        return await asyncio.to_thread(look)

    async def _list_directories(self, request: WorkerRequest) -> Mapping[str, object]:
        return await self.hub.files.directories(next(iter(request.directories), ""))

    def _noticed(self, notice: WorkerNotice) -> None:
        if notice.revoked:
            self.hub.drop_prompts(notice.revoked, notice.why or "its token was revoked")
            if self.name == min(self.members.workers, default=self.name):  # one of all workers
                self.hub.run(self.usage.forget(notice.revoked))

    # The end.

    async def drain(self, hurry: asyncio.Event | None = None) -> None:
        """Take no more sessions, hand over those in which nothing runs, and wait for turns; `hurry` ends that wait."""
        self.hub.is_draining = True
        self.heartbeat.beat_now()  # before the clients of these sessions look for another worker
        draining = asyncio.ensure_future(self.hub.drain(self.options.drain))
        hurried = asyncio.ensure_future((hurry or asyncio.Event()).wait())
        await asyncio.wait([draining, hurried], return_when=asyncio.FIRST_COMPLETED)
        for task in (draining, hurried):
            task.cancel()
        await asyncio.gather(draining, hurried, return_exceptions=True)

    async def close(self) -> None:
        """End its agents and all connections, release its sessions, and leave the fleet."""
        if self._is_closed:
            return
        self._is_closed = True
        self.hub.is_draining = True
        closing = asyncio.ensure_future(self.hub.close())
        await asyncio.wait([closing], timeout=CLOSE_LIMIT)
        if not closing.done():
            _log.error("the broker is away: the last events of the sessions here are not stored")
        await self.journal.close(0.0 if not closing.done() else CLOSE_LIMIT)
        await closing
        for end in reversed(self._parts):
            await end()
        self.heartbeat.leave()  # last: nothing is ours any more
        self.members.close()
