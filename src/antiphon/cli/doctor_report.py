"""What the doctor reports: one JSON object with a schema, or lines for people, as wide as their terminal."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from antiphon import __version__
from antiphon.cli.screen import Screen
from antiphon.doctor.checks import PARTS
from antiphon.doctor.findings import Status
from antiphon.doctor.runner import Result
from antiphon.text import Style, one_line

__all__ = ["Report", "Told", "encode", "lines", "report_of", "schema", "write"]

_MARKS: Final[Mapping[Status, tuple[str, Style]]] = {
    "ok": ("✓", "green"),
    "note": ("·", "cyan"),
    "problem": ("✗", "red"),
}
_NARROWEST: Final = 24
"""Columns below which lines are not broken any more: it would be one word per line."""


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """What one check found. Several findings of one check have the same `id`."""

    id: str
    part: str
    title: str
    status: Status
    sentence: str
    hint: str | None
    facts: dict[str, str]
    seconds: float


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Everything. `network` and `start`: whether these were asked for. `status` is `problem` if any check has one."""

    antiphon: str
    status: Literal["ok", "problem"]
    network: bool
    start: bool
    checks: list[Told]


def report_of(results: Sequence[Result], *, network: bool, start: bool) -> Report:
    """The findings of all checks, in their order."""
    told = [
        Told(
            result.check.id,
            result.check.part,
            result.check.title,
            found.status,
            found.sentence,
            found.hint,
            dict(found.facts),
            round(result.seconds, 3),
        )
        for result in results
        for found in result.findings
    ]
    wrong = any(each.status == "problem" for each in told)
    return Report(__version__, "problem" if wrong else "ok", network, start, told)


def encode(report: Report) -> bytes:
    """As `--json` prints it."""
    return msgspec.json.encode(report)


def schema() -> dict[str, Any]:
    """The JSON schema of the report."""
    from inspect import cleandoc  # Python 3.13 does it by itself

    (found,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What `antiphon doctor --json` prints"}
    return {
        **head,
        **found,
        "$defs": {name: {**part, "description": cleandoc(part["description"])} for name, part in sorted(parts.items())},
    }


def write(report: Report, *, named: bool) -> None:
    """The report for people, on stdout."""
    screen = Screen(sys.stdout, sys.stdout)  # whether there are colours depends on where this goes
    width = shutil.get_terminal_size((0, 0)).columns
    text = "".join(f"{line}\n" for line in lines(report, screen, width, named=named))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def lines(report: Report, screen: Screen, width: int, *, named: bool) -> Iterator[str]:
    """One line per finding, hints below; problems again at the end, with what to do. `width` 0: as long as they are."""
    for part, title in PARTS.items():
        told = [each for each in report.checks if each.part == part]
        if not told:
            continue
        absent = [] if named else [each for each in told if part == "agents" and each.status == "note"]
        yield screen.styled(title, "bold")
        for each in told:
            if each not in absent:
                yield from _finding(each, screen, width, hint=each.status == "note")
        if absent:
            yield from _absent(absent, screen, width)
        yield ""
    yield from _summary(report, screen, width, named=named)


def _finding(told: Told, screen: Screen, width: int, *, hint: bool) -> Iterator[str]:
    mark, style = _MARKS[told.status]
    yield from _wrapped(f"{told.title}: {told.sentence}", width, screen.styled(mark, style), 1)
    if hint and told.hint:
        yield from _wrapped(f"hint: {told.hint}", width, "", 3)


def _absent(told: Sequence[Told], screen: Screen, width: int) -> Iterator[str]:
    """The agents that are not here, on one line: there are many, and nobody needs them all."""
    mark, style = _MARKS["note"]
    listed = ", ".join(each.title for each in told)
    yield from _wrapped(f"not installed: {listed}", width, screen.styled(mark, style), 1)
    yield from _wrapped("hint: `antiphon agents` says how to get each", width, "", 3)


def _summary(report: Report, screen: Screen, width: int, *, named: bool) -> Iterator[str]:
    wrong = [each for each in report.checks if each.status == "problem"]
    if wrong:
        yield screen.styled(f"{len(wrong)} problem{'' if len(wrong) == 1 else 's'}", "bold")
        for each in wrong:
            yield from _finding(each, screen, width, hint=True)
    else:
        yield screen.styled("No problem.", "bold")
    left = []
    if not report.network and not named:
        left.append("the doctor made no connection: --network tries the models' addresses")
    if not report.start and not named:
        left.append("no agent was started: --start does that")
    if left:
        sentence = "; ".join(left)
        yield ""
        yield from _wrapped(f"{sentence[0].upper()}{sentence[1:]}.", width, "", 0)


def _wrapped(text: str, width: int, mark: str, indent: int) -> Iterator[str]:
    """Lines of a text behind a mark of one column, or behind nothing; what does not fit goes on below, as far in."""
    text = one_line(text)
    deep = indent + 1 if mark else indent
    if width - deep < _NARROWEST:
        broken = [text]
    else:
        broken = textwrap.wrap(text, width - deep - 1, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(broken):
        yield f"{mark} {line}" if mark and number == 0 else f"{' ' * deep}{line}"


if __name__ == "__main__":  # how the file in the docs is written again
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n")
