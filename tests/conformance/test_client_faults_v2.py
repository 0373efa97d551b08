"""The check of clients of version 2 is itself checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

import asyncio
from collections.abc import Collection
from functools import cache
from typing import ClassVar

import pytest

from antiphon.conformance.client_check import check_client
from antiphon.conformance.client_process import CLIENT_PURPOSES, CLIENT_PURPOSES_V2
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.suites.client_v2 import CLIENT_SUITE_V2
from antiphon.errors import AcpError
from tests.conformance.client_faults.affected import Healthy
from tests.conformance.client_memory import OPTIONS, Driver, InMemory
from tests.conformance.memory import under_load
from tests.conformance.v2.client_faults import FAULTS
from tests.conformance.v2.correct_client import CorrectClient
from tests.rows import each_row

WITH_A_PROCESS = {"stderr.flood", "ends.input", "ends.no-orphan"}
"""Those whose faults are in test_client_processes.py: both versions have them in common."""

NOT_OURS = {"prompt.held", "prompt.held-end", "cancel.one-call", "cancel.one-call-goes-on", "cancel.offered"}
"""What a user of our library has no method for: a second prompt waits for the first, and calls are cancelled with their work."""


class OurDriver(Driver):
    """A user of our library, which asks for version 2 first."""

    purposes: ClassVar[Collection[str]] = [name for name in CLIENT_PURPOSES if name in CLIENT_PURPOSES_V2]
    versions: ClassVar[tuple[int, ...]] = (2, 1)


class OldDriver(OurDriver):
    """One that speaks version 1 only."""

    versions: ClassVar[tuple[int, ...]] = (1,)


@cache
def healthy() -> Healthy:
    return Healthy.played(CLIENT_SUITE_V2, CorrectClient)


def test_a_correct_client_passes_everything() -> None:
    found = {one.requirement.id: one.verdict for one in healthy().report.results}
    missed = {id: verdict for id, verdict in found.items() if verdict.status is not RequirementStatus.PASSED}
    assert set(missed) == WITH_A_PROCESS, missed
    assert (healthy().report.peer, healthy().report.is_correct) == ("table 2", True)


async def test_our_client_keeps_everything() -> None:
    place = InMemory(driver=OurDriver)
    report = await check_client(place, under_load(OPTIONS), suite=CLIENT_SUITE_V2, jobs=len(CLIENT_SUITE_V2.scenarios))
    found = {one.requirement.id: one.verdict for one in report.results}
    missed = {id: verdict for id, verdict in found.items() if verdict.status is not RequirementStatus.PASSED}
    assert set(missed) == WITH_A_PROCESS | NOT_OURS, missed


async def test_a_client_of_version_1_is_not_judged_by_version_2() -> None:
    with pytest.raises(AcpError, match="the client does not speak version 2: it asks for version 1") as refused:
        await check_client(InMemory(driver=OldDriver), under_load(OPTIONS), suite=CLIENT_SUITE_V2)
    assert "--protocol" in refused.value.hint


def test_every_requirement_has_a_fault() -> None:
    assert set(CLIENT_SUITE_V2.requirements()) == set(FAULTS) | WITH_A_PROCESS


@pytest.mark.slow
@pytest.mark.prove
@each_row("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    broken = FAULTS[id]
    played = await asyncio.to_thread(lambda: healthy().concerned(id, broken))
    place = InMemory(broken, CorrectClient)
    report = await check_client(
        place, under_load(broken.options), suite=CLIENT_SUITE_V2, only=sorted(played), jobs=len(played)
    )
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed, [one.verdict for one in report.results if one.requirement.id == id]
    assert set(failed) - {id} <= CLIENT_SUITE_V2.dependants(id), failed
