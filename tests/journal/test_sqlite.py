"""What only the journal of one machine promises: leases end with their process, and stored sessions of before are its sessions."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from antiphon.journal.base import JournalEntry
from antiphon.journal.sqlite import SqliteJournal
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore

CLAIMER = """
import asyncio, sys
from pathlib import Path
from antiphon.journal.sqlite import SqliteJournal
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore
async def main():
    place = Path(sys.argv[1])
    journal = SqliteJournal(SessionStore(open_database(place)), place)
    await journal.append(await journal.claim("s"), [b"1"])
    print("claimed", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_process_that_is_killed_has_no_lease_any_more(tmp_path: Path) -> None:
    async with open_database(tmp_path) as database:
        store = SessionStore(database)
        await store.create("s", "antiphon", "/w")
        with subprocess.Popen([sys.executable, "-c", CLAIMER, str(tmp_path)], stdout=subprocess.PIPE) as claimer:  # noqa: ASYNC220
            assert claimer.stdout is not None and claimer.stdout.readline() == b"claimed\n"
            os.kill(claimer.pid, signal.SIGKILL)
            claimer.wait()
        journal = SqliteJournal(store, tmp_path)
        assert await journal.append(await journal.claim("s"), [b"2"]) == 2


async def test_a_history_of_before_has_its_numbers(tmp_path: Path) -> None:
    async with open_database(tmp_path) as database:
        store = SessionStore(database)
        await store.create("s", "antiphon", "/w")
        await store.append("s", [b"a", b"b"])
        journal = SqliteJournal(store, tmp_path)
        assert await journal.append(await journal.claim("s"), [b"c"]) == 3
        assert await journal.read("s", 1) == [JournalEntry(2, b"b"), JournalEntry(3, b"c")]
