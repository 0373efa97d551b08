"""The one process of a CLI: started ahead, shared by its callers, followed by another when it is gone, never two at a time."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from antiphon.engines.process import TRIES, KeptProcess
from antiphon.errors import ConnectionClosed, SpawnFailed
from tests.engines.test_line_process import PlainProcess
from tests.transports.children import gone
from tests.waits import idle


class FakeProcess:
    """A process whose lines a test sends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.end: ConnectionClosed | None = None
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def send(self, line: str) -> None:
        self._lines.put_nowait(line)

    def die(self) -> None:
        if self.end is None:
            self.end = ConnectionClosed(f"{self.pid} is dead")
            self._lines.put_nowait(None)

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def close(self) -> None:
        self.die()


class Owner:
    """An owner that logs what happens; starting and receiving can be made to wait, starting and beginning to fail."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.tries = 0
        self.started: list[FakeProcess] = []
        self.may_start, self.may_receive = asyncio.Event(), asyncio.Event()
        self.may_start.set()
        self.may_receive.set()
        self.no_start: Exception | None = None
        self.no_beginning: Exception | None = None
        self.dying = 0
        """How many die as soon as they can be spoken to."""

    async def start(self) -> FakeProcess:
        self.tries += 1
        await self.may_start.wait()
        if self.no_start is not None:
            raise self.no_start
        process = FakeProcess(len(self.started) + 1)
        self.started.append(process)
        self.log.append(f"start {process.pid}")
        return process

    async def began(self, process: FakeProcess) -> None:
        if self.no_beginning is not None:
            raise self.no_beginning
        if self.dying > 0:
            self.dying -= 1
            process.die()

    def receive(self, process: FakeProcess, line: str) -> Awaitable[None]:
        return self._receive(process, line)

    async def _receive(self, process: FakeProcess, line: str) -> None:
        await self.may_receive.wait()
        if line == "nonsense":
            raise ValueError(line)
        self.log.append(f"{process.pid}: {line}")

    async def ended(self, process: FakeProcess) -> None:
        self.log.append(f"end {process.pid}")


async def test_the_last_lines_of_a_dropped_process_are_handled_before_the_next_one_starts() -> None:
    owner = Owner()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    first = await running.ready()
    owner.may_receive.clear()
    first.send("late")
    first.send("and later")
    await idle()
    running.drop(first)
    second = asyncio.create_task(running.ready())
    await idle()
    assert first.end is not None and len(owner.started) == 1  # it is gone, but not all of its lines were read
    owner.may_receive.set()
    assert (await second).pid == 2
    assert owner.log == ["start 1", "1: late", "1: and later", "end 1", "start 2"]
    await running.close()


async def test_two_callers_at_once_share_one_start() -> None:
    owner = Owner()
    owner.may_start.clear()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    running.start_soon()
    waiting = [asyncio.create_task(running.ready()) for _ in range(2)]
    await idle()
    assert owner.started == []
    owner.may_start.set()
    one, other = await asyncio.gather(*waiting)
    assert one is other is await running.ready() is running.process and owner.tries == 1
    await running.close()


async def test_a_caller_that_stops_waiting_does_not_stop_the_start() -> None:
    owner = Owner()
    owner.may_start.clear()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    impatient = asyncio.create_task(running.ready())
    await idle()
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    patient = asyncio.create_task(running.ready())
    owner.may_start.set()
    assert (await patient).end is None and owner.tries == 1
    await running.close()


async def test_a_start_that_fails_is_raised_and_tried_again() -> None:
    owner = Owner()
    owner.no_start = SpawnFailed("sing", OSError("there is none"))
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    running.start_soon()
    for _ in range(2):
        with pytest.raises(SpawnFailed, match="there is none"):
            await running.ready()
    owner.no_start = None
    assert (await running.ready()).pid == 1
    await running.close()


async def test_a_process_that_is_of_no_use_is_ended_and_the_next_one_waits_for_that() -> None:
    owner = Owner()
    owner.no_beginning = ConnectionClosed("it says nothing")
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    with pytest.raises(ConnectionClosed, match="it says nothing"):
        await running.ready()
    owner.no_beginning = None
    assert (await running.ready()).pid == 2
    assert owner.started[0].end is not None and owner.log == ["start 1", "end 1", "start 2"]
    await running.close()


async def test_a_line_that_goes_wrong_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    owner = Owner()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    process = await running.ready()
    for line in ("one", "nonsense", "two"):
        process.send(line)
    await idle()
    assert owner.log == ["start 1", "1: one", "1: two"] and "nonsense" in caplog.text
    assert running.process is process
    await running.close()


async def test_one_that_dies_by_itself_is_followed_by_another() -> None:
    owner = Owner()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    first = await running.ready()
    first.send("last words")
    first.die()
    assert running.process is None
    second = await running.ready()
    assert second is not first and second is await running.ready()
    assert owner.log == ["start 1", "1: last words", "end 1", "start 2"]
    await running.close()


async def test_a_process_that_dies_as_soon_as_it_is_ready_is_not_handed_out() -> None:
    owner = Owner()
    owner.dying = 2
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    process = await running.ready()
    assert process.end is None and process is running.process
    assert owner.log == ["start 1", "end 1", "start 2", "end 2", "start 3"]
    await running.close()


async def test_processes_that_all_die_at_once_are_not_started_for_ever() -> None:
    owner = Owner()
    owner.dying = 1000
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    with pytest.raises(ConnectionClosed, match="is dead"):
        await running.ready()
    assert len(owner.started) == TRIES
    await running.close()


async def test_after_the_end_nothing_is_started_any_more() -> None:
    owner = Owner()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    process = await running.ready()
    await running.close()
    assert process.end is not None and owner.log == ["start 1", "end 1"]
    with pytest.raises(ConnectionClosed):
        await running.ready()
    assert len(owner.started) == 1


async def test_what_is_just_being_started_is_ended_too() -> None:
    owner = Owner()
    owner.may_start.clear()
    running: KeptProcess[FakeProcess] = KeptProcess(owner)
    running.start_soon()
    await idle()
    await running.close()
    owner.may_start.set()
    await idle()
    assert owner.started == [] and running.process is None


class RealOwner:
    """Has a real program, which says hello and waits for its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.over: asyncio.Queue[int] = asyncio.Queue()

    async def start(self) -> PlainProcess:
        code = "import sys\nprint('hello', flush=True)\nsys.stdin.read()"
        return await PlainProcess.start([sys.executable, "-c", code], str(self._folder), os.environ)

    async def began(self, process: PlainProcess) -> None:
        assert await self.received.get() == b"hello"

    async def receive(self, process: PlainProcess, line: bytes) -> None:
        self.received.put_nowait(line)

    async def ended(self, process: PlainProcess) -> None:
        self.over.put_nowait(process.pid)


async def test_a_real_program_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    owner = RealOwner(tmp_path)
    running: KeptProcess[PlainProcess] = KeptProcess(owner)
    first = await running.ready()
    os.kill(first.pid, signal.SIGKILL)
    assert await owner.over.get() == first.pid
    second = await running.ready()
    assert second.pid != first.pid and second.end is None and running.process is second
    await running.close()
    assert await owner.over.get() == second.pid
    await gone(second.pid)
