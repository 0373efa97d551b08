"""The gateway as people start it, measured at its clients' sockets: `python -m benchmarks.gateway`.

    python -m benchmarks.gateway                  # all of it, about three minutes
    python -m benchmarks.gateway --only latency   # what the journal adds to an update's way

Every update is stored before it is shown, so what arrives is durable. For the latency the same agent and client are measured in turns with
three relays in between: `antiphon bridge`, which stores nothing; the least relay that stores before it shows
(`contestants/bare_relay.py`); and the gateway. So the bare group commit has the same load beside it, the same threads and the same events.
"""

import argparse
import asyncio
import json
import os
import re
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.journal import BareCommit, paced, quantiles
from benchmarks.network import LIMIT, Socket, cpu_of, free_port, started

AGENT: Final = [sys.executable, "-m", "benchmarks.contestants.gateway_agent"]
SESSIONS: Final = 200
RATE: Final = 20
SOCKETS: Final = 10
_TIME: Final = re.compile(rb'"text":"(\d{9,})"')
_SESSION: Final = re.compile(rb'"sessionId":"([^"]*)"')


class Relay(NamedTuple):
    """What stands between the agent and its clients."""

    process: "subprocess.Popen[bytes]"
    port: int


@contextmanager
def gateway() -> Iterator[Relay]:
    """Start a gateway with data of its own."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        limits = [word for limit in ("prompts-per-minute=1000000", "sessions=100000") for word in ("--limit", limit)]
        words = [
            "serve",
            "--json",
            "--no-auth",
            "--port",
            "0",
            "--data",
            directory,
            "--root",
            "/",
            *limits,
            "--",
            *AGENT,
        ]
        env = {**os.environ, "ANTIPHON_STATE_DIR": directory}
        with started([sys.executable, "-m", "antiphon", *words], stdout=subprocess.PIPE, env=env) as process:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            yield Relay(process, int(url.rpartition(":")[2]))


@contextmanager
def bridge() -> Iterator[Relay]:
    """Start a bridge, which stores nothing."""
    port = free_port()
    words = ["bridge", "--listen", str(port), "--no-auth", "--", *AGENT]
    with started([sys.executable, "-m", "antiphon", *words]) as process:
        yield Relay(process, port)


class Client:
    """One socket with some sessions."""

    def __init__(self, relay: Relay, sessions: int) -> None:
        self.socket = Socket(relay.port)
        self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}}, b"protocolVersion")
        self.sessions = [self._new() for _ in range(sessions)]

    def _ask(self, method: str, params: object, mark: bytes) -> bytes:
        self.socket.send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
        return self.socket.read_until(mark)

    def _new(self) -> str:
        found = _SESSION.search(self._ask("session/new", {"cwd": "/tmp", "mcpServers": []}, b'"sessionId"'))
        assert found is not None
        return found[1].decode()

    def prompt(self, session: str, text: str) -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self.socket.send({"jsonrpc": "2.0", "id": session, "method": "session/prompt", "params": params})


def ends(clients: list[Client], wanted: int) -> None:
    """Read all sockets until so many turns have ended."""
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket.raw, selectors.EVENT_READ, [b""])
        found, mark = 0, b'"stopReason"'
        while found < wanted:
            ready = selector.select(LIMIT)
            assert ready, "nothing arrives any more"
            for key, _ in ready:
                chunk = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                assert chunk, "the gateway has closed a socket"
                found += (key.data[0] + chunk).count(mark)
                key.data[0] = chunk[1 - len(mark) :]


def flood(count: int) -> dict[str, float]:
    """One session that sends as fast as it can."""
    with gateway() as relay:
        client = Client(relay, 1)
        began = time.perf_counter()
        client.prompt(client.sessions[0], f"flood {count}")
        ends([client], 1)
        return {"one session that floods, events/s": count / (time.perf_counter() - began)}


def spread(count: int) -> dict[str, float]:
    """Updates dealt to many sessions of several clients."""
    with gateway() as relay:
        clients = [Client(relay, SESSIONS // SOCKETS) for _ in range(SOCKETS)]
        began = time.perf_counter()
        for client in clients:
            for session in client.sessions:
                client.prompt(session, f"deal {count} {SESSIONS}")
        ends(clients, SESSIONS)
        return {f"{SESSIONS} sessions, events/s": count / (time.perf_counter() - began)}


@contextmanager
def bare() -> Iterator[Relay]:
    """Start the least relay that stores before it shows."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        words = ["-m", "benchmarks.contestants.bare_relay", str(port), f"{directory}/bare.sqlite3", "--", *AGENT]
        with started([sys.executable, *words], stdout=subprocess.PIPE) as process:
            yield Relay(process, port)


class Paced(NamedTuple):
    """Milliseconds from the agent's write to the client's read, and microseconds of the relay's CPU for an update."""

    half: float
    most: float
    cpu: float
    commit: tuple[float, float] | None = None
    """The same of a bare commit: from the append to the loop's knowledge of it."""


def paced_through(between: "Callable[[], AbstractContextManager[Relay]]", seconds: float) -> Paced:
    """Measure updates that come one by one, through one relay."""
    with between() as relay:
        client = Client(relay, SESSIONS)
        before = cpu_of(relay.process)
        for session in client.sessions:
            client.prompt(session, f"paced {int(seconds * RATE)} {RATE}")
        waits = [*_waits(client)]
        cpu = (cpu_of(relay.process) - before) / len(waits) * 1e6
        client.socket.close()
        commit = None
        if between is bare:
            assert relay.process.stdout is not None
            found = json.loads(relay.process.stdout.readline())
            commit = found["p50"], found["p99"]
        return Paced(*quantiles(waits), cpu, commit)


def latency(seconds: float, rounds: int) -> dict[str, float]:
    """What the journal adds to the way of an update, next to a bare commit under the same load; and the bare commit with nothing beside it.

    A round plays each relay once. Differences and ratios are made within a round; all lines are medians over the rounds.
    """
    relays = (bridge, bare, gateway)
    played = [{each.__name__: paced_through(each, seconds) for each in relays} for _ in range(rounds)]
    lines: dict[str, float] = {}

    def line(name: str, value: Callable[[dict[str, Paced]], float]) -> None:
        lines[name] = statistics.median(map(value, played))

    for relay in ("bridge", "bare", "gateway"):
        line(f"{relay}, p50 ms", lambda each, relay=relay: each[relay].half)  # type: ignore[misc]
        line(f"{relay}, p99 ms", lambda each, relay=relay: each[relay].most)  # type: ignore[misc]
        line(f"{relay}, µs of CPU for an update", lambda each, relay=relay: each[relay].cpu)  # type: ignore[misc]
    line("bare commit in its relay, p50 ms", lambda each: _commit_of(each)[0])
    line("bare commit in its relay, p99 ms", lambda each: _commit_of(each)[1])
    line("added by the journal, p50 ms (≤ 2)", lambda each: each["gateway"].half - each["bridge"].half)
    line("added by the journal, p99 ms", lambda each: each["gateway"].most - each["bridge"].most)
    line(
        "the same ÷ p99 of the bare commit (≤ 2)",
        lambda each: (each["gateway"].most - each["bridge"].most) / _commit_of(each)[1],
    )
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        lines |= asyncio.run(_alone(Path(directory) / "bare.sqlite3", seconds))
    return {f"{SESSIONS} x {RATE}/s: {name}": value for name, value in lines.items()}


def _commit_of(played: dict[str, Paced]) -> tuple[float, float]:
    found = played["bare"].commit
    assert found is not None
    return found


def _waits(client: Client) -> Iterator[float]:
    tail, found = b"", 0
    while found < SESSIONS:
        chunk = client.socket.raw.recv(1 << 20)
        now = time.monotonic_ns()
        *whole, tail = re.split(rb'(?<=\}\}\}\})|(?<="end_turn"\}\})', tail + chunk)
        for message in whole:
            found += b'"stopReason"' in message
            if (sent := _TIME.search(message)) is not None:
                yield (now - int(sent[1])) / 1e6


async def _alone(path: Path, seconds: float) -> dict[str, float]:
    bare = BareCommit(path)
    try:
        half, most = await paced(bare.append, seconds)
    finally:
        bare.close()
    return {"bare commit alone, p50 ms": half, "bare commit alone, p99 ms": most}


def memory(process: "subprocess.Popen[bytes]") -> int:
    """Bytes that a process has for itself."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(size) * 1024 for size in re.findall(r"^Private_\w+:\s+(\d+)", text, re.MULTILINE))


def idle() -> dict[str, float]:
    """Memory of sessions that nothing happens in: all of them in one process of the agent, their clients connected."""
    lines: dict[str, float] = {}
    with gateway() as relay:
        clients = [Client(relay, 1)]
        before, opened = memory(relay.process), 0
        for sessions in (100, 900):
            clients += [Client(relay, sessions // SOCKETS) for _ in range(SOCKETS)]
            opened += sessions
            lines[f"{opened} idle sessions, KB each"] = (memory(relay.process) - before) / opened / 1000
    return lines


def growth(count: int) -> dict[str, float]:
    """CPU of the gateway for each update of one session while others are open."""
    lines: dict[str, float] = {}
    for others in (10, 100, 1000):
        with gateway() as relay:
            client = Client(relay, others)
            before = cpu_of(relay.process)
            client.prompt(client.sessions[0], f"flood {count}")
            ends([client], 1)
            lines[f"{others} sessions open, µs of CPU for an update"] = (cpu_of(relay.process) - before) / count * 1e6
    return lines


def main() -> int:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--count", type=int, default=200_000, help="updates for each line (200,000)")
    words.add_argument("--seconds", type=float, default=5.0, help="for each relay of the latency (5)")
    words.add_argument("--rounds", type=int, default=3, help="of the latency (3)")
    words.add_argument("--only", action="append", choices=("flood", "spread", "latency", "idle", "growth"))
    words.add_argument("--json", type=Path, help="write all numbers to this file")
    options = words.parse_args()
    lines: dict[str, float] = {}
    measures: dict[str, Callable[[], dict[str, float]]] = {
        "flood": lambda: flood(options.count),
        "spread": lambda: spread(options.count),
        "latency": lambda: latency(options.seconds, options.rounds),
        "idle": idle,
        "growth": lambda: growth(options.count),
    }
    for part in options.only or measures:
        found = measures[part]()
        lines |= found
        for name, value in found.items():
            print(f"{name:62} {value:14,.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
