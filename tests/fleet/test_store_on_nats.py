"""The journal and the rows of a fleet on a real NATS server: each behaviour once. What they do in all combinations is tested in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon.fleet.broker import Broker
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.records.formats import RowRecord, RunHeader, events_subject, owner_subject, row_subject
from antiphon.fleet.rows import FleetRows
from antiphon.gateway.base import GatewaySession, SessionQuery
from antiphon.gateway.data import GatewayData
from antiphon.journal.base import JournalEntry, StaleLease
from antiphon.store.errors import NoSuchSession
from tests.fleet.brokers import NatsWorld, nats_world
from tests.fleet.servers import NatsServer, nats_server
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats"), max_payload=64 * 1024) as server:
        yield server


@pytest.fixture
async def world(server: NatsServer) -> AsyncIterator[NatsWorld]:
    async with asyncio.timeout(limit(120)), nats_world(lambda: server.port) as world:
        yield world


async def begin(broker: Broker, *sessions: str) -> None:
    for session in sessions:
        await broker.append(row_subject(session), RowRecord(GatewaySession(session, "demo", session, "/w")).encode())


async def texts(journal: FleetJournal, session: str = "s", after: int = 0) -> list[bytes]:
    found: list[JournalEntry] = []
    while page := await journal.read(session, after + len(found)):
        found += page
    assert [entry.number for entry in found] == list(range(after + 1, after + 1 + len(found)))
    return [entry.data for entry in found]


async def test_large_events_are_stored_in_parts_and_read_from_any_number(world: NatsWorld) -> None:
    broker, other = await world.connect("w1"), await world.connect("reader")
    await begin(broker, "s")
    journal = FleetJournal(broker, "w1")
    lease = await journal.claim("s")
    events = [b"small", bytes(range(256)) * 1000, b"", b"end\n"]
    assert await journal.append(lease, events, 5.5) == 4
    assert await journal.append(lease, [b"next"], 6.5) == 5
    reader = FleetJournal(other, "reader")
    assert await texts(reader) == [*events, b"next"]
    assert await reader.read("s", 3) == [JournalEntry(4, b"end\n", 5.5), JournalEntry(5, b"next", 6.5)]
    headers = [RunHeader.of(message) for message in await other.read(events_subject("s"))]
    assert headers[0].parts > 3 and headers[1].begin > 0
    await journal.close()


async def test_a_number_of_a_long_session_is_found_among_others(world: NatsWorld) -> None:
    broker = await world.connect("w1")
    await begin(broker, "s", "other")
    journal = FleetJournal(broker, "w1")
    lease, other = await journal.claim("s"), await journal.claim("other")
    for each in range(1, 1501):
        await asyncio.gather(journal.append(lease, [b"%d" % each]), journal.append(other, [b"x"]))
    reader = FleetJournal(await world.connect("reader"), "reader")
    for after in (1200, 3, 700, 1499):
        assert (await reader.read("s", after, 2))[0] == JournalEntry(after + 1, b"%d" % (after + 1))
    assert await reader.length("s") == 1500 and await reader.read("s", 1500) == []
    await journal.close()


async def test_a_worker_that_was_cut_off_stores_nothing_when_it_is_back(world: NatsWorld) -> None:
    dead: set[str] = set()
    cut, broker = await world.connect("w1"), await world.connect("w2")
    await begin(broker, "s", "idle")
    first, second = (
        FleetJournal(each, name, lambda worker: worker not in dead) for each, name in ((cut, "w1"), (broker, "w2"))
    )
    lost: list[str] = []
    first.lost = lost.append
    lease = await first.claim("s")
    await first.claim("idle")
    assert await first.append(lease, [b"1"]) == 1
    world.cut(cut)
    late = [first.append(lease, [b"late %d" % each], float(each)) for each in range(3)]
    dead.add("w1")
    taken = await second.claim("s")
    await second.claim("idle")
    assert await second.append(taken, [b"2"]) == 2
    await world.mend(cut)
    for append in late:
        with pytest.raises(StaleLease):
            await append
    await until(lambda: len(lost) == 2)
    assert sorted(lost) == ["idle", "s"] and not first.claimed
    assert await texts(second) == [b"1", b"2"]
    await first.close()
    await second.close()


async def test_nothing_is_lost_or_doubled_when_connections_break_while_events_are_stored(world: NatsWorld) -> None:
    cut, broker = await world.connect("w1"), await world.connect("reader")
    await begin(broker, "s")
    journal, reader = FleetJournal(cut, "w1"), FleetJournal(broker, "reader")
    lease = await journal.claim("s")
    followed: list[bytes] = []

    async def follow() -> None:
        async with aclosing(reader.tail("s")) as tail:  # type: ignore[type-var]
            async for entry in tail:
                followed.append(entry.data)  # noqa: PERF401

    following = asyncio.create_task(follow())
    appends = []
    for each in range(300):
        appends.append(journal.append(lease, [b"%d" % each]))
        await asyncio.sleep(0.001)
        if each % 60 == 30:
            world.cut(cut)
        if each % 60 == 45:
            await world.mend(cut)
    assert await asyncio.gather(*appends) == list(range(1, 301))
    expected = [b"%d" % each for each in range(300)]
    assert await texts(reader) == expected
    await until(lambda: len(followed) >= 300)
    assert followed == expected
    following.cancel()
    await asyncio.wait([following])
    await journal.close()


async def test_nothing_is_lost_or_doubled_when_the_server_is_killed_and_started_again(tmp_path: Path) -> None:
    with nats_server(tmp_path, sync_interval="always") as server:
        broker = await connect_broker(server.url, name="w1")
        await begin(broker, "s")
        journal = FleetJournal(broker, "w1")
        lease = await journal.claim("s")
        appends = []
        for each in range(400):
            appends.append(journal.append(lease, [b"%d" % each]))
            await asyncio.sleep(0.001)
            if each == 200:
                await asyncio.to_thread(server.kill)
            if each == 300:
                await asyncio.to_thread(server.restart)
        async with asyncio.timeout(limit()):
            assert await asyncio.gather(*appends) == list(range(1, 401))
        assert await texts(journal) == [b"%d" % each for each in range(400)]
        await journal.release(lease)
        await journal.close()
        await broker.close()


# Rows.


@asynccontextmanager
async def process(broker: Broker, directory: Path, name: str) -> "AsyncIterator[tuple[FleetJournal, FleetRows]]":
    """A process with a copy of the rows."""
    async with GatewayData.open(directory / name) as data:
        journal = FleetJournal(broker, name)
        rows = FleetRows(broker, journal, data)
        await rows.start()
        try:
            yield journal, rows
        finally:
            await journal.close()
            await rows.close()


async def test_rows_are_copied_shown_deleted_and_caught_up_with(world: NatsWorld, tmp_path: Path) -> None:
    cut, broker = await world.connect("g1"), await world.connect("w1")
    async with process(broker, tmp_path, "w1") as (journal, rows), process(cut, tmp_path, "g1") as (_, copy):
        changed: list[tuple[str, bool]] = []
        copy.changed = lambda row, key: changed.append((key, row is None))
        older, newer = [await rows.create("demo", "a1", "/w", hidden=hidden) for hidden in (False, True)]
        await journal.claim(older.key)
        lease = await journal.claim(newer.key)
        await journal.append(lease, [b"1", b"2"])
        await until(lambda: (newer.key, False) in changed)
        assert await copy.find("demo", "a1") == older
        world.cut(cut)
        await rows.show(newer.key)
        rows.save(replace(newer, title="New", turn="t1"))
        await journal.flush()
        await rows.delete(older.key)
        await world.mend(cut)
        await until(lambda: (older.key, True) in changed)
        found = await copy.find("demo", "a1")
        assert found is not None and (found.key, found.title, found.turn) == (newer.key, "New", "t1")
        assert [each.number for each in await copy.listed(SessionQuery(("demo",)))] == [2]
        assert [await broker.last(subject(older.key)) for subject in (events_subject, owner_subject)] == [None, None]
        with pytest.raises(NoSuchSession):
            await journal.claim(older.key)


async def test_a_copy_starts_from_its_file_and_anew_on_another_server(world: NatsWorld, tmp_path: Path) -> None:
    broker = await world.connect("w1")
    async with process(broker, tmp_path, "w1") as (_, rows):
        row = await rows.create("demo", "a1", "/w")
    async with process(broker, tmp_path, "w1") as (_, rows):
        assert [each.key for each in await rows.all()] == [row.key]
    with nats_server(tmp_path / "other") as other:
        another = await connect_broker(other.url, name="w1")
        async with process(another, tmp_path, "w1") as (_, rows):
            assert await rows.all() == []
        await another.close()
