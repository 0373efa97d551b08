"""One writer per session, shown with real processes."""

import asyncio
import os
import random
import signal
import stat
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.errors import AcpError
from antiphon.store import locks
from antiphon.store.locks import FOLDER, Holder, LiveElsewhere, SessionLock, holder, look_at_all
from tests.waits import idle

ROOT = Path(__file__).resolve().parents[2]


async def process(*words: str | Path) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.holder", *words, cwd=ROOT, stdin=PIPE, stdout=PIPE
    )


async def line_from(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def send_line(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    await process.stdin.drain()


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / FOLDER).glob("*.lock"))


async def test_a_session_that_another_process_has_is_refused_with_who_has_it(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        other = await process("hold", tmp_path, "s")
        assert await line_from(other) == "held"
        with pytest.raises(LiveElsewhere) as refused:
            SessionLock.take(tmp_path, "s", "Emacs")
        since = time.strftime("%H:%M", time.localtime(refused.value.holder.since))
        shown = f"session `s` is open in another Antiphon (process {other.pid}, Zed, since {since})"
        assert str(refused.value) == f"{shown}\nhint: close it there, or fork it"
        found = holder(tmp_path, "s")
        assert found is not None and (found.session_id, found.pid, found.who) == ("s", other.pid, "Zed")

        await send_line(other)
        assert await line_from(other) == "free"
        assert holder(tmp_path, "s") is None and files(tmp_path) == []
        with SessionLock.take(tmp_path, "s", "Emacs"):
            assert len(files(tmp_path)) == 1
        assert files(tmp_path) == []
        await send_line(other)
        await other.wait()


@pytest.mark.parametrize("id", ["s", "A session / with a name"])
@pytest.mark.parametrize("killed", [False, True])
async def test_a_session_that_an_older_antiphon_has_is_refused_until_that_ends(
    tmp_path: Path, id: str, killed: bool
) -> None:
    async with asyncio.timeout(60):
        other = await process("older", tmp_path, id)
        assert await line_from(other) == "held"
        for _ in range(2):
            with pytest.raises(LiveElsewhere, match=f"process {other.pid}, Zed"):
                SessionLock.take(tmp_path, id, "Emacs")
            found = holder(tmp_path, id)
            assert found is not None and found.pid == other.pid
            assert [each and each.pid for _, each in look_at_all(tmp_path)] == [other.pid]
        if killed:
            other.kill()
            await other.wait()
        else:
            await send_line(other)
            assert await line_from(other) == "free"
        assert holder(tmp_path, id) is None
        with SessionLock.take(tmp_path, id, "Emacs"):
            found = holder(tmp_path, id)
            assert found is not None and found.pid == os.getpid()
        assert files(tmp_path) == []
        if not killed:
            await send_line(other)
            await other.wait()


async def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        other = await process("hold", tmp_path, "s")
        assert await line_from(other) == "held"
        other.kill()
        await other.wait()
        assert len(files(tmp_path)) == 1 and holder(tmp_path, "s") is None
        assert [found for _, found in look_at_all(tmp_path)] == [None]
        with SessionLock.take(tmp_path, "s", "Emacs"):
            found = holder(tmp_path, "s")
            assert found is not None and (found.pid, found.who) == (os.getpid(), "Emacs")
        assert files(tmp_path) == []


async def test_a_program_that_outlives_its_owner_does_not_hold_the_lock(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        other = await process("leave", tmp_path, "s")
        left = int(await line_from(other))
        other.kill()
        await other.wait()
        try:
            os.kill(left, 0)  # it is there
            SessionLock.take(tmp_path, "s", "Emacs").release()
        finally:
            os.kill(left, signal.SIGKILL)


def test_the_same_process_has_it_once_too(tmp_path: Path) -> None:
    lock = SessionLock.take(tmp_path, "s", "Zed")
    with pytest.raises(LiveElsewhere, match="is open in this Antiphon already"):
        SessionLock.take(tmp_path, "s", "Zed")
    SessionLock.take(tmp_path, "t", "Zed").release()
    lock.release()
    again = SessionLock.take(tmp_path, "s", "Zed")
    lock.release()  # the second time it is not its own any more
    with pytest.raises(LiveElsewhere):
        SessionLock.take(tmp_path, "s", "Zed")
    again.release()


@pytest.mark.slow
async def test_of_many_processes_that_race_one_has_it_at_a_time(tmp_path: Path) -> None:
    count = 300
    async with asyncio.timeout(50):
        racers = [await process("race", tmp_path, "s", str(count)) for _ in range(8)]
        for racer in racers:
            assert await line_from(racer) == "ready"
        ends = await asyncio.gather(*[racer.communicate(b"go\n") for racer in racers])
        assert [racer.returncode for racer in racers] == [0] * len(racers)
        results = [tuple(map(int, out.split())) for out, _ in ends]
        assert all(took + refused == count for took, refused in results)
        assert sum(took for took, _ in results) > 0
        assert files(tmp_path) == []


@contextmanager
def looking(directory: Path, id: str, threads: int) -> Iterator[None]:
    """Others look all the time."""
    end = threading.Event()

    def look() -> None:
        while not end.is_set():
            holder(directory, id)

    lookers = [threading.Thread(target=look) for _ in range(threads)]
    for looker in lookers:
        looker.start()
    try:
        yield
    finally:
        end.set()
        for looker in lookers:
            looker.join()


def test_a_reader_keeps_no_process_from_taking_the_lock(tmp_path: Path) -> None:
    with looking(tmp_path, "s", 4):
        for _ in range(300):
            SessionLock.take(tmp_path, "s", "Zed").release()


def test_a_name_of_any_kind_is_a_file_in_the_folder(tmp_path: Path) -> None:
    @given(st.text(st.characters()))
    def check(id: str) -> None:
        with SessionLock.take(tmp_path, id, id):
            assert len(files(tmp_path)) == 1
            assert (found := holder(tmp_path, id)) is not None
            assert found.session_id in (id, "")  # half of a surrogate pair cannot be written down
            with pytest.raises(LiveElsewhere):
                SessionLock.take(tmp_path, id, "")
        assert os.listdir(tmp_path) == [FOLDER]

    check()


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("0198f3a2-77c1", "0198f3a2-77c1.lock"),
        ("a_b", "a_b.lock"),
        ("A", "+"),
        ("../x", "+"),
        ("", "+"),
        ("a" * 300, "+"),
        ("a\n", "+"),
    ],
)
def test_an_id_is_the_name_of_its_file_where_it_can_be(tmp_path: Path, id: str, name: str) -> None:
    with SessionLock.take(tmp_path, id, "Zed"):
        (found,) = files(tmp_path)
    assert found.startswith(name) and found.endswith(".lock") and "/" not in found


def test_files_are_for_the_user_alone(tmp_path: Path) -> None:
    with SessionLock.take(tmp_path / "state", "s", "Zed") as lock:
        assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(lock.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b'{"pid":"x"}', b'{"pid":99999999999999999999}'])
def test_an_owner_whose_words_cannot_be_read_has_it_all_the_same(tmp_path: Path, text: bytes) -> None:
    with SessionLock.take(tmp_path, "s", "Zed") as lock:
        lock.path.write_bytes(text)
        assert holder(tmp_path, "s") == Holder()
        with pytest.raises(LiveElsewhere, match="`s` is open in another Antiphon\nhint"):
            SessionLock.take(tmp_path, "s", "Zed")


def test_what_a_dead_process_wrote_is_not_shown(tmp_path: Path) -> None:
    with SessionLock.take(tmp_path, "s", "Zed") as lock:
        dead = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})
        os.waitpid(dead, 0)
        lock.path.write_bytes(b'{"session_id":"s","pid":%d,"who":"Zed","since":1}' % dead)
        assert holder(tmp_path, "s") == Holder()


async def test_a_file_that_was_removed_is_still_locked(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        other = await process("hold", tmp_path, "s")
        assert await line_from(other) == "held"
        for name in files(tmp_path):
            (tmp_path / FOLDER / name).unlink()
        with pytest.raises(LiveElsewhere):
            SessionLock.take(tmp_path, "s", "Emacs")
        await send_line(other)
        assert await line_from(other) == "free"
        SessionLock.take(tmp_path, "s", "Emacs").release()
        await send_line(other)
        await other.wait()


def test_hundreds_of_locks_take_one_descriptor(tmp_path: Path) -> None:
    SessionLock.take(tmp_path, "first", "Zed").release()
    before = len(os.listdir("/dev/fd"))
    locks = [SessionLock.take(tmp_path, f"session-{number}", "Zed") for number in range(500)]
    assert len(os.listdir("/dev/fd")) == before
    assert len([found for _, found in look_at_all(tmp_path) if found]) == 500
    for lock in locks:
        lock.release()
    assert files(tmp_path) == []


async def test_taking_a_lock_on_an_event_loop_lets_other_tasks_work_while_it_waits(tmp_path: Path) -> None:
    """Another process shares the lock, as those who look do, and does not let go of it: that is reported in the end."""
    async with asyncio.timeout(30):
        SessionLock.take(tmp_path, "s", "Zed").release()
        other = await process("look", tmp_path, "s")
        assert await line_from(other) == "looking"
        taking = asyncio.create_task(SessionLock.take_async(tmp_path, "s", "Zed"))
        others = 0
        while not taking.done():
            await asyncio.sleep(0.001)
            others += 1
        with pytest.raises(LiveElsewhere):
            taking.result()
        assert others > 1
        again = asyncio.create_task(SessionLock.take_async(tmp_path, "s", "Zed"))
        await send_line(other)
        (await again).release()
        await send_line(other)
        await other.wait()


async def test_a_cancelled_taker_holds_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        SessionLock.take(tmp_path, "s", "Zed").release()
        other = await process("look", tmp_path, "s")
        assert await line_from(other) == "looking"
        taking = asyncio.create_task(SessionLock.take_async(tmp_path, "s", "Zed"))
        await idle()
        taking.cancel()
        await asyncio.wait([taking])
        await send_line(other)
        assert await line_from(other) == "free"
        assert holder(tmp_path, "s") is None
        SessionLock.take(tmp_path, "s", "Zed").release()
        await send_line(other)
        await other.wait()


def test_a_child_made_by_fork_has_none_of_the_locks_of_its_parent(tmp_path: Path) -> None:
    lock = SessionLock.take(tmp_path, "s", "Zed")
    if (child := os.fork()) == 0:
        status = 1
        try:
            SessionLock.take(tmp_path, "s", "its child")
        except LiveElsewhere as refused:
            status = 0 if refused.holder.pid == os.getppid() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lock.release()


async def test_whatever_processes_do_each_session_has_one_owner_and_the_dead_have_none(tmp_path: Path) -> None:
    """Take, release and SIGKILL, from a seed; what three processes report is compared with what has to be."""
    async with asyncio.timeout(120):
        for seed in range(3):
            await _owners(tmp_path / str(seed), random.Random(seed))


async def _owners(directory: Path, rng: random.Random) -> None:
    workers: dict[int, Process] = {}
    owners: dict[str, int] = {}
    for _ in range(120):
        number, id = rng.randrange(3), rng.choice("abcdef")
        if number not in workers:
            workers[number] = await process("serve", directory, "-")
        worker = workers[number]
        what = rng.choice(("take", "take", "release", "look", "kill"))
        if what == "kill" and rng.random() < 0.3:
            worker.kill()
            await worker.wait()
            del workers[number]
            owners = {session: owner for session, owner in owners.items() if owner != number}
        elif what != "kill":
            assert worker.stdin is not None
            worker.stdin.write(f"{what} {id}\n".encode())
            text = await line_from(worker)
            if what == "take":
                assert text == ("taken" if id not in owners else "refused")
                owners.setdefault(id, number)
            elif what == "look":
                assert text == ("free" if id not in owners else str(workers[owners[id]].pid))
            elif owners.get(id) == number:
                del owners[id]
        found = {each.session_id: each.pid for _, each in look_at_all(directory) if each}
        assert found == {session: workers[owner].pid for session, owner in owners.items()}
    for worker in workers.values():
        worker.kill()
        await worker.wait()


def test_a_directory_that_takes_no_file_is_reported_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    with pytest.raises(AcpError, match=r"cannot be locked: Not a directory\nhint: .*ANTIPHON_STATE_DIR"):
        SessionLock.take(tmp_path / "state", "s", "Zed")


def test_an_earlier_day_is_shown_with_its_date() -> None:
    assert str(Holder("s", 7, "Zed", 86400.0 * 365)).startswith("process 7, Zed, since 197")
    assert str(Holder()) == ""


class Takers(RuleBasedStateMachine):
    """Any order of taking, looking and letting go leaves one owner and one file per session that has one."""

    def __init__(self) -> None:
        super().__init__()
        from tempfile import mkdtemp

        self.directory = Path(mkdtemp())
        self.held: dict[str, SessionLock] = {}

    @rule(id=st.sampled_from("abc"))
    def take(self, id: str) -> None:
        try:
            lock = SessionLock.take(self.directory, id, "test")
        except LiveElsewhere:
            assert id in self.held
        else:
            assert id not in self.held
            self.held[id] = lock

    @rule(id=st.sampled_from("abc"))
    def let_go(self, id: str) -> None:
        if (lock := self.held.pop(id, None)) is not None:
            lock.release()
            lock.release()

    @invariant()
    def the_owners_are_known(self) -> None:
        assert {found.session_id for _, found in look_at_all(self.directory) if found} == set(self.held)
        assert {id for id in "abc" if holder(self.directory, id)} == set(self.held)

    def teardown(self) -> None:
        from shutil import rmtree

        for lock in self.held.values():
            lock.release()
        rmtree(self.directory)


TestTakers = Takers.TestCase


def test_locking_needs_no_database() -> None:
    import subprocess

    code = f"import sys, {locks.__name__}; sys.exit(any(name in sys.modules for name in ('sqlite3', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
