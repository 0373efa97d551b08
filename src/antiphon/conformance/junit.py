"""A report as JUnit's XML, which every CI reads: a test for each requirement, grouped by what its id begins with."""

from xml.sax.saxutils import escape, quoteattr

import msgspec

from antiphon.conformance.document import Document, Judged, Proof

__all__ = ["junit"]

_FORBIDDEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), 65533)
"""Characters that XML has no way to write."""


def junit(document: Document, *, strict: bool = False) -> str:
    """Failures of `should` are failures where they are counted as such; advice is told in the output of a test that passed."""
    areas: dict[str, list[Judged]] = {}
    for one in document.results:
        areas.setdefault(one.id.partition(".")[0], []).append(one)
    suites = "".join(_suite(area, results, strict) for area, results in areas.items())
    failures = sum(_fails(one, strict) for one in document.results)
    name = quoteattr(_clean(f"ACP {document.side}: {document.peer or ' '.join(document.command)}"))
    head = f'<testsuites name={name} tests="{len(document.results)}" failures="{failures}" time="{document.seconds}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{suites}</testsuites>\n'


def _suite(area: str, results: list[Judged], strict: bool) -> str:
    failures = sum(_fails(one, strict) for one in results)
    skipped = sum(_is_skipped(one) for one in results)
    cases = "".join(_case(area, one, strict) for one in results)
    head = f'<testsuite name={quoteattr(area)} tests="{len(results)}" failures="{failures}" skipped="{skipped}">'
    return f"  {head}\n{cases}  </testsuite>\n"


def _case(area: str, one: Judged, strict: bool) -> str:
    head = f"    <testcase classname={quoteattr(f'acp.{area}')} name={quoteattr(f'{one.id}: {one.requirement}')}"
    found = _clean(one.found)
    if _fails(one, strict):
        told = "\n".join([found, *map(_shown, one.evidence), f"fix: {one.fix}", one.link])
        return f"{head}>\n      <failure type={quoteattr(one.level)} message={quoteattr(found)}>{escape(told)}</failure>\n    </testcase>\n"
    if _is_skipped(one):
        return f"{head}>\n      <skipped message={quoteattr(f'{one.status}: {found}')}/>\n    </testcase>\n"
    if one.status in ("failed", "noted"):
        return f"{head}>\n      <system-out>{escape(f'{one.level}: {found}')}</system-out>\n    </testcase>\n"
    return f"{head}/>\n"


def _fails(one: Judged, strict: bool) -> bool:
    levels = ("must", "capability", "should") if strict else ("must", "capability")
    return one.status == "failed" and one.level in levels


def _is_skipped(one: Judged) -> bool:
    return one.status in ("skipped", "unseen", "blocked")


def _shown(proof: Proof) -> str:
    text = proof.raw if proof.raw is not None else msgspec.json.encode(proof.msg).decode()
    return _clean(f"message {proof.message} {proof.dir}: {text[:2000]}")


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().translate(_FORBIDDEN)
