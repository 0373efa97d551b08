"""Journals on a broker in memory, for tests: one for each worker, with a connection of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.records.formats import RowRecord, RunHeader, events_subject, row_subject
from antiphon.fleet.records.history import Archive
from antiphon.fleet.records.queue import HEADER_ROOM
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from antiphon.gateway.base import GatewaySession
from antiphon.journal.base import JournalEntry

__all__ = ["CountingBroker", "JournalFleet", "fleet_of", "forget_before", "texts"]


class CountingBroker:
    """A connection that counts what is asked of it, and fails when a test says so."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self._broker = broker
        self.calls: list[str] = []
        self.given = 0
        """Messages that were read."""
        self.failures: list[Exception | None] = []
        """What the next appends raise; None: nothing."""
        self.unreadable: Exception | None = None
        """What all reads of a last message raise."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def append(self, subject: str, data: bytes, **conditions: Any) -> int:
        self.calls.append("append")
        if self.failures and (error := self.failures.pop(0)) is not None:
            raise error
        return await self._broker.append(subject, data, **conditions)

    async def read(self, pattern: str, after: int = 0, limit: int = 256) -> Any:
        self.calls.append("read")
        found = await self._broker.read(pattern, after, limit)
        self.given += len(found)
        return found

    async def last(self, subject: str) -> Any:
        self.calls.append("last")
        if self.unreadable is not None:
            raise self.unreadable
        return await self._broker.last(subject)


class JournalFleet:
    """A broker, and the journals that a test has opened."""

    def __init__(self, max_payload: int = 8 << 20) -> None:
        self.server = SimulatedServer(max_payload=max_payload)
        self.dead: set[str] = set()
        """The workers that all others take for dead."""
        self.brokers: dict[str, SimulatedBroker] = {}
        self._open: list[tuple[FleetJournal, SimulatedBroker]] = []
        self.own = self.server.connect("the test")

    async def begin(self, *sessions: str) -> None:
        """Make sessions that have no events yet."""
        for session in sessions:
            record = RowRecord(GatewaySession(session, "demo", session, "/w"))
            await self.own.append(row_subject(session), record.encode())

    def journal(self, worker: str = "w1", archive: Archive | None = None) -> FleetJournal:
        """Return the journal of a worker."""
        broker = self.brokers[worker] = self.server.connect(worker)
        journal = FleetJournal(broker, worker, lambda name: name not in self.dead, archive)
        self._open.append((journal, broker))
        return journal

    def counted(self, worker: str = "w1") -> tuple[FleetJournal, CountingBroker]:
        """Return the journal of a worker, and the connection that it uses."""
        broker = self.brokers[worker] = self.server.connect(worker)
        counting: Any = CountingBroker(broker)
        journal = FleetJournal(counting, worker, lambda name: name not in self.dead)
        self._open.append((journal, broker))
        return journal, counting

    async def headers(self, session: str = "s") -> list[RunHeader]:
        """Return the headers of all messages with events."""
        return [RunHeader.of(each) for each in await self.own.read(events_subject(session), 0, 1_000_000)]

    async def close(self) -> None:
        """Close everything, as it is."""
        for journal, broker in self._open:
            await journal.close(0)
            await broker.close()
        await self.own.close()


@asynccontextmanager
async def fleet_of(*sessions: str, room: int = 8 << 20) -> AsyncIterator[JournalFleet]:
    """A fleet with these sessions, as long as the block lasts; `room` is that of a message besides its headers."""
    fleet = JournalFleet(HEADER_ROOM + room)
    try:
        await fleet.begin(*sessions)
        yield fleet
    finally:
        await fleet.close()


async def texts(journal: FleetJournal, session: str = "s", after: int = 0) -> list[bytes]:
    """Read all of a session after a number, and check that its numbers have no gap."""
    found: list[JournalEntry] = []
    while page := await journal.read(session, after + len(found)):
        found += page
    assert [entry.number for entry in found] == list(range(after + 1, after + 1 + len(found)))
    return [entry.data for entry in found]


def forget_before(server: SimulatedServer, session: str, sequence: int) -> None:
    """Remove the older messages with events of a session, as a stream with a limit does."""
    store = server._store
    entries = store._by_subject[events_subject(session)]
    old = [entry for entry in entries if entry.message.sequence < sequence]
    store._entries = [entry for entry in store._entries if entry not in old]
    store._by_subject[events_subject(session)] = [entry for entry in entries if entry not in old]
    if not store._by_subject[events_subject(session)]:
        del store._by_subject[events_subject(session)]
