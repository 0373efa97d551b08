"""The journal of a fleet: what is stored once and for certain, in which messages, and under whose lease."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from antiphon.errors import AcpError, sentence_and_hint
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.records import queue
from antiphon.fleet.records.formats import (
    RUN,
    RowRecord,
    encode_run,
    events_subject,
    owner_of,
    owner_subject,
    row_subject,
)
from antiphon.fleet.records.queue import RowChange
from antiphon.gateway.base import GatewaySession, HubJournal
from antiphon.journal.base import Lease, StaleLease
from antiphon.store.errors import NoSuchSession, StoreError
from antiphon.store.locks import LiveElsewhere
from tests.fleet.journals import JournalFleet, fleet_of, texts
from tests.limits import limit
from tests.schedules import Schedule, World, run
from tests.waits import until


@pytest.fixture
async def fleet() -> AsyncIterator[JournalFleet]:
    async with fleet_of("s") as fleet:
        yield fleet


@pytest.fixture
async def small() -> AsyncIterator[JournalFleet]:
    async with fleet_of("s", room=100) as fleet:
        yield fleet


async def own_name(fleet: JournalFleet, session: str = "s") -> str:
    return owner_of(await fleet.own.last(owner_subject(session))).worker


def test_the_hub_can_use_it() -> None:
    used: type[HubJournal] = FleetJournal
    assert used is FleetJournal


# Messages.


async def test_what_is_given_while_a_message_is_under_way_shares_the_next_one(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    order: list[int] = []
    for each in range(50):
        journal.store(lease, [b"%d" % each], lambda number, error: order.append(number), 7.5)
        if each == 0:
            await until(lambda: fleet.brokers["w1"].unsent or order)
    await journal.flush()
    assert order == list(range(1, 51))
    assert [(header.first, header.length) for header in await fleet.headers()] == [(1, 1), (2, 49)]
    assert [entry.time for entry in await journal.read("s")] == [7.5] * 50


async def test_events_of_another_time_and_beyond_the_size_of_a_run_have_messages_of_their_own(
    fleet: JournalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "RUN_BYTES", 100)
    journal = fleet.journal()
    lease = await journal.claim("s")
    for size, at in ((60, 1.0), (40, 1.0), (1, 1.0), (1, 2.0), (500, 2.0), (1, 2.0)):
        journal.store(lease, [bytes(size)], lambda number, error: None, at)
    await journal.flush()
    found = [(header.first, header.length, header.time) for header in await fleet.headers()]
    assert found == [(1, 2, 1.0), (3, 1, 1.0), (4, 1, 2.0), (5, 1, 2.0), (6, 1, 2.0)]


async def test_sessions_do_not_wait_for_each_other(fleet: JournalFleet) -> None:
    names = [f"s{each}" for each in range(20)]
    await fleet.begin(*names)
    journal = fleet.journal()
    leases = [await journal.claim(name) for name in names]
    fleet.server.freeze(fleet.brokers["w1"])
    appends = [journal.append(lease, [bytes(100)]) for lease in leases]
    await until(lambda: fleet.brokers["w1"].unsent >= 20 * 100)
    assert journal.unstored == 20 * 100
    fleet.server.thaw(fleet.brokers["w1"])
    assert await asyncio.gather(*appends) == [1] * 20
    assert journal.unstored == 0


async def test_an_event_that_is_larger_than_a_message_is_stored_in_parts(small: JournalFleet) -> None:
    journal = small.journal()
    lease = await journal.claim("s")
    events = [b"small", bytes(range(256)) * 4, b"", b"end\n"]
    assert await asyncio.gather(*(journal.append(lease, given) for given in (events, [b"next"]))) == [4, 5]
    headers = await small.headers()
    assert headers[0].parts > 10 and {header.parts for header in headers} == {headers[0].parts}
    assert await texts(small.journal("reader")) == [*events, b"next"]
    assert [entry.number for entry in await small.journal("another").read("s", 1, 2)] == [2, 3]


async def test_parts_without_the_rest_are_not_there(small: JournalFleet) -> None:
    first = small.journal()
    lease = await first.claim("s")
    await first.append(lease, [b"before"])
    appended = first.append(lease, [bytes(1000), b"cut short"])
    while len(await small.headers()) < 4:
        pass
    small.server.cut(small.brokers["w1"], arrived=0)  # it dies between two parts
    small.dead.add("w1")
    second, reader = small.journal("w2"), small.journal("reader")
    assert await reader.length("s") == 1 and await texts(reader) == [b"before"]
    lease = await second.claim("s")
    assert await second.append(lease, [b"after"]) == 2
    assert await second.append(lease, [bytes(300)]) == 3
    assert await texts(reader) == [b"before", b"after", bytes(300)]
    small.server.mend(small.brokers["w1"])
    with pytest.raises(StaleLease):
        await appended
    assert await texts(small.journal("later")) == [b"before", b"after", bytes(300)]


async def test_a_run_that_fails_between_its_parts_is_reported_and_its_numbers_are_given_again(
    small: JournalFleet,
) -> None:
    journal, broker = small.counted()
    lease = await journal.claim("s")
    broker.failures = [None, None, AcpError("this one not")]
    failed, behind = journal.append(lease, [bytes(500)]), journal.append(lease, [b"behind"], 1.0)
    with pytest.raises(AcpError, match="this one not"):
        await failed
    with pytest.raises(AcpError, match="this one not"):  # else it would be stored before what failed
        await behind
    assert await journal.append(lease, [bytes(500), b"behind"]) == 2
    assert await texts(journal) == await texts(small.journal("reader")) == [bytes(500), b"behind"]


async def test_events_of_a_newer_version_are_refused_with_a_hint(fleet: JournalFleet) -> None:
    await fleet.own.append(events_subject("s"), encode_run([b"1"]), headers={RUN: "3 1 1 0.0 1.1 1/1 0"})
    with pytest.raises(StoreError, match="newer") as caught:
        await fleet.journal().read("s")
    assert "update" in (sentence_and_hint(caught.value)[1] or "")


async def test_a_message_without_its_header_is_damaged(fleet: JournalFleet) -> None:
    await fleet.own.append(events_subject("s"), encode_run([b"1"]))
    with pytest.raises(StoreError, match="damaged"):
        await fleet.journal().read("s")


# Answers that are lost, brokers that are away.


@pytest.mark.parametrize("stored", [True, False])
async def test_an_append_whose_answer_is_lost_is_stored_once(fleet: JournalFleet, stored: bool) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    fleet.server.lose_answer(fleet.brokers["w1"], stored=stored, count=3)
    assert await journal.append(lease, [b"1"]) == 1
    assert await journal.append(lease, [b"2"]) == 2
    assert len(await fleet.headers()) == 2 and await texts(journal) == [b"1", b"2"]


async def test_an_append_in_doubt_that_is_refused_then_is_reported_when_it_is_known_not_to_be_stored(
    fleet: JournalFleet,
) -> None:
    journal, broker = fleet.counted()
    lease = await journal.claim("s")
    fleet.server.lose_answer(fleet.brokers["w1"], stored=False)
    broker.failures = [None, AcpError("not allowed any more")]
    append = journal.append(lease, [b"1"])
    broker.calls.clear()
    with pytest.raises(AcpError, match="not allowed"):
        await append
    assert broker.calls == ["append", "last", "append", "last"]
    assert await journal.append(lease, [b"2"]) == 1
    assert await texts(journal) == [b"2"]


async def test_what_raises_behind_an_append_does_not_undo_it(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")

    def then(number: int, error: BaseException | None) -> None:
        raise ValueError("not ours")

    journal.store(lease, [b"1"], then)
    assert await journal.append(lease, [b"2"]) == 2
    assert await texts(journal) == [b"1", b"2"]


async def test_events_wait_for_a_broker_that_is_away_and_nothing_is_reported_meanwhile(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    fleet.server.stop()
    reported: list[tuple[int, BaseException | None]] = []
    for each in range(3):
        journal.store(lease, [b"%d" % each], lambda number, error: reported.append((number, error)))
    await asyncio.sleep(0.2)  # several tries
    assert reported == [] and journal.unstored == 3
    fleet.server.start()
    await journal.flush()
    assert reported == [(1, None), (2, None), (3, None)]
    assert await texts(journal) == [b"0", b"1", b"2"]


async def test_a_full_broker_is_waited_for(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    fleet.server.is_full = True
    append = journal.append(lease, [b"1"])
    await asyncio.sleep(0.1)
    assert not append.done()
    fleet.server.is_full = False
    assert await append == 1


async def _cut_for_long(world: World) -> None:
    async with fleet_of("s") as fleet:
        journal = fleet.journal()
        lease = await journal.claim("s")
        append = journal.append(lease, [b"1"])
        fleet.server.delay = (0.1, 0.1)
        await asyncio.sleep(0.05)
        fleet.server.cut(fleet.brokers["w1"], arrived=world.random.choice([0, 1]))
        await asyncio.sleep(3600)
        fleet.server.mend(fleet.brokers["w1"])
        assert await append == 1 and await journal.append(lease, [b"2"]) == 2
        assert len(await fleet.headers()) == 2 and await texts(journal) == [b"1", b"2"]


@pytest.mark.parametrize("seed", range(6))
def test_an_append_is_stored_once_when_its_name_was_forgotten_long_ago(seed: int) -> None:
    run(_cut_for_long, Schedule(seed), limit=10_000.0, logs=False)


# Leases.


async def test_a_worker_whose_place_was_taken_stores_nothing_and_is_notified(fleet: JournalFleet) -> None:
    zombie, second = fleet.journal("w1"), fleet.journal("w2")
    lost: list[str] = []
    zombie.lost = lost.append
    lease = await zombie.claim("s")
    await zombie.append(lease, [b"1"])
    fleet.server.freeze(fleet.brokers["w1"])
    fleet.dead.add("w1")
    taken = await second.claim("s")
    late = [zombie.append(lease, [b"late %d" % each]) for each in range(3)]
    assert await second.append(taken, [b"2"]) == 2
    fleet.server.thaw(fleet.brokers["w1"])
    for append in late:
        with pytest.raises(StaleLease) as caught:
            await append
        assert all(sentence_and_hint(caught.value))
    with pytest.raises(StaleLease):
        zombie.store(lease, [b"later"], lambda number, error: None)
    assert lost == ["s"] and not zombie.claimed
    assert await texts(second) == [b"1", b"2"]


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_lease_that_is_lost_while_nothing_is_appended_is_noticed(fleet: JournalFleet, is_cut: bool) -> None:
    zombie, second = fleet.journal("w1"), fleet.journal("w2")
    lost: list[str] = []
    zombie.lost = lost.append
    await zombie.claim("s")
    fleet.dead.add("w1")
    if is_cut:
        fleet.server.cut(fleet.brokers["w1"])
    await second.claim("s")
    if is_cut:
        fleet.server.mend(fleet.brokers["w1"])
    await until(lambda: lost)
    assert lost == ["s"] and not zombie.claimed and second.claimed


async def test_a_lease_that_is_taken_while_the_answer_to_an_append_is_on_its_way_is_noticed(
    fleet: JournalFleet,
) -> None:
    zombie, second = fleet.journal("w1"), fleet.journal("w2")
    lost: list[str] = []
    zombie.lost = lost.append
    lease = await zombie.claim("s")
    fleet.server.lose_answer(fleet.brokers["w1"], stored=True)
    fleet.dead.add("w1")
    first = zombie.append(lease, [b"1"])
    behind = zombie.append(lease, [b"2"], 1.0)  # of another time: a message of its own
    await second.claim("s")
    assert await first == 1, "it came before the claim"
    with pytest.raises(StaleLease):
        await behind
    await until(lambda: lost)
    assert lost == ["s"] and not zombie.claimed and await texts(second) == [b"1"]


async def test_a_lease_of_which_the_queue_is_empty_ends_though_its_last_append_came_first(fleet: JournalFleet) -> None:
    zombie, second = fleet.journal("w1"), fleet.journal("w2")
    lost: list[str] = []
    zombie.lost = lost.append
    lease = await zombie.claim("s")
    fleet.server.lose_answer(fleet.brokers["w1"], stored=True)
    fleet.dead.add("w1")
    appended = zombie.append(lease, [b"1"])
    await second.claim("s")
    assert await appended == 1
    await until(lambda: lost)
    assert lost == ["s"] and not zombie.claimed


async def test_a_lease_whose_loss_cannot_be_explained_ends_all_the_same(fleet: JournalFleet) -> None:
    zombie, broker = fleet.counted("w1")
    second = fleet.journal("w2")
    lease = await zombie.claim("s")
    fleet.server.missed = 1.0
    fleet.dead.add("w1")
    await second.claim("s")
    broker.unreadable = AcpError("this key may not read")
    with pytest.raises(StaleLease):
        await zombie.append(lease, [b"1"])
    assert not zombie.claimed


async def test_a_session_of_a_worker_that_lives_is_not_taken(fleet: JournalFleet) -> None:
    await fleet.journal("w1").claim("s", by="gateway")
    with pytest.raises(LiveElsewhere) as caught:
        await fleet.journal("w2").claim("s")
    assert "worker w1" in caught.value.sentence and caught.value.hint


async def test_the_epoch_of_another_worker_can_be_replaced_by_name(fleet: JournalFleet) -> None:
    lease = await fleet.journal("w1").claim("s")
    second = fleet.journal("w2")
    with pytest.raises(StaleLease):
        await second.claim("s", lease.epoch - 1)
    assert (await second.claim("s", lease.epoch)).epoch > lease.epoch


async def test_a_released_session_has_no_epoch_to_replace(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    await journal.release(lease)
    assert await own_name(fleet) == ""
    with pytest.raises(StaleLease):
        await journal.claim("s", lease.epoch)


async def test_of_workers_that_claim_at_the_same_time_one_gets_the_session(fleet: JournalFleet) -> None:
    fleet.server.delay = (0.0, 0.01)
    journals = [fleet.journal(f"w{each}") for each in range(5)]
    found = await asyncio.gather(*(journal.claim("s") for journal in journals), return_exceptions=True)
    (winner,) = [each for each in found if isinstance(each, Lease)]
    assert all(isinstance(each, Lease | LiveElsewhere) for each in found)
    assert await journals[found.index(winner)].append(winner, [b"1"]) == 1


@pytest.mark.parametrize("stored", [True, False])
async def test_a_claim_whose_answer_is_lost_is_known_by_its_nonce(fleet: JournalFleet, stored: bool) -> None:
    journal = fleet.journal()
    fleet.server.lose_answer(fleet.brokers["w1"], stored=stored, count=2)
    lease = await journal.claim("s")
    assert await journal.append(lease, [b"1"]) == 1
    last = await fleet.own.last(owner_subject("s"))
    assert last is not None and last.sequence == lease.epoch


async def test_a_record_of_this_worker_without_a_lease_is_no_obstacle(fleet: JournalFleet) -> None:
    await fleet.journal("w1").claim("s")
    again = fleet.journal("w1")  # as if the claim before had been given up before its answer came
    assert await again.append(await again.claim("s"), [b"1"]) == 1


async def test_a_claim_that_is_cancelled_half_way_leaves_the_session_free(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    fleet.server.delay = (0.01, 0.01)
    claim = asyncio.create_task(journal.claim("s"))
    while await own_name(fleet) != "w1":
        assert not claim.done()
    claim.cancel()
    await asyncio.wait([claim])
    async with asyncio.timeout(limit()):
        while await own_name(fleet):
            pass
    await fleet.journal("w2").claim("s")


@pytest.mark.parametrize("was_there", [True, False])
async def test_a_session_without_a_row_cannot_be_claimed_and_nothing_is_left_of_the_try(
    fleet: JournalFleet, was_there: bool
) -> None:
    if was_there:
        record = RowRecord(GatewaySession("t", "demo", "t", "/w"), deleted=True)
        await fleet.own.append(row_subject("t"), record.encode())
    journal = fleet.journal()
    with pytest.raises(NoSuchSession):
        await journal.claim("t")
    assert await fleet.own.last(owner_subject("t")) is None and not journal.claimed


@pytest.mark.parametrize("stale", ["stale", "stale_leader"])
async def test_a_claim_begins_behind_the_last_event_even_where_reads_are_old(fleet: JournalFleet, stale: str) -> None:
    first = fleet.journal("w1")
    await first.append(await first.claim("s"), [b"1", b"2"])
    fleet.dead.add("w1")
    setattr(fleet.server, stale, 1.0)
    second = fleet.journal("w2")
    assert await second.append(await second.claim("s"), [b"3"]) == 3
    assert await second.length("s") == 3


async def test_a_release_waits_for_what_was_given_and_is_stored_when_the_broker_is_there_again(
    fleet: JournalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.fleet.journal.CLAIM_TIMEOUT", 0.05)
    journal = fleet.journal()
    lease = await journal.claim("s")
    append = journal.append(lease, [b"1"])
    await journal.release(lease)
    assert append.result() == 1 and await own_name(fleet) == ""
    lease = await journal.claim("s")
    fleet.server.cut(fleet.brokers["w1"])
    await journal.release(lease)
    assert await own_name(fleet) == "w1"
    fleet.server.mend(fleet.brokers["w1"])
    async with asyncio.timeout(limit()):
        while await own_name(fleet):
            pass
    await fleet.journal("w2").claim("s")


async def test_a_closed_journal_reports_what_it_could_not_store_and_takes_no_more(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    lease = await journal.claim("s")
    stored = journal.append(lease, [b"1"])
    await journal.close()
    assert stored.result() == 1
    other = fleet.journal("w2")
    fleet.dead.add("w1")
    lease = await other.claim("s")
    fleet.server.stop()
    waiting = other.append(lease, [b"2"])
    await other.close(0.01)
    with pytest.raises(StaleLease):
        await waiting
    with pytest.raises(StaleLease):
        other.store(lease, [b"3"], lambda number, error: None)
    with pytest.raises(StoreError):
        await other.claim("s")
    await other.release(lease)


# Rows in the queue.


class _Rows:
    """Makes a row of the number of events before it."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, bytes]] = []

    async def message(self, key: str, change: RowChange, number: int) -> bytes | None:
        return b"%d %s" % (number, b"-" if change.row is None else change.row.title.encode())

    def stored(self, key: str, sequence: int, data: bytes) -> None:
        self.rows.append((sequence, data))


def _titled(title: str) -> RowChange:
    return RowChange(GatewaySession("s", "demo", "s", "/w", title=title))


async def test_a_row_is_stored_behind_the_events_before_it_and_before_those_behind_it(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    rows = journal.rows = _Rows()
    assert not journal.save("s", _titled("no lease"))
    lease = await journal.claim("s")
    first = journal.append(lease, [b"1"])
    assert journal.save("s", _titled("a")) and journal.save("s", _titled("b"))
    second = journal.append(lease, [b"2"])
    assert journal.save("s", _titled("c"))
    await journal.flush()
    assert (first.result(), second.result()) == (1, 2)
    sequences = [message.sequence for message in await fleet.own.read(events_subject("s"))]
    assert [data for _, data in rows.rows] == [b"1 b", b"2 c"]
    assert sequences[0] < rows.rows[0][0] < sequences[1] < rows.rows[1][0]


async def test_a_session_that_is_released_has_the_number_of_its_last_event_in_its_row(fleet: JournalFleet) -> None:
    journal = fleet.journal()
    rows = journal.rows = _Rows()
    lease = await journal.claim("s")
    await journal.append(lease, [b"1", b"2"])
    await journal.release(lease)
    assert [data for _, data in rows.rows] == [b"2 -"]
    last = await fleet.own.last(row_subject("s"))
    assert last is not None and last.data == b"2 -"
