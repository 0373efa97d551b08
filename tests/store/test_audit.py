"""What is kept of decisions, and what is not."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import msgspec

from antiphon.store.decisions import MAX_TEXT, AuditEntry, AuditStore
from antiphon.store.schema import open_database
from tests.store.stores import Clock

ENTRY = AuditEntry(
    "demo", "s", "/w", "Bash", "execute", "git status", "allow", "Bash(git *)", "user config", "it is allowed", "yes"
)


@dataclass
class Numbered:
    subject: str
    session: str = "s"

    @property
    def entry(self) -> AuditEntry:
        return msgspec.structs.replace(ENTRY, subject=self.subject, session_id=self.session)


async def test_an_entry_comes_back_with_its_time(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with open_database(tmp_path) as database:
            AuditStore(database, Clock()).post(ENTRY)
        async with open_database(tmp_path) as database:
            found = await AuditStore(database).latest()
    assert found == [msgspec.structs.replace(ENTRY, at="2026-01-02T03:04:06.000000Z")]


async def test_the_latest_come_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = AuditStore(database)
        for number in range(5):
            store.post(Numbered(str(number), "even" if number % 2 == 0 else "odd").entry)
        assert [entry.subject for entry in await store.latest(3)] == ["2", "3", "4"]
        assert [entry.subject for entry in await store.latest(2, session_id="even")] == ["2", "4"]
        assert await store.latest(0) == []


async def test_a_long_or_odd_subject_is_kept_as_far_as_it_can_be(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = AuditStore(database)
        store.post(Numbered("x" * 100_000).entry)
        store.post(Numbered("/w/\udcff").entry)
        store.post(Numbered("nul\0after").entry)
        long, odd, nul = await store.latest()
        assert (len(long.subject), long.subject[-1]) == (MAX_TEXT, "…")
        assert (odd.subject, nul.subject) == ("/w/\\udcff", "nul\0after")


async def test_an_entry_has_no_place_for_raw_input() -> None:
    assert {"input", "raw_input", "content", "env"}.isdisjoint(AuditEntry.__struct_fields__)
