"""The file of a gateway: rows, what is deleted with them, how long they are kept, and copies."""

import asyncio
import fcntl
import os
import sqlite3
import stat
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon.errors import sentence_and_hint
from antiphon.gateway.access.audit import AccessEntry
from antiphon.gateway.base import AccessRole, Principal, SearchableText
from antiphon.gateway.data import DAY, FILE_NAME, MIGRATIONS, GatewayData, Retention
from antiphon.gateway.server.admin import Admin, AdminError, AdminRequest
from antiphon.journal.base import JournalEntry
from antiphon.store.database import Database, DirectoryLock
from antiphon.store.errors import DirectoryInUse, StoreError
from tests.limits import limit
from tests.waits import idle


@pytest.fixture
async def data(tmp_path: Path) -> AsyncIterator[GatewayData]:
    async with GatewayData.open(tmp_path / "data") as data:
        yield data


async def test_a_second_gateway_is_refused_with_a_hint(data: GatewayData) -> None:
    with pytest.raises(DirectoryInUse) as caught:
        async with GatewayData.open(data.directory):
            pytest.fail("it was opened twice")
    assert "another directory" in (sentence_and_hint(caught.value)[1] or "")


async def test_the_data_is_for_its_user_alone(data: GatewayData) -> None:
    assert stat.S_IMODE(data.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((data.directory / FILE_NAME).stat().st_mode) == 0o600


async def test_a_row_is_found_by_its_key_and_by_the_id_of_its_agent(tmp_path: Path) -> None:
    async with GatewayData.open(tmp_path) as data:
        made = await data.create("demo", "a1", "/w", ("/x", "/y"))
        await data.create("other", "a1", "/w")
    async with GatewayData.open(tmp_path) as data:
        assert await data.get(made.key) == await data.find("demo", "a1") == made
        assert await data.find("demo", "a2") is None and await data.get("a1") is None


async def test_an_id_that_an_agent_uses_twice_archives_the_older_session(data: GatewayData) -> None:
    older = await data.create("demo", "a1", "/w")
    await data.journal.append(await data.journal.claim(older.key), [b"old"])
    newer = await data.create("demo", "a1", "/w")
    found = await data.find("demo", "a1")
    assert found is not None and found.key == newer.key != older.key
    assert [row.key for row in await data.list("demo")] == [newer.key]
    assert {row.key: row.archived for row in await data.all()} == {newer.key: False, older.key: True}
    assert [entry.data for entry in await data.journal.read(older.key)] == [b"old"]


async def test_a_saved_row_is_stored_with_what_was_appended_before(data: GatewayData) -> None:
    first, second = await data.create("demo", "a1", "/w"), await data.create("demo", "a2", "/x")
    lease = await data.journal.claim(first.key)
    appended = data.journal.append(lease, [b"1"])
    data.save(replace(first, title="First", turn="t1", turn_after=1, updated=second.created + 1, state=b'{"modes":{}}'))
    assert not appended.done()
    (found,) = await data.interrupted()
    assert appended.result() == 1
    assert (found.key, found.title, found.turn_after, found.state) == (first.key, "First", 1, b'{"modes":{}}')
    assert [row.key for row in await data.list("demo")] == [first.key, second.key]
    assert [row.key for row in await data.list("demo", cwd="/x")] == [second.key]


async def test_a_deleted_session_leaves_no_text_on_the_disk(data: GatewayData) -> None:
    row, other = await data.create("demo", "a1", "/w"), await data.create("demo", "a2", "/w")
    lease, other_lease = await data.journal.claim(row.key), await data.journal.claim(other.key)
    await asyncio.gather(data.journal.append(lease, [b"very private"]), data.journal.append(other_lease, [b"stays"]))
    data.audit.add("permission", session=row.key, detail="rm -rf very private")
    await data.database.flush()
    await data.delete(row.key)  # it may run for months from here on
    left = b"".join(path.read_bytes() for path in data.directory.iterdir())
    assert b"very private" not in left and b"stays" in left


# The audit log.


async def test_the_chain_of_the_audit_log_is_whole_after_a_deletion(data: GatewayData) -> None:
    row = await data.create("demo", "a1", "/w")
    for each in range(5):
        data.audit.add("prompt", actor="phone", token="3", address="10.0.0.1", session=row.key, detail=f"say {each}")
    data.audit.add("login")
    await data.delete(row.key)
    entries = await data.audit.read()
    assert [entry.detail for entry in entries] == [None] * 5 + [""]
    assert await data.audit.broken() is None


async def test_an_admin_reads_the_audit_log_backwards_from_the_newest_entry(data: GatewayData) -> None:
    for each in range(1, 8):
        data.audit.add("prompt", detail=f"say {each}")

    async def read(**asked: Any) -> list[object]:
        entries = (await Admin(data).answer(AdminRequest("audit", **asked), Principal("ada")))["entries"]
        assert isinstance(entries, list)
        return [entry["id"] for entry in entries]

    assert await read() == await read(after=0) == [1, 2, 3, 4, 5, 6, 7]
    assert await read(limit=3) == [5, 6, 7]
    assert await read(before=5, limit=3) == [2, 3, 4]
    assert await read(before=2, limit=3) == [1] and await read(before=1) == []
    assert await read(after=2, limit=3) == [3, 4, 5]
    for wrong in ({"limit": 0}, {"limit": 1001}, {"before": 5, "after": 2}):
        with pytest.raises(AdminError, match="cannot be read"):
            await read(**wrong)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET actor = 'else' WHERE id = 3",
        "UPDATE audit SET detail = 'else' WHERE id = 3",
        "UPDATE audit SET address = '' WHERE id = 3",
        "DELETE FROM audit WHERE id = 2",
    ],
)
async def test_a_changed_audit_log_is_noticed(data: GatewayData, change: str) -> None:
    for each in range(5):
        data.audit.add("prompt", actor="phone", address="10.0.0.1", detail=f"say {each}")
    assert await data.audit.broken() is None
    await data.database.run(lambda connection: connection.execute(change))
    assert await data.audit.broken() == 3


# Retention.


async def test_sessions_that_were_not_used_for_long_are_deleted_with_their_shares_unless_they_are_open(
    data: GatewayData,
) -> None:
    old, kept, busy = [await data.create("demo", f"a{each}", "/w") for each in range(3)]
    data.audit.add("old", at=datetime(2020, 1, 1, tzinfo=UTC))
    data.audit.add("new")
    later = time.time() + 91 * DAY
    await data.journal.claim(kept.key)
    data.save(replace(busy, turn="t1"))
    _, secret = await data.tokens.create("share", "guest", AccessRole.WATCH, sessions=[old.key])
    assert await data.prune(Retention()) == []
    assert await data.prune(Retention(), now=later) == [old.key]
    assert {row.key for row in await data.all()} == {kept.key, busy.key} and data.tokens.find(secret) is None
    assert [entry.action for entry in await data.audit.read()] == ["new"] and await data.audit.broken() is None


async def test_sessions_used_least_recently_make_room(data: GatewayData) -> None:
    keys = [(await data.create("demo", f"a{each}", "/w")).key for each in range(4)]
    for key in keys:
        lease = await data.journal.claim(key)
        await data.journal.append(lease, [bytes(500_000)])
        await data.journal.release(lease)
    limit = Retention(total_bytes=1_100_000)
    assert await data.prune(limit) == keys[:2]
    assert await data.used_bytes() <= limit.total_bytes


async def filled(data: GatewayData, owner: str, count: int, size: int) -> list[str]:
    """Store sessions of an owner, each with events of a size, and return their keys."""
    keys = [(await data.create("demo", f"{owner}{each}", "/w", owner=owner)).key for each in range(count)]
    for key in keys:
        lease = await data.journal.claim(key)
        await data.journal.append(lease, [bytes(size)])
        await data.journal.release(lease)
    return keys


async def test_one_who_stores_much_does_not_push_out_the_sessions_of_others(data: GatewayData) -> None:
    victim = await filled(data, "alice", 2, 200_000)
    greedy = await filled(data, "mallory", 6, 500_000)
    assert await data.prune(Retention(total_bytes=1_600_000)) == greedy[:4]
    assert await data.prune(Retention(total_bytes=1_000_000)) == [greedy[4]]
    assert [row.key for row in await data.all()] == [greedy[5], *reversed(victim)]
    assert await data.prune(Retention(total_bytes=300_000)) == [greedy[5], victim[0]], (
        "each has a share of what is left"
    )


async def test_sessions_in_use_that_are_too_large_do_not_push_out_the_sessions_of_others(data: GatewayData) -> None:
    victim = await filled(data, "alice", 2, 200_000)
    greedy = await filled(data, "mallory", 3, 1_000_000)
    for key in greedy:
        await data.journal.claim(key)
    assert await data.prune(Retention(total_bytes=2_500_000)) == []
    assert await data.get(victim[0]) is not None


async def test_a_large_audit_log_does_not_push_out_sessions(data: GatewayData) -> None:
    keys = await filled(data, "alice", 2, 100_000)
    for _ in range(500):
        data.audit.add("connect", actor="mallory", detail="x" * 4000)
    assert await data.prune(Retention(total_bytes=1_000_000)) == []
    assert await data.get(keys[0]) is not None


# Copies.


async def test_a_backup_is_whole_while_work_goes_on(data: GatewayData, tmp_path: Path) -> None:
    row = await data.create("demo", "a1", "/w")
    lease = await data.journal.claim(row.key)
    await data.journal.append(lease, [b"stored"])
    copying = asyncio.create_task(data.backup(tmp_path / "copies" / "copy.sqlite3"))
    while not copying.done():
        await data.journal.append(lease, [b"meanwhile"])
    await copying
    copy = tmp_path / "copies" / "copy.sqlite3"
    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert b"stored" in opened.execute("SELECT data FROM event ORDER BY first").fetchone()[0]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and [path.name for path in copy.parent.iterdir()] == [copy.name]


async def test_a_session_that_is_deleted_during_a_backup_leaves_no_text_after_it(data: GatewayData) -> None:
    row = await data.create("demo", "a1", "/w")
    await data.journal.append(await data.journal.claim(row.key), [b"very private"])
    with closing(sqlite3.connect(f"{data.database.path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM session").fetchall()
        await data.delete(row.key)
    await data.create("demo", "a2", "/w")
    assert b"very private" not in b"".join(path.read_bytes() for path in data.directory.iterdir())


async def test_a_backup_that_was_killed_is_not_in_the_way_of_the_next(data: GatewayData, tmp_path: Path) -> None:
    half = tmp_path / "copies" / "copy.half"
    half.parent.mkdir()
    half.write_bytes(b"half of a copy")
    target = half.with_suffix("")
    held = os.open(half, os.O_WRONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(StoreError, match="another process"):
        await data.backup(target)
    os.close(held)
    await data.backup(target)
    assert target.read_bytes().startswith(b"SQLite format 3") and not half.exists()


async def test_what_is_stored_does_not_wait_for_a_check_of_the_audit_log(
    data: GatewayData, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.audit.add("prompt")
    await data.database.flush()
    expected, stored = AccessEntry.expected, threading.Event()

    def slow(entry: AccessEntry, before: bytes) -> bytes:
        assert stored.wait(limit()), "the thread that stores is busy with the check"
        return expected(entry, before)

    monkeypatch.setattr(AccessEntry, "expected", slow)
    checking = asyncio.ensure_future(data.audit.broken())
    await idle()
    await data.create("demo", "a1", "/w")
    stored.set()
    assert await checking is None


async def test_a_backup_replaces_no_file(data: GatewayData, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="already"):
        await data.backup(there)
    with pytest.raises(StoreError, match="cannot be written"):
        await data.backup(there / "below")
    assert there.read_text(encoding="utf-8") == "mine"


# Earlier versions of the file.


@pytest.mark.parametrize("seen", range(1, len(MIGRATIONS)))
async def test_a_file_of_any_earlier_version_is_opened_with_all_that_it_has(tmp_path: Path, seen: int) -> None:
    old = tmp_path / FILE_NAME
    with DirectoryLock(tmp_path) as lock:
        async with Database(old, MIGRATIONS[:seen], lock=lock) as database:
            names = (
                "key, agent, session_id, cwd, directories, title, created, updated, state, turn, turn_after, archived"
            )
            values = ("k1", "demo", "a1", "/w", "[]", "Old", 1.0, 2.0, b"{}", "", 0, 0)
            marks = ", ".join("?" * len(values))
            await database.run(
                lambda connection: connection.execute(f"INSERT INTO session ({names}) VALUES ({marks})", values)
            )
            await database.run(
                lambda connection: connection.execute(
                    "INSERT INTO event (session, first, last, data) VALUES (1, 1, 2, ?)", (b"x\ny",)
                )
            )
    async with GatewayData.open(tmp_path) as data:
        (row,) = await data.all()
        given = "Old" if seen < 4 else ""  # version 4 has a column of its own for it
        assert (row.title, row.agent_title, row.renamed, row.failed, row.text) == ("Old", given, False, False, "")
        assert await data.journal.read("k1") == [JournalEntry(1, b"x"), JournalEntry(2, b"y")]
        lease = await data.journal.claim("k1")
        assert await data.journal.append(lease, [b"z"], 5.5) == 3
        assert (await data.journal.read("k1", 2))[0] == JournalEntry(3, b"z", 5.5)
        assert await data.unread("") == ("k1", 0)


async def test_a_hidden_row_takes_no_place_before_it_is_shown_and_none_of_a_later_one(tmp_path: Path) -> None:
    async with GatewayData.open(tmp_path) as data:
        first = await data.create("demo", "s", "/", hidden=True)
        assert await data.find("demo", "s") is None
        await data.show(first.key)
        assert await data.find("demo", "s") == first
        second = await data.create("demo", "s", "/", hidden=True)
        third = await data.create("demo", "s", "/")
        await data.show(second.key)
        assert await data.find("demo", "s") == third
        await data.delete(third.key)
        await data.show("of a row that was deleted")
        await data.show(second.key)
        assert await data.find("demo", "s") == second


async def test_a_search_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.gateway.data.SEARCH_TIME", -1.0)
    monkeypatch.setattr("antiphon.gateway.data.SEARCH_STEPS", 1)
    async with GatewayData.open(tmp_path) as data:
        row = await data.create("demo", "s", "/")
        await data.add_text(row.key, [SearchableText(1, "user", "word")], 1)
        with pytest.raises(StoreError, match="the search took"):
            await data.search(["word"], None, ("demo",), 1)
