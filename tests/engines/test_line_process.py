"""The lines of a CLI, as the engines read them."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from antiphon.engines.process import CliProcess
from antiphon.errors import ConnectionClosed, ProcessDied, SpawnFailed
from tests.transports.children import gone
from tests.waits import idle

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()"


class PlainProcess(CliProcess[bytes]):
    """A program whose lines are taken as they are."""

    title = "the program"

    def read(self, line: bytes) -> bytes:
        return line


async def start(code: str, tmp_path: Path) -> PlainProcess:
    return await PlainProcess.start([sys.executable, "-c", code], str(tmp_path), os.environ)


async def test_lines_come_back_in_order(tmp_path: Path) -> None:
    program = await start(ECHO, tmp_path)
    for number in range(1000):
        program.send(b"%d\n" % number)
    received = []
    async for line in program.lines():
        received.append(int(line))
        if len(received) == 1000:
            break
    assert received == list(range(1000))
    await program.close()


async def test_lines_that_come_together_are_read_together_and_announced_once(tmp_path: Path) -> None:
    announced: list[bool] = []
    code = "import os, sys\nos.write(1, b'one\\ntwo\\n\\nthree\\n')\nsys.stdin.read()"
    command = [sys.executable, "-c", code]
    program = await PlainProcess.start(
        command, str(tmp_path), os.environ, lambda: announced.append(program.end is None)
    )
    lines = program.lines()
    assert [await anext(lines) for _ in range(3)] == [b"one", b"two", b"three"]
    assert announced == [True]
    await program.close()


async def test_a_slow_listener_holds_the_program_up_and_loses_nothing(tmp_path: Path) -> None:
    program = await start("for n in range(20_000): print(str(n).zfill(1000))", tmp_path)
    received: list[int] = []
    async for line in program.lines():
        received.append(int(line))
        if len(received) % 500 == 0:
            await idle()  # all that can be read meanwhile is read
            assert len(program._unread) < 1100
    assert received == list(range(20_000))
    await program.close()


async def test_a_line_of_20_megabytes_arrives_whole(tmp_path: Path) -> None:
    program = await start("print('x' * 20_000_000)", tmp_path)
    assert [len(line) async for line in program.lines()] == [20_000_000]
    await program.close()


async def test_a_line_that_is_too_long_is_left_out_and_the_next_one_read(tmp_path: Path) -> None:
    program = await start("print('x' * 70_000_000)\nprint('after')", tmp_path)
    assert [line async for line in program.lines()] == [b"after"]
    await program.close()


async def test_its_end_has_its_status_and_its_last_lines(tmp_path: Path) -> None:
    program = await start("import sys\nprint('out')\nsys.stderr.write('I give up\\n')\nsys.exit(3)", tmp_path)
    before = program.end
    assert [line async for line in program.lines()] == [b"out"]
    assert before is None and isinstance(program.end, ProcessDied) and program.end.status == 3
    assert "I give up" in str(program.end)
    program.send(b"nobody hears this\n")
    await program.close()


async def test_closing_ends_it_with_its_children(tmp_path: Path) -> None:
    child = "import subprocess, sys\nprint(subprocess.Popen(['sleep', '1000']).pid, flush=True)\nsys.stdin.read()"
    program = await start(child, tmp_path)
    lines = program.lines()
    pid = int(await anext(lines))
    await program.close()
    assert isinstance(program.end, ConnectionClosed)
    await gone(pid)


async def test_a_caller_that_does_not_read_slows_it_down_and_loses_nothing(tmp_path: Path) -> None:
    """The program writes far more than pipes and buffers hold, and is held up until it is read."""
    mark = tmp_path / "done"
    program = await start(f"for n in range(200_000): print(n)\nopen({str(mark)!r}, 'w').close()", tmp_path)
    lines = program.lines()
    assert await anext(lines) == b"0"
    await asyncio.to_thread(lambda: None)
    assert not mark.exists()
    rest = [int(line) async for line in lines]
    assert rest == list(range(1, 200_000)) and mark.exists()
    await program.close()


async def test_a_program_that_is_not_there_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match="no-such-program"):
        await PlainProcess.start(["no-such-program"], str(tmp_path), os.environ)
