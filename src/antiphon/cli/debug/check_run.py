"""What `check` and `check-client` share: selecting scenarios, progress on stderr, and the reports."""

import argparse
import asyncio
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from antiphon.cli.outcome import FAILED, Misused, did_you_mean
from antiphon.cli.terminal import Screen
from antiphon.config.directories import make_private_directory
from antiphon.conformance.prompts import PURPOSES, Prompts
from antiphon.conformance.report import Proof, ReportDocument, ReportedRequirement
from antiphon.conformance.requirements import EVERY
from antiphon.text import Style, exact_line, one_line

if TYPE_CHECKING:
    from types import TracebackType

    from antiphon.conformance.agent_check import AgentCommand, Waits
    from antiphon.conformance.agent_run import CheckOptions
    from antiphon.conformance.requirements import Suite
    from antiphon.conformance.results import ConformanceReport, ScenarioRecord
    from antiphon.conformance.wire import PeerWire

__all__ = [
    "CheckProgress",
    "CheckRecordings",
    "agent_command",
    "check_numbers",
    "lines",
    "parsed",
    "prompts_of",
    "remote_check",
    "reported",
    "scenarios_of",
    "show_prompts",
    "show_requirements",
    "split",
    "suite_with_server",
    "write",
    "write_reports",
]


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse our own arguments. The error about an unknown option has the hint that options of the command come after `--`."""
    try:
        return parser.parse_args(words)
    except Misused as error:
        if "unknown option" in str(error):
            hint = error.hint
            meant = f"{hint.partition('? ')[0]}? " if hint.startswith("did you mean") else ""
            raise Misused(error.sentence, hint=f"{meant}options of the command itself come after `--`") from None
        raise


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return our own arguments, and the command after `--`."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def check_numbers(options: argparse.Namespace) -> None:
    """Raise `Misused` for options that cannot work, before anything is started."""
    if options.badge is not None and options.only:
        raise Misused("a badge is for the whole check: leave --only away")
    for path in (options.junit, options.badge):
        if path is not None and not path.absolute().parent.is_dir():
            raise Misused(f"{path} cannot be written: there is no such directory")


def agent_command(words: Sequence[str], *, named: bool) -> "AgentCommand":
    """Return how to start the agent. A single word is the name of a known agent, else a program on the PATH.

    Raises:
        UnknownAgent: it is neither.
        AgentMissing: we know it, and its program is not here.
    """
    from antiphon.conformance.agent_check import AgentCommand

    if not named or len(words) > 1 or os.sep in words[0]:
        return AgentCommand(words)
    from antiphon.catalogue.agents import UnknownAgent, start_of

    try:
        found = start_of(words[0])
    except UnknownAgent:
        from shutil import which

        if which(words[0]) is None:
            raise
        return AgentCommand(words)
    return AgentCommand(found.command, found.environment())


def suite_with_server(suite: "Suite[Any]", url: str) -> "Suite[Any]":
    """Return the suite for an agent at an address: that for agents, and in version 1 that for servers of its profile."""
    from antiphon.conformance.remote.server_check import joined_suite, suite_of

    return joined_suite(suite, suite_of(url)) if suite.version == 1 else suite


def remote_check(options: argparse.Namespace, settings: "CheckOptions", suite: "Suite[Any]") -> int:
    """Check the agent at an address, and return the exit status."""
    from dataclasses import replace

    from antiphon.cli.arguments import read_token
    from antiphon.config.environment import TOKEN
    from antiphon.conformance.agent_check import check_agent
    from antiphon.conformance.remote.agents import RemoteAgents, RemoteDirectory, left_out
    from antiphon.conformance.remote.server_check import check_server, joined_report, suite_of

    given = os.environ.pop(TOKEN, "") or None  # commands that the check runs do not get it
    token = given if options.token_file is None else read_token(options.token_file)
    place, directory = (
        RemoteAgents(options.url, token, plaintext=options.plaintext),
        RemoteDirectory(options.url, options.cwd),
    )
    settings = replace(settings, directory=directory.path, shared=directory.shared, remote=True)
    without = left_out(suite, options.url, shared=directory.shared)

    server = suite_of(options.url)

    async def check(
        only: Sequence[str], progress: "Callable[[ScenarioRecord], None]", waits: "Waits"
    ) -> "ConformanceReport":
        of_agent, of_server = ([name for name in only if name in one.scenarios] for one in (suite, server))
        agent = await check_agent(
            place, settings, suite=suite, only=of_agent or (only and [NOTHING]), left_out=without, jobs=options.jobs,
            progress=progress, waits=waits,
        )  # fmt: skip
        if suite.version != 1 or (only and not of_server):
            return agent
        found = await check_server(
            options.url, settings, token=token, only=of_server, jobs=options.jobs, progress=progress
        )
        return joined_report(agent, found)

    return reported(check, suite_with_server(suite, options.url), options, [options.url])


NOTHING: Final = "no scenario"
"""A name that selects nothing."""


def prompts_of(options: argparse.Namespace, words: Sequence[str]) -> tuple[Prompts, str | None]:
    """Return the prompts and the login method of the options; those of the demo are built in."""
    if options.prompts is not None:
        return Prompts.read(options.prompts), options.auth
    if list(words) == ["demo"] or list(words[-3:]) == ["agent", "--engine", "demo"]:
        from antiphon.conformance.prompts import AUTH, DEMO

        return DEMO, options.auth or AUTH
    return Prompts(), options.auth


def scenarios_of(suite: "Suite[Any]", names: Sequence[str]) -> list[str]:
    """Return the scenarios that names of scenarios and requirements select."""
    requirements = suite.requirements()
    found: list[str] = []
    for name in names:
        if name in suite.scenarios:
            found.append(name)
        elif name in requirements and requirements[name].scenario in suite.scenarios:
            found.append(requirements[name].scenario)
        elif name in requirements:  # judged on all traffic
            found += suite.scenarios
        elif name in PARTS:
            shown = (one for one in requirements.values() if one.id.partition(".")[0] in PARTS[name])
            found += [one.scenario for one in shown if one.scenario in suite.scenarios]
        else:
            meant = did_you_mean(name, [*suite.scenarios, *requirements, *PARTS])
            raise Misused(f"there is no scenario or requirement `{name}`", hint=f"{meant}--list prints them all")
    return list(dict.fromkeys(found))


def show_prompts() -> int:
    """Print a file of prompts to start from."""
    lines = ["# The prompt for each purpose. {cwd}, {file}, {text} and {command} are filled in."]
    for name, (what, words) in PURPOSES.items():
        lines += [f"\n# {what}", f"{name} = {msgspec.json.encode(words).decode()}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def show_requirements(suite: "Suite[Any]", *, as_json: bool) -> int:
    """Print all requirements, in order."""
    found = suite.requirements().values()
    if as_json:
        sys.stdout.write("".join(f"{msgspec.json.encode(one).decode()}\n" for one in found))
        return 0
    wide = max(len(one.id) for one in found)
    for one in found:
        sys.stdout.write(f"{one.id:{wide}}  {one.level:<10}  {one.text} ({one.scenario})\n")
    return 0


QUIET: Final = 10.0
"""Seconds after which a wait is reported where there is no terminal to show it on."""


class CheckProgress:
    """Shows progress on a terminal; without a terminal, only late responses."""

    def __init__(self, count: int) -> None:
        self._screen = Screen()
        self._count = count
        self._done = 0
        self._waits: Sequence[tuple[str, str, float]] = ()
        self._reported: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        self._show_wait()
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self._screen.status(None)

    def done(self, record: "ScenarioRecord") -> None:
        self._done += 1
        self._show_wait()

    def waits(self, waits: Sequence[tuple[str, str, float]]) -> None:
        """Show which response is late: scenario, method and seconds."""
        self._waits = waits
        self._show_wait()
        for name, method, seconds in waits:
            if not sys.stderr.isatty() and seconds >= QUIET and (name, method) not in self._reported:
                self._reported.add((name, method))
                sys.stderr.write(f"waiting for the answer to `{method}` in the scenario `{name}`\n")

    def _show_wait(self) -> None:
        longest = max(self._waits, key=lambda one: one[2], default=None)
        waits = f", waiting for `{longest[1]}` in `{longest[0]}` ({longest[2]:.0f} s)" if longest else ""
        self._screen.status(f"{self._done} of {self._count} scenarios{waits}")


class CheckRecordings:
    """Writes the traffic of each scenario as a recording, at the end of the check."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._names: dict[int, str] = {}
        self._wires: list[PeerWire] = []

    def done(self, record: "ScenarioRecord") -> None:
        """Keep the traffic of a scenario, to be written at the end."""
        for wire in record.wires:
            if id(wire) not in self._names:
                taken = sum(name.startswith(record.name) for name in self._names.values())
                self._names[id(wire)] = record.name if not taken else f"{record.name}-{taken + 1}"
                self._wires.append(wire)
            elif not self._names[id(wire)].startswith(("shared", record.name)):
                taken = sum(name.startswith("shared") for name in self._names.values())
                self._names[id(wire)] = "shared" if not taken else f"shared-{taken + 1}"

    def write(self) -> None:
        """Write all recordings."""
        if self._folder is None:
            return
        try:
            make_private_directory(self._folder)
            for wire in self._wires:
                _write_recording(self._folder / f"{self._names[id(wire)]}.jsonl", wire)
        except OSError as error:
            raise Misused(f"{self._folder} cannot be written: {error.strerror}") from error


def _write_recording(path: Path, wire: "PeerWire") -> None:
    from antiphon.recorder.lines import line_of

    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        for entry in wire.trace:
            file.write(line_of(entry.t, entry.dir.value, entry.raw))


def _checked(check: "Coroutine[None, None, ConformanceReport]") -> "ConformanceReport":
    """Run the check. A signal ends it like Ctrl-C: processes are ended and temporary files removed."""

    async def cancellable() -> "ConformanceReport":
        task = asyncio.ensure_future(check)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    return asyncio.run(cancellable())


def reported(
    check: "Callable[[Sequence[str], Callable[[ScenarioRecord], None], Waits], Coroutine[None, None, ConformanceReport]]",
    suite: "Suite[Any]",
    options: argparse.Namespace,
    words: Sequence[str],
) -> int:
    """Run the check with progress, write the requested reports, and return the exit status."""
    only = scenarios_of(suite, options.only)
    keeping = CheckRecordings(options.record)
    with CheckProgress(len(only) or len(suite.scenarios)) as progress:

        def done(record: "ScenarioRecord") -> None:
            progress.done(record)
            keeping.done(record)

        report = _checked(check(only, done, progress.waits))
    keeping.write()
    report.command = words
    return FAILED if write_reports(report, suite, options) else 0


def write_reports(report: "ConformanceReport", suite: "Suite[Any]", options: argparse.Namespace) -> bool:
    """Write the requested reports, and return whether the check failed."""
    from antiphon.conformance.report import document_of, encode

    document = document_of(report, suite)
    if options.junit is not None:
        from antiphon.conformance.report import junit

        _written(options.junit, junit(document, strict=options.strict))
    if options.badge is not None:
        from antiphon.conformance.report import badge

        _written(options.badge, badge(document))
    if options.json:
        sys.stdout.write(encode(document).decode() + "\n")
    else:
        write(document, everything=options.all, strict=options.strict)
    doubtful = any(one.level != "advice" and one.status in ("failed", "unseen", "blocked") for one in document.results)
    return not document.correct or (options.strict and doubtful)


def _written(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misused(f"{path} cannot be written: {error.strerror}") from error


# --- the report for people -------------------------------------------------------------------------------------------

LEVELS: Final = {"must": "must", "capability": "if offered", "should": "should", "advice": "advice"}
"""Level → the head of its column."""

PARTS: Final = {
    "JSON-RPC": ("wire", "rpc", "id", "notify", "error", "requests", "request", "methods", "malformed", "cancel-request"),
    "schema": ("schema",),
    "handshake": ("init", "version", "hello"),
    "signing in": ("auth",),
    "capabilities": ("capability", "modest", "unoffered", "bare"),
    "sessions": ("session", "sessions", "load", "resume", "list", "delete", "fork", "close"),
    "settings": ("mode", "config", "options", "command"),
    "turns": ("turn", "prompt", "state", "content", "plan", "commands"),
    "tool calls": ("call", "permission", "elicitation", "form", "tools", "item", "diff"),
    "files": ("files", "path"),
    "terminals": ("terminal", "terminals"),
    "cancelling": ("cancel",),
    "extensions": ("meta", "unknown", "nulls", "tolerates", "updates"),
    "robustness": (
        "junk", "utf8", "nonsense", "scalar", "blank", "batch", "id-null", "nameless", "nesting", "line", "lines", "noise", "stderr", "errors",
    ),
    "process": ("process", "ends"),
    "streamable HTTP": ("http",),
    "WebSocket": ("ws",),
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
    """Write the report to stdout."""
    screen = Screen(sys.stdout, sys.stdout)
    width = shutil.get_terminal_size((100, 0)).columns
    text = "".join(f"{line}\n" for line in lines(document, screen, width, everything=everything, strict=strict))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def lines(
    document: ReportDocument, screen: Screen, width: int, *, everything: bool, strict: bool = False
) -> Iterator[str]:
    """Return the lines of the report: table, failures by severity, what was not seen, and the verdict."""
    if document.counts["passed"] > FEW:  # for an agent that did not start, the reason is enough
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
    yield from _left_out(document, width)


def _left_out(document: ReportDocument, width: int) -> Iterator[str]:
    """Return the scenarios that were left out, by the reason."""
    for reason in dict.fromkeys(document.left_out.values()):
        names = [name for name, why in document.left_out.items() if why == reason]
        yield from _wrapped(f"left out, because {reason}: {', '.join(names)}.", width, "")


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
    """Return how many of the requirements that were seen hold: `3/4`."""
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
    """Return the places in a message that a sentence names, with their values: a long message hides them."""
    for place in dict.fromkeys(re.findall(r"`((?:params|result|error)[.\w\[\]]*)`", found)):
        value = message
        try:
            for name, number in re.findall(r"(\w+)|\[(\d+)\]", place):
                value = value[name] if name else value[int(number)]  # type: ignore[index]  # what does not fit is not a place
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
    """Return a few requirements by their ids, or only the number of many; `--all` lists all."""
    return ", ".join(one.id for one in found) if len(found) <= FEW else f"{len(found)} about {part}"


def _line(one: ReportedRequirement, screen: Screen, width: int) -> Iterator[str]:
    mark, style = MARKS[one.status]
    why = f" ({WORDS[one.status]}: {one.found})" if one.status in WORDS else ""
    first, *rest = _wrapped(f"{one.id}: {one.requirement}{why}", width, "  ")
    yield f"{screen.styled(mark, style)} {first.lstrip()}"
    yield from rest


def _verdict(document: ReportDocument, screen: Screen, width: int, *, everything: bool) -> Iterator[str]:
    counts = document.counts
    totals = [f"{counts['passed']} passed", f"{counts['failed']} failed"]
    totals += [f"{counts['noted']} noted"] if counts["noted"] else []
    totals += [f"{counts[status]} {words}" for status, words in WORDS.items() if counts[status]]
    fatal = sum(one.level in ("must", "capability") for one in document.failed())
    peer_name = one_line(document.peer or " ".join(document.command))
    if document.correct and not document.complete:
        style: Style = "green"
        sentence = f"{peer_name}: nothing that must hold was broken, in the part that was played{_untested(document)}."
    elif document.correct:
        style = "green"
        sentence = f"{peer_name} is correct: nothing that must hold was broken{_untested(document)}."
    elif fatal and not counts["passed"]:
        style = "red"
        sentence = f"{peer_name} could not be checked: it did not get as far as to answer anything."
    elif fatal:
        style = "red"
        sentence = f"{peer_name} is not correct: {fatal} requirement{'' if fatal == 1 else 's'} that must hold {'is' if fatal == 1 else 'are'} broken."
    else:
        style = "red"
        sentence = f"{peer_name} could not be checked: nothing was shown."
    yield from (screen.styled(line, style) for line in _wrapped(sentence, width, ""))
    hidden = "" if everything else " --all shows each."
    yield f"{len(document.results)} requirements: {', '.join(totals)}. {document.seconds:.1f} s.{hidden}"


def _untested(document: ReportDocument) -> str:
    """Return how many requirements were not seen, to add to the verdict."""
    total, unseen, blocked = len(document.results), document.counts["unseen"], document.counts["blocked"]
    if not unseen and not blocked:
        return ""
    seen = f"{unseen} of {total} requirements {'was' if unseen == 1 else 'were'} never seen" if unseen else ""
    tried = f"{blocked}{'' if unseen else f' of {total} requirements'} could not be tried" if blocked else ""
    return f", but {' and '.join(filter(None, (seen, tried)))}"


def _strictly(document: ReportDocument) -> Iterator[str]:
    """Return why the check fails with `--strict`."""
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
