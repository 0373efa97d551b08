"""A fleet that can be broken: three servers of the broker, workers, gateways, and a proxy in front of these, all as people start them."""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from antiphon.errors import AcpError
from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.nats import NatsBroker, connect_broker
from antiphon.fleet.records.formats import ALL_ROWS, RowRecord, key_of, owner_of, owner_subject
from antiphon.fleet.streams import SESSIONS
from antiphon.transports.tree import descendants
from tests.fleet.proxies import Network, network
from tests.fleet.servers import NatsServer, nats_cluster, nats_server
from tests.gateway.processes import ROOT
from tests.limits import limit
from tests.waits import until

Answer = TypeVar("Answer")

__all__ = ["LEASE", "FaultyFleet", "FleetProgram", "GatewayFront", "faulty_fleet"]

LEASE = 1.0
"""Seconds; short, and long enough for a machine with two processors and twelve programs."""

AGENT = Path(__file__).with_name("agent_program.py")
ANTIPHON = (sys.executable, "-P", "-m", "antiphon")
WORKERS, GATEWAYS = 3, 2


class FleetProgram:
    """A worker or a gateway that can be killed, stopped, and started again on its data."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        self.name = name
        self.about: dict[str, Any] = {}
        """What it says of itself when it is ready."""
        self.is_stopped = False
        self._command = command
        self._directory = directory
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The id of its process; 0 without one."""
        return 0 if self._process is None or self._process.returncode is not None else self._process.pid

    @property
    def children(self) -> list[int]:
        """The processes below it."""
        return descendants(self.pid) if self.pid else []

    async def start(self) -> None:
        """Start it, again if the broker is away just then as a service manager does, and wait until it is ready."""
        async with asyncio.timeout(limit()):
            while "pid" not in (about := await self._start()):
                await self.kill()
        self.about = about

    async def _start(self) -> dict[str, Any]:
        """Start it, and return what it says first: what it is, or why it ends."""
        env = {
            **os.environ,
            "ANTIPHON_STATE_DIR": str(self._directory / f"state-{self.name}"),
            "ANTIPHON_CONFIG_DIR": str(self._directory / "config"),
            "PYTHONPATH": str(ROOT),
        }
        errors = self._directory / f"{self.name}.stderr"
        file = os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE, stderr=file, env=env, cwd=self._directory
            )
        finally:
            os.close(file)
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line, f"{self.name} has ended:\n{errors.read_text(encoding='utf-8')[-2000:]}"
        about: dict[str, Any] = json.loads(line)
        return about

    def stop(self) -> None:
        """Stop the process without ending it."""
        self.is_stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a stopped process go on."""
        self.is_stopped = False
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        """Kill it without a word."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def end(self) -> None:
        """End it in order, and by force if that takes too long."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self.is_stopped:
            self.go_on()
        try:
            for _ in range(2):  # the second signal says that nothing is to be waited for
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(limit(10)):
                        await process.wait()
                        return
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class GatewayFront:
    """A proxy in front of the gateways: each connection goes to any of them that takes it."""

    def __init__(self, gateways: Sequence[FleetProgram], draw: random.Random) -> None:
        self.port = 0
        self._gateways = gateways
        self._draw = draw
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"ws://127.0.0.1:{self.port}/acp"

    @asynccontextmanager
    async def serving(self) -> "AsyncIterator[GatewayFront]":
        """Serve as long as the block lasts."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in (*self._tasks,):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_writer: asyncio.StreamWriter | None = None
        try:
            far = await self._gateway()
            if far is None:
                return
            far_reader, far_writer = far
            passing = [
                asyncio.ensure_future(_pass(reader, far_writer)),
                asyncio.ensure_future(_pass(far_reader, writer)),
            ]
            try:
                await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in passing:
                    task.cancel()
                await asyncio.gather(*passing, return_exceptions=True)
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.transport.abort()

    async def _gateway(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        gateways = [each for each in self._gateways if each.pid and each.about]
        for gateway in self._draw.sample(gateways, len(gateways)):
            port = int(str(gateway.about["url"]).rpartition(":")[2])
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


class FaultyFleet:
    """All programs of one fleet."""

    def __init__(self, directory: Path, servers: Sequence[NatsServer], draw: random.Random) -> None:
        self.directory = directory
        self.servers = servers
        self.notes = directory / "agents"
        """Where the agents write what they were sent."""
        self.root = directory / "code"
        self.workers: list[FleetProgram] = []
        self.gateways: list[FleetProgram] = []
        self.networks: dict[str, list[Network]] = {}
        """The ways of each worker to the servers, by its name."""
        self.front = GatewayFront(self.gateways, draw)
        self.token = ""
        self.observer: NatsBroker
        """A connection of the test itself, which sees what is stored."""

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything."""
        for each in (self.notes, self.root):
            each.mkdir(parents=True, exist_ok=True)
        self.observer = await connect_broker([server.url for server in self.servers], name="observer")
        stack.push_async_callback(self.observer.close)
        for number in range(WORKERS):
            name = f"worker{number}"
            self.networks[name] = [await stack.enter_async_context(network(server.port)) for server in self.servers]
            self.workers.append(self._worker(name))
        self.gateways += [self._gateway(f"gateway{number}") for number in range(GATEWAYS)]
        stack.push_async_callback(self._end)
        for program in (*self.workers, *self.gateways):
            await program.start()
        self.token = _read(self.gateways[0].about["token_file"])
        await stack.enter_async_context(self.front.serving())

    def _worker(self, name: str) -> FleetProgram:
        urls = ",".join(way.url for way in self.networks[name])
        command = (
            *ANTIPHON,
            "worker",
            "--fleet",
            urls,
            "--lease",
            f"{LEASE}s",
            "--name",
            name,
            "--json",
            "--drain",
            "5s",
        )
        where = ("--root", str(self.root), "--data", str(self.directory / name))
        limits = ("--limit", "prompts-per-minute=100000")
        agent = ("--", sys.executable, "-I", "-S", str(AGENT), str(self.notes))
        return FleetProgram(name, (*command, *where, *limits, *agent), self.directory)

    def _gateway(self, name: str) -> FleetProgram:
        urls = ",".join(server.url for server in self.servers)
        command = (*ANTIPHON, "serve", "--fleet", urls, "--lease", f"{LEASE}s", "--port", "0", "--json")
        return FleetProgram(name, (*command, "--data", str(self.directory / name)), self.directory)

    async def _end(self) -> None:
        for way in (each for ways in self.networks.values() for each in ways):
            way.is_open.set()
            way.refuses = False
        await asyncio.gather(*(program.end() for program in (*self.workers, *self.gateways)))

    # What there is.

    async def leader(self) -> NatsServer:
        """Return the server that leads the stream of events; any, where that cannot be known now."""
        if len(self.servers) > 1:
            with suppress(BrokerAway, TimeoutError):
                async with asyncio.timeout(limit(2)):
                    answer = await self.observer.request("$JS.API.STREAM.INFO.ACP_SESSIONS", b"", 2)
                    name = (json.loads(answer).get("cluster") or {}).get("leader")
                    return next((server for server in self.servers if server.name == name), self.servers[0])
        return self.servers[0]

    async def fill_broker(self) -> None:
        """Leave no room in the stream: from now on nothing is stored. Where no server can be asked, nothing happens."""
        with suppress(AcpError):
            found = await self._stream("INFO", {})
            await self._stream("UPDATE", {**found["config"], "max_bytes": max(1, int(found["state"]["bytes"]))})

    async def make_room(self) -> None:
        """Let the broker store again, as soon as it can be asked."""
        async with asyncio.timeout(limit()):
            while True:
                with suppress(AcpError):
                    found = await self._stream("INFO", {})
                    await self._stream("UPDATE", {**found["config"], "max_bytes": -1})
                    return
                await asyncio.sleep(0.1)

    async def _stream(self, what: str, question: dict[str, Any]) -> dict[str, Any]:
        request = f"$JS.API.STREAM.{what}.{SESSIONS.name}"
        answer: dict[str, Any] = json.loads(await self.observer.request(request, json.dumps(question).encode(), 2))
        if "error" in answer:
            raise AcpError(str(answer["error"]))
        return answer

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask the broker something, again while it is away."""
        async with asyncio.timeout(limit()):
            while True:
                with suppress(BrokerAway):
                    return await question()
                await asyncio.sleep(0.1)

    async def key(self, session: str) -> str:
        """Return the key of a session."""
        for message in await self.ask(lambda: self.observer.lasts(ALL_ROWS)):
            if key_of(message.subject) != "stream" and RowRecord.of(message).row.session_id == session:
                return key_of(message.subject)
        raise AssertionError(f"session {session} has no row")

    async def owner(self, key: str) -> FleetProgram | None:
        """Return the worker that owns a session; None if none does, or it cannot be known now."""
        with suppress(BrokerAway, TimeoutError):
            async with asyncio.timeout(1):
                name = owner_of(await self.observer.last(owner_subject(key))).worker
                return next((each for each in self.workers if each.about.get("worker") == name), None)
        return None

    # What agents have noted.

    def noted(self, what: str) -> list[str]:
        """Return the words that agents have noted under a name, each with the id of the process."""
        file = self.notes / "notes"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ", 1)[0] == what]

    def left_agents(self) -> list[int]:
        """Return the agents that run and that no worker has."""
        owned = {pid for worker in self.workers for pid in worker.children}
        return [pid for pid in map(int, self.noted("start")) if pid not in owned and _is_agent(pid)]

    async def none_left(self) -> None:
        """Wait until no agent runs that no worker has."""
        await until(lambda: not self.left_agents())


def _read(file: str) -> str:
    return Path(file).read_text(encoding="utf-8").strip()


def _is_agent(pid: int) -> bool:
    """Whether a process that runs is an agent of these tests: its id may be that of another by now."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        return state not in "ZX" and AGENT.name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@asynccontextmanager
async def faulty_fleet(directory: Path, draw: random.Random, *, cluster: bool = True) -> AsyncIterator[FaultyFleet]:
    """Start a fleet, and end it in order; no agent of it is left then."""
    async with AsyncExitStack() as stack:
        servers: Sequence[NatsServer]
        if cluster:
            servers = stack.enter_context(nats_cluster(directory / "brokers", advertise=False))
        else:
            servers = [stack.enter_context(nats_server(directory / "brokers"))]
        fleet = FaultyFleet(directory, servers, draw)
        async with AsyncExitStack() as programs:
            await fleet.start(programs)
            yield fleet
        await fleet.none_left()
