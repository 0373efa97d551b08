"""Processes of a fleet that each have a copy of the rows, on a broker in memory."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.rows import FleetRows
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.data import GatewayData
from antiphon.journal.base import Lease
from tests.limits import limit
from tests.waits import until

__all__ = ["CopyFleet", "RowCopy", "copies_in", "until_equal", "until_seen"]


class RowCopy:
    """One process: its connection, its journal, its file and its rows."""

    def __init__(self, fleet: "CopyFleet", name: str, data: GatewayData) -> None:
        self.name = name
        self.data = data
        self.broker: SimulatedBroker = fleet.server.connect(name)
        self.journal = FleetJournal(self.broker, name, lambda worker: worker not in fleet.dead)
        self.rows = FleetRows(self.broker, self.journal, data)
        self.rows._forgot = math.inf  # by the clock of the simulated broker all that was deleted is old
        self.changed: list[tuple[str, str | None]] = []
        """The keys and titles of the rows that changed; None: deleted."""
        self.removed: list[tuple[str, str, str]] = []
        self.lost: list[str] = []
        self.rows.changed = lambda row, key: self.changed.append((key, None if row is None else row.title))
        self.rows.removed = lambda *removed: self.removed.append(removed)
        self.journal.lost = self.lost.append

    async def begin(
        self, session_id: str, *, agent: str = "demo", hidden: bool = False
    ) -> tuple[GatewaySession, Lease]:
        """Store a new session and claim it."""
        row = await self.rows.create(agent, session_id, "/w", hidden=hidden)
        return row, await self.journal.claim(row.key)

    async def archived(self) -> dict[str, bool]:
        """Return the keys of all rows that are here, and whether they are archived."""
        return {row.key: row.archived for row in await self.rows.all()}

    async def close(self) -> None:
        """End the process in order."""
        await self.journal.close(limit())
        await self.rows.close()
        await self.broker.close()


class CopyFleet:
    """A broker, and processes that a test starts and ends."""

    def __init__(self, directory: Path, seed: int = 0) -> None:
        self.server = SimulatedServer(seed=seed)
        self.dead: set[str] = set()
        self._directory = directory
        self._stacks: dict[str, AsyncExitStack] = {}

    async def start(self, name: str, *, follows: bool = True) -> RowCopy:
        """Start a process. One of the same name has the same file."""
        stack = AsyncExitStack()
        data = await stack.enter_async_context(GatewayData.open(self._directory / name))
        copy = RowCopy(self, name, data)
        stack.push_async_callback(copy.close)
        self._stacks[name] = stack
        if follows:
            await copy.rows.start()
        return copy

    async def stop(self, name: str) -> None:
        """End a process."""
        await self._stacks.pop(name).aclose()

    async def close(self) -> None:
        """End all of them."""
        for name in (*self._stacks,):
            await self.stop(name)


@asynccontextmanager
async def copies_in(directory: Path, seed: int = 0) -> AsyncIterator[CopyFleet]:
    """A fleet, as long as the block lasts."""
    fleet = CopyFleet(directory, seed)
    try:
        yield fleet
    finally:
        await fleet.close()


async def until_seen(copy: RowCopy, key: str, title: str | None) -> None:
    """Wait until a copy has a row with this title; None: until it does not have it any more."""
    await until(lambda: (key, title) in copy.changed)


async def until_equal(copy: RowCopy, archived: dict[str, bool]) -> None:
    """Wait until a copy has these rows, archived or not."""
    async with asyncio.timeout(limit()):
        while await copy.archived() != archived:  # noqa: ASYNC110 - what others write has no event here
            await asyncio.sleep(0.01)
