"""The scenarios that a fault of a client can be seen in: all others need not be played to show that it breaks nothing else."""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from antiphon.conformance.client_check import check_client
from antiphon.conformance.requirements import Suite
from antiphon.conformance.results import ConformanceReport, ScenarioRecord
from antiphon.traffic.entries import NO_JSON, Entry
from tests.conformance.client_memory import OPTIONS, Broken, Drives, InMemory
from tests.conformance.memory import under_load

NEVER_LOOKED_AT = 64 * 1024
"""Bytes from which on messages are left out where it is found out whom a fault concerns: it concerns their own scenario, at most."""


@dataclass(frozen=True)
class Healthy:
    """A correct client, and what was sent in each scenario, connection by connection."""

    suite: Suite[Any]
    report: ConformanceReport
    traffic: dict[str, list[list[Entry]]]

    @classmethod
    def played(cls, suite: Suite[Any], driver: type[Drives]) -> "Healthy":
        traffic: dict[str, list[list[Entry]]] = {}

        def note(record: ScenarioRecord) -> None:
            traffic[record.name] = [wire.trace for wire in record.wires]

        check = check_client(
            InMemory(driver=driver), under_load(OPTIONS), suite=suite, jobs=len(suite.scenarios), progress=note
        )
        return cls(suite, asyncio.run(check), traffic)

    def concerned(self, id: str, broken: Broken) -> set[str]:
        """The scenarios whose traffic the fault would change, its own, and those of its dependants."""
        requirements = self.suite.requirements()
        own = {requirements[one].scenario for one in (id, *self.suite.dependants(id))}
        if broken.wire is None or not broken.able:
            return set(self.suite.scenarios)
        return own | {name for name, wires in self.traffic.items() if any(changes(broken, trace) for trace in wires)}


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
