"""Several processes decide at once."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from antiphon.store.decisions import AuditStore, DecisionStore, TrustStore
from antiphon.store.schema import open_database
from antiphon.store.sessions import NameStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
async def test_four_processes_that_decide_at_once_lose_nothing_and_keep_their_order(tmp_path: Path) -> None:
    names, count = ["a", "b", "c", "d"], 60
    everything = sorted(f"{name} {number}" for name in names for number in range(count))
    async with asyncio.timeout(50):
        command = [sys.executable, "-m", "tests.store.decider", str(tmp_path)]
        deciders = [
            await asyncio.create_subprocess_exec(*command, name, str(count), cwd=ROOT, stdin=PIPE, stdout=PIPE)
            for name in names
        ]
        for process in deciders:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        ends = await asyncio.gather(*[process.communicate(b"go\n") for process in deciders])  # a new file, four at once
        assert [process.returncode for process in deciders] == [0] * 4, ends
        async with open_database(tmp_path) as database:
            audited = [entry.subject for entry in await AuditStore(database).latest(10_000)]
            assert sorted(audited) == everything
            for name in names:
                of_one = [subject for subject in audited if subject.startswith(name)]
                assert of_one == [f"{name} {number}" for number in range(count)]
            decisions = await DecisionStore(database).valid("s", "/w")
            assert sorted(decision.rule for decision in decisions) == [f"Bash({subject})" for subject in everything]
            assert len({decision.id for decision in decisions}) == len(everything)
            assert sorted(named.name for named in await NameStore(database).list()) == everything
            assert sorted(trusted.digest for trusted in await TrustStore(database).all()) == everything
