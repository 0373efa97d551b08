"""What grows with the number of machines: heartbeats that go to every process, and records of owners that every worker reads."""

import asyncio
import selectors
import time
from typing import Final, NamedTuple

import msgspec

from antiphon.fleet.broker import Broker, CoreMessage
from antiphon.fleet.membership import BEAT, Members, WorkerState
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.records.formats import ALL_OWNERS
from antiphon.fleet.simulation import SimulatedServer
from benchmarks.contestants.bare_append import BareSocket
from benchmarks.fleet_processes import Servers, brokers, wait_ready
from benchmarks.network import LIMIT, cpu_of

ROUNDS: Final = 5
BURST: Final = 20
"""Beats that are published at once: so many that no process is far behind."""


def beat_of(number: int) -> WorkerState:
    """Return the beat of a worker as machines have them."""
    return WorkerState(
        f"machine-{number:04}.a1b2c3",
        host=f"machine-{number:04}-d4e5f6",
        version="1.0.0",
        agents=("claude", "codex"),
        roots=("/home/agents/projects",),
        slots=100,
        sessions=20,
        used=10,
        turns=3,
        beat=12345,
    )


async def taken(workers: int) -> float:
    """Return the microseconds of CPU in which a process takes one beat, among those of so many workers."""
    broker: Broker = SimulatedServer().connect("bench")
    members = Members(broker)
    sent = [(BEAT + state.name, msgspec.json.encode(state)) for state in map(beat_of, range(workers))]
    for subject, data in sent:
        broker.publish(subject, data)
    while len(members.workers) < workers:  # noqa: ASYNC110 - what is published arrives in turns of the loop
        await asyncio.sleep(0.01)
    take = members._take
    messages = [CoreMessage(subject, data) for subject, data in sent]
    began = time.process_time()
    for _ in range(ROUNDS):
        for message in messages:
            take(message)
    used = time.process_time() - began
    members.close()
    await broker.close()
    return used / ROUNDS / workers * 1e6


def delivered(servers: Servers, receivers: int, beats: int) -> dict[str, float]:
    """Publish beats to so many connections of one server; return the messages a second and the server's CPU for each."""
    port = next(iter(servers.ports.values()))
    data = msgspec.json.encode(beat_of(1))
    subject = (BEAT + beat_of(1).name).encode()
    command = b"PUB %b %d\r\n%b\r\n" % (subject, len(data), data)
    size = len(b"MSG %b 2 %d\r\n" % (subject, len(data))) + len(data) + 2
    sender, sockets = BareSocket(port), [BareSocket(port) for _ in range(receivers)]
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            each.raw.sendall(b"SUB %b> 2\r\nPING\r\n" % BEAT.encode())
            while b"PONG" not in each.raw.recv(1 << 16):
                pass
            each.raw.setblocking(False)
            selector.register(each.raw, selectors.EVENT_READ)
        before, began = cpu_of(servers.processes[0]), time.perf_counter()
        for sent in range(0, beats, BURST):
            count = min(BURST, beats - sent)
            sender.raw.sendall(command * count)
            left = count * size * receivers
            while left > 0:
                ready = selector.select(LIMIT)
                assert ready, "nothing arrives any more"
                for key, _ in ready:
                    left -= len(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]
        seconds, used = time.perf_counter() - began, cpu_of(servers.processes[0]) - before
    for each in (sender, *sockets):
        each.raw.close()
    messages = beats * receivers
    return {"rate": messages / seconds, "cpu": used / messages * 1e6, "bytes": float(len(data))}


def measure_members(receivers: int, beats: int, workers: int) -> dict[str, float]:
    """What heartbeats cost the servers and each process."""
    with brokers(1) as servers:
        wait_ready(servers)
        found = delivered(servers, receivers, beats)
    return {
        "a heartbeat, bytes": found["bytes"],
        "heartbeats delivered by one server, messages/s": found["rate"],
        "µs of CPU of the server to deliver one": found["cpu"],
        f"µs of CPU of a process to take one, of {workers} workers": asyncio.run(taken(workers)),
    }


class OwnersRead(NamedTuple):
    """What it costs to read all records of owners, as each worker does when another one dies."""

    seconds: float
    cpu: float
    """Microseconds of CPU of all servers for a record."""


async def read_owners(servers: Servers) -> OwnersRead:
    """Read all records of owners some times."""
    broker = await connect_broker(servers.addresses.split(","), name="bench")
    try:
        before, began, count = sum(map(cpu_of, servers.processes)), time.perf_counter(), 0
        for _ in range(ROUNDS):
            count += len(await broker.lasts(ALL_OWNERS))
        seconds = (time.perf_counter() - began) / ROUNDS
        return OwnersRead(seconds, (sum(map(cpu_of, servers.processes)) - before) / count * 1e6)
    finally:
        await broker.close()
