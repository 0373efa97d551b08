"""`antiphon doctor`: run the checks of `antiphon.doctor`, and print the report."""

import argparse
import asyncio
import logging
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from antiphon import __version__
from antiphon.catalogue.known import KNOWN
from antiphon.cli.arguments import OfferedWords, Parser, duration
from antiphon.cli.outcome import FAILED, Misused, did_you_mean
from antiphon.errors import AcpError
from antiphon.text import Style, one_line

if TYPE_CHECKING:
    from antiphon.cli.terminal import Screen
    from antiphon.doctor.findings import Check, DoctorContext, Status
    from antiphon.doctor.runner import DoctorResult

__all__ = ["DoctorFinding", "DoctorReport", "encode", "lines", "parser", "report_of", "run", "schema", "write"]

LIMIT: Final = 10.0
"""Seconds that a program may take for an answer, by default."""

START_LIMIT: Final = 60.0
"""Seconds that an agent may take to start, by default."""

SILENCE: Final = 1.0
"""Seconds after which a user at a terminal sees what we wait for."""

NAMES: Final = ("install", "config", "state", "environment", "engines", "agents", "editors", "demo", *KNOWN)
"""Names that the help offers as arguments."""

EPILOG: Final = """\
NAME is a part (install, config, state, environment, engines, agents, editors), an engine, an agent, an editor, or the id of a check.
What you name and is missing is a problem; otherwise it is only noted. One working engine is enough: a problem of the other one is only
noted, unless you name that engine here or in your config file.

Nothing is changed, and no connection is made without --network, which sends one request without a key to the address of each model.
--start starts demo, claude and codex, and other agents that you name: initialize, one session in an empty directory, and the end. No
prompt is sent; programs may do more by themselves when they are started.

exit status: 0 no problem, 1 a problem, 2 wrong arguments.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon doctor",
        description="Diagnose the installation: what is installed, signed in and reachable; what is wrong, and what to do.",
        epilog=EPILOG,
    )
    top.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        choices=OfferedWords(NAMES),
        help="check only this (default: everything)",
    )
    top.add_argument("--json", action="store_true", help="the report as one JSON object")
    top.add_argument("--network", action="store_true", help="also connect to the addresses of the models")
    top.add_argument("--start", action="store_true", help="also start the agents")
    top.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="how long a program may take to answer, and an agent to start (default: 10s and 60s)",
    )
    return top


def run(arguments: list[str]) -> int:
    """Run all checks, or those that are named, and report."""
    options = parser().parse_intermixed_args(arguments)
    log = logging.getLogger("antiphon")
    log.addHandler(logging.NullHandler())  # what is wrong is in the report; the packages below would print it again
    log.propagate = False
    return asyncio.run(_diagnose(options))


async def _diagnose(options: argparse.Namespace) -> int:
    from antiphon.doctor.checks import checks_of, selected
    from antiphon.doctor.engines import one_is_enough

    context = await _admitted(options)
    if context is None:
        raise AcpError(
            "the configuration could not be read in time", hint="look whether a disk is busy or stuck, and try again"
        )
    checks, unknown = selected(checks_of(context, network=options.network, start=options.start), options.names)
    if unknown:
        raise Misused(f"there is nothing named `{unknown[0][:80]}` to look at", hint=f"{_meant(unknown[0], context)}")
    return _print_report(options, one_is_enough(await _examined(checks, context), context))


async def _admitted(options: argparse.Namespace) -> "DoctorContext | None":
    from antiphon.doctor.checks import read_context
    from antiphon.doctor.runner import in_thread

    limit, start_limit = (options.timeout, options.timeout) if options.timeout else (LIMIT, START_LIMIT)
    try:
        async with asyncio.timeout(LIMIT):
            return await in_thread(lambda: read_context(options.names, limit, start_limit))
    except TimeoutError:
        return None


async def _examined(checks: "Sequence[Check]", context: "DoctorContext") -> "tuple[DoctorResult, ...]":
    """Run the checks, and show on a terminal what is still running if it takes long."""

    from antiphon.cli.terminal import Screen
    from antiphon.doctor.runner import run_checks

    waiting = {check.id: check.title for check in checks}
    screen = Screen()

    def done(check: "Check") -> None:
        waiting.pop(check.id, None)

    async def show_wait() -> None:
        while True:
            await asyncio.sleep(SILENCE)
            screen.status(f"waiting for {', '.join(waiting.values())}")

    reporter = asyncio.create_task(show_wait())
    try:
        return await run_checks(checks, context, done)
    finally:
        reporter.cancel()
        screen.status(None)


def _print_report(options: argparse.Namespace, results: "tuple[DoctorResult, ...]") -> int:
    report = report_of(results, network=options.network, start=options.start)
    if options.json:
        sys.stdout.write(f"{encode(report).decode()}\n")
    else:
        write(report, named=bool(options.names))
    return FAILED if report.status == "problem" else 0


def _meant(word: str, context: "DoctorContext") -> str:
    from antiphon.doctor.checks import PARTS, checks_of

    checks = checks_of(context, network=True, start=True)
    for name, option in (("network", "--network"), ("start", "--start")):
        if word.partition(".")[0] == name:
            return f"`{option}` looks at that"
    known = dict.fromkeys((*PARTS, *(name for check in checks for name in (*check.about, check.id))))
    return f"{did_you_mean(word, known)}name a part ({', '.join(PARTS)}), an engine or an agent"


# --- the report ------------------------------------------------------------------------------------------------------

_MARKS: "Final[Mapping[Status, tuple[str, Style]]]" = {
    "ok": ("✓", "green"),
    "note": ("·", "cyan"),
    "problem": ("✗", "red"),
}
_NARROWEST: Final = 24
"""Columns below which lines are not broken any more: it would be one word per line."""


class DoctorFinding(msgspec.Struct, frozen=True, rename="camel"):
    """One finding of a check. Several findings of one check have the same `id`."""

    id: str
    part: str
    title: str
    status: Literal["ok", "note", "problem"]
    sentence: str
    hint: str | None
    facts: dict[str, str]
    seconds: float


class DoctorReport(msgspec.Struct, frozen=True, rename="camel"):
    """The whole report. `network` and `start`: whether these were requested. `status` is `problem` if any check has one."""

    antiphon: str
    status: Literal["ok", "problem"]
    network: bool
    start: bool
    checks: list[DoctorFinding]


def report_of(results: "Sequence[DoctorResult]", *, network: bool, start: bool) -> DoctorReport:
    """Return the report of all checks, in order."""
    findings = [
        DoctorFinding(
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
    wrong = any(each.status == "problem" for each in findings)
    return DoctorReport(__version__, "problem" if wrong else "ok", network, start, findings)


def encode(report: DoctorReport) -> bytes:
    """Return the report as `--json` prints it."""
    return msgspec.json.encode(report)


def schema() -> dict[str, object]:
    """Return the JSON schema of the report."""
    from inspect import cleandoc  # Python 3.13 does it by itself

    (found,), parts = msgspec.json.schema_components([DoctorReport], ref_template="#/$defs/{name}")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What `antiphon doctor --json` prints"}
    return {
        **head,
        **found,
        "$defs": {name: {**part, "description": cleandoc(part["description"])} for name, part in sorted(parts.items())},
    }


def write(report: DoctorReport, *, named: bool) -> None:
    """Write the report for people to stdout."""

    from antiphon.cli.terminal import Screen

    screen = Screen(sys.stdout, sys.stdout)  # whether there are colours depends on where this goes
    width = shutil.get_terminal_size((0, 0)).columns
    text = "".join(f"{line}\n" for line in lines(report, screen, width, named=named))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def lines(report: DoctorReport, screen: "Screen", width: int, *, named: bool) -> Iterator[str]:
    """Yield a line per finding and the problems again at the end. With `width` 0 lines are not wrapped."""

    from antiphon.doctor.checks import PARTS

    for part, title in PARTS.items():
        findings = [each for each in report.checks if each.part == part]
        if not findings:
            continue
        absent = [] if named else [each for each in findings if part == "agents" and each.status == "note"]
        yield screen.styled(title, "bold")
        for each in findings:
            if each not in absent:
                yield from _finding(each, screen, width, hint=each.status == "note")
        if absent:
            yield from _absent(absent, screen, width)
        yield ""
    yield from _summary(report, screen, width, named=named)


def _finding(findings: DoctorFinding, screen: "Screen", width: int, *, hint: bool) -> Iterator[str]:
    mark, style = _MARKS[findings.status]
    yield from _wrapped(f"{findings.title}: {findings.sentence}", width, screen.styled(mark, style), 1)
    if hint and findings.hint:
        yield from _wrapped(f"hint: {findings.hint}", width, "", 3)


def _absent(findings: Sequence[DoctorFinding], screen: "Screen", width: int) -> Iterator[str]:
    """Return the agents that are not installed on one line: there are many."""
    mark, style = _MARKS["note"]
    listed = ", ".join(each.title for each in findings)
    yield from _wrapped(f"not installed: {listed}", width, screen.styled(mark, style), 1)
    yield from _wrapped("hint: `antiphon agents` shows how to get each", width, "", 3)


def _summary(report: DoctorReport, screen: "Screen", width: int, *, named: bool) -> Iterator[str]:
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
    """Return a text wrapped after a mark, with further lines indented."""
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
