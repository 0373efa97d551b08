"""Run the tests in parts, say which part runs, and stop at the first one that fails with the command to repeat it.

`test` runs what a change can break: the fast tests, then the slow ones, which start real programs; `fast` only the
first of them. `prove` runs what the programs of others can break: second versions of the CLIs, third-party agents, the
peers of the evidence pages. Tests that fill a table run together in one process, and those that check the programs of
others in a process for each processor, both beside the rest of `prove`; their output is shown at the end. Where few tests of a part failed they run once more, alone: one that passes then is listed
as unsteady, and is to be repaired.

    python tools/all_tests.py test|fast|prove PROCESSORS [pytest arguments ...]     # 0: each part in one process
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, NoReturn, Self

NOTHING_SELECTED: Final = 5
"""pytest's status when it selected no test: fine for one part, an error for all of them."""

GRACE: Final = 20.0
"""Seconds for an interrupted part to end what its tests started. pytest-xdist takes ten of them."""

SHOWN: Final = 10
"""Failed tests named in the command to repeat; with more of them, pytest's own memory selects them."""

SECOND_TRIES: Final = 3
"""Failed tests of a part that run once more. One race in thousands of tests is chance; more of them never are."""

CACHES: Final = Path(".pytest_cache")
"""Each part has a cache of its own in it: parts that run side by side would overwrite what the other remembers."""


TESTS: Final = Path("tests")


class Part(NamedTuple):
    """One run of pytest."""

    name: str
    marks: str
    workers: int = 2
    """Processes for each processor: a test that waits for another program or a clock leaves the processor to others. 0: one in all."""
    beside: bool = False
    """It starts together with the part after it."""


FAST: Final = Part("fast", "not slow and not prove")

SUITES: Final = {
    "test": (FAST, Part("slow", "slow and not prove", workers=3)),
    "fast": (FAST,),
    "prove": (
        Part("checks", "prove and checks", workers=1, beside=True),
        Part("tables", "prove and together", workers=0, beside=True),
        Part("peers", "prove and not together and not checks", workers=3),
    ),
}


def processes(part: Part, jobs: int) -> int:
    """Return how many processes run a part."""
    return max(1, jobs * part.workers)


def command(part: Part, arguments: Sequence[str], jobs: int) -> list[str]:
    """Return the pytest command of a part. A worker without tests takes over some of another's."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("-m", default="")
    own, others = finder.parse_known_args(arguments)  # pytest reads only the last -m
    workers = ["-n", str(processes(part, jobs)), "--dist", "worksteal"] if processes(part, jobs) > 1 else []
    marks = f"({part.marks}) and ({own.m})" if own.m else part.marks
    return [sys.executable, "-m", "pytest", "-m", marks, "--durations=10", *_cache_of(part), *workers, *others]


def _cache_of(part: Part) -> list[str]:
    return ["-o", f"cache_dir={CACHES / part.name}"]


class Running(NamedTuple):
    """A part that has been started."""

    part: Part
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    start: float


class Runner:
    """Starts parts and waits for them. Leaving the block ends the parts that still run and shows their output."""

    def __init__(self, jobs: int, arguments: Sequence[str]) -> None:
        self._jobs = jobs
        self._arguments = arguments
        self._running: list[Running] = []
        self.statuses: dict[str, int] = {}
        self.unsteady: list[str] = []
        """Tests that failed once and passed alone."""

    def start(self, part: Part) -> Running:
        """Start a part. The output of one that runs beside another is kept, and what an earlier run remembered is forgotten."""
        _last_failed(part).unlink(
            missing_ok=True
        )  # pytest keeps those that are not run now, and they are no failures of this run
        output = tempfile.TemporaryFile() if part.beside else None  # noqa: SIM115  # closed when it is shown
        words = command(part, self._arguments, self._jobs)
        which = {} if part is FAST else {"ANTIPHON_TESTS": "marked"}  # the others need not read most of the files
        process = subprocess.Popen(words, stdout=output, stderr=output and subprocess.STDOUT, env=os.environ | which)
        running = Running(part, process, output, time.monotonic())
        self._running.append(running)
        return running

    def wait(self, running: Running) -> bool:
        """Wait for a part to end and report it. Return whether nothing failed."""
        status = running.process.wait()
        self._show(running)
        self._running.remove(running)
        self.statuses[running.part.name] = status = status if status >= 0 else 128 - status  # as a shell has it
        seconds = time.monotonic() - running.start
        head(f"{running.part.name}: {_outcome(status)} in {seconds:.0f} s")
        if status == 1 and self._pass_alone(running.part):
            self.statuses[running.part.name] = status = 0
        return status in (0, NOTHING_SELECTED)

    def _pass_alone(self, part: Part) -> bool:
        failed = failed_tests(part)
        if not 0 < len(failed) <= SECOND_TRIES:
            return False
        head(f"{part.name}: {len(failed)} failed: once more, alone")
        words = [sys.executable, "-m", "pytest", *_cache_of(part), *failed]
        running = Running(part, subprocess.Popen(words), None, time.monotonic())
        self._running.append(running)
        status = running.process.wait()
        self._running.remove(running)
        if status == 0:
            self.unsteady += failed
        return status == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not KeyboardInterrupt:  # a terminal interrupts them too, and a second signal cuts the clean-up short
            self._signal(signal.SIGINT)
        self._reap()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            self._reap()

    def _signal(self, number: int) -> None:
        for running in self._running:
            running.process.send_signal(number)

    def _reap(self) -> None:
        ended = [running for running in self._running if _has_ended(running.process)]
        for running in ended:
            self._running.remove(running)
            self._show(running)

    def _show(self, running: Running) -> None:
        if running.output is not None:
            running.output.seek(0)
            sys.stdout.buffer.write(running.output.read())
            sys.stdout.buffer.flush()
            running.output.close()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C does not wait any longer
        return False
    return True


def run(suite: str, jobs: int, arguments: Sequence[str]) -> Runner:
    """Run the parts of a suite in order. Return the runner, which has the status of each that ran."""
    parts = SUITES[suite]
    with Runner(jobs, arguments) as runner:
        beside: list[Running] = []
        for number, part in enumerate(parts, 1):
            count = processes(part, jobs)
            where = f"in {count} processes" if count > 1 else "in one process"
            head(f"part {number} of {len(parts)}: {part.name} ({part.marks}) {where}")
            running = runner.start(part)
            if part.beside:
                beside.append(running)
            elif not runner.wait(running):
                break
        for running in beside:
            runner.wait(running)
        return runner


def compile_tests(jobs: int, arguments: Sequence[str]) -> None:
    """Compile new tests once, some in each process: the workers of a part start together, and every one would compile all of them."""
    compiled = TESTS.glob(f"__pycache__/conftest.{sys.implementation.cache_tag}*.pyc")
    places = sorted(path for path in TESTS.glob("*") if path.is_dir() or path.name.startswith("test_"))
    if jobs < 2 or not places or sys.dont_write_bytecode or any(compiled):
        return
    head(f"compiling the tests in {jobs} processes")
    plain = [each for each in arguments if each == "--assert=plain"]  # it has files of its own
    words = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *plain]
    quiet = subprocess.DEVNULL  # what is wrong is shown by the first part that collects it
    running = [subprocess.Popen([*words, *places[number::jobs]], stdout=quiet, stderr=quiet) for number in range(jobs)]
    try:
        for each in running:
            each.wait()
    finally:
        for each in running:
            each.terminate()


def head(words: str) -> None:
    print(f"\n>>> {words}", flush=True)


def main(suite: str, jobs: int, arguments: Sequence[str]) -> int:
    """Run a suite and return the status of its first failed part."""
    compile_tests(jobs, arguments)
    runner = run(suite, jobs, arguments)
    statuses = runner.statuses
    bad = [status for status in statuses.values() if status not in (0, NOTHING_SELECTED)]
    head("; ".join(f"{name}: {_outcome(status)}" for name, status in statuses.items()))
    for test in runner.unsteady:
        print(f"UNSTEADY, failed once and passed alone: {test}", flush=True)
    if bad:
        failed = next(part for part in SUITES[suite] if statuses.get(part.name, 0) not in (0, NOTHING_SELECTED))
        print(f"repeat: {repeat_command(failed)}", flush=True)
        return bad[0]
    return min(statuses.values())


def repeat_command(part: Part) -> str:
    """Return the command that runs the failed tests of a part again."""
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    failed = failed_tests(part)
    chosen = failed if 0 < len(failed) <= SHOWN else [*_cache_of(part), "--last-failed"]
    return shlex.join([str(shown), "-m", "pytest", *chosen])


def failed_tests(part: Part) -> list[str]:
    """Return the tests of a part that failed, as pytest remembers them."""
    try:
        return list(json.loads(_last_failed(part).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []


def _last_failed(part: Part) -> Path:
    return CACHES / part.name / "v" / "cache" / "lastfailed"


def _outcome(status: int) -> str:
    return {0: "passed", 1: "FAILED", NOTHING_SELECTED: "none selected"}.get(status, f"ended with status {status}")


def _terminated(number: int, _: Any) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    sys.exit(128 + number)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in SUITES or not sys.argv[2].isdecimal():
        sys.exit(
            "error: a suite and a number of processors are needed\nhint: python tools/all_tests.py test 2 -k framing"
        )
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
    except KeyboardInterrupt:  # the parts have printed what they were doing
        sys.exit(130)
