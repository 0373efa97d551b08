"""Random schedules of processes that claim, write, release and delete the same sessions, while connections and answers are lost."""

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon.errors import AcpError
from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.records.formats import RowRecord, events_subject, row_subject
from antiphon.gateway.base import GatewaySession
from tests.fleet.row_copies import CopyFleet, RowCopy, copies_in, until_equal
from tests.limits import limit
from tests.waits import until

ROUNDS = 25


class _RowWorld:
    """The processes, the sessions that were made, and those whose deletion was confirmed."""

    def __init__(self, fleet: CopyFleet, chance: random.Random) -> None:
        self.fleet, self.chance = fleet, chance
        self.copies: list[RowCopy] = []
        self.made: list[GatewaySession] = []
        self.deleted: set[str] = set()

    async def work(self, copy: RowCopy) -> None:
        for each in range(ROUNDS):
            await asyncio.sleep(self.chance.random() * 0.004)
            with suppress(BrokerAway):
                await self._act(copy, each)

    async def _act(self, copy: RowCopy, each: int) -> None:
        kind = self.chance.choice(["create", "write", "write", "write", "delete", "delete", "cut"])
        if kind == "cut":
            self.fleet.server.cut(copy.broker)
            await asyncio.sleep(self.chance.random() * 0.01)
            self.fleet.server.mend(copy.broker)
        elif kind == "create" or not self.made:
            self.made.append(await copy.rows.create("demo", f"{copy.name} {each}", "/w"))
        elif kind == "delete":
            key = self.chance.choice(self.made[-2:]).key
            await copy.rows.delete(key)
            self.deleted.add(key)
        else:
            await self._write(copy, self.chance.choice(self.made[-2:]), f"{copy.name} {each}")

    async def _write(self, copy: RowCopy, row: GatewaySession, title: str) -> None:
        try:
            lease = await copy.journal.claim(row.key)
        except BrokerAway:
            raise
        except AcpError:
            return
        with suppress(AcpError):
            copy.rows.save(replace(row, title=title))
            append = copy.journal.append(lease, [title.encode()])
            await asyncio.sleep(self.chance.random() * 0.004)
            await append
        await copy.journal.release(lease)


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(3, 12))])
async def test_copies_agree_with_the_broker_and_nothing_is_left_of_deleted_sessions(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with asyncio.timeout(limit(120)), copies_in(tmp_path, seed) as fleet:
        world = _RowWorld(fleet, chance)
        world.copies += [await fleet.start(name) for name in ("w1", "w2", "w3")]
        for copy in world.copies:
            copy.journal.is_alive = lambda worker: chance.random() < 0.7
        fleet.server.delay = (0.0, chance.choice([0.0, 0.002]))
        fleet.server.unsure = chance.choice([0.0, 0.1])
        fleet.server.stale = chance.choice([0.0, 0.3])
        await asyncio.gather(*map(world.work, world.copies))
        fleet.server.unsure = fleet.server.stale = 0.0
        for copy in world.copies:
            await copy.journal.flush()
            copy.rows._wakes.set()
            await until(lambda rows=copy.rows: not rows._unwanted and not rows._unremoved)  # type: ignore[misc]
        await _check(world)


async def _check(world: _RowWorld) -> None:
    broker = world.fleet.server.connect("the test")
    titles: dict[str, str] = {}
    for row in world.made:
        last = await broker.last(row_subject(row.key))
        record = None if last is None else RowRecord.of(last)
        assert record is not None
        if row.key in world.deleted:
            assert record.deleted
        if record.deleted:
            assert await broker.last(events_subject(row.key)) is None, "events of a deleted session are left"
        else:
            titles[row.key] = record.row.title
    for copy in world.copies:
        await copy.rows._read(is_begin=True)
        await until_equal(copy, dict.fromkeys(titles, False))
        assert {row.key: row.title for row in await copy.rows.all()} == titles
    await broker.close()
