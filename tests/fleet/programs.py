"""A fleet as people start it: `antiphon serve --fleet` and `antiphon worker` as processes of their own, over a real `nats-server`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

from antiphon.fleet.overview import FleetOverview, OwnedSession, fleet_overview
from tests.fleet.servers import NatsServer, nats_server
from tests.gateway.processes import DEMO, Gateway
from tests.limits import limit

__all__ = [
    "NEWER",
    "PROGRAM",
    "FleetPrograms",
    "WorkerProgram",
    "eventually",
    "fleet_programs",
    "is_running",
    "overview",
]

PROGRAM = (sys.executable, "-m", "antiphon")
NEWER = (sys.executable, str(Path(__file__).with_name("newer.py")))
"""The next version, as far as formats go."""

LOOK = 0.05
"""Seconds between two looks at something that has no event for a test."""


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait until a function returns something, in a test without a loop, and return that."""
    end = time.monotonic() + limit()
    pause = Event()
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        pause.wait(LOOK)
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        return state not in "ZX"
    return False


def overview(url: str, credentials: Path | None = None) -> FleetOverview:
    """Look at a fleet as `antiphon fleet status` does."""
    import asyncio

    return asyncio.run(fleet_overview(url, credentials))


class WorkerProgram:
    """A worker that runs."""

    def __init__(self, process: "subprocess.Popen[str]", about: Mapping[str, Any]) -> None:
        self.process = process
        self.about = about

    @property
    def name(self) -> str:
        """Its name with that of this start."""
        return str(self.about["worker"])

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()


class FleetPrograms:
    """A broker, and the processes of a fleet around it."""

    def __init__(self, directory: Path, server: NatsServer, stack: ExitStack, env: Mapping[str, str]) -> None:
        self.directory = directory
        self.server = server
        self.root = directory / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self._stack = stack
        self._env = {**os.environ, "ANTIPHON_CONFIG_DIR": str(directory / "config"), **env}
        self.workers: list[WorkerProgram] = []

    def start(
        self, name: str, *words: str, agent: Sequence[str] = (), program: Sequence[str] = PROGRAM
    ) -> "tuple[subprocess.Popen[str], Any]":
        """Start a process of the fleet; return it with what it says of itself."""
        command = [*program, *words, "--json", "--fleet", self.server.url]
        command += ["--data", str(self.directory / name)]
        with open(self.directory / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [*command, *(["--", *agent] if agent else [])],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                cwd=self.directory, env={**self._env, "ANTIPHON_STATE_DIR": str(self.directory / "state")},
            )  # fmt: skip
        self._stack.callback(_end, process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (self.directory / f"{name}.log").read_text(encoding="utf-8")
        return process, json.loads(line)

    def worker(
        self, name: str, *options: str, agent: Sequence[str] = DEMO, program: Sequence[str] = PROGRAM
    ) -> WorkerProgram:
        """Start a worker with one agent, which is called `agent`."""
        given = ("--name", name, "--root", str(self.root), *options)
        process, about = self.start(name, "worker", *given, agent=agent, program=program)
        worker = WorkerProgram(process, about)
        self.workers.append(worker)
        return worker

    def gateway(self, name: str, *options: str, program: Sequence[str] = PROGRAM) -> Gateway:
        """Start a gateway on a free port."""
        port = () if "--port" in options else ("--port", "0")
        process, about = self.start(name, "serve", *port, *options, program=program)
        return Gateway(process, about, self.directory)

    def sessions(self) -> Sequence[OwnedSession]:
        """Return the sessions of the fleet, with their owners."""
        return overview(self.server.url).sessions

    def owner(self, session_id: str = "") -> WorkerProgram:
        """Return the worker that has a session, or the only one, once one has it."""

        def find() -> WorkerProgram | None:
            owners = [each.owner for each in self.sessions() if session_id in ("", each.id)]
            return next((each for each in self.workers if each.name in owners), None)

        found: WorkerProgram = eventually(find)
        return found


def _end(process: "subprocess.Popen[str]") -> None:
    for number in (signal.SIGCONT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            process.send_signal(number)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def fleet_programs(directory: Path, env: Mapping[str, str] | None = None) -> Iterator[FleetPrograms]:
    """Give a broker, to which processes of a fleet can be added. All of them end with the block."""
    directory.mkdir(parents=True, exist_ok=True)
    with nats_server(directory / "broker") as server, ExitStack() as stack:
        yield FleetPrograms(directory, server, stack, env or {})
