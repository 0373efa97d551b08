"""A report as data, which `--json` prints, as JUnit's XML and as a badge."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from antiphon import __version__
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.results import ConformanceReport, RequirementResult
from antiphon.text import xml_text
from antiphon.traffic.entries import Entry, Json

if TYPE_CHECKING:
    from antiphon.conformance.requirements import Suite

__all__ = ["Proof", "ReportDocument", "ReportedRequirement", "badge", "document_of", "encode", "junit"]

PROOF_BYTES = 20_000
"""Bytes of one message that are quoted as proof: a picture in a prompt proves nothing by its pixels."""


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that proves a verdict: as it was, or, where it is not JSON or too long, its first bytes as text."""

    message: int
    t: float
    dir: str
    msg: Json = None
    raw: str | None = None


class ReportedRequirement(msgspec.Struct, frozen=True):
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


class ReportDocument(msgspec.Struct, frozen=True):
    """A whole report. `correct`: nothing that must hold was broken, in what was run; `complete`: that was everything."""

    antiphon: str
    side: str
    peer: str
    command: list[str]
    correct: bool
    complete: bool
    seconds: float
    counts: dict[str, int]
    results: list[ReportedRequirement]
    left_out: dict[str, str] = {}
    """Scenarios that make no sense with this peer, each with the reason."""
    protocol: int = 1
    """The version of the protocol whose requirements these are."""

    def failed(self) -> list[ReportedRequirement]:
        """What does not hold and has to, or should."""
        return [one for one in self.results if one.status == RequirementStatus.FAILED]

    def noted(self) -> list[ReportedRequirement]:
        """Advice that is not followed."""
        return [one for one in self.results if one.status == RequirementStatus.NOTED]


def document_of(report: ConformanceReport, suite: "Suite[Any]") -> ReportDocument:
    """The report as data."""
    failed = {one.requirement.id for one in report.broken}
    reasons: dict[str, list[str]] = {}
    followers = {id: suite.dependants(id) & failed for id in failed}
    for id, others in followers.items():
        for other in others:
            if id not in followers[other]:  # of two that need each other, neither is the cause
                reasons.setdefault(other, []).append(id)
    return ReportDocument(
        __version__,
        report.side,
        report.peer,
        list(report.command),
        report.is_correct,
        report.complete,
        round(report.took, 3),
        {status.value: report.count(status) for status in RequirementStatus},
        [_judged(one, sorted(reasons.get(one.requirement.id, []))) for one in report.results],
        dict(report.left_out),
        suite.version,
    )


def _judged(result: RequirementResult, because: Sequence[str]) -> ReportedRequirement:
    one, verdict = result.requirement, result.verdict
    proofs = (
        [_proof(entry) for entry in verdict.evidence]
        if verdict.status in (RequirementStatus.FAILED, RequirementStatus.NOTED)
        else []
    )
    return ReportedRequirement(
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


def encode(document: ReportDocument) -> bytes:
    """Encode a report as `--json` prints it."""
    return msgspec.json.encode(document)


# --- JUnit's XML, which every CI reads: a test for each requirement, grouped by what its id begins with


def junit(document: ReportDocument, *, strict: bool = False) -> str:
    """Failures of `should` are failures where they are counted as such; advice stands in the output of a test that passed."""
    areas: dict[str, list[ReportedRequirement]] = {}
    for one in document.results:
        areas.setdefault(one.id.partition(".")[0], []).append(one)
    suites = "".join(_suite(area, results, strict) for area, results in areas.items()) + _left_out(document)
    failures = sum(_fails(one, strict) for one in document.results)
    name = quoteattr(xml_text(f"ACP {document.side}: {document.peer or ' '.join(document.command)}"))
    head = f'<testsuites name={name} tests="{len(document.results) + len(document.left_out)}" failures="{failures}" time="{document.seconds}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{suites}</testsuites>\n'


def _suite(area: str, results: list[ReportedRequirement], strict: bool) -> str:
    failures = sum(_fails(one, strict) for one in results)
    skipped = sum(_is_skipped(one) for one in results)
    cases = "".join(_case(area, one, strict) for one in results)
    head = f'<testsuite name={quoteattr(area)} tests="{len(results)}" failures="{failures}" skipped="{skipped}">'
    return f"  {head}\n{cases}  </testsuite>\n"


def _left_out(document: ReportDocument) -> str:
    """The scenarios that were left out, as tests that were skipped."""
    if not document.left_out:
        return ""
    cases = "".join(
        f'    <testcase classname="acp.scenario" name={quoteattr(name)}>\n      <skipped message={quoteattr(xml_text(f"left out: {why}"))}/>\n    </testcase>\n'
        for name, why in document.left_out.items()
    )
    count = len(document.left_out)
    return f'  <testsuite name="scenarios left out" tests="{count}" failures="0" skipped="{count}">\n{cases}  </testsuite>\n'


def _case(area: str, one: ReportedRequirement, strict: bool) -> str:
    head = f"    <testcase classname={quoteattr(f'acp.{area}')} name={quoteattr(f'{one.id}: {one.requirement}')}"
    found = xml_text(one.found)
    if _fails(one, strict):
        details = "\n".join([found, *map(_shown, one.evidence), f"fix: {one.fix}", one.link])
        return f"{head}>\n      <failure type={quoteattr(one.level)} message={quoteattr(found)}>{escape(details)}</failure>\n    </testcase>\n"
    if _is_skipped(one):
        return f"{head}>\n      <skipped message={quoteattr(f'{one.status}: {found}')}/>\n    </testcase>\n"
    if one.status in ("failed", "noted"):
        return f"{head}>\n      <system-out>{escape(f'{one.level}: {found}')}</system-out>\n    </testcase>\n"
    return f"{head}/>\n"


def _fails(one: ReportedRequirement, strict: bool) -> bool:
    levels = ("must", "capability", "should") if strict else ("must", "capability")
    return one.status == "failed" and one.level in levels


def _is_skipped(one: ReportedRequirement) -> bool:
    return one.status in ("skipped", "unseen", "blocked")


def _shown(proof: Proof) -> str:
    text = proof.raw if proof.raw is not None else msgspec.json.encode(proof.msg).decode()
    return xml_text(f"message {proof.message} {proof.dir}: {text[:2000]}")


# --- a badge for a README: how many requirements hold, never by colour alone

LETTER = 6.1
"""Pixels that a letter takes, on average, at 11 pixels of Verdana: text is stretched to it, so no font is needed to know the width."""

GOOD, FAIR, BAD = "#2b7a2b", "#8a6100", "#b02a2a"
"""Dark enough for white letters."""


def badge(document: ReportDocument) -> str:
    """The picture, as SVG."""
    passed, failed = document.counts["passed"], len(document.failed())
    fatal = sum(one.level in ("must", "capability") for one in document.failed())
    name = f"ACP {document.side}"
    if not document.correct:
        verdict, colour = f"{fatal} of {passed + failed} fail", BAD
    elif failed:
        verdict, colour = f"{passed} of {passed + failed}", FAIR
    else:
        verdict, colour = f"{passed} passed", GOOD
    left, right = _width(name), _width(verdict)
    title = escape(f"{name}: {verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="round"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(name, left / 2)}{_text(verdict, left + right / 2)}</g></svg>\n"
    )


def _text(text: str, middle: float) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{len(text) * LETTER:g}">{escape(text)}</text>'


def _width(text: str) -> int:
    return round(len(text) * LETTER) + 12
