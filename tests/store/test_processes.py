"""Several processes write one file, and some are killed."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from tests.store.stores import opened

ROOT = Path(__file__).resolve().parents[2]


async def writer(*words: str | Path) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.writer", *words, cwd=ROOT, stdin=PIPE, stdout=PIPE
    )


@pytest.mark.slow
async def test_four_processes_that_append_at_once_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    names, count = ["a", "b", "c", "d"], 100
    async with asyncio.timeout(50):
        writers = [await writer("together", tmp_path, name, str(count)) for name in names]
        for process in writers:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        ends = await asyncio.gather(*[process.communicate(b"go\n") for process in writers])  # a new file, four at once
        assert [process.returncode for process in writers] == [0] * 4, ends
        async with opened(tmp_path) as store:
            shared = await store.history("shared")
            assert len(shared) == count * len(names)
            for name in names:
                expected = [f"{name} {number}".encode() for number in range(count)]
                assert await store.history(name) == expected
                assert [update for update in shared if update.startswith(name.encode())] == expected


@pytest.mark.slow
async def test_after_a_kill_everything_that_was_acknowledged_is_there(tmp_path: Path) -> None:
    acknowledged = -1
    async with asyncio.timeout(50):
        for acknowledgements in (1, 7, 20, 33):
            process = await writer("endlessly", tmp_path)
            assert process.stdout is not None
            for _ in range(acknowledgements):
                await process.stdout.readline()
            process.kill()
            rest, _ = await process.communicate()
            acknowledged += acknowledgements + rest.count(b"\n")
            async with opened(tmp_path) as store:
                history = await store.history("s")
            # The last one may have been written and not yet reported; half of one never.
            whole = len(history) // 2
            assert history == [f"{n} {part}".encode() for n in range(whole) for part in ("a", "b")]
            assert whole - 1 in (acknowledged, acknowledged + 1)
            acknowledged = whole - 1
