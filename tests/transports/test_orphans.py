"""Nothing that a child starts outlives us, whatever it does with its session, its group, its parent and its environment.

The ways to start a process are random compositions of the ways that there are, from a seed. Each process that a way starts writes its id
into a file and sleeps; the test then ends the owner in one of several ways and waits for all of them to end.
"""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from antiphon.local.commands import LocalCommand
from antiphon.transports import tree
from antiphon.transports.process import spawn
from tests.limits import limit
from tests.transports.children import alive, gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="subreapers are of Linux")

DAEMON = """
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
for fd in range(256):
    try: os.close(fd)
    except OSError: pass
os.open("/dev/null", os.O_RDWR); os.dup(0); os.dup(0)
os.execve(sys.argv[1], sys.argv[1:], {})
"""
"""A daemon by the book: two forks, a session of its own, nothing open, no environment."""


def path(name: str) -> str:
    found = shutil.which(name)
    assert found is not None
    return found


SH, ENV, SETSID, NOHUP, SLEEP = map(path, ("sh", "env", "setsid", "nohup", "sleep"))

WAYS: Final[dict[str, list[str]]] = {
    "plain": [SH, "-c", '"$@"; exit $?', "sh"],
    "background": [SH, "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh"],
    "own group": [SH, "-m", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh"],
    "setsid": [SETSID],
    "setsid, forked": [SETSID, "-f"],
    "nohup": [NOHUP],
    "cleared environment": [ENV, "-i"],
    "other environment": [ENV, "-i", "PATH=/bin:/usr/bin", f"{tree.MARK}=0"],
    "daemon": [sys.executable, "-I", "-S", "-c", DAEMON],
    "deaf": [SH, "-c", 'trap "" HUP INT TERM; "$@" & wait', "sh"],
}

STARTER = """
import json, os, subprocess, sys, time
ways, where = json.loads(sys.argv[1]), sys.argv[2]
for way in ways:
    subprocess.Popen(way, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while len([name for name in os.listdir(where) if name.endswith(".up")]) < len(ways): time.sleep(0.01)
print("up", flush=True)
if "leave" not in sys.argv:
    time.sleep(300)
"""
"""Starts all of them, says so when all have written their ids, and stays, or leaves them behind."""


def compositions(seed: int, folder: Path, count: int) -> list[list[str]]:
    """Return commands, each a random composition of ways around a process that writes its id and sleeps."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        way = [word for name in chance.choices(list(WAYS), k=chance.randint(1, 4)) for word in WAYS[name]]
        leaf = f"echo $$ > {folder}/{number} && : > {folder}/{number}.up && exec {SLEEP} 300"
        made.append([*way, SH, "-c", leaf])
    return made


def started(folder: Path) -> list[int]:
    return [int((folder / name.stem).read_text(encoding="utf-8")) for name in folder.glob("*.up")]


def wait_for(folder: Path, count: int) -> None:
    """Wait until so many processes have written their ids."""
    rest = threading.Event()
    while len(started(folder)) < count:
        rest.wait(0.01)


@contextmanager
def owner_of(program: str, words: Sequence[str], folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a program that starts the words. At the end nothing is left running, even if the test failed."""
    command = [sys.executable, "-c", program, *words]
    with (
        everything_ended(folder),
        subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def everything_ended(folder: Path) -> Iterator[None]:
    """Leave nothing running if the test fails."""
    try:
        yield
    finally:
        for pid in filter(alive, started(folder)):
            with suppress(ProcessLookupError):  # it ends by itself in this moment
                os.kill(pid, 9)


OWNERS: Final = {
    "spawn": """
import asyncio, sys
from antiphon.transports.process import spawn
async def main():
    child = await spawn(sys.argv[1:])
    print((await child.receive()).decode(), flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
""",
    "LocalCommand": """
import asyncio, sys
from antiphon.local.commands import LocalCommand
async def main():
    command = await LocalCommand.start(sys.argv[1:])
    await command.more(0)
    print(command.output().strip(), flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
""",
    "record": "from antiphon.cli.main import main; import sys; main(['record', '-q', '-o', 'recording.jsonl', '--', *sys.argv[1:]])",
    "a fork of its own": """
import os, sys
from antiphon.transports import guard
child = guard.start(sys.argv[1:], (0, 1, 2), env=os.environ, apart=True)
child.ended(None)
""",
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("owner", OWNERS)
async def test_nothing_outlives_an_owner_that_is_killed(owner: str, seed: int, tmp_path: Path) -> None:
    starter = [sys.executable, "-I", "-c", STARTER, json.dumps(compositions(seed, tmp_path, 8)), str(tmp_path)]
    with owner_of(OWNERS[owner], starter, tmp_path) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"up\n"
        pids = started(tmp_path)
        assert len(pids) == 8 and all(map(alive, pids))
        process.kill()
        async with asyncio.timeout(60):
            await gone(*pids)


async def _left_behind(words: Sequence[str]) -> None:
    async with await LocalCommand.start(words) as command:
        await command.wait()


async def _spawned(words: Sequence[str]) -> None:
    child = await spawn(words)
    assert await child.receive() == b"up"
    await child.close()


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("seed", range(2))
async def test_closing_a_child_ends_what_it_started_and_what_it_left_behind(
    seed: int, leaves: bool, tmp_path: Path
) -> None:
    ways = json.dumps(compositions(seed, tmp_path, 8))
    starter = [sys.executable, "-I", "-c", STARTER, ways, str(tmp_path), *(["leave"] if leaves else [])]
    with everything_ended(tmp_path):
        async with asyncio.timeout(60):
            await (_left_behind(starter) if leaves else _spawned(starter))
        assert len(started(tmp_path)) == 8 and not any(map(alive, started(tmp_path)))


async def test_a_child_that_kills_its_supervisor_is_ended_with_us_all_the_same(tmp_path: Path) -> None:
    words = [SH, "-c", f"kill -9 $PPID; echo $$ > {tmp_path}/0 && : > {tmp_path}/0.up && echo up && exec {SLEEP} 300"]
    program = OWNERS["spawn"].replace("(await child.receive()).decode()", "'up'")
    with owner_of(program, words, tmp_path) as process:
        async with asyncio.timeout(60):
            await asyncio.to_thread(wait_for, tmp_path, 1)
            process.kill()
            await gone(*started(tmp_path))


REAPER = """
import _socket, os, sys
from antiphon.transports import tree, watcher
pids = [os.posix_spawn("/bin/true", ["true"], {}) for _ in range(3)]
for pid in pids:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
reaper = watcher._Reaper(pids[0] if sys.argv[1] == "all_processes" else 0, _socket.socketpair()[0])
module = {"all_processes": tree, "waitid": os}[sys.argv[1]]
real = getattr(module, sys.argv[1])
def interrupted(*words):
    found = real(*words)
    found = list(found) if sys.argv[1] == "all_processes" else found
    setattr(module, sys.argv[1], real)
    reaper.reap()
    return found
setattr(module, sys.argv[1], interrupted)
reaper.reap()
"""
"""Reaps children that have ended, and is interrupted by another signal between finding one and reaping it."""


@pytest.mark.parametrize("where", ["waitid", "all_processes"])
def test_a_supervisor_goes_on_when_children_end_while_it_reaps_others(where: str) -> None:
    done = subprocess.run([sys.executable, "-c", REAPER, where], stderr=subprocess.PIPE, check=False, timeout=limit())
    assert (done.returncode, done.stderr) == (0, b"")


WITHOUT = """
import os, sys
from antiphon.transports import guard, tree, watcher
del os.waitid
watcher.become_subreaper = lambda: False
child = guard.start(sys.argv[2:], (0, 1, 2), env=os.environ, apart=True)
if sys.argv[1] == "wait":
    child.ended(None)
    print(child.returncode, flush=True)
    child.release()
else:
    child.ended(None)
"""
"""An owner on a system without subreapers and without `waitid`, as macOS before Python 3.13."""


def test_without_subreapers_a_status_is_reported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "wait", SH, "-c", "exit 6"], stdout=subprocess.PIPE, check=True, timeout=limit()
    )
    assert done.stdout == b"6\n"


async def test_without_subreapers_the_group_and_what_carries_the_mark_end(tmp_path: Path) -> None:
    leaf = "echo $$ > {0}/{1} && : > {0}/{1}.up && exec sleep 300"
    one, two = (leaf.format(tmp_path, number) for number in range(2))
    line = f"setsid sh -c '{one}' & (sh -c '{two}' &) ; echo up; wait; sleep 300"
    with owner_of(WITHOUT, ["stay", SH, "-c", line], tmp_path) as process:
        async with asyncio.timeout(60):
            await asyncio.to_thread(wait_for, tmp_path, 2)
            process.kill()
            await gone(*started(tmp_path))
