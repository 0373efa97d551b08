"""Commands: ended whole, by us or with us."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from antiphon.local import commands
from antiphon.local.commands import Exit, LocalCommand
from antiphon.transports import tree
from tests.transports.children import alive, gone
from tests.transports.test_trees import first_words, owner, pids_in
from tests.waits import turns

FAMILY = """
sleep 300 & echo $! > {0}/in_group
setsid sh -c 'echo $$ > {0}/left_group; exec sleep 300' &
while [ ! -s {0}/left_group ]; do :; done
echo up
wait
"""


async def wait_for_output(command: LocalCommand, word: str) -> None:
    """Until it has sent this."""
    async with asyncio.timeout(20):
        while word not in command.output() and command.exit is None:
            await command.more()


async def shell(line: str) -> LocalCommand:
    return await LocalCommand.start(["/bin/sh", "-c", line])


async def test_kill_ends_the_whole_tree_and_keeps_the_output(tmp_path: Path) -> None:
    async with await shell(FAMILY.format(tmp_path)) as command:
        await wait_for_output(command, "up")
        pids = pids_in(tmp_path)
        assert all(map(alive, pids.values()))
        await command.kill()
        assert command.exit == Exit(None, "SIGTERM") and command.output() == "up\n"
        async with asyncio.timeout(5):
            await gone(*pids.values(), command.pid)


async def test_a_command_may_clean_up_after_term() -> None:
    async with await shell("trap 'echo saved; exit 9' TERM; echo up; while :; do sleep 0.01; done") as command:
        await wait_for_output(command, "up")
        await command.kill()
        assert command.exit == Exit(9, None) and command.output().endswith("saved\n")


async def test_a_command_that_ignores_term_gets_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "TERM_GRACE", 0.1)
    async with await shell("trap '' TERM; echo up; while :; do sleep 0.01; done") as command:
        await wait_for_output(command, "up")
        await command.kill()
        assert command.exit == Exit(None, "SIGKILL")


async def test_a_process_that_a_command_left_and_that_ignores_term_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "TERM_GRACE", 0.1)
    async with await shell(f"trap '' TERM; sleep 300 & echo $! > {tmp_path}/pid; exit 0") as command:
        assert await command.wait() == Exit(0, None)
        pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
        await command.kill()
        async with asyncio.timeout(5):
            await gone(pid)
        assert command.exit == Exit(0, None)


async def test_kill_after_the_end_and_again_changes_nothing() -> None:
    async with await shell("echo done; exit 2") as command:
        await command.wait()
        await command.kill()
        await command.kill()
        assert command.exit == Exit(2, None) and command.output() == "done\n"
    await command.kill()
    await command.close()
    assert await command.wait() == Exit(2, None) and command.output() == "done\n"


async def test_waiters_learn_of_a_kill() -> None:
    async with await shell("exec sleep 300") as command:
        waiting = asyncio.ensure_future(command.wait())
        await asyncio.gather(command.kill(), command.kill(), command.close())
        async with asyncio.timeout(5):
            assert await waiting == Exit(None, "SIGTERM")


@pytest.mark.parametrize("way", ["kill", "close"])
async def test_cancelling_the_caller_that_ends_it_does_not_stop_the_end(way: str) -> None:
    command = await shell("echo up; exec sleep 300")
    await wait_for_output(command, "up")
    ending = asyncio.create_task(getattr(command, way)())
    await turns(1)
    ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
    async with asyncio.timeout(5):
        assert await command.wait() == Exit(None, "SIGTERM")
    await command.close()
    assert not alive(command.pid)


async def test_a_closed_command_leaves_nothing_open_and_no_zombie() -> None:
    await (await shell("true")).close()
    before = len(os.listdir("/proc/self/fd"))
    several = [await shell("exec sleep 300") for _ in range(5)]
    await asyncio.gather(*[command.close() for command in several])
    assert len(os.listdir("/proc/self/fd")) == before
    assert not {str(command.pid) for command in several} & set(os.listdir("/proc"))


OWNER = f"""
import asyncio, sys
from antiphon.local.commands import LocalCommand

async def main():
    command = await LocalCommand.start(["/bin/sh", "-c", {FAMILY!r}.format(sys.argv[2])])
    await command.more()
    print(command.output().strip(), command.pid, flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_a_command_does_not_outlive_us_even_when_we_are_killed(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        with owner(OWNER, tmp_path) as process:
            word, pid = await first_words(process)
            assert word == b"up"
            pids = [*pids_in(tmp_path).values(), int(pid)]
            assert all(map(alive, pids))
            process.kill()
            await gone(*pids)


async def test_a_command_carries_its_mark_even_in_an_environment_made_from_nothing() -> None:
    show = "import os; print(os.environ['ANTIPHON_TREE'])"
    async with await LocalCommand.start([sys.executable, "-c", show], env={tree.MARK: "outer"}) as command:
        await command.wait()
        assert command.output().startswith("outer:")
