"""What only a real process can do wrong is found too: noise at the start, an end that does not come, children that stay."""

import asyncio
import sys
from pathlib import Path

import pytest

from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.prompts import DEMO
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.suites.agent import SUITE
from tests.conformance.memory import under_load

BROKEN = Path(__file__).with_name("broken_process.py")
SCENES = [one for one in SUITE.scenarios.values() if one.process]
FAULTS = {one.id: record.name for record in SCENES for one in record.shows}
OPTIONS = CheckOptions(DEMO, limit=5.0)
AT_ONCE = 3
"""Checks beside each other: most of the time they wait for an end that does not come."""

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path))


async def test_a_correct_process_passes_everything() -> None:
    report = await check_agent(
        AgentCommand([sys.executable, str(BROKEN)]), under_load(OPTIONS), only=[one.name for one in SCENES]
    )
    found = {one.requirement.id: one.verdict for one in report.results}
    assert {id: found[id].text for id in FAULTS if found[id].status is not RequirementStatus.PASSED} == {}
    assert {one.requirement.id for one in report.broken} == set()


async def test_a_fault_of_a_process_fails_its_requirement_and_no_other() -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def failed_with(id: str) -> set[str]:
        async with turns:
            report = await check_agent(
                AgentCommand([sys.executable, str(BROKEN), id]), under_load(OPTIONS), only=[FAULTS[id]]
            )
        return {one.requirement.id for one in report.broken}

    found = dict(zip(FAULTS, await asyncio.gather(*map(failed_with, FAULTS)), strict=True))
    assert {id for id, failed in found.items() if id not in failed} == set()
    assert {id: failed for id, failed in found.items() if failed - {id} - SUITE.dependants(id)} == {}
