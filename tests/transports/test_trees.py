"""Trees of processes: ended whole, whatever left the group and whatever became of us."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest

from antiphon.transports import process, tree
from antiphon.transports.process import spawn
from tests.transports.children import alive, gone
from tests.transports.pairs import python
from tests.waits import until

TREE = """
import os, subprocess, sys
where = sys.argv[1]
subprocess.Popen(["sh", "-c", "sleep 300 & echo $! > %s/in_group; wait" % where], stdout=subprocess.DEVNULL)
subprocess.Popen(["sh", "-c", "echo $$ > %s/left_group; exec sleep 300" % where], stdout=subprocess.DEVNULL,
                 start_new_session=True)
while not all(os.path.exists(f"{where}/{name}") and open(f"{where}/{name}").read().endswith("\\n")
              for name in ("in_group", "left_group")): pass
print("up", flush=True)
sys.stdin.read()
"""


def pids_in(folder: Path) -> dict[str, int]:
    return {name: int((folder / name).read_text(encoding="utf-8")) for name in ("in_group", "left_group")}


async def test_closing_ends_the_whole_tree_and_processes_that_left_the_group(tmp_path: Path) -> None:
    async with python(TREE, str(tmp_path)) as child:
        assert await child.receive() == b"up"
        pids = pids_in(tmp_path)
        assert all(map(alive, pids.values()))
    async with asyncio.timeout(1):  # they were killed: what is left is the kernel's work
        await gone(*pids.values())


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes in /proc")
async def test_a_whole_tree_is_stopped_and_goes_on_or_is_killed_where_it_stands(tmp_path: Path) -> None:
    def states() -> list[str]:
        return [tree._state_of(pid) for pid in (child.pid, *pids_in(tmp_path).values())]

    async with python(TREE, str(tmp_path)) as child:
        assert await child.receive() == b"up"
        await child.freeze()
        await until(lambda: states() == ["T"] * 3)
        await child.thaw()
        await until(lambda: "T" not in states())
        await child.freeze()
        await child.kill()
        async with asyncio.timeout(1):
            await gone(*pids_in(tmp_path).values())


@pytest.mark.slow
async def test_a_wrapper_is_a_group_like_any_other(tmp_path: Path) -> None:
    # As npx and uv do: a shell that starts the real program and waits for it.
    inner = f"{sys.executable} -u -c 'import os; print(os.getpid()); import time; time.sleep(300)'; true"
    child = await spawn(["sh", "-c", inner])
    pid = await child.receive()
    assert isinstance(pid, bytes) and alive(int(pid))
    await child.close()
    async with asyncio.timeout(1):
        await gone(int(pid))


async def test_a_group_member_may_clean_up_after_term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.2)
    saves = (
        "import signal, sys, time\n"
        "def save(*_): time.sleep(0.3); open(sys.argv[1], 'w').write('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    child = await spawn(
        ["sh", "-c", f'trap "exit 0" TERM; {sys.executable} -c "$0" "$1" & wait', saves, str(tmp_path / "f")]
    )
    assert await child.receive() == b"up"
    await child.close()
    assert (tmp_path / "f").read_text(encoding="utf-8") == "saved"


async def test_a_process_whose_parent_ends_while_the_tree_is_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    child = await spawn(["sh", "-c", "sleep 300 & echo $!; wait"])
    inner = int(bytes(await child.receive() or b""))  # type: ignore[arg-type]
    read, wait = tree._children_of, [child.pid]

    def children_of(parent: int) -> list[int]:
        found = read(parent)
        if wait and child.pid in found:
            os.kill(wait.pop(), signal.SIGKILL)
            while tree._state_of(child.pid) != "Z":
                pass
        return found

    monkeypatch.setattr(tree, "_children_of", children_of)
    assert child.members() == [inner] and not wait
    await child.close()


OWNER = """
import asyncio, sys
from antiphon.transports.process import spawn

async def main():
    child = await spawn([sys.executable, "-u", "-c", sys.argv[1], sys.argv[2]])
    print((await child.receive()).decode(), child.pid, flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


@contextmanager
def owner(program: str, folder: Path, mark: str = "") -> "Iterator[subprocess.Popen[bytes]]":
    """A program that owns a tree of processes, from outside."""
    mark = mark or token_hex()  # its own: tests run side by side, and at the end everything marked is killed
    environment = tree.marked(os.environ, mark)
    command = [sys.executable, "-W", "ignore", "-c", program, TREE, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()
            tree.kill_tree(process.pid, mark)


async def first_words(process: "subprocess.Popen[bytes]") -> list[bytes]:
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).split()


async def test_nothing_outlives_us_even_when_we_are_killed(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        with owner(OWNER, tmp_path) as process:
            word, pid = await first_words(process)
            assert word == b"up"
            pids = [*pids_in(tmp_path).values(), int(pid)]
            assert all(map(alive, pids))
            process.kill()
            await gone(*pids)


async def test_a_watcher_leaves_with_its_owner(tmp_path: Path) -> None:
    """It must not become the orphan that it is there to prevent."""
    async with asyncio.timeout(20):
        with owner(OWNER, tmp_path, f"0wn3d{os.getpid()}") as process:
            await first_words(process)
            everyone = tree.processes_with(f"0wn3d{os.getpid()}")
            assert len(everyone) >= 5  # the owner, its child, two grandchildren, the watcher
            process.terminate()
            await gone(*everyone)


async def test_a_program_that_exits_without_closing_leaves_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        with owner(OWNER.replace("await asyncio.sleep(300)", "sys.exit(0)"), tmp_path) as process:
            _, pid = await first_words(process)
            await asyncio.to_thread(process.wait)
            await gone(*pids_in(tmp_path).values(), int(pid))


async def test_a_fork_of_ours_does_not_hide_our_death(tmp_path: Path) -> None:
    forking = OWNER.replace("print((", "os.fork() or time.sleep(300); print((").replace(
        "import asyncio", "import asyncio, os, time"
    )
    async with asyncio.timeout(20):
        with owner(forking, tmp_path, f"f0rk3d{os.getpid()}") as process:
            _, pid = await first_words(process)
            process.kill()
            await gone(*pids_in(tmp_path).values(), int(pid))
            assert tree.processes_with(f"f0rk3d{os.getpid()}")  # the fork lives on: it is not what we spawned


SUICIDAL = """
import asyncio, os, sys
from antiphon.transports.process import spawn

async def main():
    await spawn(["sh", "-c", "echo $$ > %s/pid; kill -9 %d; exec sleep 300" % (sys.argv[2], os.getpid())])
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_a_child_that_kills_us_as_it_starts_does_not_outlive_us(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        with owner(SUICIDAL, tmp_path) as process:
            await asyncio.to_thread(process.wait)
            await gone(int((tmp_path / "pid").read_text(encoding="utf-8")))


TWO_WATCHERS = """
import asyncio, os, sys
from antiphon.transports import guard
from antiphon.transports.process import spawn

async def main():
    first = await spawn(["sleep", "300"])
    os.kill(guard._watcher.pid, 9)
    guard._watcher.wait(10)
    second = await spawn([sys.executable, "-u", "-c", sys.argv[1], sys.argv[2]])
    print((await second.receive()).decode(), first.pid, second.pid, flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_a_watcher_that_is_killed_is_replaced_and_nothing_forgotten(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        with owner(TWO_WATCHERS, tmp_path) as process:
            _, first, second = await first_words(process)
            process.kill()
            await gone(int(first), int(second), *pids_in(tmp_path).values())


async def test_a_nested_tree_keeps_the_outer_mark_even_in_an_environment_made_from_nothing(tmp_path: Path) -> None:
    inner = OWNER.replace("sys.argv[2]])", "sys.argv[2]], env={'PATH': '/usr/bin:/bin'})")
    async with python(inner, TREE, str(tmp_path)) as middle:
        words = await middle.receive()
        assert isinstance(words, bytes)
        pids = [*pids_in(tmp_path).values(), int(words.split()[1])]
        tree.kill_tree(middle.pid, middle._child.mark)  # the middle, its watcher and all below at one stroke
        async with asyncio.timeout(5):
            await gone(*pids)
