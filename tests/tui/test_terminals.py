"""The end of what a terminal wrote is kept when the terminal is gone."""

import asyncio
from pathlib import Path

from antiphon.protocol import v1
from antiphon.tui.terminals import TerminalTail, WatchedTerminals


async def run(terminals: WatchedTerminals, cwd: Path, line: str) -> str:
    made = await terminals.create([str(cwd)], v1.CreateTerminal("s", "/bin/sh", ["-c", line]))
    await terminals.wait_for_exit(v1.WaitForExit("s", made.terminal_id))
    return made.terminal_id


async def test_the_output_outlives_the_terminal(tmp_path: Path) -> None:
    terminals = WatchedTerminals()
    async with asyncio.timeout(20):
        good = await run(terminals, tmp_path, "echo call")
        bad = await run(terminals, tmp_path, "echo response; exit 3")
        assert terminals.tail(good) == TerminalTail("")
        await terminals.look()
        assert terminals.tail(good) == TerminalTail("call\n", "")
        for id in (good, bad):
            await terminals.release(v1.ReleaseTerminal("s", id))
        assert terminals.tail(bad) == TerminalTail("response\n", "exit status 3")
        assert terminals.tail("another") is None


async def test_only_so_many_are_remembered(tmp_path: Path) -> None:
    terminals = WatchedTerminals(tails=2)
    async with asyncio.timeout(20):
        ids = [await run(terminals, tmp_path, "true") for _ in range(3)]
        assert [terminals.tail(id) for id in ids] == [None, TerminalTail(""), TerminalTail("")]
        await terminals.close()


async def test_a_session_that_was_closed_is_looked_at_no_more(tmp_path: Path) -> None:
    terminals = WatchedTerminals()
    async with asyncio.timeout(20):
        made = await terminals.create([str(tmp_path)], v1.CreateTerminal("s", "/bin/sh", ["-c", "sleep 60"]))
        await terminals.close()
        await terminals.look()
        assert terminals.tail(made.terminal_id) == TerminalTail("")
