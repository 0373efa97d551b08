"""The fleet, measured with real processes on this machine: `python -m benchmarks.fleet`.

    python -m benchmarks.fleet                     # all of it, about eight minutes
    python -m benchmarks.fleet --only latency      # one part; --list says which there are

The broker is three nats-servers, or one, that wait for the disk before they confirm an event. What is compared is measured in turns within
a round, and lines that are ratios are made within a round; all lines are medians over the rounds.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from antiphon.fleet.nats import connect_broker
from antiphon.fleet.records.formats import ALL_OWNERS, owner_of
from benchmarks.fleet_members import measure_members, read_owners
from benchmarks.fleet_processes import (
    Fleet,
    Servers,
    StartedWorker,
    bare_appends,
    brokers,
    fleet,
    fleet_gateway,
    inner_workers,
    together,
    wait_ready,
    worker,
)
from benchmarks.gateway import Client, Relay, ends, gateway, memory
from benchmarks.journal import quantiles
from benchmarks.network import LIMIT, cpu_of

SEVERAL: Final = 10
"""Events of one message, where several share one."""
RATE: Final = 5
"""Updates of each session in a second, for the delay."""
MOVED: Final = b"_antiphon/session/moved"
KB: Final = 1000

_TIME: Final = re.compile(rb'"text":"(\d{9,})"')

Lines = dict[str, float]


class Sizes(NamedTuple):
    """How much is measured."""

    rounds: int = 3
    seconds: float = 4.0
    sessions: int = 200
    events: int = 100_000
    """Updates of a flood."""
    kills: int = 5
    grows: tuple[int, ...] = (100, 1000, 10_000)
    idle: tuple[int, ...] = (100, 1000)
    workers: tuple[int, ...] = (1, 2, 4)


def medians(rounds: list[Lines]) -> Lines:
    """Return the median of each line."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


# Durable events a second.


def store(sizes: Sizes) -> Lines:
    """Durable events a second through workers, next to bare appends at the same broker."""
    lines: Lines = {}
    for count in (3, 1):
        with brokers(count) as servers:
            wait_ready(servers)
            lines |= medians([_store_round(servers, count, sizes) for _ in range(sizes.rounds)])
    return lines


def _store_round(servers: Servers, count: int, sizes: Sizes) -> Lines:
    lines: Lines = {}
    where = f"{count} server{'s' if count > 1 else ''}"
    bare = {}
    for each in (1, SEVERAL):
        found = bare_appends(servers, sizes.sessions, each, sizes.seconds)
        bare[each] = lines[f"{where}, bare client, {each} a message, events/s"] = found["events"] / found["seconds"]
    for number in sizes.workers:
        name = f"{where}, {number} worker{'s' if number > 1 else ''}"
        with inner_workers(servers.addresses, number) as workers:
            together(workers, f"open {max(1, sizes.sessions // number)}")
            for each, target in ((1, " (≥ 4,000)"), (SEVERAL, " (≥ 8,000)")):
                found = _sum(together(workers, f"steady {sizes.seconds} {each}"))
                shown = target if count > 1 else ""
                lines[f"{name}, {each} a message, events/s{shown}"] = found["rate"]
                lines[f"{name}, {each} a message ÷ bare client"] = found["rate"] / bare[each]
                lines[f"{name}, {each} a message, µs of CPU of a worker for an event"] = found["cpu"]
            found = _sum(together(workers, f"flood {sizes.events // number}"))
            lines[f"{name}, as many a message as wait, events/s"] = found["rate"]
            lines[f"{name}, as many a message as wait: how many"] = found["events"] / max(1.0, found["messages"])
            for each_worker in workers:
                each_worker.leave()
    return lines


def _sum(found: list[dict[str, float]]) -> dict[str, float]:
    events = sum(each["events"] for each in found)
    return {
        "events": events,
        "rate": sum(each["events"] / each["seconds"] for each in found),
        "cpu": sum(each["cpu"] for each in found) / events * 1e6,
        "messages": max(each["messages"] for each in found),
    }


# At a client's socket.


@contextmanager
def _client(relay: Relay, sessions: int, kind: type[Client] = Client) -> Iterator[Client]:
    client = kind(relay, sessions)
    try:
        yield client
    finally:
        client.socket.close()


def shown(sizes: Sizes) -> Lines:
    """Updates a second at a client's socket, next to one machine with SQLite."""

    rounds = []
    for _ in range(sizes.rounds):
        with fleet(3, 1) as found:
            ours = _shown(found.gateway, sizes)
        with gateway() as relay:
            alone = _shown(relay, sizes)
        rounds.append(
            {f"at a client, {name}: fleet, events/s": value for name, value in ours.items()}
            | {f"at a client, {name}: one machine with SQLite, events/s": value for name, value in alone.items()}
            | {f"at a client, {name}: fleet ÷ one machine": value / alone[name] for name, value in ours.items()}
        )
    return medians(rounds)


def _shown(relay: Relay, sizes: Sizes) -> Lines:
    lines: Lines = {}
    with _client(relay, 1) as client:
        began = time.perf_counter()
        client.prompt(client.sessions[0], f"flood {sizes.events}")
        ends([client], 1)
        lines["one session that floods"] = sizes.events / (time.perf_counter() - began)
    with _client(relay, sizes.sessions) as client:
        began = time.perf_counter()
        for session in client.sessions:
            client.prompt(session, f"deal {sizes.events} {sizes.sessions}")
        ends([client], sizes.sessions)
        lines[f"{sizes.sessions} sessions"] = sizes.events / (time.perf_counter() - began)
    return lines


class Delay(NamedTuple):
    """Milliseconds from the agent's write to the client's read."""

    half: float
    most: float


def _delay(client: Client, sizes: Sizes) -> Delay:
    for session in client.sessions:
        client.prompt(session, f"paced {max(1, int(sizes.seconds * RATE))} {RATE}")
    waits: list[float] = []
    tail, found = b"", 0
    while found < sizes.sessions:
        chunk = client.socket.raw.recv(1 << 20)
        now = time.monotonic_ns()
        assert chunk, "the gateway has closed the socket"
        *whole, tail = re.split(rb'(?<=\}\}\}\})|(?<="end_turn"\}\})', tail + chunk)
        for message in whole:
            found += b'"stopReason"' in message
            if (sent := _TIME.search(message)) is not None:
                waits.append((now - int(sent[1])) / 1e6)
    return Delay(*quantiles(waits))


def latency(sizes: Sizes) -> Lines:
    """The delay from agent to client of updates that come alone, next to one machine with SQLite, and to a bare append."""
    rounds = []
    for _ in range(sizes.rounds):
        with fleet(3, 1) as found:
            bare = bare_appends(found.servers, sizes.sessions, 1, sizes.seconds, sizes.sessions * RATE)
            with _client(found.gateway, sizes.sessions) as client:
                cpu = {name: cpu_of(each) for name, each in _processes(found)}
                ours = _delay(client, sizes)
                used = {name: cpu_of(each) - cpu[name] for name, each in _processes(found)}
        with gateway() as relay, _client(relay, sizes.sessions) as client:
            alone = _delay(client, sizes)
        updates = sizes.sessions * max(1, int(sizes.seconds * RATE))
        rounds.append(
            {
                "fleet, p50 ms (≤ 6)": ours.half,
                "fleet, p99 ms (≤ 100)": ours.most,
                "one machine with SQLite, p50 ms": alone.half,
                "one machine with SQLite, p99 ms": alone.most,
                "fleet ÷ one machine, p50": ours.half / alone.half,
                "fleet ÷ one machine, p99": ours.most / alone.most,
                "bare append at the same rate, p50 ms": bare["p50"],
                "bare append at the same rate, p99 ms": bare["p99"],
                **{f"{name}, µs of CPU for an update": each / updates * 1e6 for name, each in used.items()},
            }
        )
    return {f"{sizes.sessions} x {RATE}/s: {name}": value for name, value in medians(rounds).items()}


def _processes(found: Fleet) -> list[tuple[str, Any]]:
    named = [("gateway", found.gateway.process), ("worker", found.workers[0].process)]
    return named + [(f"server {number}", each) for number, each in enumerate(found.servers.processes, 1)]


# A worker that is killed.


class AttentiveClient(Client):
    """A client that is sent what happens to its sessions beside their updates."""

    def _ask(self, method: str, params: Any, mark: bytes) -> bytes:
        if method == "initialize":
            params = {**params, "_meta": {"antiphon": {"numbers": True}}}
        return super()._ask(method, params, mark)


async def _owners(servers: Servers) -> list[str]:
    broker = await connect_broker(servers.addresses.split(","), name="bench")
    try:
        return [owner_of(each).worker for each in await broker.lasts(ALL_OWNERS)]
    finally:
        await broker.close()


def failover(sizes: Sizes) -> Lines:
    """Seconds from kill -9 of a worker, with a turn running in each of its sessions, to the event that says that a session has moved."""
    firsts, lasts = [], []
    sessions = min(20, sizes.sessions)
    with fleet(3, 1) as found, ExitStack() as stack:
        current = found.workers[0]
        client = stack.enter_context(_client(found.gateway, sessions, AttentiveClient))
        for number in range(sizes.kills):
            following = stack.enter_context(worker(found.servers, f"next{number}"))
            for session in client.sessions:
                client.prompt(session, f"paced 1000000 {RATE}")
            client.socket.read_until(b'"text":"')
            owners = asyncio.run(_owners(found.servers))
            assert owners == [current.name] * sessions, owners
            times = _kill(current, client, sessions)
            firsts.append(times[0])
            lasts.append(times[-1])
            current = following
    return {
        "kill -9 to `moved`, seconds (≤ 5)": statistics.median(firsts),
        "kill -9 to `moved`, the slowest of all kills, seconds (≤ 5)": max(firsts),
        f"kill -9 to `moved` in all {sessions} sessions, seconds": statistics.median(lasts),
        f"kill -9 to `moved` in all {sessions} sessions, the slowest, seconds": max(lasts),
        "kills": float(sizes.kills),
    }


def _kill(killed: StartedWorker, client: Client, sessions: int) -> list[float]:
    """Kill a worker, and return after how many seconds each session has moved."""
    os.kill(killed.process.pid, signal.SIGKILL)
    began = time.perf_counter()
    times: list[float] = []
    tail = b""
    client.socket.raw.settimeout(LIMIT)
    while len(times) < sessions:
        chunk = client.socket.raw.recv(1 << 20)
        assert chunk, "the gateway has closed the socket"
        whole = tail + chunk
        times += [time.perf_counter() - began] * whole.count(MOVED)
        tail = whole[-len(MOVED) + 1 :]
    killed.process.wait()
    return times


# What sessions cost.


def idle(sizes: Sizes) -> Lines:
    """Memory of sessions in which nothing happens, all of them with a client."""
    lines: Lines = {}
    with fleet(3, 1) as found, ExitStack() as stack:
        stack.enter_context(_client(found.gateway, 1))
        before = {name: memory(process) for name, process in _processes(found)}
        stored, opened = found.servers.stored, 0
        for wanted in sizes.idle:
            more = wanted - opened
            for _ in range(10):
                stack.enter_context(_client(found.gateway, more // 10))
            opened += more // 10 * 10
            for name, process in _processes(found):
                lines[f"{opened} idle sessions with a client: {name}, KB each"] = (
                    (memory(process) - before[name]) / opened / KB
                )
            disk = (found.servers.stored - stored) / opened / KB
            lines[f"{opened} idle sessions with a client: disks of all servers, KB each"] = disk
    return lines


def growth(sizes: Sizes) -> Lines:
    """What a session costs that no client has open, and an update of one session, with more and more of them."""
    lines: Lines = {}
    for count in sizes.grows:
        with brokers(3) as servers:
            wait_ready(servers)
            with inner_workers(servers.addresses, 1) as workers, fleet_gateway(servers) as copy:
                lines |= _grown(servers, workers[0], copy, count, sizes)
                workers[0].leave()
        with inner_workers("simulation", 1) as workers:
            workers[0].do(f"open {count}")
            found = workers[0].do(f"one {sizes.events // 50}")
            lines[f"{count} sessions, simulated broker: µs of CPU for an update"] = found["cpu"] / found["events"] * 1e6
    return lines


def _grown(servers: Servers, one: Any, copy: Relay, count: int, sizes: Sizes) -> Lines:
    one.do("open 10")
    before = {
        "worker": memory(one.process),
        "gateway": memory(copy.process),
        "servers": sum(map(memory, servers.processes)),
        "disks": servers.stored,
    }
    opened = one.do(f"open {count}")
    after = {
        "worker": memory(one.process),
        "gateway": memory(copy.process),
        "servers": sum(map(memory, servers.processes)),
        "disks": servers.stored,
    }
    update = one.do(f"one {sizes.events // 100}")
    kept = cpu_of(copy.process)
    rest = one.do(f"wait {sizes.seconds}")
    owners = asyncio.run(read_owners(servers))
    name = f"{count} sessions"
    return {
        **{f"{name}: {each}, KB each": (after[each] - before[each]) / count / KB for each in before},
        f"{name}: ms of CPU of the worker to open one": opened["cpu"] / count * 1000,
        f"{name}: opened in a second": count / opened["seconds"],
        f"{name}: µs of CPU for an update": update["cpu"] / update["events"] * 1e6,
        f"{name}: ms to read the records of all owners": owners.seconds * 1000,
        f"{name}: µs of CPU of the servers for such a record": owners.cpu,
        f"{name}: % of a core in a worker where nothing happens": rest["cpu"] / rest["seconds"] * 100,
        f"{name}: % of a core in a gateway where nothing happens": (cpu_of(copy.process) - kept)
        / rest["seconds"]
        * 100,
    }


def members(sizes: Sizes) -> Lines:
    """What heartbeats cost, which go from every worker to every process."""
    return measure_members(max(2, sizes.sessions // 2), max(20, sizes.events // 100), max(sizes.grows) // 10)


PARTS: Final[dict[str, Callable[[Sizes], Lines]]] = {
    "store": store,
    "latency": latency,
    "failover": failover,
    "shown": shown,
    "idle": idle,
    "growth": growth,
    "members": members,
}


def main() -> int:
    """Measure and print."""
    usual = Sizes()
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", action="append", choices=tuple(PARTS))
    words.add_argument("--list", action="store_true", help="what there is")
    words.add_argument("--rounds", type=int, default=usual.rounds, help=f"of what is compared ({usual.rounds})")
    words.add_argument("--seconds", type=float, default=usual.seconds, help=f"for each line ({usual.seconds:g})")
    words.add_argument("--sessions", type=int, default=usual.sessions, help=f"that stream ({usual.sessions})")
    words.add_argument("--events", type=int, default=usual.events, help=f"of a flood ({usual.events:,})")
    words.add_argument("--kills", type=int, default=usual.kills, help=f"of workers ({usual.kills})")
    words.add_argument("--most", type=int, default=max(usual.grows), help=f"sessions at most ({max(usual.grows):,})")
    words.add_argument("--json", type=Path, help="write all numbers to this file")
    options = words.parse_args()
    if options.list:
        for name, part in PARTS.items():
            print(f"{name:10} {(part.__doc__ or '').splitlines()[0]}")
        return 0
    grows = tuple(count for count in usual.grows if count <= options.most)
    held = tuple(count for count in usual.idle if count <= options.most)
    sizes = Sizes(options.rounds, options.seconds, options.sessions, options.events, options.kills, grows, held)
    lines: Lines = {}
    for name in options.only or PARTS:
        found = PARTS[name](sizes)
        found[f"{name}: processes that wanted a core, over a minute"] = os.getloadavg()[0]
        lines |= found
        for line, value in found.items():
            print(f"{line:82} {value:14,.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
