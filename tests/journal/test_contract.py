"""The contract of a journal, checked for every implementation."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from antiphon.errors import sentence_and_hint
from antiphon.journal import base
from antiphon.journal.base import Journal, JournalEntry, Lease, StaleLease
from antiphon.store.errors import NoSuchSession
from antiphon.store.locks import LiveElsewhere
from tests.fleet.servers import nats_server
from tests.journal.implementations import IMPLEMENTATIONS, Place, nats_place

LIMIT = 30.0


@pytest.fixture(scope="module")
def nats_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server.url


@pytest.fixture(params=[*IMPLEMENTATIONS, pytest.param("nats", marks=pytest.mark.slow)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "nats":
        return await nats_place(request.getfixturevalue("nats_url"))
    return IMPLEMENTATIONS[request.param](tmp_path)


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[Journal]:
    await place.begin("s")
    async with place.opened() as journal:
        yield journal


def numbered(count: int, first: int = 1) -> list[JournalEntry]:
    return [JournalEntry(number, b"%d" % number) for number in range(first, first + count)]


def data(entries: list[JournalEntry]) -> list[bytes]:
    return [entry.data for entry in entries]


async def taken(journal: Journal, count: int, after: int = 0, session: str = "s") -> list[JournalEntry]:
    """The first entries of a tail."""
    found: list[JournalEntry] = []
    async with asyncio.timeout(LIMIT), aclosing(journal.tail(session, after)) as tail:  # type: ignore[type-var]
        async for entry in tail:
            found.append(entry)
            if len(found) == count:
                break
    return found


# Append and read.


async def test_numbers_begin_with_one_and_have_no_gap(journal: Journal) -> None:
    lease = await journal.claim("s")
    assert await journal.append(lease, [b"1"]) == 1
    assert await journal.append(lease, [b"2", b"3"]) == 3
    assert await journal.read("s") == numbered(3)


async def test_appends_at_the_same_time_share_no_number(journal: Journal) -> None:
    lease = await journal.claim("s")
    lasts = await asyncio.gather(*(journal.append(lease, [b"%d" % each] * (each % 3 + 1)) for each in range(60)))
    entries = await journal.read("s")
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert all(entries[last - 1].data == b"%d" % each for each, last in enumerate(lasts))


async def test_a_read_begins_after_a_number_and_ends_at_its_limit(journal: Journal) -> None:
    await journal.append(await journal.claim("s"), data(numbered(10)))
    assert await journal.read("s", 4, 3) == numbered(3, 5)
    assert await journal.read("s", 10) == []


async def test_nothing_is_read_of_a_session_that_is_not_there(journal: Journal) -> None:
    assert await journal.read("nowhere") == []


async def test_sessions_have_numbers_of_their_own(journal: Journal, place: Place) -> None:
    await place.begin("t")
    first, second = await journal.claim("s"), await journal.claim("t")
    await journal.append(first, [b"1", b"2"])
    assert await journal.append(second, [b"1"]) == 1
    assert await journal.append(first, [b"3"]) == 3


async def test_events_come_back_byte_for_byte(journal: Journal) -> None:
    events = [b"", b"\0\xff\n", b'{"a": 1}', bytes(100_000)]
    await journal.append(await journal.claim("s"), events)
    assert data(await journal.read("s")) == events


async def test_what_was_appended_outlives_the_journal(journal: Journal, place: Place) -> None:
    await journal.append(await journal.claim("s"), [b"1"])
    async with place.opened() as later:
        assert await later.read("s") == numbered(1)


async def test_a_session_that_was_deleted_takes_no_events(journal: Journal, place: Place) -> None:
    lease = await journal.claim("s")
    await place.delete("s")
    with pytest.raises(NoSuchSession):
        await journal.append(lease, [b"1"])


# Leases.


async def test_a_session_is_claimed_once(journal: Journal, place: Place) -> None:
    await journal.claim("s", by="Zed")
    with pytest.raises(LiveElsewhere) as caught:
        await journal.claim("s")
    assert "`s`" in str(caught.value) and caught.value.hint


async def test_a_session_that_was_released_can_be_claimed(journal: Journal, place: Place) -> None:
    first = await journal.claim("s")
    await journal.append(first, [b"1"])
    await journal.release(first)
    async with place.opened() as other:
        second = await other.claim("s")
        assert second.epoch != first.epoch
        assert await other.append(second, [b"2"]) == 2


async def test_a_lease_takes_the_place_of_the_one_that_it_names(journal: Journal) -> None:
    first = await journal.claim("s")
    second = await journal.claim("s", first.epoch)
    assert second.epoch != first.epoch
    assert await journal.append(second, [b"1"]) == 1


async def test_a_lease_that_names_an_older_one_is_refused(journal: Journal) -> None:
    first = await journal.claim("s")
    second = await journal.claim("s", first.epoch)
    with pytest.raises(StaleLease):
        await journal.claim("s", first.epoch)
    assert await journal.append(second, [b"1"]) == 1


@pytest.mark.parametrize("how", ["released", "superseded", "never given"])
async def test_a_stale_lease_appends_nothing_and_is_an_error(journal: Journal, how: str) -> None:
    lease = await journal.claim("s")
    if how == "released":
        await journal.release(lease)
    elif how == "superseded":
        await journal.claim("s", lease.epoch)
    else:
        lease = Lease("s", lease.epoch + 1)
    with pytest.raises(StaleLease) as caught:
        await journal.append(lease, [b"late"])
    sentence, hint = sentence_and_hint(caught.value)
    assert "`s`" in sentence and hint
    assert await journal.read("s") == []


async def test_releasing_a_stale_lease_leaves_the_valid_one(journal: Journal) -> None:
    first = await journal.claim("s")
    second = await journal.claim("s", first.epoch)
    await journal.release(first)
    await journal.release(first)
    assert await journal.append(second, [b"1"]) == 1


# Tails.


async def test_a_tail_gives_what_is_stored_and_then_what_is_appended(journal: Journal) -> None:
    lease = await journal.claim("s")
    await journal.append(lease, data(numbered(3)))
    tail = asyncio.create_task(taken(journal, 6))
    for entry in numbered(3, 4):
        await journal.append(lease, [entry.data])
    assert await tail == numbered(6)


async def test_a_tail_begins_after_a_number(journal: Journal) -> None:
    lease = await journal.claim("s")
    await journal.append(lease, data(numbered(5)))
    assert await taken(journal, 2, after=3) == numbered(2, 4)


async def test_a_tail_may_begin_before_the_session(journal: Journal, place: Place) -> None:
    tail = asyncio.create_task(taken(journal, 1, session="t"))
    await journal.read("s", 0, 1)  # behind the first read of the tail
    await place.begin("t")
    await journal.append(await journal.claim("t"), [b"1"])
    assert await tail == numbered(1)


@pytest.mark.parametrize("seed", range(8))
async def test_many_tails_that_begin_during_appends_get_every_event_once(journal: Journal, seed: int) -> None:
    chance = random.Random(seed)
    lease = await journal.claim("s")
    total = 200

    async def append() -> None:
        done = 0
        while done < total:
            count = min(chance.randint(1, 7), total - done)
            await journal.append(lease, data(numbered(count, done + 1)))
            done += count

    async def follow(begins_after: float, after: int) -> list[JournalEntry]:
        await asyncio.sleep(begins_after)
        return await taken(journal, total - after, after)

    starts = [(chance.random() * 0.05, chance.choice([0, 0, chance.randint(1, 50)])) for _ in range(12)]
    tails = [asyncio.create_task(follow(*start)) for start in starts]
    await append()
    for (_, after), tail in zip(starts, tails, strict=True):
        assert await tail == numbered(total - after, after + 1)


async def test_a_slow_tail_misses_nothing_and_takes_little_memory(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "FEED_LIMIT", 50)
    lease = await journal.claim("s")
    found: list[JournalEntry] = []
    async with aclosing(journal.tail("s")) as tail:  # type: ignore[type-var]
        await journal.append(lease, [b"1"])
        found.append(await anext(tail))
        for entry in numbered(99, 2):
            await journal.append(lease, [entry.data])
        while len(found) < 100:
            found.append(await asyncio.wait_for(anext(tail), LIMIT))
    assert found == numbered(100)


async def test_a_tail_sees_what_another_process_appends(
    journal: Journal, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "SILENCE", 0.02)
    lease = await journal.claim("s")
    await journal.append(lease, [b"1"])
    await journal.release(lease)
    tail = asyncio.create_task(taken(journal, 3))
    async with place.opened() as other:
        await other.append(await other.claim("s"), [b"2", b"3"])
        assert await tail == numbered(3)


async def test_a_tail_that_ends_takes_nothing_from_the_others(journal: Journal) -> None:
    lease = await journal.claim("s")
    staying = asyncio.create_task(taken(journal, 4))
    leaving = asyncio.create_task(taken(journal, 2))
    for entry in numbered(4):
        await journal.append(lease, [entry.data])
    assert await leaving == numbered(2)
    assert await staying == numbered(4)


async def test_a_tail_that_is_cancelled_leaves_nothing_behind(journal: Journal) -> None:
    tail = asyncio.create_task(taken(journal, 1))
    await journal.read("s", 0, 1)  # behind the first read of the tail
    tail.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tail
    assert await journal.append(await journal.claim("s"), [b"1"]) == 1
