"""The check of clients is checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

import asyncio
from functools import cache

import pytest

from antiphon.conformance.client_check import check_client
from antiphon.conformance.requirements import EVERY, RequirementStatus
from antiphon.conformance.suites.client import SUITE
from tests.conformance.client_faults import handshake, messages, rules, services
from tests.conformance.client_faults.affected import Healthy
from tests.conformance.client_memory import Driver, InMemory
from tests.conformance.memory import under_load
from tests.rows import each_row

FAULTS = {**handshake.FAULTS, **messages.FAULTS, **services.FAULTS, **rules.FAULTS}
WITH_A_PROCESS = {"stderr.flood", "ends.input", "ends.no-orphan"}
"""Those whose faults are in test_client_processes.py."""


@cache
def healthy() -> Healthy:
    return Healthy.played(SUITE, Driver)


def test_our_client_passes_everything() -> None:
    found = {one.requirement.id: one.verdict for one in healthy().report.results}
    assert {
        id for id, verdict in found.items() if verdict.status in (RequirementStatus.FAILED, RequirementStatus.NOTED)
    } == set()
    missed = {id for id, verdict in found.items() if verdict.status is not RequirementStatus.PASSED}
    records = {id for id, one in SUITE.requirements().items() if one.scenario != EVERY}
    assert missed & records == WITH_A_PROCESS | {"requests.not-offered"}


def test_every_requirement_has_a_fault() -> None:
    assert set(SUITE.requirements()) == set(FAULTS) | WITH_A_PROCESS


@pytest.mark.slow
@pytest.mark.prove
@each_row("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    broken = FAULTS[id]
    played = await asyncio.to_thread(lambda: healthy().concerned(id, broken))
    report = await check_client(InMemory(broken), under_load(broken.options), only=sorted(played), jobs=len(played))
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed
    assert set(failed) - {id} <= SUITE.dependants(id), failed
