"""The implementations of the journal that the contract is checked against. A new one adds an entry to `IMPLEMENTATIONS`; one that needs a server has a fixture."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from antiphon.fleet.broker import Broker
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.records.formats import RowRecord, events_subject, owner_subject, row_subject
from antiphon.fleet.simulation import SimulatedServer
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.data import GatewayData
from antiphon.journal.base import Journal
from antiphon.journal.runs import RunJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore

__all__ = ["IMPLEMENTATIONS", "Place", "nats_place"]


class Place(Protocol):
    """Where the journals of one test are."""

    def opened(self) -> AbstractAsyncContextManager[Journal]:
        """A journal as one more process would open it."""

    async def begin(self, session: str) -> None:
        """Make a session that has no events yet."""

    async def delete(self, session: str) -> None:
        """Delete a session while it may be claimed."""


class SqlitePlace:
    """A state directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Journal]:
        async with open_database(self._directory) as database:
            yield SqliteJournal(SessionStore(database), self._directory)

    async def begin(self, session: str) -> None:
        async with open_database(self._directory) as database:
            await SessionStore(database).create(session, "antiphon", "/w")

    async def delete(self, session: str) -> None:
        async with open_database(self._directory) as database:
            await SessionStore(database).delete(session)


class RunPlace:
    """The directory of a gateway. Another process cannot have it: what another one would see is seen by another journal of ours."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: GatewayData | None = None

    @asynccontextmanager
    async def _data(self) -> AsyncIterator[GatewayData]:
        if self._open is not None:
            yield self._open
            return
        async with GatewayData.open(self._directory) as data:
            self._open = data
            try:
                yield data
            finally:
                self._open = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Journal]:
        async with self._data() as data:
            yield RunJournal(data.database)

    async def begin(self, session: str) -> None:
        async with self._data() as data:
            row = await data.create("demo", session, "/w")
            await data.database.run(
                lambda connection: connection.execute("UPDATE session SET key = ? WHERE key = ?", (session, row.key))
            )

    async def delete(self, session: str) -> None:
        async with self._data() as data:
            await data.delete(session)


class FleetPlace:
    """A broker. Each journal is that of another worker, with a connection of its own."""

    def __init__(self, connected: Callable[[], AbstractAsyncContextManager[Broker]]) -> None:
        self._connected = connected
        self._workers = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Journal]:
        async with self._connected() as broker:
            self._workers += 1
            journal = FleetJournal(broker, f"worker-{self._workers}")
            try:
                yield journal
            finally:
                await journal.close()

    async def begin(self, session: str) -> None:
        async with self._connected() as broker:
            record = RowRecord(GatewaySession(session, "demo", session, "/w"))
            await broker.append(row_subject(session), record.encode())

    async def delete(self, session: str) -> None:
        async with self._connected() as broker:
            for subject in (row_subject(session), owner_subject(session), events_subject(session)):
                await broker.remove(subject)


def simulated_place(directory: Path) -> FleetPlace:
    """Return a broker in memory."""
    server = SimulatedServer()

    @asynccontextmanager
    async def connected() -> AsyncIterator[Broker]:
        broker = server.connect()
        try:
            yield broker
        finally:
            await broker.close()

    return FleetPlace(connected)


async def nats_place(url: str) -> FleetPlace:
    """Return a NATS server that runs, with nothing stored."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Broker]:
        broker = await connect_broker(url, name="test")
        try:
            yield broker
        finally:
            await broker.close()

    async with connected() as broker:
        await broker.remove("acp.s.>")
    return FleetPlace(connected)


IMPLEMENTATIONS: Final[dict[str, Callable[[Path], Place]]] = {
    "sqlite": SqlitePlace,
    "runs": RunPlace,
    "fleet": simulated_place,
}
