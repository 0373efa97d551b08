"""The check itself is checked: for every requirement a fault on the wire that breaks it, and nothing but it and its dependants."""

from dataclasses import replace

import pytest

from antiphon.conformance.agents import check_agent
from antiphon.conformance.requirements import EVERY
from antiphon.conformance.suites.agent import SUITE
from tests.conformance.faults import doing, handshake, messages, opening, robustness, turns
from tests.conformance.faults.aiming import asks, lose_reply
from tests.conformance.memory import KNOWINGLY, WISHES, InMemory

TABLES = (handshake, messages, robustness, opening, turns, doing)
FAULTS = {id: fault for table in TABLES for id, fault in table.FAULTS.items()}


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


async def test_a_correct_agent_passes_everything() -> None:
    report = await check_agent(InMemory(), WISHES)
    assert {one.requirement.id: one.verdict.text for one in report.broken if one.requirement.id not in KNOWINGLY} == {}


@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    scenario = SUITE.requirements()[id].scenario
    await _fails(id, () if scenario == EVERY else (scenario,))


@pytest.mark.slow  # all scenes for each fault: most of them happen in one scene only, and play there above
@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_in_one_scene_fails_nothing_in_another(id: str) -> None:
    await _fails(id, ())


async def _fails(id: str, only: tuple[str, ...]) -> None:
    report = await check_agent(InMemory(FAULTS[id]), WISHES, only=only)
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed
    assert {other: text for other, text in failed.items() if other not in {id, *SUITE.dependants(id), *KNOWINGLY}} == {}


async def test_a_question_that_is_never_answered_is_found() -> None:
    fault = lose_reply(asks("session/antiphon_check"))
    wishes = replace(WISHES, limit=0.5)
    report = await check_agent(InMemory(fault), wishes, only=["unknown-methods"])
    assert [one.requirement.id for one in report.broken if one.is_fatal] == ["rpc.answered"]
