"""Commands: real processes, read and waited for."""

import asyncio
import os
import select
import sys
import tracemalloc
from pathlib import Path

import pytest

from antiphon.errors import LocalProtocolError, SpawnFailed
from antiphon.local.commands import Exit, LocalCommand
from tests.transports.children import alive, gone
from tests.waits import idle


async def shell(line: str, *, limit: int = 1 << 20, **env: str) -> LocalCommand:
    return await LocalCommand.start(["/bin/sh", "-c", line], env={**os.environ, **env}, output_limit=limit)


async def ended(command: LocalCommand) -> Exit:
    async with asyncio.timeout(20):
        return await command.wait()


async def test_stdout_and_stderr_come_in_one_stream_and_the_end_with_a_code() -> None:
    async with await shell("echo one; echo two >&2; echo three; exit 3") as command:
        assert await ended(command) == Exit(3, None)
        assert command.output() == "one\ntwo\nthree\n" and not command.truncated


async def test_stderr_is_not_kept_unless_it_is_wanted() -> None:
    words = ["/bin/sh", "-c", "echo one; echo two >&2; echo three"]
    async with await LocalCommand.start(words, errors=False) as command:
        await ended(command)
        assert command.output() == "one\nthree\n"


async def test_an_end_by_signal_has_its_name() -> None:
    async with await shell("kill -USR1 $$") as command:
        assert await ended(command) == Exit(None, "SIGUSR1")
    async with await shell("kill -40 $$") as command:  # no name of its own
        assert await ended(command) == Exit(None, "SIG40")


async def test_a_command_has_nothing_to_read() -> None:
    async with await shell("cat; echo end") as command:
        assert await ended(command) == Exit(0, None) and command.output() == "end\n"


async def test_a_command_starts_in_the_given_directory_with_the_given_environment(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "import os; print(os.getcwd(), os.environ['WORD'], 'HOME' in os.environ)"]
    async with await LocalCommand.start(words, cwd=tmp_path, env={"WORD": "given"}) as command:
        await ended(command)
        assert command.output() == f"{tmp_path} given False\n"


async def test_a_command_gets_our_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_TEST_WORD", "inherited")
    async with await LocalCommand.start(["/bin/sh", "-c", "echo $ANTIPHON_TEST_WORD"]) as command:
        await ended(command)
        assert command.output() == "inherited\n"


async def test_a_program_of_the_given_path_and_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho found\n", encoding="utf-8")
    (tmp_path / "tool").chmod(0o755)
    for word, path in (("tool", str(tmp_path)), ("./tool", "")):
        async with await LocalCommand.start([word], cwd=tmp_path, env={"PATH": path}) as command:
            await ended(command)
            assert command.output() == "found\n"


@pytest.mark.parametrize(
    "words", [["no-such-program"], ["/etc/hostname"], ["a\0b"], ["/no/such/program", "--token", "s3cret"]]
)
async def test_what_cannot_start_is_an_error_and_leaves_nothing_open(words: list[str]) -> None:
    await (await LocalCommand.start(["true"])).close()  # the watcher and the loop have their descriptors from now on
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SpawnFailed, match="hint: ") as caught:
        await LocalCommand.start(words)
    assert "s3cret" not in str(caught.value)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_directory_that_is_not_there_is_named() -> None:
    with pytest.raises(SpawnFailed, match="/no/such/place"):
        await LocalCommand.start(["true"], cwd="/no/such/place")


@pytest.mark.parametrize("words", ["echo hello", []])
async def test_a_command_is_a_list_of_words(words: list[str]) -> None:
    with pytest.raises(LocalProtocolError, match="hint: "):
        await LocalCommand.start(words)


async def test_the_end_of_a_long_output_is_kept_in_whole_characters() -> None:
    async with await shell("for n in 1 2 3 4 5 6 7 8 9; do printf 'ü%s' $n; done", limit=8) as command:
        await ended(command)
        assert command.output() == "7ü8ü9" and command.truncated  # 7 bytes: the eighth is half a character
        assert command.written == 27


async def test_output_that_is_not_text_is_shown_as_well_as_can_be() -> None:
    async with await shell(r"printf 'a\377b\303'") as command:
        await ended(command)
        await command.close()
        assert command.output() == "a\ufffdb\ufffd"


async def test_several_wait_and_late_ones_are_answered_at_once() -> None:
    async with await shell("exit 7") as command:
        async with asyncio.timeout(20):
            assert await asyncio.gather(*[command.wait() for _ in range(5)]) == [Exit(7, None)] * 5
        waiting = asyncio.ensure_future(command.wait())
        await idle()
        assert waiting.done() and command.exit == Exit(7, None)


async def test_a_waiter_that_stops_does_not_disturb_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with await shell(f"read line < {tmp_path}/gate; exit 4") as command:
        first, second = (asyncio.ensure_future(command.wait()) for _ in range(2))
        await idle()
        first.cancel()
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n", encoding="utf-8")
        async with asyncio.timeout(20):
            assert await second == Exit(4, None)
        assert first.cancelled()


async def test_a_follower_gets_all_output_without_polling() -> None:
    pieces, looks, seen = "", 0, 0
    async with await shell("for n in 1 2 3 4 5; do echo ü$n; done; exit 1") as command:
        async with asyncio.timeout(20):
            while command.exit is None or seen < command.written:
                before, seen = seen, await command.more(seen)
                pieces += command.output(before)
                looks += 1
    assert pieces == "ü1\nü2\nü3\nü4\nü5\n" and looks <= 7


async def test_more_returns_at_an_end_without_output(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with await shell(f"read line < {tmp_path}/gate") as command:
        follower = asyncio.ensure_future(command.more())
        impatient = asyncio.ensure_future(command.more())
        await idle()
        impatient.cancel()
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n", encoding="utf-8")
        async with asyncio.timeout(20):
            assert await follower == 0


async def test_all_that_a_command_wrote_is_there_when_it_has_ended() -> None:
    much = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20); os.write(1, b'x' * 1_000_000 + b'end')"
    async with await LocalCommand.start([sys.executable, "-c", much], output_limit=10) as command:
        select.select([command._child.fileno()], [], [])  # the loop is busy while it lives
        await ended(command)
        assert command.written == 1_000_003 and command.output() == "xxxxxxxend"


async def test_a_daemon_that_holds_the_output_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    line = f"(trap '' HUP; sleep 300 & echo $! > {tmp_path}/pid; echo started); exit 5"
    async with await shell(line) as command:
        assert await ended(command) == Exit(5, None)
        assert command.output() == "started\n"
        pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
        assert alive(pid)
    async with asyncio.timeout(5):
        await gone(pid)


async def test_a_daemon_that_floods_the_output_does_not_hold_up_the_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    async with await shell(f"yes & read line < {tmp_path}/gate; exit 6", limit=1000) as command:
        async with asyncio.timeout(20):
            await command.more(1_000_000)
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n", encoding="utf-8")
        assert await ended(command) == Exit(6, None)
        assert len(command.output()) == 1000 and command.truncated


async def test_a_flood_is_bounded_in_memory_and_lets_others_have_their_turn() -> None:
    turns = 0
    tracemalloc.start()
    try:
        async with await shell("yes | head -c 100000000", limit=100_000) as command:
            async with asyncio.timeout(50):
                while command.exit is None:
                    turns += 1
                    await command.more()
            assert command.written == 100_000_000 and len(command.output()) == 100_000 and command.truncated
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    assert turns > 500
