"""The check of clients is checked: for every requirement a fault that breaks it, and nothing but it and its dependants."""

import asyncio
from functools import cache

import msgspec

from antiphon.conformance.client_check import check_client
from antiphon.conformance.requirements import EVERY, RequirementStatus
from antiphon.conformance.results import ConformanceReport, ScenarioRecord
from antiphon.conformance.suites.client import SUITE
from antiphon.traffic.entries import NO_JSON, Entry
from tests.conformance.client_faults import handshake, messages, rules, services
from tests.conformance.client_memory import OPTIONS, Broken, InMemory
from tests.conformance.memory import under_load
from tests.rows import each_row

FAULTS = {**handshake.FAULTS, **messages.FAULTS, **services.FAULTS, **rules.FAULTS}
WITH_A_PROCESS = {"stderr.flood", "ends.input", "ends.no-orphan"}
"""Those whose faults are in test_client_processes.py."""

NEVER_LOOKED_AT = 64 * 1024
"""Bytes from which on messages are left out where it is found out whom a fault concerns: it concerns their own scenario, at most."""


@cache
def healthy() -> tuple[ConformanceReport, dict[str, list[list[Entry]]]]:
    """A correct client, and what was said in each scenario, connection by connection."""
    traffic: dict[str, list[list[Entry]]] = {}

    def note(record: ScenarioRecord) -> None:
        traffic[record.name] = [wire.trace for wire in record.wires]

    report = asyncio.run(check_client(InMemory(), under_load(OPTIONS), jobs=len(SUITE.scenarios), progress=note))
    return report, traffic


def test_our_client_passes_everything() -> None:
    found = {one.requirement.id: one.verdict for one in healthy()[0].results}
    assert {
        id for id, verdict in found.items() if verdict.status in (RequirementStatus.FAILED, RequirementStatus.NOTED)
    } == set()
    missed = {id for id, verdict in found.items() if verdict.status is not RequirementStatus.PASSED}
    records = {id for id, one in SUITE.requirements().items() if one.scenario != EVERY}
    assert missed & records == WITH_A_PROCESS | {"requests.not-offered"}


def test_every_requirement_has_a_fault() -> None:
    assert set(SUITE.requirements()) == set(FAULTS) | WITH_A_PROCESS


def concerned(id: str, broken: Broken) -> set[str]:
    """The scenarios that the fault can be seen in: those whose traffic it would change, its own, and those of its dependants."""
    requirements = SUITE.requirements()
    own = {requirements[one].scenario for one in (id, *SUITE.dependants(id))}
    if broken.wire is None or not broken.able:
        return set(SUITE.scenarios)
    return own | {name for name, wires in healthy()[1].items() if any(changes(broken, trace) for trace in wires)}


def changes(broken: Broken, trace: list[Entry]) -> bool:
    """Whether a fault changes anything of a session with a correct client."""
    assert broken.wire is not None
    fault = broken.wire()
    for entry in trace:
        if len(entry.raw) < NEVER_LOOKED_AT:
            message = entry.raw if entry.msg is NO_JSON else msgspec.json.decode(entry.raw)
            texts = list(fault(entry.dir, message))
            if len(texts) != 1 or texts[0] != (entry.raw if entry.msg is NO_JSON else entry.msg):
                return True
    return fault.status is not None or fault.stays_open


@each_row("id", FAULTS)
async def test_a_fault_fails_its_requirement_and_no_other(id: str) -> None:
    broken = FAULTS[id]
    played = await asyncio.to_thread(concerned, id, broken)
    report = await check_client(InMemory(broken), under_load(broken.options), only=sorted(played), jobs=len(played))
    failed = {one.requirement.id: one.verdict.text for one in report.broken}
    assert id in failed
    assert set(failed) - {id} <= SUITE.dependants(id), failed
