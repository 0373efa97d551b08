"""Our own stdin and stdout, seen from the program that started us."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.transports.pairs import python

PROGRAM = """
import asyncio, os, subprocess, sys
from antiphon.transports.stdio import open_stdio

async def main():
    print("before", flush=True)
    transport = open_stdio()
    print("printed by a library")
    os.system("echo printed by a child; cat")
    sys.stdout.flush()
    while (frame := await transport.receive()) is not None:
        await transport.send(frame[::-1])
    await transport.close()

asyncio.run(main())
"""


async def test_only_frames_reach_stdout_and_prints_land_on_stderr() -> None:
    async with python(PROGRAM) as child:
        assert await child.receive() == b"before"
        await child.send(b"abc")
        async with asyncio.timeout(10):
            assert await child.receive() == b"cba"
    assert sorted(child.stderr.splitlines()) == ["printed by a child", "printed by a library"]


def test_stdin_may_be_a_file_and_stdout_too(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\nthree")
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        subprocess.run(
            [sys.executable, "-c", PROGRAM], stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, check=True
        )
    assert (tmp_path / "out").read_bytes() == b"before\neno\nowt\neerht\n"


def test_stdin_may_be_empty(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout == b"before\n"


def test_stdin_may_be_a_terminal_and_keeps_its_mode() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL):
        received = b""
        while b"before" not in received:
            received += os.read(ours, 1000)
        os.write(ours, b"abc\n")
        while b"cba" not in received:
            received += os.read(ours, 1000)
        assert os.get_blocking(theirs)
        os.write(ours, b"\x04")
    os.close(ours)
    os.close(theirs)
