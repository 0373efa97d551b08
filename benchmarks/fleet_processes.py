"""The processes of a fleet for its benchmark: brokers, workers with an agent inside them or beside them, gateways. All on the loopback."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from antiphon.fleet.nats.program import find_nats_server
from benchmarks.gateway import AGENT, Relay
from benchmarks.network import LIMIT, free_port, started

LIMITS: Final = ("prompts-per-minute=1000000", "token-sessions=100000", "connections=100000")
CONFIG: Final = """\
server_name: "{name}"
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{ store_dir: "{directory}/store", sync_interval: always }}
{cluster}
"""


class Servers(NamedTuple):
    """The servers of a broker."""

    ports: dict[str, int]
    processes: "list[subprocess.Popen[bytes]]"
    directory: Path

    @property
    def addresses(self) -> str:
        """The addresses, for those that connect."""
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.ports.values())

    @property
    def named(self) -> str:
        """The names and ports, for the bare client."""
        return ",".join(f"{name}={port}" for name, port in self.ports.items())

    @property
    def stored(self) -> int:
        """Bytes on the disk of all servers."""
        files = (each for each in self.directory.rglob("*") if each.is_file())
        return sum(each.stat().st_blocks * 512 for each in files)


@contextmanager
def brokers(count: int) -> Iterator[Servers]:
    """Start a broker of one server or of three, which wait for the disk before they confirm."""
    names = [f"n{number}" for number in range(1, count + 1)]
    ports = {name: free_port() for name in names}
    routes = {name: free_port() for name in names} if count > 1 else {}
    others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes.values())
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory, ExitStack() as stack:
        processes = []
        for name in names:
            own = Path(directory) / name
            own.mkdir()
            cluster = (
                f'cluster {{ name: "bench", listen: "127.0.0.1:{routes[name]}", routes: [{others}] }}' if routes else ""
            )
            config = own / "server.conf"
            config.write_text(
                CONFIG.format(name=name, port=ports[name], directory=own, cluster=cluster), encoding="utf-8"
            )
            processes.append(stack.enter_context(started([find_nats_server(), "--config", str(config)])))
        yield Servers(ports, processes, Path(directory))


class WorkerProcess:
    """A worker whose agent is in its own process (`contestants/fleet_worker.py`)."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.name = str(self._line()["worker"])

    def begin(self, command: str) -> None:
        """Let it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, float]:
        """Wait until it has done that, and return what it has measured."""
        return {name: float(value) for name, value in self._line().items()}

    def do(self, command: str) -> dict[str, float]:
        """Let it do something, and return what it has measured."""
        self.begin(command)
        return self.end()

    def leave(self) -> None:
        """End it in order: sessions of one that is killed would be taken by the next."""
        self.begin("end")
        self.process.wait(LIMIT)

    def _line(self) -> dict[str, Any]:
        return read_json(self.process)


def read_json(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """Read the next line of a process."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ConnectionError(f"a process of the benchmark has ended: {process.args!r}")
    found: dict[str, Any] = json.loads(line)
    return found


@contextmanager
def inner_workers(addresses: str, count: int) -> Iterator[list[WorkerProcess]]:
    """Start workers with an agent inside each."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory, ExitStack() as stack:
        found = []
        for number in range(count):
            words = ["benchmarks.contestants.fleet_worker", addresses, f"w{number}", f"{directory}/{number}"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": None}
            found.append(stack.enter_context(started([sys.executable, "-m", *words], **pipes)))
        yield [WorkerProcess(process) for process in found]


def together(workers: Sequence[WorkerProcess], command: str) -> list[dict[str, float]]:
    """Let all workers do the same at the same time, and return what each has measured."""
    for worker in workers:
        worker.begin(command)
    return [worker.end() for worker in workers]


def bare_appends(servers: Servers, subjects: int, events: int, seconds: float, rate: float = 0.0) -> dict[str, float]:
    """Measure the least client that appends."""
    words = [servers.named, str(subjects), str(events), str(seconds), str(rate)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": None}
    with started([sys.executable, "-m", "benchmarks.contestants.bare_append", *words], **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        return {name: float(value) for name, value in read_json(process).items()}


def _own_state(directory: str) -> dict[str, str]:
    return {**os.environ, "ANTIPHON_STATE_DIR": f"{directory}/state", "ANTIPHON_CONFIG_DIR": f"{directory}/config"}


class StartedWorker(NamedTuple):
    """A worker as people start it."""

    process: "subprocess.Popen[bytes]"
    name: str


@contextmanager
def worker(servers: Servers, name: str, agent: Sequence[str] = AGENT) -> Iterator[StartedWorker]:
    """Start a worker as people start it, with an agent as a process."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        limits = [word for limit in LIMITS for word in ("--limit", limit)]
        words = ["worker", "--fleet", servers.addresses, "--name", name, "--root", "/", "--slots", "100000"]
        words += ["--data", f"{directory}/data", "--drain", "1s", "--json", *limits, "--", *agent]
        env = _own_state(directory)
        with started([sys.executable, "-m", "antiphon", *words], stdout=subprocess.PIPE, env=env) as process:
            yield StartedWorker(process, str(read_json(process)["worker"]))


@contextmanager
def fleet_gateway(servers: Servers) -> Iterator[Relay]:
    """Start a gateway of the fleet as people start it."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        words = [
            "serve",
            "--fleet",
            servers.addresses,
            "--json",
            "--no-auth",
            "--port",
            "0",
            "--data",
            f"{directory}/data",
        ]
        env = _own_state(directory)
        with started([sys.executable, "-m", "antiphon", *words], stdout=subprocess.PIPE, env=env) as process:
            yield Relay(process, int(read_json(process)["url"].rpartition(":")[2]))


class Fleet(NamedTuple):
    """A whole fleet: what clients connect to is its gateway."""

    servers: Servers
    gateway: Relay
    workers: list[StartedWorker]


@contextmanager
def fleet(count: int, workers: int) -> Iterator[Fleet]:
    """Start a fleet with a broker of so many servers and so many workers."""
    with ExitStack() as stack:
        servers = stack.enter_context(brokers(count))
        wait_ready(servers)
        found = [stack.enter_context(worker(servers, f"w{number}")) for number in range(workers)]
        yield Fleet(servers, stack.enter_context(fleet_gateway(servers)), found)


def wait_ready(servers: Servers) -> None:
    """Wait until the servers listen, and have made the streams: the first that connects waits for a leader."""
    import asyncio

    from antiphon.fleet.broker import BrokerAway
    from antiphon.fleet.nats import connect_broker

    async def connect() -> None:
        broker = await connect_broker(servers.addresses.split(","), name="bench")
        await broker.close()

    until = time.monotonic() + LIMIT
    while True:
        try:
            asyncio.run(connect())
            return
        except BrokerAway:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
