"""Children: started, read, ended with everything they started."""

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.errors import LocalProtocolError, ProcessDied, SpawnFailed
from antiphon.transports import guard, pipes, process
from antiphon.transports.process import STDERR_LINES, ProcessTransport, spawn
from tests.transports.children import RecordingSink, alive, end_of
from tests.transports.pairs import python
from tests.waits import turns

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


async def test_a_child_receives_and_sends() -> None:
    async with python(ECHO) as child:
        await child.send(b'{"hello":1}')
        assert await child.receive() == b'{"hello":1}'
    assert child.status == 0


async def test_a_child_gets_our_whole_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_TEST_WORD", "inherited")
    show = "import os; print(os.environ.get('ANTIPHON_TEST_WORD'), os.environ.get('PATH') is not None)"
    async with python(show) as child:
        assert await child.receive() == b"inherited True"
    child = await spawn([sys.executable, "-c", show], env={"ANTIPHON_TEST_WORD": "given"})
    assert await child.receive() == b"given False"
    await child.close()


async def test_a_child_starts_in_the_given_directory(tmp_path: Path) -> None:
    child = await spawn([sys.executable, "-c", "import os; print(os.getcwd())"], cwd=tmp_path)
    assert await child.receive() == str(tmp_path).encode()
    await child.close()


@pytest.mark.parametrize("command", [["no-such-program-here"], ["/etc/hostname"], ["\0"], [Path("/no/such")]])
async def test_a_program_that_cannot_start_is_an_error_with_a_hint(command: list[str | Path]) -> None:
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


async def test_a_death_by_signal_is_reported_as_such() -> None:
    async with python("import os; os.kill(os.getpid(), 9)") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == -9


async def test_what_a_child_sent_before_it_died_is_received_first() -> None:
    sink = RecordingSink()
    async with python("import os\nfor n in range(20000): print(n)\nos._exit(1)") as child:
        child.attach(sink)
        async with asyncio.timeout(10):
            await sink.end
    received = b"".join(block for block in sink.received if isinstance(block, bytes))
    assert received.splitlines()[-1] == b"19999" and received.count(b"\n") == 20000


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


async def test_a_stderr_that_cannot_be_read_any_more_is_over() -> None:
    """A terminal whose other side is closed gives an error and not an end."""
    near, far = os.openpty()
    to_child, from_us = os.pipe()
    to_us, from_child = os.pipe()
    words = [sys.executable, "-c", "import sys; print('last words', file=sys.stderr); sys.exit(3)"]
    child = guard.start(words, (to_child, from_child, far), env=os.environ)
    for fd in (to_child, from_child, far):
        os.close(fd)
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    transport = ProcessTransport(child, (from_us, to_us, near), "python")
    async with asyncio.timeout(60):
        assert "last words" in str(await end_of(transport))
        await transport.close()
    assert (transport.status, problems) == (3, [])


async def test_a_child_that_closes_its_output_but_lives_is_reported() -> None:
    async with python("import os, sys; os.close(1); sys.stdin.read()") as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status is None


async def test_a_grandchild_that_holds_the_pipe_does_not_hide_a_death() -> None:
    hold = "import subprocess, sys; subprocess.Popen(['sleep', '60']); sys.exit(4)"
    async with python(hold) as child:
        error = await end_of(child)
    assert isinstance(error, ProcessDied) and error.status == 4


async def test_a_child_that_reads_stdin_ends_when_it_closes() -> None:
    async with python("import sys; sys.stdin.read(); sys.exit(7)") as child:
        pass
    assert child.status == 7


async def test_a_child_whose_input_ends_is_read_to_its_end_and_watched() -> None:
    words = "import subprocess, sys; sys.stdin.read(); subprocess.Popen(['sleep', '60'], stdout=2); print('bye'); sys.exit(3)"
    child = await spawn([sys.executable, "-c", words])
    assert not await child.exited(0.01)
    assert await child.left_behind(0) == [child.pid]
    await child.end_input()
    assert await child.receive() == b"bye"
    assert await child.exited(10)
    assert child.status == 3
    [orphan] = await child.left_behind(0)
    await child.close()
    assert not alive(orphan)
    assert await child.left_behind(0) == []


async def test_a_child_that_ignores_eof_gets_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.2)
    deaf = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nprint('up')\ntime.sleep(60)"
    )
    async with python(deaf) as child:
        assert await child.receive() == b"up"
    assert child.status == 9


async def test_a_child_that_ignores_everything_gets_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.2)
    monkeypatch.setattr(process, "TERM_GRACE", 0.2)
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up')\ntime.sleep(60)"
    async with python(deaf) as child:
        assert await child.receive() == b"up"
    assert child.status == -9


async def test_while_a_child_takes_its_time_to_end_the_threads_are_free_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are few of them, and many children may end at once. Here there is one, and the child ends when that has worked for us."""
    monkeypatch.setattr(process, "STDIN_GRACE", 0.05)
    monkeypatch.setattr(process, "TERM_GRACE", 30.0)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    slow = (
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('told'))\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os._exit(7))\nprint('up')\nwhile True: signal.pause()"
    )
    async with python(slow) as child:
        assert await child.receive() == b"up"
        closing = asyncio.create_task(child.close())
        assert await child.receive() == b"told"
        async with asyncio.timeout(10):
            await asyncio.to_thread(os.kill, child.pid, signal.SIGUSR1)
        await closing
    assert child.status == 7


async def test_cancelling_the_close_does_not_stop_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDIN_GRACE", 0.3)
    child = await spawn([sys.executable, "-u", "-c", "import time; print('up'); time.sleep(300)"])
    assert await child.receive() == b"up"
    closing = asyncio.create_task(child.close())
    await turns(1)
    closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled()
    await child.close()
    assert not alive(child.pid)


async def test_a_program_that_closes_its_input_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "DEAF_GRACE", 0.1)
    async with python("import os, time; os.close(0); print('up', flush=True); time.sleep(60)") as child:
        sink = RecordingSink()
        child.attach(sink)
        async with asyncio.timeout(10):
            await sink.begun.wait()  # it has closed its input
            child.out += b"anybody there?\n"
            child.flush()
            assert "no longer reads" in str(await sink.end)
