"""A report as data: what `--json` prints, and what the other forms are made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from antiphon import __version__
from antiphon.conformance.results import Report, Result
from antiphon.conformance.verdicts import Status
from antiphon.traffic.entries import Entry

if TYPE_CHECKING:
    from antiphon.conformance.requirements import Suite

__all__ = ["Document", "Judged", "Proof", "document_of", "encode"]

PROOF_BYTES = 20_000
"""Bytes of one message that are told as proof: a picture in a prompt proves nothing by its pixels."""


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that proves a verdict: as it was, or, where it is no JSON or too long, its first bytes as text."""

    message: int
    t: float
    dir: str
    msg: Any = None
    raw: str | None = None


class Judged(msgspec.Struct, frozen=True):
    """One requirement and what was found out about it. `because` names failed requirements that this failure follows from."""

    id: str
    level: str
    status: str
    requirement: str
    found: str
    fix: str
    link: str
    scenario: str
    because: list[str]
    evidence: list[Proof]


class Document(msgspec.Struct, frozen=True):
    """All of a report. `correct`: nothing that must hold was broken, in what was played; `complete`: that was everything."""

    antiphon: str
    side: str
    peer: str
    command: list[str]
    correct: bool
    complete: bool
    seconds: float
    counts: dict[str, int]
    results: list[Judged]

    def failed(self) -> list[Judged]:
        """What does not hold and has to, or should."""
        return [one for one in self.results if one.status == Status.FAILED]

    def noted(self) -> list[Judged]:
        """Advice that is not followed."""
        return [one for one in self.results if one.status == Status.NOTED]


def document_of(report: Report, suite: "Suite[Any]") -> Document:
    """The report as data."""
    failed = {one.requirement.id for one in report.broken}
    reasons: dict[str, list[str]] = {}
    followers = {id: suite.dependants(id) & failed for id in failed}
    for id, others in followers.items():
        for other in others:
            if id not in followers[other]:  # two that need each other are no reason for each other
                reasons.setdefault(other, []).append(id)
    return Document(
        __version__,
        report.side,
        report.peer,
        list(report.command),
        report.is_correct,
        report.complete,
        round(report.took, 3),
        {status.value: report.count(status) for status in Status},
        [_judged(one, sorted(reasons.get(one.requirement.id, []))) for one in report.results],
    )


def _judged(result: Result, because: Sequence[str]) -> Judged:
    one, verdict = result.requirement, result.verdict
    proofs = [_proof(entry) for entry in verdict.evidence] if verdict.status in (Status.FAILED, Status.NOTED) else []
    return Judged(
        one.id,
        one.level,
        verdict.status,
        one.text,
        verdict.text,
        verdict.fix or one.fix,
        one.link,
        one.scenario,
        list(because),
        proofs,
    )


def _proof(entry: Entry) -> Proof:
    if entry.is_noise or len(entry.raw) > PROOF_BYTES:
        text = entry.raw[:PROOF_BYTES].decode("utf-8", "replace")
        return Proof(entry.number, round(entry.t, 4), entry.dir.value, raw=text)
    return Proof(entry.number, round(entry.t, 4), entry.dir.value, msg=entry.msg)


def encode(document: Document) -> bytes:
    """As `--json` prints it."""
    return msgspec.json.encode(document)
