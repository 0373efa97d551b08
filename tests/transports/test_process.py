"""Children: started, heard, ended with everything they started."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from antiphon.errors import ConnectionClosed, LocalProtocolError, ProcessDied, SpawnFailed
from antiphon.rpc.envelope import Frame
from antiphon.transports import pipes, process, tree
from antiphon.transports.process import STDERR_LINES, ProcessTransport, spawn
from tests.transports.pairs import python

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


class Ear:
    """A sink that remembers what it is told."""

    def __init__(self) -> None:
        self.heard: list[Frame] = []
        self.end: asyncio.Future[ConnectionClosed] = asyncio.get_running_loop().create_future()

    def block_received(self, block: Frame) -> None:
        self.heard.append(block)

    def connection_lost(self, error: ConnectionClosed) -> None:
        self.end.set_result(error)


async def end_of(child: ProcessTransport) -> ConnectionClosed:
    ear = Ear()
    child.attach(ear)
    async with asyncio.timeout(10):
        return await ear.end


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return False


async def gone(*pids: int) -> None:
    """Until these processes have ended."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, ended.set)
        await ended.wait()
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)


async def test_a_child_is_spoken_to_and_heard() -> None:
    async with python(ECHO) as child:
        await child.send(b'{"hello":1}')
        assert await child.receive() == b'{"hello":1}'
    assert child.status == 0


async def test_a_child_gets_our_whole_environment_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_TEST_WORD", "inherited")
    show = "import os; print(os.environ.get('ANTIPHON_TEST_WORD'), os.environ.get('PATH') is not None)"
    async with python(show) as child:
        assert await child.receive() == b"inherited True"
    child = await spawn([sys.executable, "-c", show], env={"ANTIPHON_TEST_WORD": "given"})
    assert await child.receive() == b"given False"
    await child.close()


async def test_a_child_starts_where_it_is_told(tmp_path: Path) -> None:
    child = await spawn([sys.executable, "-c", "import os; print(os.getcwd())"], cwd=tmp_path)
    assert await child.receive() == str(tmp_path).encode()
    await child.close()


@pytest.mark.parametrize("command", [["no-such-program-here"], ["/etc/hostname"], ["\0"], [Path("/no/such")]])
async def test_a_program_that_cannot_start_says_so_with_a_hint(command: list[str | Path]) -> None:
    with pytest.raises(SpawnFailed, match="hint: "):
        await spawn(command)


async def test_a_directory_that_is_not_there_is_named() -> None:
    with pytest.raises(SpawnFailed, match="/no/such/place"):
        await spawn(["true"], cwd="/no/such/place")


@pytest.mark.parametrize("command", ["python3 agent.py", []])
async def test_a_command_is_a_list_of_words(command: list[str]) -> None:
    with pytest.raises(LocalProtocolError, match="hint: "):
        await spawn(command)


async def test_what_may_be_secret_in_a_command_is_not_shown() -> None:
    with pytest.raises(SpawnFailed) as caught:
        await spawn(["no-such-agent", "serve", "--token", "s3cret"])
    assert "no-such-agent serve …" in str(caught.value) and "s3cret" not in str(caught.value)


async def test_a_death_is_reported_with_status_and_last_words() -> None:
    words = "import sys; print('said', flush=True); print('why it failed', file=sys.stderr); sys.exit(3)"
    async with python(words) as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied)
    assert (error.status, error.stderr) == (3, "why it failed")


async def test_a_death_by_signal_is_told_as_such() -> None:
    async with python("import os; os.kill(os.getpid(), 9)") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == -9


async def test_what_a_child_said_before_it_died_is_heard_first() -> None:
    ear = Ear()
    async with python("import os\nfor n in range(20000): print(n)\nos._exit(1)") as child:
        child.attach(ear)
        async with asyncio.timeout(10):
            await ear.end
    heard = b"".join(block for block in ear.heard if isinstance(block, bytes))
    assert heard.splitlines()[-1] == b"19999" and heard.count(b"\n") == 20000


async def test_stderr_is_drained_and_only_its_last_lines_are_kept() -> None:
    flood = "import sys\nfor n in range(100000): print('line', n, 'x' * 50, file=sys.stderr)\nprint('done')"
    async with python(flood) as child:
        async with asyncio.timeout(20):
            assert await child.receive() == b"done"
            await end_of_stderr(child)
    lines = child.stderr.splitlines()
    assert len(lines) == STDERR_LINES and lines[-1].startswith("line 99999")


async def end_of_stderr(child: ProcessTransport) -> None:
    while await child.receive() is not None:
        pass


async def test_a_child_that_closes_its_output_but_lives_is_reported() -> None:
    async with python("import os, sys; os.close(1); sys.stdin.read()") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status is None


async def test_a_grandchild_that_holds_the_pipe_does_not_hide_a_death() -> None:
    hold = "import subprocess, sys; subprocess.Popen(['sleep', '60']); sys.exit(4)"
    async with python(hold) as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == 4


async def test_a_polite_child_ends_when_its_stdin_closes() -> None:
    async with python("import sys; sys.stdin.read(); sys.exit(7)") as child:
        pass
    assert child.status == 7


async def test_a_child_deaf_to_eof_gets_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.2)
    deaf = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nprint('up')\ntime.sleep(60)"
    )
    async with python(deaf) as child:
        assert await child.receive() == b"up"
    assert child.status == 9


async def test_a_child_deaf_to_all_gets_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.2)
    monkeypatch.setattr(process, "TERM_GRACE", 0.2)
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up')\ntime.sleep(60)"
    async with python(deaf) as child:
        assert await child.receive() == b"up"
    assert child.status == -9


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


async def test_closing_ends_the_whole_tree_and_who_left_the_group(tmp_path: Path) -> None:
    async with python(TREE, str(tmp_path)) as child:
        assert await child.receive() == b"up"
        pids = pids_in(tmp_path)
        assert all(map(alive, pids.values()))
    async with asyncio.timeout(1):  # they were killed: what is left is the kernel's work
        await gone(*pids.values())


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


async def test_cancelling_the_close_does_not_stop_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.3)
    child = await spawn([sys.executable, "-u", "-c", "import time; print('up'); time.sleep(300)"])
    assert await child.receive() == b"up"
    closing = asyncio.create_task(child.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await child.close()
    assert not alive(child.pid)


async def test_exits_are_noticed_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    async with python("import sys; sys.exit(5)") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == 5


async def test_exits_are_noticed_without_waitid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, "waitid", raising=False)
    async with python("import sys; sys.exit(6)") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == 6


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
def owner(program: str, folder: Path, mark: str = "n0b0dy") -> "Iterator[subprocess.Popen[bytes]]":
    """A program that owns a tree of processes, from outside."""
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
        with owner(OWNER, tmp_path, "0wn3d") as process:
            await first_words(process)
            everyone = tree.processes_with("0wn3d")
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
        with owner(forking, tmp_path, "f0rk3d") as process:
            _, pid = await first_words(process)
            process.kill()
            await gone(*pids_in(tmp_path).values(), int(pid))
            assert tree.processes_with("f0rk3d")  # the fork lives on: it is not what we spawned


SUICIDAL = """
import asyncio, sys
from antiphon.transports.process import spawn

asyncio.run(spawn(["sh", "-c", "echo $$ > %s/pid; kill -9 $PPID; exec sleep 300" % sys.argv[2]]))
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
    guard._watcher.kill()
    guard._watcher.wait()
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
        tree.kill_tree(middle.pid, middle._mark)  # the middle, its watcher and all below at one stroke
        async with asyncio.timeout(5):
            await gone(*pids)


async def test_a_program_that_closes_its_input_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "DEAF_GRACE", 0.1)
    async with python("import os, time; os.close(0); print('up', flush=True); time.sleep(60)") as child:
        ear = Ear()
        child.attach(ear)
        async with asyncio.timeout(10):
            while not ear.end.done():
                child.out += b"anybody there?\n"
                child.flush()
                await asyncio.sleep(0.01)
            assert "no longer reads" in str(await ear.end)
