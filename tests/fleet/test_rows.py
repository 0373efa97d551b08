"""The rows of a fleet: every process has the same copy, whatever it has missed, and nothing is left of what was deleted."""

import asyncio
import copy as copies
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from antiphon.fleet import rows as rows_module
from antiphon.fleet.broker import READ_LIMIT, BrokerAway, StoredMessage
from antiphon.fleet.records.formats import (
    ALL_ROWS,
    RowRecord,
    events_subject,
    owner_subject,
    row_subject,
)
from antiphon.fleet.records.replica import RowReplica
from antiphon.fleet.rows import FleetRows
from antiphon.gateway.base import GatewaySession, GatewaySessions, SearchableText, SessionQuery
from antiphon.gateway.data import GatewayData
from antiphon.gateway.settings import HubSettings
from antiphon.journal.base import StaleLease
from antiphon.journal.owner import SessionHome
from antiphon.store.errors import NoSuchSession
from tests.fleet.row_copies import CopyFleet, RowCopy, copies_in, until_equal, until_seen
from tests.limits import limit
from tests.waits import until


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[CopyFleet]:
    async with asyncio.timeout(limit(120)), copies_in(tmp_path) as fleet:
        yield fleet


async def on_broker(copy: RowCopy, key: str) -> list[StoredMessage | None]:
    """Return the last messages of a session: its events, its owner, its row."""
    return [await copy.broker.last(subject(key)) for subject in (events_subject, owner_subject, row_subject)]


def test_the_hub_can_use_them() -> None:
    used: type[GatewaySessions] = FleetRows
    assert used is FleetRows


# Writing.


async def test_a_row_that_one_process_writes_is_in_the_copies_of_all(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    worker.rows.save(replace(row, title="First", state=b'{"modes": {}}', turn="t1", updated=5.0))
    assert await worker.journal.append(lease, [b"1"]) == 1
    await until_seen(gateway, row.key, "First")
    found = await gateway.rows.find("demo", "a1")
    assert found == await worker.rows.get(row.key) == await gateway.rows.get(row.key)
    assert found is not None and (found.title, found.state, found.turn) == ("First", b'{"modes": {}}', "t1")
    assert [each.key for each in await gateway.rows.list("demo", cwd="/w")] == [row.key]
    assert await gateway.rows.settings("demo") == b'{"modes": {}}'
    assert await gateway.rows.interrupted() == ()
    assert [each.key for each in await gateway.rows.running()] == [row.key]


async def test_rows_are_stored_in_order_with_the_events_of_their_session(fleet: CopyFleet) -> None:
    worker = await fleet.start("w1")
    row, lease = await worker.begin("a1")
    worker.rows.save(replace(row, turn="t1"))
    begun = worker.journal.append(lease, [b"begun"])
    worker.rows.save(replace(row, turn="", title="Done"))
    ended = worker.journal.append(lease, [b"ended"])
    await worker.journal.flush()
    assert (begun.result(), ended.result()) == (1, 2)
    found = await worker.broker.last(row_subject(row.key))
    events = await worker.broker.read(events_subject(row.key))
    assert found is not None and events[0].sequence < found.sequence < events[1].sequence
    assert RowRecord.of(found).number == 1
    assert [row.title for row in await worker.rows.list("demo")] == ["Done"]


async def test_a_list_has_the_number_of_the_last_event_and_the_search_knows_what_is_new(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    await worker.journal.append(lease, [b"1", b"2", b"3"])
    worker.rows.save(replace(row, title="Done"))
    await until_seen(gateway, row.key, "Done")
    (listed,) = await gateway.rows.listed(SessionQuery(("demo",)))
    assert (listed.row.key, listed.number) == (row.key, 3)
    assert await gateway.rows.unread("") == (row.key, 0)
    await gateway.rows.add_text(row.key, [SearchableText(2, "user", "blue whale")], 3)
    assert await gateway.rows.unread("") is None
    (match,) = await gateway.rows.search(["whale"], None, ("demo",), 10)
    assert (match.key, match.number) == (row.key, 2)
    await worker.journal.append(lease, [b"4"])
    await worker.journal.release(lease)  # with which the row has the number of the last event
    await until(lambda: len(gateway.changed) >= 3)
    assert await gateway.rows.unread("") == (row.key, 3)


async def test_a_row_is_written_by_the_owner_alone(fleet: CopyFleet) -> None:
    first, second = await fleet.start("w1"), await fleet.start("w2")
    row, _ = await first.begin("a1", hidden=True)
    second.rows.save(replace(row, title="not mine"))
    with pytest.raises(StaleLease):
        await second.rows.show(row.key)
    fleet.dead.add("w1")
    await second.journal.claim(row.key)
    first.rows.save(replace(row, title="not mine any more"))
    second.rows.save(replace(row, title="mine"))
    await second.journal.flush()
    found = await second.broker.last(row_subject(row.key))
    assert found is not None and RowRecord.of(found).row.title == "mine"


async def test_a_worker_that_claims_a_session_has_its_row_as_it_was_stored_last(fleet: CopyFleet) -> None:
    first, behind = await fleet.start("w1"), await fleet.start("w2", follows=False)
    row, lease = await first.begin("a1")
    first.rows.save(replace(row, title="Last", turn="t1"))
    await first.journal.append(lease, [b"1"])
    assert await behind.data.get(row.key) is None
    fleet.dead.add("w1")
    await behind.journal.claim(row.key)
    found = await behind.data.get(row.key)
    assert found is not None and (found.title, found.turn) == ("Last", "t1")


async def test_fields_of_a_newer_version_are_kept_when_a_row_is_written_again(fleet: CopyFleet) -> None:
    worker = await fleet.start("w1")
    row, lease = await worker.begin("a1")
    last = await worker.broker.last(row_subject(row.key))
    assert last is not None
    newer = {**msgspec.json.decode(last.data), "version": 2, "colour": {"hue": 7}}
    await worker.journal.release(lease)
    await worker.broker.append(row_subject(row.key), msgspec.json.encode(newer), replaces=True)
    other = await fleet.start("w2")
    await other.journal.claim(row.key)
    other.rows.save(replace(row, title="New", owner="someone else"))
    await other.journal.flush()
    last = await other.broker.last(row_subject(row.key))
    assert last is not None
    found = msgspec.json.decode(last.data)
    assert (found["title"], found["colour"], found["owner"], found["version"]) == ("New", {"hue": 7}, "", 1)


DAMAGED = {
    "cut": b"{",
    "another type": b'{"agent": 7}',
    "no text": b'{"agent": "demo", "session_id": "\xff"}',
    "nested": b'{"agent": "demo", "session_id": "s", "state": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a state that is no object": b'{"agent": "demo", "session_id": "s", "state": []}',
    "a large number": b'{"agent": "demo", "session_id": "s", "born": 9223372036854775808}',
    "a large turn": b'{"agent": "demo", "session_id": "s", "turn_after": 9223372036854775808}',
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
async def test_a_row_that_cannot_be_read_is_left_out(fleet: CopyFleet, data: bytes) -> None:
    worker = await fleet.start("w1")
    await worker.broker.append(row_subject("0" * 32), data)
    row, _ = await worker.begin("a1")
    gateway = await fleet.start("g1")
    assert [*await gateway.archived()] == [row.key]
    later, _ = await worker.begin("a2")
    await until_seen(gateway, later.key, "")


async def test_a_row_with_settings_that_the_broker_does_not_take_is_stored_without_them(fleet: CopyFleet) -> None:
    fleet.server.max_payload = 4096
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    state = msgspec.json.encode({"configOptions": ["x" * 5000], "modes": {"currentModeId": "m"}})
    worker.rows.save(replace(row, title="Runs", turn="t1", state=state))
    assert await worker.journal.append(lease, [b"1"]) == 1
    await until_seen(gateway, row.key, "Runs")
    found = await gateway.rows.get(row.key)
    assert found is not None and found.turn == "t1" and found == await worker.rows.get(row.key)
    assert msgspec.json.decode(found.state) == {"modes": {"currentModeId": "m"}}


async def test_a_new_row_of_which_it_is_not_known_whether_it_was_stored_is_deleted_again(
    fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "WRITE_TIMEOUT", 0.05)
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    fleet.server.lose_answer(worker.broker, stored=True)
    with pytest.raises(BrokerAway):
        await worker.rows.create("demo", "a1", "/w")
    fleet.server.cut(worker.broker)
    await until(lambda: gateway.changed)
    (key, _), *_ = gateway.changed
    fleet.server.mend(worker.broker)
    await until_seen(gateway, key, None)
    await until(lambda: not worker.rows._unwanted and not worker.rows._unremoved)
    assert await gateway.archived() == {} and (await on_broker(worker, key))[:2] == [None, None]


# What a copy has missed.


async def test_a_copy_catches_up_when_its_connection_is_there_again(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    kept, gone = (await worker.begin("a1"))[0], (await worker.begin("a2"))[0]
    await until_seen(gateway, gone.key, "")
    fleet.server.cut(gateway.broker)
    new = (await worker.begin("a3"))[0]
    worker.rows.save(replace(kept, title="New"))
    await worker.rows.delete(gone.key)
    await worker.journal.flush()
    assert await gateway.archived() == {kept.key: False, gone.key: False}
    fleet.server.mend(gateway.broker)
    await until_seen(gateway, kept.key, "New")
    await until_seen(gateway, gone.key, None)
    assert await gateway.archived() == {kept.key: False, new.key: False}
    assert gateway.removed == [(gone.key, "demo", "a2")]


async def test_a_message_that_never_came_is_read_later(fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "READ_AGAIN", 0.02)
    monkeypatch.setattr(rows_module, "READ_INTERVAL", 0.05)
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    assert gateway.rows._followed is not None
    gateway.rows._followed.end()  # no error, no new connection: nothing comes any more
    row, _ = await worker.begin("a1")
    worker.rows.save(replace(row, title="New"))
    await until_seen(gateway, row.key, "New")


async def test_reads_that_are_old_are_read_again(fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "READ_AGAIN", 0.02)
    monkeypatch.setattr(rows_module, "READ_INTERVAL", 0.02)
    worker = await fleet.start("w1")
    made = [(await worker.begin(f"a{each}"))[0].key for each in range(30)]
    await worker.rows.delete(made.pop())
    fleet.server.stale = 0.8
    gateway = await fleet.start("g1")
    await until_equal(gateway, dict.fromkeys(made, False))


async def test_a_session_that_was_begun_just_now_is_found_before_its_row_has_come(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    assert gateway.rows._followed is not None
    gateway.rows._followed.end()
    row, _ = await worker.begin("a1")
    assert await gateway.rows.find("demo", "a1") == row
    row, _ = await worker.begin("a2")
    assert await gateway.rows.get(row.key) == row
    assert await gateway.rows.find("demo", "a3") is None
    fleet.server.stop()
    assert await gateway.rows.find("demo", "a3") is None and await gateway.rows.get("0" * 32) is None


async def test_a_session_is_found_behind_many_others_that_have_not_come_either(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    assert gateway.rows._followed is not None
    gateway.rows._followed.end()
    made = [await worker.rows.create("demo", f"a{number}", "/w") for number in range(READ_LIMIT + 1)]
    assert await gateway.rows.find("demo", made[-1].session_id) == made[-1]


async def test_a_process_that_starts_again_reads_what_is_new(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    made = [(await worker.begin(f"a{each}"))[0] for each in range(5)]
    await gateway.rows._read(is_begin=False)
    await fleet.stop("g1")
    worker.rows.save(replace(made[2], title="New"))
    await worker.journal.flush()
    gateway = await fleet.start("g1")
    assert gateway.changed == [(made[2].key, "New")]
    assert len(await gateway.archived()) == 5


async def test_a_copy_of_another_stream_is_made_anew(fleet: CopyFleet, tmp_path: Path) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    for each in range(20):
        await worker.begin(f"a{each}")
    await gateway.rows._read(is_begin=False)
    await fleet.close()
    async with copies_in(tmp_path) as other:
        worker = await other.start("w2")
        row, _ = await worker.begin("b1")
        gateway = await other.start("g1")
        assert await gateway.archived() == {row.key: False}
        assert len(gateway.removed) == 20


async def test_a_stream_that_was_restored_from_a_backup_counts(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    kept, lease = await worker.begin("a1")
    await worker.journal.release(lease)
    backup = copies.deepcopy(fleet.server._store)
    later, _ = await worker.begin("a2")
    lease = await worker.journal.claim(kept.key)
    worker.rows.save(replace(kept, title="later"))
    await worker.journal.flush()
    await until_seen(gateway, kept.key, "later")
    await gateway.rows._read(is_begin=False)
    for name in ("w1", "g1"):
        await fleet.stop(name)
    fleet.server._store = backup
    gateway = await fleet.start("g1")
    found = await gateway.rows.get(kept.key)
    assert found is not None and found.title == "" and [*await gateway.archived()] == [kept.key]
    assert later.key not in await gateway.archived()


# Sessions with the same id.


async def test_messages_of_rows_in_any_order_make_the_same_copy(fleet: CopyFleet, tmp_path: Path) -> None:
    worker = await fleet.start("w1")
    messages: list[StoredMessage] = []
    subscription = worker.broker.follow(ALL_ROWS, messages.append)
    made = [await worker.begin(f"a{each % 2}", hidden=each % 3 == 0) for each in range(8)]
    for place in (6, 3):
        await worker.rows.show(made[place][0].key)
    for place in (7, 1):
        await worker.rows.delete(made[place][0].key)
    worker.rows.save(replace(made[4][0], title="New"))
    await worker.journal.flush()
    await until(lambda: len(messages) >= 8 + 2 + 2 + 1)
    subscription.end()
    expected = await worker.archived()
    # 0, 2, 4 and 6 have one id, 1, 3, 5 and 7 the other; 0 is hidden, 7 was shown last and deleted.
    shown = {made.index(each) for each in made if expected.get(each[0].key) is False}
    assert shown == {6}
    for seed in range(8):
        shuffled = random.Random(seed).sample(messages * 2, 2 * len(messages))
        async with GatewayData.open(tmp_path / f"copy-{seed}") as data:
            await RowReplica(data, lambda _: None).apply(shuffled)
            assert {row.key: row.archived for row in await data.all()} == expected


@pytest.mark.parametrize("seed", range(10))
async def test_all_copies_archive_and_show_what_one_gateway_would(fleet: CopyFleet, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    workers = [await fleet.start("w1"), await fleet.start("w2")]
    made: list[tuple[RowCopy, GatewaySession, GatewaySession]] = []
    async with GatewayData.open(tmp_path / "one gateway") as reference:
        for _ in range(30):
            kind = chance.choice(["create", "create", "hidden", "show", "delete", "cut", "save"])
            worker = chance.choice(workers)
            if kind in ("create", "hidden"):
                id, hidden = f"a{chance.randint(0, 2)}", kind == "hidden"
                row, _ = await worker.begin(id, hidden=hidden)
                made.append((worker, row, await reference.create("demo", id, "/w", hidden=hidden)))
            elif kind == "cut":
                other = workers[1 - workers.index(worker)]
                fleet.server.cut(other.broker)
                fleet.server.mend(other.broker)
            elif made:
                owner, row, twin = chance.choice(made)
                if kind == "show":
                    await owner.rows.show(row.key)
                    await reference.show(twin.key)
                elif kind == "save":
                    owner.rows.save(replace(row, title="New"))
                else:
                    await worker.rows.delete(row.key)
                    await reference.delete(twin.key)
                    made.remove((owner, row, twin))
        for worker in workers:
            await worker.journal.flush()
        twins = {twin.key: row.key for _, row, twin in made}
        expected = {twins[row.key]: row.archived for row in await reference.all()}
    workers.append(await fleet.start("w3"))
    for worker in workers:
        await until_equal(worker, expected)


async def test_the_session_before_stays_archived_when_the_later_one_is_deleted_and_forgotten(fleet: CopyFleet) -> None:
    worker = await fleet.start("w1")
    older, _ = await worker.begin("a1")
    later, _ = await worker.begin("a1")
    await worker.rows.delete(later.key)
    await worker.rows.forget_deleted(before=float("inf"))
    assert await worker.archived() == {older.key: True}
    assert await (await fleet.start("g1")).archived() == {older.key: True}
    await worker.rows.delete(older.key)
    await worker.rows.forget_deleted(before=float("inf"))
    await worker.rows.forget_deleted(before=float("inf"))  # the older one went first
    assert await on_broker(worker, older.key) == await on_broker(worker, later.key) == [None] * 3


# Deleting.


async def test_a_deleted_session_is_gone_everywhere_with_its_events_and_its_text(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    await worker.journal.append(lease, [b"very private"])
    worker.rows.save(replace(row, title="very private", text="very private"))
    await until_seen(gateway, row.key, "very private")
    await gateway.rows.add_text(row.key, [SearchableText(1, "user", "very private")], 1)
    await worker.rows.delete(row.key)
    await until_seen(gateway, row.key, None)
    events, owner, last = await on_broker(worker, row.key)
    assert events is None and owner is None and last is not None and b"private" not in last.data
    assert worker.removed == gateway.removed == [(row.key, "demo", "a1")]
    assert not worker.lost and not worker.journal.claimed
    with pytest.raises(StaleLease):
        worker.journal.store(lease, [b"late"], lambda number, error: None)
    with pytest.raises(NoSuchSession):
        await worker.journal.claim(row.key)
    assert await gateway.rows.search(["private"], None, ("demo",), 10) == []
    for place in (worker, gateway):
        await place.data.database.flush()
        assert b"private" not in b"".join(path.read_bytes() for path in place.data.directory.iterdir())
    await worker.rows.delete(row.key)  # twice is fine


async def test_a_worker_is_notified_when_a_session_of_it_is_deleted_elsewhere(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    await worker.journal.append(lease, [b"1"])
    await gateway.rows.delete(row.key)
    await until(lambda: worker.lost)
    assert worker.lost == [row.key] and not worker.journal.claimed
    assert (await on_broker(gateway, row.key))[:2] == [None, None]


async def test_what_a_worker_appends_while_its_session_is_deleted_elsewhere_is_not_left(fleet: CopyFleet) -> None:
    fleet.server.delay = (0.0, 0.01)
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    errors: list[BaseException | None] = []

    async def write() -> None:
        while not worker.lost:
            worker.rows.save(replace(row, title="alive"))
            worker.journal.store(lease, [bytes(100)], lambda number, error: errors.append(error))
            await asyncio.sleep(0.001)

    writing = asyncio.create_task(write())
    await until(lambda: None in errors)
    await gateway.rows.delete(row.key)
    with suppress(StaleLease):  # or it ended between two appends
        await writing
    await until(lambda: worker.lost)
    events, owner, last = await on_broker(gateway, row.key)
    assert events is None and owner is None and last is not None and RowRecord.of(last).deleted
    assert None in errors and all(error is None or isinstance(error, StaleLease | NoSuchSession) for error in errors)


async def test_a_session_that_is_claimed_while_it_is_deleted_is_deleted_all_the_same(
    fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    row, lease = await worker.begin("a1")
    await worker.journal.release(lease)
    last, claims = gateway.broker.last, 0

    async def claimed_before(subject: str) -> StoredMessage | None:
        nonlocal claims
        found = await last(subject)
        if claims < 3:  # behind the look at the row, before it is stored that the session is deleted
            claims += 1
            await until(lambda: not worker.journal.claimed)
            await worker.journal.claim(row.key)
            worker.rows.save(replace(row, title="alive"))
        return found

    monkeypatch.setattr(gateway.broker, "last", claimed_before)
    await gateway.rows.delete(row.key)
    await until(lambda: (row.key, None) in worker.changed)
    events, owner, left = await on_broker(gateway, row.key)
    assert claims == 3 and events is None and owner is None and left is not None and RowRecord.of(left).deleted
    assert not worker.journal.claimed and await worker.archived() == {}


async def test_the_rest_of_a_deleted_session_is_removed_when_the_broker_is_there_again(
    fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await fleet.start("w1")
    row, lease = await worker.begin("a1")
    await worker.journal.append(lease, [b"1"])

    async def cut(pattern: str) -> None:
        monkeypatch.undo()
        fleet.server.cut(worker.broker)
        raise BrokerAway("gone")

    monkeypatch.setattr(worker.broker, "remove", cut)
    await worker.rows.delete(row.key)
    fleet.server.mend(worker.broker)
    await until(lambda: not worker.rows._unremoved)
    assert (await on_broker(worker, row.key))[:2] == [None, None]


async def test_a_copy_that_was_away_until_a_deletion_was_forgotten_is_made_anew(fleet: CopyFleet) -> None:
    worker, gateway = await fleet.start("w1"), await fleet.start("g1")
    kept, gone = (await worker.begin("a1"))[0], (await worker.begin("a2"))[0]
    await until_seen(gateway, gone.key, "")
    await gateway.rows._read(is_begin=False)
    await fleet.stop("g1")
    await worker.rows.delete(gone.key)
    await worker.rows.forget_deleted(before=1.0)
    assert (await on_broker(worker, gone.key))[2] is not None, "it was deleted later"
    await worker.rows.forget_deleted(before=float("inf"))
    assert await on_broker(worker, gone.key) == [None] * 3
    gateway = await fleet.start("g1")
    assert await gateway.archived() == {kept.key: False} and gateway.removed == [(gone.key, "demo", "a2")]
    await gateway.rows._read(is_begin=True)
    assert gateway.changed == [(gone.key, None)], "it is read from the beginning once"


async def test_a_lease_whose_loss_no_message_has_reported_is_looked_at_when_the_row_of_the_next_owner_is_read(
    fleet: CopyFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "READ_AGAIN", 0.05)
    monkeypatch.setattr(rows_module, "READ_INTERVAL", 0.05)
    zombie, second = await fleet.start("w1"), await fleet.start("w2")
    row, _ = await zombie.begin("a1")
    fleet.dead.add("w1")
    fleet.server.missed = 1.0
    lease = await second.journal.claim(row.key)
    settings = HubSettings()
    settings.home = SessionHome("w2", "there")
    second.rows.save(replace(row, state=settings.stored()))
    await second.journal.append(lease, [b"1"])
    await until(lambda: zombie.lost)
    assert zombie.lost == [row.key] and not zombie.journal.claimed and second.journal.claimed
