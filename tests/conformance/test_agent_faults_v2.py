"""The check of agents of version 2 is itself checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

from dataclasses import replace

import pytest

from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.errors import AcpError
from tests.conformance.memory import InMemory, under_load
from tests.conformance.plain import CHECK_OPTIONS
from tests.conformance.v2.agent_faults import FAULTS
from tests.conformance.v2.correct_agent import CorrectAgent

OPTIONS = replace(CHECK_OPTIONS, auth="demo")

BY_SILENCE = {"rpc.answered", "turn.idle", "request.cancelled", "cancel.confirmed", "cancel.held", "cancel.asking", "permission.goes-on",
              "form.unknown"}  # fmt: skip
"""Faults that show by something that never comes: it is waited for to the end."""

NEVER_SEEN = {"capability.elicitation-url", "resume.cleared", "state.error"}
"""What the correct agent never does, so that there is nothing to judge."""


async def test_a_correct_agent_passes_everything() -> None:
    report = await check_agent(
        InMemory(serve=lambda far: CorrectAgent(far).serve()), under_load(OPTIONS), suite=SUITE_V2
    )
    found = {one.requirement.id: one.verdict.status for one in report.results}
    assert {id for id, status in found.items() if status is not RequirementStatus.PASSED} <= NEVER_SEEN
    assert (report.is_correct, report.peer) == (True, "kitchen 2")


class OldAgent(Host):
    """An agent of ours that speaks version 1 only."""

    versions = (1,)


async def test_an_agent_of_version_1_is_not_judged_by_version_2() -> None:
    place = InMemory(serve=lambda far: OldAgent(Demo()).serve(far))
    with pytest.raises(AcpError, match="the agent does not speak version 2: it settles on version 1") as refused:
        await check_agent(place, under_load(OPTIONS), suite=SUITE_V2)
    assert "--protocol" in refused.value.hint


def test_every_requirement_has_a_fault() -> None:
    assert sorted(FAULTS) == sorted(SUITE_V2.requirements())


@pytest.mark.parametrize("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    row = FAULTS[id]
    place = InMemory(row.fault, serve=lambda far: row.agent(far).serve())
    options = replace(OPTIONS, limit=0.2) if id in BY_SILENCE else OPTIONS
    report = await check_agent(place, under_load(options), suite=SUITE_V2, only=(row.scenario, *row.more))
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed, [(one.requirement.id, one.verdict) for one in report.results if one.requirement.id == id]
    assert {other: text for other, text in failed.items() if other not in {id, *SUITE_V2.dependants(id)}} == {}
