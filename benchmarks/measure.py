"""Runs two programs against each other over pipes and says what each one cost. Knows no SDK and no target."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from benchmarks.commands import ROOT
from benchmarks.contestants.probe import REPORT

RUN_LIMIT: Final = 180.0
"""Seconds one run may take; the slowest honest one (200,000 updates, Python SDK) needs about 30."""

START_LIMIT: Final = 20.0
"""Seconds a minimal agent may take to answer `initialize`."""


class RunFailed(Exception):
    """A program failed, hung, or did not write its report."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two programs cost."""

    handled: int
    cpu: float
    """CPU seconds between its two marks, by its own process clock."""
    cpu_total: float
    """CPU seconds of its whole life, as the kernel reported to its parent."""
    wall: float
    peak: int
    samples: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """One conversation."""

    client: Side
    agent: Side


class _Child:
    def __init__(self, command: Sequence[str], stdin: int, stdout: int, folder: Path, name: str) -> None:
        self.report = folder / f"{name}.json"
        self.errors: IO[bytes] = (folder / f"{name}.err").open("w+b")
        env = {**os.environ, REPORT: str(self.report)}
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=self.errors, env=env, cwd=ROOT, start_new_session=True
        )
        self.name = name
        self.cpu = 0.0
        self.status: int | None = None
        # A thread that blocks in wait4 costs nothing while the child is measured; polling would.
        self._waiter = threading.Thread(target=self._reap, daemon=True)
        self._waiter.start()

    def _reap(self) -> None:
        _, status, usage = os.wait4(self.process.pid, 0)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.status = self.process.returncode = os.waitstatus_to_exitcode(status)

    def join(self, seconds: float) -> bool:
        self._waiter.join(max(seconds, 0.0))
        return not self._waiter.is_alive()

    def kill(self) -> None:
        if self._waiter.is_alive():
            os.kill(self.process.pid, signal.SIGKILL)
            self._waiter.join()

    def side(self) -> Side:
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace")
        self.errors.close()
        if self.status != 0 or not self.report.exists():
            raise RunFailed(f"{self.name} ended with {self.status}: {_gist(said)}")
        report = json.loads(self.report.read_text(encoding="utf-8"))
        return Side(report["handled"], report["cpu"], self.cpu, report["wall"], report["peak"], report["samples"])


def _gist(said: str) -> str:
    """Pick the line of a traceback that names the error; paths of this machine do not belong in results."""
    rows = [row.strip() for row in said.splitlines() if row.strip()]
    named = [row for row in rows if re.match(r"[\w.]*(Error|Exception)\b", row)]
    return (named or rows or ["no word"])[-1].replace(str(ROOT), ".")[:300]


def converse(client: Sequence[str], agent: Sequence[str], limit: float = RUN_LIMIT) -> Run:
    """Wire the two programs' stdio together and wait until both have ended.

    Raises:
        RunFailed: One of them failed or took longer than `limit`; neither is left running.
    """
    to_client, from_agent = os.pipe()
    to_agent, from_client = os.pipe()
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as name:
        children: list[_Child] = []
        try:
            try:
                children.append(_Child(agent, to_agent, from_agent, Path(name), "agent"))
                children.append(_Child(client, to_client, from_client, Path(name), "client"))
            finally:
                for fd in (to_client, from_agent, to_agent, from_client):
                    os.close(fd)
            deadline = time.monotonic() + limit
            in_time = all(child.join(deadline - time.monotonic()) for child in reversed(children))
        finally:  # also when the harness itself is stopped: a survivor would spoil every later number
            for child in children:
                child.kill()
        if not in_time:
            raise RunFailed(f"not finished after {limit:.0f} s")
        agent_side, client_side = (child.side() for child in children)
        return Run(client_side, agent_side)


def start_up(command: Sequence[str], question: bytes) -> float:
    """Measure seconds from spawn to the first answered line.

    Raises:
        RunFailed: No answer came.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    guard = threading.Timer(START_LIMIT, process.kill)
    guard.start()
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(question)
        process.stdin.flush()
        line = process.stdout.readline()
        seconds = time.perf_counter() - began
        process.stdin.close()
        process.stdout.read()
        process.wait(START_LIMIT)
    finally:
        guard.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
    if b'"result"' not in line:
        raise RunFailed(f"{command[-1]} did not answer: {line[:200]!r}")
    return seconds


def bare_import(modules: str) -> float:
    """Measure seconds `python -c "import …"` takes from spawn to exit: what any such agent pays."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", f"import {modules}"], cwd=ROOT)
    guard = threading.Timer(START_LIMIT, process.kill)
    guard.start()
    code = process.wait()  # without a timeout: with one, subprocess polls, and its sleeps would be measured
    seconds = time.perf_counter() - began
    guard.cancel()
    if code != 0:
        raise RunFailed(f"import {modules} ended with {code}")
    return seconds
