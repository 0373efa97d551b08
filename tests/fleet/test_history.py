"""The history of a session of a fleet: read from any number on, from copies that may be old, from the archive; and followed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.records.formats import RowRecord, events_subject, row_subject
from antiphon.gateway.base import GatewaySession
from antiphon.journal.base import JournalEntry
from tests.fleet.journals import JournalFleet, fleet_of, forget_before, texts
from tests.limits import limit


@pytest.fixture
async def fleet() -> AsyncIterator[JournalFleet]:
    async with fleet_of("s") as fleet:
        yield fleet


@pytest.fixture
async def small() -> AsyncIterator[JournalFleet]:
    async with fleet_of("s", room=100) as fleet:
        yield fleet


# Reading.


async def _filled(fleet: JournalFleet, count: int, others: int = 0) -> None:
    """Store so many messages with one event, with some of another session between."""
    await fleet.begin("other")
    journal = fleet.journal("writer")
    lease, other = await journal.claim("s"), await journal.claim("other")
    for each in range(1, count + 1):
        await journal.append(lease, [b"%d" % each], float(each))
        if others and each % others == 0:
            await journal.append(other, [b"x"])
    await journal.release(lease)


async def test_a_number_far_behind_is_found_by_looking_at_a_few_messages(fleet: JournalFleet) -> None:
    await _filled(fleet, 3000, others=3)
    journal, broker = fleet.counted("reader")
    assert [entry.number for entry in await journal.read("s", 2200, 5)] == [2201, 2202, 2203, 2204, 2205]
    assert len(broker.calls) <= 16 and broker.given <= 400
    broker.calls.clear()
    assert (await journal.read("s", 2205, 5))[0] == JournalEntry(2206, b"2206", 2206.0)
    assert broker.calls == ["read"], "the place of the page before is known"


async def test_the_owner_looks_nothing_up_to_read_what_it_has_stored(fleet: JournalFleet) -> None:
    journal, broker = fleet.counted()
    lease = await journal.claim("s")
    for each in range(1, 1001):
        await journal.append(lease, [b"%d" % each])
    broker.calls.clear()
    assert await journal.read("s", 1000) == [] and await journal.length("s") == 1000
    assert broker.calls == []
    assert (await journal.read("s", 990))[0].data == b"991"
    assert set(broker.calls) == {"read"} and broker.given <= 320


async def test_reads_that_are_old_end_no_page_too_early(fleet: JournalFleet) -> None:
    await _filled(fleet, 100)
    fleet.server.stale = 0.9
    assert len(await texts(fleet.journal("reader"))) == 100


async def test_a_copy_that_stays_old_is_an_error_and_no_end(
    fleet: JournalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.fleet.records.history.STALE_TIMEOUT", 0.05)
    journal, broker = fleet.counted()
    await journal.append(await journal.claim("s"), [b"1"])

    async def nothing(pattern: str, after: int = 0, limit: int = 1) -> list[object]:
        return []

    monkeypatch.setattr(broker, "read", nothing)
    with pytest.raises(BrokerAway, match="too old"):
        await journal.read("s")


async def test_a_page_ends_at_its_size(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    for _ in range(6):
        await journal.append(lease, [bytes(400_000)])
    assert [entry.number for entry in await journal.read("s")] == [1, 2, 3]
    assert [entry.number for entry in await journal.read("s", 3)] == [4, 5, 6]


@pytest.mark.parametrize("has_archive", [True, False])
async def test_what_the_stream_has_forgotten_comes_from_the_archive(fleet: JournalFleet, has_archive: bool) -> None:
    await _filled(fleet, 20)
    first = (await fleet.own.read(events_subject("s")))[10]
    forget_before(fleet.server, "s", first.sequence)
    asked: list[tuple[str, int, int]] = []

    async def archive(session: str, after: int, limit: int) -> list[JournalEntry]:
        asked.append((session, after, limit))
        return [JournalEntry(number, b"%d" % number) for number in range(after + 1, after + 1 + min(limit, 4))]

    journal = fleet.journal("reader", archive if has_archive else None)
    if has_archive:
        assert await texts(journal) == [b"%d" % each for each in range(1, 21)]
        assert asked == [("s", 0, 10), ("s", 4, 6), ("s", 8, 2)]
    else:
        assert (await journal.read("s"))[0] == JournalEntry(11, b"11", 11.0)
    assert [entry.number for entry in await journal.read("s", 12)] == list(range(13, 21))


async def test_numbers_go_on_where_the_stream_has_forgotten_all_events(fleet: JournalFleet) -> None:
    await _filled(fleet, 5)
    record = RowRecord(GatewaySession("s", "demo", "s", "/w"), number=5)
    await fleet.own.append(row_subject("s"), record.encode(), replaces=True)
    forget_before(fleet.server, "s", 1_000_000)
    journal = fleet.journal()
    assert await journal.length("s") == 5 and await journal.read("s") == []
    assert await journal.append(await journal.claim("s"), [b"6"]) == 6
    assert await journal.read("s", 5) == [JournalEntry(6, b"6")]


async def test_numbers_go_on_behind_archived_events_where_the_row_is_older_than_these(fleet: JournalFleet) -> None:
    """A worker ended in a turn, none could take the session, and the time for which events are kept went by."""
    await _filled(fleet, 5)
    record = RowRecord(GatewaySession("s", "demo", "s", "/w", turn="t", turn_after=2), number=2)
    await fleet.own.append(row_subject("s"), record.encode(), replaces=True)
    forget_before(fleet.server, "s", 1_000_000)

    async def archive(session: str, after: int, limit: int) -> list[JournalEntry]:
        return [JournalEntry(number, b"%d" % number) for number in range(after + 1, min(5, after + limit) + 1)]

    journal = fleet.journal("w2", archive)
    assert await journal.append(await journal.claim("s"), [b"6"]) == 6


async def test_places_of_a_session_before_under_the_same_key_mislead_no_reader(fleet: JournalFleet) -> None:
    await _filled(fleet, 600)
    reader = fleet.journal("reader")
    assert (await reader.read("s", 500))[0].number == 501
    await fleet.own.remove(events_subject("s"))
    await _filled(fleet, 600)
    assert [entry.number for entry in await reader.read("s", 300, 2)] == [301, 302]
    assert (await reader.read("s", 550))[0].number == 551


# Tails.


async def test_a_tail_gets_what_was_stored_while_it_was_cut_off(
    fleet: JournalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.journal.base.SILENCE", 0.05)
    writer, reader = fleet.journal("w1"), fleet.journal("reader")
    lease = await writer.claim("s")
    await writer.append(lease, [b"1"])
    found: list[bytes] = []
    async with asyncio.timeout(limit()), aclosing(reader.tail("s")) as tail:  # type: ignore[type-var]
        found.append((await anext(tail)).data)
        following = asyncio.ensure_future(anext(tail))
        await writer.append(lease, [b"2"])
        found.append((await following).data)
        fleet.server.cut(fleet.brokers["reader"])
        await writer.append(lease, [b"3"])
        fleet.server.mend(fleet.brokers["reader"])
        await writer.append(lease, [b"4", b"5"])
        found += [(await anext(tail)).data for _ in range(3)]
    assert found == [b"1", b"2", b"3", b"4", b"5"]


async def test_a_tail_puts_parts_together(small: JournalFleet) -> None:
    writer, reader = small.journal("w1"), small.journal("reader")
    lease = await writer.claim("s")
    async with asyncio.timeout(limit()), aclosing(reader.tail("s")) as tail:  # type: ignore[type-var]
        following = asyncio.ensure_future(anext(tail))
        await reader.read("s")
        await writer.append(lease, [bytes(1000), b"end"])
        assert (await following).data == bytes(1000) and (await anext(tail)).data == b"end"
    assert not reader._live
