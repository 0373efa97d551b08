"""What `check` and `check-client` do alike: which command, which scenarios, progress on stderr, and the reports."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from antiphon.cli.check_report import PARTS, write
from antiphon.cli.saying import FAILED, Misused, did_you_mean
from antiphon.cli.screen import Screen
from antiphon.config.places import make_private_directory
from antiphon.conformance.prompts import PURPOSES, Prompts

if TYPE_CHECKING:
    from types import TracebackType

    from antiphon.conformance.agent_check import AgentCommand, Waits
    from antiphon.conformance.requirements import Suite
    from antiphon.conformance.results import ConformanceReport, ScenarioRecord
    from antiphon.conformance.wire import PeerWire

__all__ = [
    "Keeping", "Telling", "check_numbers", "parsed", "place_of", "prompts_of", "reported", "scenarios_of", "show_prompts",
    "show_requirements", "split", "told",
]  # fmt: skip


def parsed(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Our own words. What is unknown among them may belong to the command."""
    try:
        return parser.parse_args(words)
    except Misused as error:
        if "unknown option" in str(error):
            hint = error.hint
            meant = f"{hint.partition('? ')[0]}? " if hint.startswith("did you mean") else ""
            raise Misused(error.sentence, hint=f"{meant}options of the command itself come after `--`") from None
        raise


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own words, and the command after `--`."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def check_numbers(options: argparse.Namespace) -> None:
    """Numbers that make no sense are said so before anything is started."""
    if options.badge is not None and options.only:
        raise Misused("a badge is for the whole check: leave --only away")
    for path in (options.junit, options.badge):
        if path is not None and not path.absolute().parent.is_dir():
            raise Misused(f"{path} cannot be written: there is no such directory")


def place_of(words: Sequence[str], *, named: bool) -> "AgentCommand":
    """How the agent is started: a single word is the name of an agent that we know, if there is one, else a program on the PATH.

    Raises:
        UnknownAgent: it is neither.
        AgentMissing: we know it, and its program is not here.
    """
    from antiphon.conformance.agent_check import AgentCommand

    if not named or len(words) > 1 or os.sep in words[0]:
        return AgentCommand(words)
    from antiphon.catalogue.finding import UnknownAgent, start_of

    try:
        found = start_of(words[0])
    except UnknownAgent:
        from shutil import which

        if which(words[0]) is None:
            raise
        return AgentCommand(words)
    return AgentCommand(found.command, found.environment())


def prompts_of(options: argparse.Namespace, words: Sequence[str]) -> tuple[Prompts, str | None]:
    """The words for the agent and how to sign in, as the options say; the demo's are known."""
    if options.prompts is not None:
        return Prompts.read(options.prompts), options.auth
    if list(words) == ["demo"] or list(words[-3:]) == ["agent", "--engine", "demo"]:
        from antiphon.conformance.prompts import AUTH, DEMO

        return DEMO, options.auth or AUTH
    return Prompts(), options.auth


def scenarios_of(suite: "Suite[Any]", names: Sequence[str]) -> list[str]:
    """The scenarios that are meant by names of scenarios and of requirements."""
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
    """A file of prompts to start from."""
    lines = ["# What to say to the agent for each purpose. {cwd}, {file}, {text} and {command} are filled in."]
    for name, (what, words) in PURPOSES.items():
        lines += [f"\n# {what}", f"{name} = {msgspec.json.encode(words).decode()}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def show_requirements(suite: "Suite[Any]", *, as_json: bool) -> int:
    """All requirements, in their order."""
    found = suite.requirements().values()
    if as_json:
        sys.stdout.write("".join(f"{msgspec.json.encode(one).decode()}\n" for one in found))
        return 0
    wide = max(len(one.id) for one in found)
    for one in found:
        sys.stdout.write(f"{one.id:{wide}}  {one.level:<10}  {one.text} ({one.scenario})\n")
    return 0


QUIET: Final = 10.0
"""Seconds after which a wait is told where there is no terminal to show it on."""


class Telling:
    """Shows progress in a terminal; without one, only the answers that are waited for."""

    def __init__(self, count: int) -> None:
        self._screen = Screen()
        self._count = count
        self._done = 0
        self._waits: Sequence[tuple[str, str, float]] = ()
        self._told: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        self._tell()
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", trace: "TracebackType | None"
    ) -> None:
        self._screen.status(None)

    def done(self, scene: "ScenarioRecord") -> None:
        self._done += 1
        self._tell()

    def waits(self, waits: Sequence[tuple[str, str, float]]) -> None:
        """Say what is waited for: the scenario, the method and the seconds since it was sent."""
        self._waits = waits
        self._tell()
        for name, method, seconds in waits:
            if not sys.stderr.isatty() and seconds >= QUIET and (name, method) not in self._told:
                self._told.add((name, method))
                sys.stderr.write(f"waiting for the answer to `{method}` in the scenario `{name}`\n")

    def _tell(self) -> None:
        longest = max(self._waits, key=lambda one: one[2], default=None)
        waits = f", waiting for `{longest[1]}` in `{longest[0]}` ({longest[2]:.0f} s)" if longest else ""
        self._screen.status(f"{self._done} of {self._count} scenarios{waits}")


class Keeping:
    """Writes what was said as recordings, one for each conversation, when all is over."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._names: dict[int, str] = {}
        self._wires: list[PeerWire] = []

    def done(self, scene: "ScenarioRecord") -> None:
        """Note the conversations of a scenario: each has its name, but one that scenarios share."""
        for wire in scene.wires:
            if id(wire) not in self._names:
                taken = sum(name.startswith(scene.name) for name in self._names.values())
                self._names[id(wire)] = scene.name if not taken else f"{scene.name}-{taken + 1}"
                self._wires.append(wire)
            elif not self._names[id(wire)].startswith(("shared", scene.name)):
                taken = sum(name.startswith("shared") for name in self._names.values())
                self._names[id(wire)] = "shared" if not taken else f"shared-{taken + 1}"

    def write(self) -> None:
        """Write them all."""
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


def _checked(check: "Coroutine[Any, Any, ConformanceReport]") -> "ConformanceReport":
    """Check. A signal ends it as Ctrl-C does: what was started is ended, and what was made is removed."""

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
    check: "Callable[[Sequence[str], Callable[[ScenarioRecord], None], Waits], Coroutine[Any, Any, ConformanceReport]]",
    suite: "Suite[Any]",
    options: argparse.Namespace,
    words: Sequence[str],
) -> int:
    """Check, with progress, and write all that is wanted about it: the exit status. `check` takes the scenarios and whom to tell of each."""
    only = scenarios_of(suite, options.only)
    keeping = Keeping(options.record)
    with Telling(len(only) or len(suite.scenarios)) as telling:

        def done(scene: "ScenarioRecord") -> None:
            telling.done(scene)
            keeping.done(scene)

        report = _checked(check(only, done, telling.waits))
    keeping.write()
    report.command = words
    return FAILED if told(report, suite, options) else 0


def told(report: "ConformanceReport", suite: "Suite[Any]", options: argparse.Namespace) -> bool:
    """Write all the reports that are wanted; whether they say that it failed."""
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
