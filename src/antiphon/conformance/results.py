"""From the verdicts of scenarios and the deviations of traffic to one result for each requirement."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from antiphon.conformance.requirements import EVERY, Requirement, RequirementStatus, RequirementVerdict
from antiphon.conformance.wire import PeerWire
from antiphon.traffic.checker import Deviation, Level, Side
from antiphon.traffic.entries import Direction, Entry

__all__ = ["ConformanceReport", "RequirementResult", "ScenarioRecord", "mark_late", "results_of"]

SHOWN: int = 3
"""Deviations from one rule that are listed; how many there are in all is reported too."""


@dataclass(slots=True)
class ScenarioRecord:
    """A scenario that was run: its own verdicts, and the connections it had."""

    name: str
    verdicts: dict[str, RequirementVerdict] = field(default_factory=dict)
    wires: list[PeerWire] = field(default_factory=list)
    took: float = 0.0


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """A requirement and what was found out about it."""

    requirement: Requirement
    verdict: RequirementVerdict

    @property
    def is_fatal(self) -> bool:
        """Whether it makes the peer incorrect."""
        return self.verdict.status is RequirementStatus.FAILED and self.requirement.level in (
            Level.MUST,
            Level.CAPABILITY,
        )


@dataclass(slots=True)
class ConformanceReport:
    """Everything that was found out about one peer."""

    side: Side
    peer: str
    """Name and version of the peer as it sent them, or its command."""
    results: list[RequirementResult]
    took: float
    command: Sequence[str] = ()
    complete: bool = True
    """Whether all scenarios were run."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Scenarios that make no sense with this peer, each with the reason. Their requirements are not among the results."""

    def count(self, status: RequirementStatus) -> int:
        return sum(1 for one in self.results if one.verdict.status is status)

    @property
    def broken(self) -> list[RequirementResult]:
        """What does not hold, advice included."""
        return [
            one for one in self.results if one.verdict.status in (RequirementStatus.FAILED, RequirementStatus.NOTED)
        ]

    @property
    def is_correct(self) -> bool:
        """Whether nothing that must hold was broken, and something was shown at all."""
        return self.count(RequirementStatus.PASSED) > 0 and not any(one.is_fatal for one in self.results)


def results_of(
    requirements: Mapping[str, Requirement],
    records: Iterable[ScenarioRecord],
    speaker: Direction,
    *,
    some: bool = False,
    version: int = 1,
) -> list[RequirementResult]:
    """One result for each requirement. `speaker` is the direction of the messages of the peer under check. `some`: only some scenarios were
    wanted, so what they do not show is left out. `version`: traffic of another one is not judged."""
    records = list(records)
    wires = list({id(wire): wire for record in records for wire in record.wires}.values())
    played = {record.name for record in records}
    found = [
        _result(one, _judged(one.id, wires, speaker, version) if _is_rule(one, records) else _played(one.id, records))
        for one in requirements.values()
        if not some or one.scenario in (EVERY, *played)
    ]
    return [one for one in found if not (some and _is_beside(one))]


def mark_late(records: Iterable[ScenarioRecord]) -> None:
    """Take back what was found because a response did not come in time, where it came later: the protocol has no such times."""
    for record in records:
        for id, verdict in record.verdicts.items():
            seconds = _lateness(verdict.awaited, record.wires) if verdict.awaited is not None else None
            if seconds is not None and verdict.awaited is not None:
                asked = f"`{verdict.awaited.method}` was answered late, after {seconds:.1f} s"
                text = f"{asked}: `--timeout` lets the check wait longer"
                record.verdicts[id] = RequirementVerdict(RequirementStatus.BLOCKED, text, verdict.evidence)


def _lateness(asked: Entry, wires: Iterable[PeerWire]) -> float | None:
    """After how many seconds a request was answered; None where it never was."""
    for wire in wires:
        if asked.number <= len(wire.trace) and wire.trace[asked.number - 1] is asked:
            for entry in wire.trace[asked.number :]:
                if entry.dir is not asked.dir and entry.is_response and entry.msg.get("id") == asked.msg.get("id"):
                    return entry.t - asked.t
    return None


def _is_beside(result: RequirementResult) -> bool:
    """Whether it never came to a rule of all traffic, in the little traffic that there was."""
    return result.requirement.scenario == EVERY and result.verdict.status is RequirementStatus.UNSEEN


def _result(requirement: Requirement, verdict: RequirementVerdict) -> RequirementResult:
    """A peer never fails by advice: it is noted that it is not followed."""
    if requirement.level is Level.ADVICE and verdict.status is RequirementStatus.FAILED:
        verdict = replace(verdict, status=RequirementStatus.NOTED)
    return RequirementResult(requirement, verdict)


def _is_rule(requirement: Requirement, records: Sequence[ScenarioRecord]) -> bool:
    return requirement.scenario == EVERY and not any(requirement.id in record.verdicts for record in records)


def _played(id: str, records: Sequence[ScenarioRecord]) -> RequirementVerdict:
    found = [record.verdicts[id] for record in records if id in record.verdicts]
    order = (
        RequirementStatus.FAILED,
        RequirementStatus.PASSED,
        RequirementStatus.BLOCKED,
        RequirementStatus.UNSEEN,
        RequirementStatus.SKIPPED,
    )
    if not found:
        return RequirementVerdict(RequirementStatus.SKIPPED, "its scenario was not played")
    return min(found, key=lambda verdict: order.index(verdict.status))


def _judged(id: str, wires: Sequence[PeerWire], speaker: Direction, version: int) -> RequirementVerdict:
    broken = [
        one
        for wire in wires
        for one in wire.checker.deviations
        if one.rule == id and one.entry.dir is speaker and _is_about(version, one, wire)
    ]  # fmt: skip
    if broken:
        more = f" (and {len(broken) - SHOWN} more)" if len(broken) > SHOWN else ""
        texts = list(dict.fromkeys(one.text for one in broken))[:SHOWN]
        evidence: tuple[Entry, ...] = tuple(one.entry for one in broken[:SHOWN])
        return RequirementVerdict(RequirementStatus.FAILED, "; ".join(texts) + more, evidence)
    if any(wire.checker.seen[id, speaker] for wire in wires):
        return RequirementVerdict(RequirementStatus.PASSED)
    return RequirementVerdict(RequirementStatus.UNSEEN, "it never came to it")


def _is_about(version: int, deviation: Deviation, wire: PeerWire) -> bool:
    """Whether a deviation is one from the rules of a version: before any is settled, those of an earlier one apply."""
    settled = wire.checker.state.initialized
    early = settled is None or deviation.entry.number < settled.number
    return deviation.version == version or (early and deviation.version < version)
