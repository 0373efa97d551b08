"""The check itself is checked: for every requirement a fault on the wire that breaks it, and nothing but it and its dependants."""

from dataclasses import replace

import pytest

from antiphon.conformance.agents import check_agent
from antiphon.conformance.suites.agent import SUITE
from antiphon.conformance.verdicts import Status
from tests.conformance.faults import handshake, messages, robustness
from tests.conformance.faults.aiming import asks, lose_reply
from tests.conformance.memory import KNOWINGLY, WISHES, InMemory

FAULTS = {**handshake.FAULTS, **messages.FAULTS, **robustness.FAULTS}


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


async def test_a_correct_agent_passes_everything() -> None:
    report = await check_agent(InMemory(), WISHES)
    assert {one.requirement.id: one.verdict.text for one in report.results if one.verdict.status is Status.FAILED} == {}


@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    report = await check_agent(InMemory(FAULTS[id]), WISHES)
    failed = {one.requirement.id for one in report.broken}
    assert id in failed
    assert failed - {id} - KNOWINGLY <= SUITE.dependants(id)


async def test_a_question_that_is_never_answered_is_found() -> None:
    fault = lose_reply(asks("session/antiphon_check"))
    wishes = replace(WISHES, limit=0.5)
    report = await check_agent(InMemory(fault), wishes, only=["unknown-methods"])
    assert [one.requirement.id for one in report.broken if one.is_fatal] == ["rpc.answered"]
