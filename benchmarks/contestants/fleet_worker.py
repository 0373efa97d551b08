"""A worker of a fleet with its agent in the same process, so that the agent costs next to nothing. Lines on stdin say what it does.

    python -m benchmarks.contestants.fleet_worker ADDRESSES NAME DIRECTORY

ADDRESSES are those of a broker, separated by commas; `simulation` is one in this process. Each line is answered by one of JSON:

open N        N sessions more; no client stays connected to them
flood N       N updates, dealt to all sessions in turn, as fast as they are taken
steady S K    for S seconds, each session sends K updates when those before are stored: K of them are one message at the broker
one N         N updates of the first session, each when the one before is stored
wait S        nothing, for S seconds
end           leave the fleet
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, Final

from antiphon.fleet.broker import Broker
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.simulation import SimulatedServer
from antiphon.fleet.streams import SESSIONS
from antiphon.fleet.worker.worker import FleetWorker, WorkerOptions
from antiphon.gateway.base import AccessRole, HubLimits, Principal
from antiphon.gateway.data import GatewayData
from antiphon.transports.base import Transport
from antiphon.transports.memory import MemoryTransport, memory_pair
from benchmarks.updates import BLOCK, encode, lines, steps, update_line

MANY: Final = 1_000_000
AT_ONCE: Final = 64
"""Sessions that are opened at the same time."""
LIMITS: Final = HubLimits(sessions=MANY, token_sessions=MANY, prompts_per_minute=MANY)
FLOOD: Final = 50
"""Updates that the agent writes at once."""


class InnerAgent:
    """An agent in the process of its worker. It answers at once, and sends what it is asked for."""

    def __init__(self) -> None:
        self.transport: MemoryTransport | None = None
        self._ids = count(1)

    async def start(self) -> Transport:
        """Return the hub's end of a new connection."""
        ours, self.transport = memory_pair()
        self.transport.attach(self)
        return ours

    def connection_lost(self, error: Exception) -> None:
        pass

    def block_received(self, block: object) -> None:
        assert isinstance(block, bytes | bytearray)
        for line in bytes(block).splitlines():
            message = json.loads(line)
            match message.get("method"):
                case "initialize":
                    self._answer(message["id"], {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
                case "session/new":
                    self._answer(message["id"], {"sessionId": f"sess_{os.getpid()}_{next(self._ids):010}"})
                case _ if "id" in message and "method" in message:
                    self._answer(message["id"], {})
                case _:
                    pass

    def _answer(self, id: object, result: object) -> None:
        self.send(encode({"jsonrpc": "2.0", "id": id, "result": result}))

    def send(self, data: bytes) -> None:
        """Send whole lines."""
        assert self.transport is not None
        self.transport.out += data
        self.transport.flush_soon()

    async def drain(self) -> None:
        """Wait until the worker has read everything."""
        assert self.transport is not None
        await self.transport.drain()


class InnerClient:
    """A client in the same process, that opens sessions and leaves."""

    def __init__(self, worker: FleetWorker) -> None:
        self.transport, theirs = memory_pair()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = count(1)
        self._serving = asyncio.ensure_future(worker.hub.serve(theirs, Principal("bench", AccessRole.DRIVE), "agent"))
        self.transport.attach(self)

    def connection_lost(self, error: Exception) -> None:
        pass

    def block_received(self, block: object) -> None:
        assert isinstance(block, bytes | bytearray)
        for line in bytes(block).splitlines():
            message = json.loads(line)
            if "method" not in message:
                self._answers.pop(message["id"]).set_result(message)

    async def request(self, method: str, params: object) -> dict[str, Any]:
        """Send a request and return its result."""
        id = next(self._ids)
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        self.transport.out += encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        self.transport.flush_soon()
        result: dict[str, Any] = (await answer)["result"]
        return result

    async def open(self, sessions: int) -> list[str]:
        """Open sessions, and return their ids."""
        await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        found: list[str] = []
        while len(found) < sessions:
            now = range(min(AT_ONCE, sessions - len(found)))
            asked = [self.request("session/new", {"cwd": "/tmp", "mcpServers": []}) for _ in now]
            found += [each["sessionId"] for each in await asyncio.gather(*asked)]
        return found

    async def leave(self) -> None:
        """End the connection."""
        await self.transport.close()
        await self._serving


class MeasuredWorker:
    """The worker, and its order."""

    def __init__(self, broker: Broker, worker: FleetWorker, agent: InnerAgent) -> None:
        self._broker, self._worker, self._agent = broker, worker, agent
        self._sessions: list[str] = []
        self._keys: dict[str, str] = {}
        self._stored = 0
        self._wanted = 0
        self._all_stored = asyncio.Event()
        self._next: Callable[[str], None] | None = None
        """Called with the key of a session whose events were stored."""
        self.commands: dict[str, Callable[..., Awaitable[dict[str, float]]]] = {
            "open": self._open,
            "flood": self._flood,
            "steady": self._steady,
            "one": self._one,
            "wait": self._wait,
        }
        store = worker.journal.store

        def counted(lease: Any, events: Any, then: Any, at: float = 0.0) -> None:
            def stored(number: int, error: BaseException | None) -> None:
                then(number, error)
                if error is None:
                    self._stored += len(events)
                    if self._next is not None:
                        self._next(lease.session)
                    if self._stored >= self._wanted:
                        self._all_stored.set()

            store(lease, events, stored, at)

        worker.journal.store = counted  # type: ignore[method-assign]

    async def _open(self, number: float) -> dict[str, float]:
        began, before = time.perf_counter(), time.process_time()
        client = InnerClient(self._worker)
        new = await client.open(int(number))
        await client.leave()
        await self._worker.journal.flush()
        self._sessions += new
        sessions = self._worker.hub.agents["agent"].sessions.values()
        self._keys = {session.key: session.id for session in sessions}
        return {
            "events": number,
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - before,
            "messages": await self._messages(),
        }

    async def _messages(self) -> float:
        size = getattr(self._broker, "stored_size", None)
        return 0.0 if size is None else float((await size(SESSIONS)).messages)

    async def _measured(self, play: Callable[[], Awaitable[None]], wanted: int) -> dict[str, float]:
        """Play something, and wait until so many events are stored; 0: until it has played."""
        first = await self._messages()
        self._stored, self._wanted = 0, wanted or MANY * MANY
        self._all_stored.clear()
        began, before = time.perf_counter(), time.process_time()
        await play()
        if wanted:
            await self._all_stored.wait()
        seconds, cpu = time.perf_counter() - began, time.process_time() - before
        events = float(self._stored)
        self._next = None
        await self._worker.journal.flush()
        return {
            "events": events,
            "seconds": seconds,
            "cpu": cpu,
            "messages": await self._messages() - first,
        }

    async def _flood(self, number: float) -> dict[str, float]:
        made = lines(self._sessions, BLOCK) if len(self._sessions) < BLOCK else self._all_lines()
        blocks = [b"".join(made[at : at + FLOOD]) for at in range(0, len(made), FLOOD)]
        whole, rest = divmod(int(number), FLOOD)

        async def play() -> None:
            for block in islice(cycle(blocks), whole):
                self._agent.send(block)
                await self._agent.drain()
            self._agent.send(b"".join(made[:rest]))

        return await self._measured(play, int(number))

    def _all_lines(self) -> list[bytes]:
        """Return an update for each session."""
        return [update_line(session, what) for session, what in zip(self._sessions, steps(MANY), strict=False)]

    async def _steady(self, seconds: float, each: float) -> dict[str, float]:
        line = {key: b"".join(lines([session], int(each))) for key, session in self._keys.items()}

        async def play() -> None:
            self._next = lambda key: self._agent.send(line[key])
            for key in line:
                self._next(key)
            await asyncio.sleep(seconds)

        return await self._measured(play, 0)

    async def _one(self, number: float) -> dict[str, float]:
        line = lines(self._sessions[:1], 1)[0]

        async def play() -> None:
            left = int(number)

            def send(key: str) -> None:
                nonlocal left
                if left:
                    left -= 1
                    self._agent.send(line)

            self._next = send
            send("")

        return await self._measured(play, int(number))

    async def _wait(self, seconds: float) -> dict[str, float]:
        return await self._measured(lambda: asyncio.sleep(seconds), 0)


async def work(addresses: str, name: str, directory: str) -> None:
    """Be a worker until stdin says that it ends."""
    if addresses == "simulation":
        broker: Broker = SimulatedServer().connect(name)
    else:
        broker = await connect_broker(addresses.split(","), name=name)
    agent = InnerAgent()
    options = WorkerOptions(name, roots=("/",), slots=MANY, limits=LIMITS, drain=0.0)
    async with (
        GatewayData.open(Path(directory)) as data,
        FleetWorker(broker, data, {"agent": agent.start}, options) as worker,
    ):
        measured = MeasuredWorker(broker, worker, agent)
        print(json.dumps({"worker": worker.name}), flush=True)
        while words := (await asyncio.to_thread(sys.stdin.readline)).split():
            if words[0] == "end":
                break
            found = await measured.commands[words[0]](*map(float, words[1:]))
            print(json.dumps(found), flush=True)
    await broker.close()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:4]))
