"""The report of `check` and `check-client` for people: a table of what was looked at, then what is wrong, proved, with what to change."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from antiphon.cli.screen import Screen
from antiphon.conformance.report import Proof, ReportDocument, ReportedRequirement
from antiphon.conformance.requirements import EVERY
from antiphon.text import Style, exact_line, one_line

__all__ = ["lines", "write"]

LEVELS: Final = {"must": "must", "capability": "if offered", "should": "should", "advice": "advice"}
"""Level → the head of its column."""

PARTS: Final = {
    "JSON-RPC": ("wire", "rpc", "id", "notify", "error", "requests", "cancel-request"),
    "schema": ("schema",),
    "handshake": ("init", "version", "hello"),
    "signing in": ("auth",),
    "capabilities": ("capability", "modest", "unoffered"),
    "sessions": ("session", "sessions", "load", "resume", "list", "delete", "fork", "close"),
    "settings": ("mode", "config"),
    "turns": ("turn", "prompt", "content", "plan", "commands"),
    "tool calls": ("call", "permission", "elicitation"),
    "files": ("files", "path"),
    "terminals": ("terminal", "terminals"),
    "cancelling": ("cancel",),
    "extensions": ("meta", "unknown", "nulls", "tolerates", "updates"),
    "robustness": (
        "junk", "utf8", "nonsense", "scalar", "blank", "batch", "id-null", "nameless", "nesting", "line", "lines", "noise", "stderr", "errors",
    ),
    "process": ("process", "ends"),
}  # fmt: skip
"""A row of the table → what the ids in it begin with; whatever else there is has a row of its own."""

MARKS: Final[dict[str, tuple[str, Style]]] = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "noted": ("i", "cyan"),
    "skipped": ("·", "dim"),
    "unseen": ("?", "yellow"),
    "blocked": ("!", "yellow"),
}
WORDS: Final = {"skipped": "not offered", "unseen": "never seen", "blocked": "could not be tried"}
FEW: Final = 3
"""Requirements of one part that are named where many were not shown."""
PROOFS: Final = 3
"""Messages that are shown for a failure; advice has one."""
PROOF_CHARACTERS: Final = 400
"""Characters of a message that are shown as proof; `--json` has all of it."""
PLACE_CHARACTERS: Final = 120
"""Characters that are shown of a place in it that the finding names."""


def write(document: ReportDocument, *, everything: bool, strict: bool = False) -> None:
    """On stdout."""
    screen = Screen(sys.stdout, sys.stdout)
    width = shutil.get_terminal_size((100, 0)).columns
    text = "".join(f"{line}\n" for line in lines(document, screen, width, everything=everything, strict=strict))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def lines(
    document: ReportDocument, screen: Screen, width: int, *, everything: bool, strict: bool = False
) -> Iterator[str]:
    """The table, the failures from the gravest on, what was not shown, and one line that says how it is."""
    if document.counts["passed"] > FEW:  # of one that did not even come up there is no more to say than why
        yield from _table(document, screen)
    broken = [*document.failed(), *document.noted()]
    for level in LEVELS:
        for one in broken:
            if one.level == level:
                yield ""
                yield from _failure(one, screen, width)
    if everything:
        yield ""
        for one in document.results:
            if one not in broken:
                yield from _line(one, screen, width)
    elif document.counts["passed"] > FEW:
        yield from _unshown(document, screen, width)
    yield ""
    yield from _verdict(document, screen, width, everything=everything)
    if strict:
        yield from _strictly(document)


def _table(document: ReportDocument, screen: Screen) -> Iterator[str]:
    areas = _by_part(document.results)
    wide = max(map(len, areas), default=4) + 2
    yield screen.styled(f"{'':2}{'':{wide}}" + "".join(f"{head:>12}" for head in LEVELS.values()), "bold")
    for area, found in areas.items():
        cells = [_cell([one for one in found if one.level == level], screen) for level in LEVELS]
        bad = any(one.status == "failed" for one in found)
        good = any(one.status == "passed" for one in found)
        mark, style = MARKS["failed" if bad else "passed" if good else "skipped"]
        yield f"{screen.styled(mark, style)} {area:{wide}}" + "".join(cells).rstrip()


def _by_part(results: Sequence[ReportedRequirement]) -> dict[str, list[ReportedRequirement]]:
    part_of = {area: part for part, areas in PARTS.items() for area in areas}
    found: dict[str, list[ReportedRequirement]] = {part: [] for part in PARTS}
    for one in results:
        area = one.id.partition(".")[0]
        found.setdefault(part_of.get(area, area), []).append(one)
    return {part: judged for part, judged in found.items() if judged}


def _cell(found: Sequence[ReportedRequirement], screen: Screen) -> str:
    """How many of those that were shown hold: `3/4`."""
    shown = [one for one in found if one.status in ("passed", "failed", "noted")]
    passed = sum(one.status == "passed" for one in shown)
    text = f"{passed}/{len(shown)}" if shown else "-" if found else ""
    bad = any(one.status == "failed" for one in shown)
    return " " * (12 - len(text)) + (screen.styled(text, "red") if bad else text)


def _failure(one: ReportedRequirement, screen: Screen, width: int) -> Iterator[str]:
    mark, style = MARKS[one.status]
    where = "" if one.scenario == EVERY else f"  (scenario {one.scenario})"
    yield f"{screen.styled(mark, style)} {screen.styled(one.id, 'bold')}  {LEVELS[one.level]}{where}"
    yield from _wrapped(one.requirement, width, "  ")
    yield from _wrapped(f"found: {one.found}", width, "  ")
    if one.because:
        yield from _wrapped(f"follows from: {', '.join(one.because)}", width, "  ")
    for proof in one.evidence[: PROOFS if one.status == "failed" else 1]:
        yield from _proof(proof, one.found, screen, width)
    yield from _wrapped(f"fix: {one.fix}", width, "  ")
    yield f"  {screen.styled(one.link, 'dim')}"


def _proof(proof: Proof, found: str, screen: Screen, width: int) -> Iterator[str]:
    arrow = "client → agent" if proof.dir == "c2a" else "agent → client"
    text = proof.raw if proof.raw is not None else msgspec.json.encode(proof.msg).decode()
    yield screen.styled(f"    message {proof.message}, {arrow}", "dim")
    if len(text) > PROOF_CHARACTERS:
        text = text[:PROOF_CHARACTERS] + "…"
        for place, value in _meant(proof.msg, found):
            shown = msgspec.json.encode(value).decode()
            text += f" {place}: {shown[:PLACE_CHARACTERS]}{'…' if len(shown) > PLACE_CHARACTERS else ''}"
    shown = exact_line(text)
    for start in range(0, len(shown), max(width - 6, 40)):
        yield screen.styled(f"    {shown[start : start + max(width - 6, 40)]}", "dim")


def _meant(message: object, found: str) -> Iterator[tuple[str, object]]:
    """The places that a sentence names, with what stands there: in a long message nobody would find them."""
    for place in dict.fromkeys(re.findall(r"`((?:params|result|error)[.\w\[\]]*)`", found)):
        value = message
        try:
            for name, number in re.findall(r"(\w+)|\[(\d+)\]", place):
                value = value[name] if name else value[int(number)]  # type: ignore[index]  # what does not fit is no place
        except (KeyError, IndexError, TypeError):
            continue
        yield place, value


def _unshown(document: ReportDocument, screen: Screen, width: int) -> Iterator[str]:
    for status, words in WORDS.items():
        found = [one for one in document.results if one.status == status]
        if found:
            mark, style = MARKS[status]
            yield ""
            listed = ", ".join(_listed(part, judged) for part, judged in _by_part(found).items())
            first, *rest = _wrapped(f"{words}: {listed}", width, "  ")
            yield f"{screen.styled(mark, style)} {first.lstrip()}"
            yield from rest


def _listed(part: str, found: Sequence[ReportedRequirement]) -> str:
    """A few by their ids, many by their number: `--all` has them all."""
    return ", ".join(one.id for one in found) if len(found) <= FEW else f"{len(found)} about {part}"


def _line(one: ReportedRequirement, screen: Screen, width: int) -> Iterator[str]:
    mark, style = MARKS[one.status]
    why = f" ({WORDS[one.status]}: {one.found})" if one.status in WORDS else ""
    first, *rest = _wrapped(f"{one.id}: {one.requirement}{why}", width, "  ")
    yield f"{screen.styled(mark, style)} {first.lstrip()}"
    yield from rest


def _verdict(document: ReportDocument, screen: Screen, width: int, *, everything: bool) -> Iterator[str]:
    counts = document.counts
    told = [f"{counts['passed']} passed", f"{counts['failed']} failed"]
    told += [f"{counts['noted']} noted"] if counts["noted"] else []
    told += [f"{counts[status]} {words}" for status, words in WORDS.items() if counts[status]]
    fatal = sum(one.level in ("must", "capability") for one in document.failed())
    who = one_line(document.peer or " ".join(document.command))
    if document.correct and not document.complete:
        style: Style = "green"
        sentence = f"{who}: nothing that must hold was broken, in the part that was played{_untested(document)}."
    elif document.correct:
        style = "green"
        sentence = f"{who} is correct: nothing that must hold was broken{_untested(document)}."
    elif fatal and not counts["passed"]:
        style = "red"
        sentence = f"{who} could not be checked: it did not get as far as to answer anything."
    elif fatal:
        style = "red"
        sentence = f"{who} is not correct: {fatal} requirement{'' if fatal == 1 else 's'} that must hold {'is' if fatal == 1 else 'are'} broken."
    else:
        style = "red"
        sentence = f"{who} could not be checked: nothing was shown."
    yield from (screen.styled(line, style) for line in _wrapped(sentence, width, ""))
    hidden = "" if everything else " --all shows each."
    yield f"{len(document.results)} requirements: {', '.join(told)}. {document.seconds:.1f} s.{hidden}"


def _untested(document: ReportDocument) -> str:
    """How much the verdict leaves open, to put behind it."""
    total, unseen, blocked = len(document.results), document.counts["unseen"], document.counts["blocked"]
    if not unseen and not blocked:
        return ""
    seen = f"{unseen} of {total} requirements {'was' if unseen == 1 else 'were'} never seen" if unseen else ""
    tried = f"{blocked}{'' if unseen else f' of {total} requirements'} could not be tried" if blocked else ""
    return f", but {' and '.join(filter(None, (seen, tried)))}"


def _strictly(document: ReportDocument) -> Iterator[str]:
    """Why somebody who is strict is not content."""
    counted = [one for one in document.results if one.level != "advice"]
    found = {
        "fail that should hold": sum(one.status == "failed" and one.level == "should" for one in counted),
        "were never seen": sum(one.status == "unseen" for one in counted),
        "could not be tried": sum(one.status == "blocked" for one in counted),
    }
    if any(found.values()):
        yield "--strict: " + ", ".join(f"{count} {words}" for words, count in found.items() if count) + "."


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    text = one_line(text)
    if width - len(indent) < 24:
        return [indent + text]
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [indent]
