"""The archive of a fleet: finished turns outlive what the broker keeps, in every gateway, and leave with their session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from antiphon.fleet.archive import ARCHIVE, FleetArchive, read_archive
from antiphon.fleet.broker import BrokerAway, StoredMessage
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.records.formats import RUN, events_subject, name_of
from antiphon.journal.base import JournalEntry
from antiphon.store.errors import StoreError
from tests.fleet.journals import forget_before
from tests.fleet.row_copies import CopyFleet, RowCopy, copies_in, until_seen
from tests.limits import limit


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[CopyFleet]:
    async with asyncio.timeout(limit(60)), copies_in(tmp_path) as fleet:
        yield fleet


@asynccontextmanager
async def archive_of(copy: RowCopy) -> AsyncIterator[FleetArchive]:
    """The archive of a gateway, which copies what is new."""
    archive = FleetArchive(copy.broker, copy.data, copy.journal.read)
    copy.rows.changed = lambda row, key: archive.note(row) if row is not None else None
    await archive.start()
    try:
        yield archive
    finally:
        await archive.close()


def entries(count: int, first: int = 1) -> list[JournalEntry]:
    return [JournalEntry(number, b"%d" % number, float(number // 2)) for number in range(first, first + count)]


async def turn(worker: RowCopy, session: str, count: int) -> str:
    """Begin a session, store events of several times in it, and end its turn."""
    row, lease = await worker.begin(session)
    for entry in entries(count):
        await worker.journal.append(lease, [entry.data], entry.time)
    worker.rows.save(replace(row, title="done", turn="", updated=5.0))
    await worker.journal.flush()
    return row.key


async def test_a_finished_turn_is_copied_with_its_numbers_and_times(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    async with archive_of(gateway) as archive:
        key = await turn(worker, "s", 7)
        await archive.copy(key)
        assert await gateway.data.journal.read(key) == entries(7)
        await archive.copy(key)  # nothing is new
        assert await gateway.data.journal.length(key) == 7


async def test_a_turn_that_runs_is_not_copied_before_its_end(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("s")
    worker.rows.save(replace(row, title="runs", turn="t1"))
    await worker.journal.append(lease, [b"1"])
    async with archive_of(gateway) as archive:
        found = await gateway.rows.get(row.key)
        assert found is not None
        archive.note(replace(found, turn="t1"))
        await archive.idle()
        archive.note(replace(found, turn=""))
        await archive.idle()
        assert await gateway.data.journal.length(row.key) == 1


async def test_a_turn_that_goes_on_for_long_is_copied_meanwhile(
    fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run, or wait for a person, for longer than the broker keeps its events."""
    monkeypatch.setattr("antiphon.fleet.archive.RUNNING_INTERVAL", 0.02)
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    async with archive_of(gateway) as archive:
        row, lease = await worker.begin("s")
        worker.rows.save(replace(row, title="runs", turn="t1"))
        for entry in entries(4):
            await worker.journal.append(lease, [entry.data], entry.time)
        async with asyncio.timeout(limit()):
            while await gateway.data.journal.length(row.key) < 4:  # noqa: ASYNC110 - what is copied has no event
                await asyncio.sleep(0.01)
        forget_before(fleet.server, row.key, 10**9)
        await worker.journal.append(lease, [entry.data for entry in entries(1, 5)], 2.0)
        await archive.copy(row.key)
        assert [entry.number for entry in await gateway.data.journal.read(row.key)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("knows_parts", [True, False])
async def test_an_archived_event_that_is_larger_than_a_message_is_given_in_parts(
    fleet: CopyFleet, knows_parts: bool, caplog: pytest.LogCaptureFixture
) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("s")
    large = [bytes([number]) * 40_000 for number in range(3)]
    for number, data in enumerate((b"small", *large, b"last"), 1):
        await worker.journal.append(lease, [data], float(number))
    async with archive_of(gateway) as archive:
        await archive.copy(row.key)
        gateway.broker.max_payload = 10_000
        if not knows_parts:
            question = msgspec.msgpack.encode([row.key, 1, 10])
            with pytest.raises(BrokerAway):
                await worker.broker.request(ARCHIVE, question, 0.05)
            assert "larger than" in caplog.text
            return
        found: list[JournalEntry] = []
        while page := await read_archive(worker.broker, row.key, len(found), 10):
            found += page
    assert [(each.number, each.data, each.time) for each in found] == [
        (number, data, float(number)) for number, data in enumerate((b"small", *large, b"last"), 1)
    ]


async def test_a_gateway_that_starts_copies_what_it_has_missed(fleet: CopyFleet) -> None:
    worker = await fleet.start("w1")
    key = await turn(worker, "s", 5)
    gateway = await fleet.start("g1")
    async with archive_of(gateway) as archive:
        await archive.idle()
        assert await gateway.data.journal.read(key) == entries(5)


async def test_a_worker_reads_what_the_broker_has_forgotten_from_a_gateway(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    key = await turn(worker, "s", 9)
    async with archive_of(gateway) as archive:
        await archive.idle()
        await archive.copy(key)
        messages = await worker.broker.read(events_subject(key), limit=1000)
        forget_before(fleet.server, key, messages[5].sequence)
        reader = FleetJournal(worker.broker, "w2", archive=partial(read_archive, worker.broker))
        found: list[JournalEntry] = []
        while page := await reader.read(key, len(found), 4):
            found += page
        assert found == entries(9)
        without = FleetJournal(worker.broker, "w3")
        assert [entry.number for entry in await without.read(key, 0, 100)][:1] != [1]


async def test_another_gateway_gives_what_was_forgotten_before_it_was_copied(fleet: CopyFleet) -> None:
    worker, first = await fleet.start("w1"), await fleet.start("g1")
    key = await turn(worker, "s", 6)
    async with archive_of(first) as kept:
        await kept.copy(key)
        forget_before(fleet.server, key, 10**9)
        second = await fleet.start("g2")
        archive = FleetArchive(second.broker, second.data, partial(read_archive, second.broker))
        await archive.copy(key)
        assert await second.data.journal.read(key) == entries(6)


async def test_a_gateway_that_has_nothing_of_a_session_hands_the_question_to_one_that_has(fleet: CopyFleet) -> None:
    worker, first = await fleet.start("w1"), await fleet.start("g1")
    key = await turn(worker, "s", 6)
    async with archive_of(first) as kept:
        await kept.copy(key)
        forget_before(fleet.server, key, 10**9)
        second = await fleet.start("g2")
        async with archive_of(second):
            for _ in range(20):
                assert await read_archive(worker.broker, key, 0, 100) == entries(6)
            assert await read_archive(worker.broker, "unknown", 0, 100) == []


async def test_a_session_whose_beginning_is_gone_everywhere_is_not_copied_with_other_numbers(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    key = await turn(worker, "s", 6)
    messages = await worker.broker.read(events_subject(key), limit=1000)
    forget_before(fleet.server, key, messages[3].sequence)
    archive = FleetArchive(gateway.broker, gateway.data, gateway.journal.read)
    await archive.copy(key)
    assert await gateway.data.journal.read(key) == []


async def test_a_deleted_session_leaves_the_archive(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    key = await turn(worker, "s", 3)
    archive = FleetArchive(gateway.broker, gateway.data, gateway.journal.read)
    await archive.copy(key)
    await worker.rows.delete(key)
    await until_seen(gateway, key, None)
    assert await gateway.data.journal.read(key) == []


async def test_a_session_that_cannot_be_copied_keeps_no_other_from_being_copied(
    fleet: CopyFleet, caplog: pytest.LogCaptureFixture
) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    bad = await turn(worker, "bad", 1)
    read = gateway.journal.read

    async def broken(key: str, after: int, limit: int) -> list[JournalEntry]:
        if key == bad:
            raise ValueError("an error that was not thought of")
        return await read(key, after, limit)

    archive = FleetArchive(gateway.broker, gateway.data, broken)
    await until_seen(gateway, bad, "done")
    await archive.start()
    try:
        await archive.idle()
        good = await turn(worker, "good", 3)
        await until_seen(gateway, good, "done")
        row = await gateway.rows.get(good)
        assert row is not None
        archive.note(row)
        await archive.idle()
        assert await gateway.data.journal.read(good) == entries(3)
        assert f"session `{bad}` is not archived yet" in caplog.text
    finally:
        await archive.close()


async def test_a_request_for_archived_events_that_makes_no_sense_is_answered(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    async with archive_of(gateway):
        assert await read_archive(worker.broker, "s", 2**63, 10) == []
        assert await worker.broker.request(ARCHIVE, b"\xc1", limit()) == msgspec.msgpack.encode([])


async def test_events_of_a_format_that_is_no_number_are_damaged(fleet: CopyFleet) -> None:
    worker = await fleet.start("w1")
    await worker.broker.append(events_subject("k"), b"", headers={RUN: "x 1 1 0.0 n 1/1 0"})
    with pytest.raises(StoreError, match="damaged"):
        await worker.journal.read("k")
    assert name_of(StoredMessage(events_subject("k"), 1, b"", {RUN: "x"}, 0.0)) == ""
