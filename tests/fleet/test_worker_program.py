"""`antiphon worker` as real processes over a real `nats-server`: killed, stopped and continued, drained."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from antiphon.fleet.access.audit import AuditReceiver
from antiphon.fleet.carrier import CarrierDialer
from antiphon.fleet.control import WorkerControl, WorkerRequest
from antiphon.fleet.credentials import make_credentials
from antiphon.fleet.membership import Members
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.owner import FleetOwner, Hello
from antiphon.fleet.records.formats import ALL_OWNERS, RunAssembler, events_subject, key_of, owner_of
from antiphon.journal.owner import NoOwner
from antiphon.transports.base import Transport
from antiphon.transports.tree import descendants
from tests.fleet.servers import NatsServer, nats_server
from tests.gateway.peers import DRIVER, RawClient
from tests.gateway.test_attachments import numbers
from tests.gateway.test_moves import events, notices
from tests.gateway.test_turns import attach
from tests.limits import limit
from tests.waits import until

pytestmark = [pytest.mark.slow, pytest.mark.prove]


class WorkerProcess:
    """One that runs."""

    def __init__(self, process: asyncio.subprocess.Process, about: dict[str, Any]) -> None:
        self.process = process
        self.about = about

    @property
    def name(self) -> str:
        return str(self.about["worker"])

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    @property
    def agents(self) -> list[int]:
        """The processes that it has started."""
        return descendants(self.process.pid)


class RealFleet:
    """A server, workers, and a gateway's view of them."""

    def __init__(self, directory: Path, server: NatsServer, stack: AsyncExitStack) -> None:
        self.directory = directory
        self.server = server
        self._stack = stack

    async def connect(self) -> None:
        self.broker = await connect_broker(self.server.url, name="test")
        self._stack.push_async_callback(self.broker.close)
        self.members = Members(self.broker)
        self._stack.callback(self.members.close)
        dialer = CarrierDialer(self.broker)
        self._stack.push_async_callback(dialer.close)
        self.owner = FleetOwner(self.broker, self.members, dialer)

    async def start(self, name: str, *more: str) -> WorkerProcess:
        env = {
            **os.environ,
            "ANTIPHON_STATE_DIR": str(self.directory / "state"),
            "ANTIPHON_CONFIG_DIR": str(self.directory / "config"),
        }
        data, root = self.directory / f"data-{name}", self.directory / "code"
        root.mkdir(exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "antiphon",
                "worker",
                "--fleet",
                self.server.url,
                "--name",
                name,
                "--agents",
                "demo",
            ),
            *("--root", str(root), "--data", str(data), "--json", *more),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
        )
        self._stack.push_async_callback(end, process)
        assert process.stdout is not None and process.stderr is not None
        line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        found = WorkerProcess(process, json.loads(line))
        await until(lambda: found.name in self.members.workers)
        return found

    async def _connected(self, worker: WorkerProcess) -> Transport:
        """Connect to a worker. One whose broker is there again may not listen yet."""
        async with asyncio.timeout(limit()):
            while True:
                with suppress(NoOwner):
                    return await self.owner.connect(worker.name, Hello(DRIVER, "demo"))
                await asyncio.sleep(0.02)

    async def client(self, worker: WorkerProcess) -> RawClient:
        client = RawClient(None, transport=await self._connected(worker))
        self._stack.push_async_callback(client.transport.close)
        await client.initialize(numbers=True)
        return client

    async def prompted(self, worker: WorkerProcess, text: str) -> tuple[RawClient, str, int]:
        client = await self.client(worker)
        session = await client.new(self.directory / "code")
        asked = client.prompt(session, text)
        await until(lambda: events(client, "turn_started"))
        return client, session, asked

    async def key(self) -> str:
        """Return the key of the one session."""
        [record] = await self.broker.lasts(ALL_OWNERS)
        return key_of(record.subject)

    async def stored(self, key: str) -> list[bytes]:
        assembler, found, after = RunAssembler(), list[bytes](), 0
        while page := await self.broker.read(events_subject(key), after):
            for message in page:
                after = message.sequence
                if (run := assembler.take(message)) is not None:
                    assert run.header.first == len(found) + 1
                    found += run.events
        return found


async def end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGCONT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            process.send_signal(number)
    await process.wait()


@asynccontextmanager
async def real_fleet(directory: Path) -> AsyncIterator[RealFleet]:
    async with asyncio.timeout(limit(120)), AsyncExitStack() as stack:
        server = stack.enter_context(nats_server(directory))
        fleet = RealFleet(directory, server, stack)
        await fleet.connect()
        yield fleet


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[RealFleet]:
    async with real_fleet(tmp_path) as found:
        yield found


def alive(pids: Sequence[int]) -> list[int]:
    found = []
    for pid in pids:
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            found += [pid] if state not in "ZX" else []
    return found


async def test_a_worker_that_is_killed_in_a_turn_is_replaced_within_seconds(fleet: RealFleet) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    client, session, _ = await fleet.prompted(one, "/slow 1000")
    await until(lambda: len(client.texts) > 3)
    agents, key = one.agents, await fleet.key()
    assert agents
    loop = asyncio.get_running_loop()
    one.signal(signal.SIGKILL)
    killed = loop.time()
    while (owner := await fleet.owner.find(key)) != two.name:  # noqa: ASYNC110 - the broker has no event for it here
        await asyncio.sleep(0.02)
    again = await fleet.client(two)
    await attach(again, session, numbers(client)[-1])
    await until(lambda: events(again, "moved"))
    assert loop.time() - killed < limit(5), "from the kill to the event that says that it moved"
    await until(lambda: events(again, "turn_ended"))
    assert owner == two.name and events(again, "turn_ended")[0]["interrupted"] is True
    assert numbers(client) + numbers(again) == list(range(1, len(await fleet.stored(key)) + 1))
    await until(lambda: not alive(agents))
    done = await again.response(again.prompt(session, "hello"))
    assert done["result"]["stopReason"] == "end_turn"
    assert not [each for each in notices(again) if "new session" in each["title"]], (
        "the demo finds its session on this machine"
    )


async def test_a_worker_that_is_stopped_longer_than_its_lease_stores_nothing_and_ends_its_agent(
    fleet: RealFleet,
) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    client, session, _ = await fleet.prompted(one, "/slow 100000")
    await until(lambda: len(client.texts) > 3)
    key = await fleet.key()
    one.signal(signal.SIGSTOP)
    await until(lambda: two.name in fleet.members.workers and one.name not in fleet.members.workers)
    while await fleet.owner.find(key) != two.name:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: events(again, "turn_ended"))
    stored = len(await fleet.stored(key))
    one.signal(signal.SIGCONT)
    await until(lambda: one.name in fleet.members.workers)
    status: Any = {}
    while status.get("sessions") != []:
        status = await WorkerControl(fleet.broker).ask(one.name, WorkerRequest("status"))
        await asyncio.sleep(0.05)
    assert len(await fleet.stored(key)) == stored, "the zombie has stored nothing"
    assert await fleet.owner.find(key) == two.name
    assert numbers(again) == list(range(1, stored + 1))
    # Its agent was stopped and killed, or has confirmed that it cancelled the turn. The worker goes on either way.
    fresh = await fleet.client(one)
    found: dict[str, Any] = {}
    while "result" not in found:
        asked = fresh.begin("session/new", {"cwd": str(fleet.directory / "code"), "mcpServers": []})
        found = await fresh.response(asked)
        assert "result" in found or found["error"]["data"]["recoverable"] is True
    second = found["result"]["sessionId"]
    assert (await fresh.response(fresh.prompt(second, "hello")))["result"]["stopReason"] == "end_turn"
    assert len(await fleet.stored(key)) == stored


async def test_a_worker_that_gets_a_signal_to_end_lets_its_turn_end_and_hands_its_session_over(
    fleet: RealFleet,
) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    client, session, asked = await fleet.prompted(one, "/slow 10")
    key = await fleet.key()
    one.signal(signal.SIGTERM)
    await until(lambda: (state := fleet.members.workers.get(one.name)) is None or state.draining)
    assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
    assert await one.process.wait() == 0
    assert one.process.stderr is not None
    assert "waiting for a turn to end" in (await one.process.stderr.read()).decode()
    await until(lambda: one.name not in fleet.members.workers)
    assert owner_of(await fleet.broker.last(f"acp.s.{key}.own")).worker == ""
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: numbers(again)[-1:] == [len(numbers(client))])
    assert not notices(again) and again.texts == client.texts
    answer = await WorkerControl(fleet.broker).ask(two.name, WorkerRequest("drain"))
    assert answer["draining"] is True
    assert await two.process.wait() == 0


async def test_what_clients_do_at_a_worker_is_in_the_audit_log_of_a_gateway(fleet: RealFleet) -> None:
    noted: list[tuple[str, str]] = []

    class Log:
        def add(self, action: str, *, actor: str, **_: object) -> None:
            noted.append((action, actor))

    receiver = AuditReceiver(fleet.broker, cast("Any", Log()))
    one = await fleet.start("one")
    client, _, asked = await fleet.prompted(one, "hello")
    await client.response(asked)
    await until(lambda: {("new", "alice"), ("prompt", "alice")} <= {*noted})
    receiver.close()


async def test_a_second_signal_ends_a_worker_at_once(fleet: RealFleet) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    _, session, _ = await fleet.prompted(one, "/slow 100000")
    agents = one.agents
    one.signal(signal.SIGTERM)
    await until(lambda: (state := fleet.members.workers.get(one.name)) is not None and state.draining)
    one.signal(signal.SIGTERM)
    assert await one.process.wait() == 0
    await until(lambda: not alive(agents))
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: events(again, "turn_ended"))
    assert "the worker was stopped" in events(again, "turn_ended")[0]["error"]["message"]


async def test_a_broker_that_is_killed_and_started_again_costs_no_event(fleet: RealFleet) -> None:
    one = await fleet.start("one")
    client, session, _ = await fleet.prompted(one, "/slow 60")
    key = await fleet.key()
    fleet.server.kill()
    await until(lambda: client.is_lost)
    fleet.server.restart()
    await until(lambda: one.name in fleet.members.workers and fleet.broker.is_connected)
    again = await fleet.client(one)
    await attach(again, session, 0)
    await until(lambda: events(again, "turn_ended"))
    assert "interrupted" not in events(again, "turn_ended")[0]
    assert numbers(again) == list(range(1, len(await fleet.stored(key)) + 1))
    pieces = [text for text in again.texts if text.strip().rstrip("…").isdigit()]
    assert len(pieces) == len(set(pieces))


async def test_the_key_of_a_worker_is_not_served_where_a_root_is_above_it(fleet: RealFleet) -> None:
    (code := fleet.directory / "code").mkdir()
    (code / "one.txt").write_text("harmless", encoding="utf-8")
    key = make_credentials(code, workers=["one"]).workers["one"]
    client = await fleet.client(await fleet.start("one", "--credentials", str(key)))
    session = await client.new(code)
    found = await client.request("_antiphon/session/files", {"sessionId": session, "query": "one"})
    assert [each["path"] for each in found["files"]] == ["one.txt"]
