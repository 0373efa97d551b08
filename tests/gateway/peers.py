"""What the tests of the gateway talk with: a raw client, a scripted agent, the real demo, and stores in memory."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.errors import RequestError
from antiphon.gateway.access.messages import ClientRules
from antiphon.gateway.base import (
    AccessRole,
    FoundText,
    GatewaySession,
    HubLimits,
    ListedRow,
    Principal,
    SearchableText,
    SessionQuery,
)
from antiphon.gateway.data import GatewayData
from antiphon.gateway.hub import Hub
from antiphon.journal.base import Feed, JournalEntry, Lease, StaleLease
from antiphon.store.errors import NoSuchSession
from antiphon.transports.base import Transport
from antiphon.transports.memory import MemoryTransport, memory_pair
from antiphon.transports.process import spawn
from tests.limits import limit
from tests.waits import until

DRIVER: Final = Principal("alice", AccessRole.DRIVE)
DEMO: Final = [sys.executable, "-P", "-m", "antiphon", "agent", "--engine", "demo"]


class MemoryJournal:
    """A journal in memory, whose commits wait while `gate` is closed, and fail while `broken` has an error."""

    def __init__(self) -> None:
        self.events: dict[str, list[bytes]] = {}
        self.times: dict[str, list[float]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.acknowledged = asyncio.Event()
        """While it is not set a reader sees events whose writer does not know yet that they are stored."""
        self.acknowledged.set()
        self.broken: Exception | None = None
        self.leases: dict[str, Lease] = {}
        self.deleted: set[str] = set()
        self._epoch = 0
        self._feed = Feed(self.read)

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        held = self.leases.get(session)
        if previous is None and held is not None:
            raise StaleLease(session)
        if previous is not None and (held is None or held.epoch != previous):
            raise StaleLease(session)
        self._epoch += 1
        lease = self.leases[session] = Lease(session, self._epoch)
        return lease

    async def release(self, lease: Lease) -> None:
        if self.leases.get(lease.session) == lease:
            del self.leases[lease.session]

    async def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> int:
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.broken is not None:
            raise self.broken
        if self.leases.get(lease.session) != lease:
            raise StaleLease(lease.session)
        if lease.session in self.deleted:
            raise NoSuchSession(lease.session)
        stored = self.events.setdefault(lease.session, [])
        stored += events
        self.times.setdefault(lease.session, []).extend([at] * len(events))
        self._feed.publish(lease.session, len(stored), events)
        last = len(stored)
        await self.acknowledged.wait()
        return last

    def store(
        self,
        lease: Lease,
        events: Sequence[bytes],
        then: Callable[[int, BaseException | None], None],
        at: float = 0.0,
    ) -> None:
        def done(append: "asyncio.Task[int]") -> None:
            error = asyncio.CancelledError() if append.cancelled() else append.exception()
            then(0 if error else append.result(), error)

        asyncio.ensure_future(self.append(lease, events, at)).add_done_callback(done)

    async def read(self, session: str, after: int = 0, limit: int = 1000) -> list[JournalEntry]:
        await asyncio.sleep(0)
        found = self.events.get(session, [])[after : after + limit]
        times = self.times.get(session, [])[after : after + limit]
        return [
            JournalEntry(after + place, data, at)
            for place, (data, at) in enumerate(zip(found, [*times, *[0.0] * len(found)], strict=False), 1)
        ]

    async def length(self, session: str) -> int:
        return len(self.events.get(session, []))

    def tail(self, session: str, after: int = 0) -> AsyncIterator[JournalEntry]:
        return self._feed.tail(session, after)

    def forget_leases(self) -> None:
        """Forget all leases, as the end of the process does."""
        self.leases.clear()


class MemoryRows:
    """Rows of sessions in memory."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.removed: Callable[[str, str, str], None] | None = None
        self.rows: dict[str, GatewaySession] = {}
        self._keys = count()
        self._journal = journal

    async def create(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        await asyncio.sleep(0)
        key = f"key{next(self._keys)}"
        row = GatewaySession(key, agent, session_id, cwd, directories, created=1.0, owner=owner)
        self.rows[row.key] = msgspec.structs.replace(row, archived=True)
        if not hidden:
            await self.show(key)
        return row

    async def show(self, key: str) -> None:
        row, keys = self.rows.get(key), [*self.rows]
        others = [
            each for each in self.rows.values() if row is not None and _name(each) == _name(row) and not each.archived
        ]
        if row is None or any(keys.index(each.key) > keys.index(key) for each in others):
            return
        for each in (*others, row):
            self.rows[each.key] = msgspec.structs.replace(each, archived=each is not row)

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        await asyncio.sleep(0)
        same = (row for row in self.rows.values() if (row.agent, row.session_id) == (agent, session_id))
        return next((row for row in same if not row.archived), None)

    async def list(self, agent: str, *, cwd: str | None = None) -> list[GatewaySession]:
        return [row for row in self.rows.values() if row.agent == agent and not row.archived]

    async def listed(self, query: SessionQuery) -> Sequence[ListedRow]:
        rows = [row for row in self.rows.values() if row.agent in query.agents and not row.archived]
        rows = [row for row in rows if query.keys is None or row.key in query.keys]
        return [ListedRow(row, 0, (row.updated, 0)) for row in rows][: query.limit]

    async def settings(self, agent: str) -> bytes:
        return next((row.state for row in self.rows.values() if row.agent == agent), b"{}")

    async def unread(self, key: str, *, only: bool = False) -> tuple[str, int] | None:
        return None

    async def add_text(self, key: str, texts: Sequence[SearchableText], number: int) -> None:
        raise NotImplementedError

    async def search(
        self, words: Sequence[str], keys: frozenset[str] | None, agents: tuple[str, ...], limit: int
    ) -> Sequence[FoundText]:
        raise NotImplementedError

    async def interrupted(self) -> Sequence[GatewaySession]:
        return [row for row in self.rows.values() if row.turn]

    def save(self, row: GatewaySession) -> None:
        if (stored := self.rows.get(row.key)) is not None:
            self.rows[row.key] = msgspec.structs.replace(row, archived=stored.archived)

    async def delete(self, key: str) -> None:
        self.rows.pop(key, None)
        self._journal.events.pop(key, None)
        self._journal.deleted.add(key)


def _name(row: GatewaySession) -> tuple[str, str]:
    return row.agent, row.session_id


class RawClient:
    """A client that keeps every frame as it came."""

    def __init__(
        self, hub: Hub | None, principal: Principal = DRIVER, agent: str = "demo", transport: Transport | None = None
    ) -> None:
        """Connect to a hub over memory, or to a gateway elsewhere over the transport."""
        ours, theirs = memory_pair()
        self.transport = transport or ours
        self.frames: list[bytes] = []
        self._decoded: list[dict[str, Any]] = []
        self.is_lost = False
        self.why = ""
        """Why the connection ended."""
        self._id = 0
        self.serving = None
        if hub is not None:
            self.serving = asyncio.get_running_loop().create_task(hub.serve(theirs, principal, agent))
        self.transport.attach(self)

    def block_received(self, block: object) -> None:
        assert isinstance(block, bytes | bytearray)
        self.frames += [line for line in bytes(block).split(b"\n") if line]

    def connection_lost(self, error: Exception) -> None:
        self.is_lost = True
        self.why = str(error)

    def send(self, frame: bytes) -> None:
        self.transport.out += frame + b"\n"
        self.transport.flush_soon()

    def notify(self, method: str, params: object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method: str, params: object) -> int:
        """Send a request and return its id."""
        self._id += 1
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        return self._id

    async def response(self, id: object) -> dict[str, Any]:
        """Wait for the response to a request."""
        await until(lambda: any(True for each in self.messages if each.get("id") == id and "method" not in each))
        return next(each for each in self.messages if each.get("id") == id and "method" not in each)

    async def request(self, method: str, params: object) -> dict[str, Any]:
        """Send a request and return its result."""
        found = await self.response(self.begin(method, params))
        assert "result" in found, found
        result: dict[str, Any] = found["result"]
        return result

    async def refused(self, method: str, params: object) -> dict[str, Any]:
        """Send a request and return its error."""
        found = await self.response(self.begin(method, params))
        assert "error" in found, found
        error: dict[str, Any] = found["error"]
        return error

    async def initialize(self, *, numbers: bool = False, **capabilities: object) -> dict[str, Any]:
        params: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": capabilities}
        if numbers:
            params["_meta"] = {"antiphon": {"numbers": True}}
        return await self.request("initialize", params)

    async def new(self, cwd: Path) -> str:
        """Open a session and return its id."""
        found: str = (await self.request("session/new", {"cwd": str(cwd), "mcpServers": []}))["sessionId"]
        return found

    def prompt(self, session: str, text: str) -> int:
        """Send a prompt and return the id of its request."""
        return self.begin("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The frames, each decoded once: waits look at them every millisecond."""
        self._decoded += [msgspec.json.decode(frame) for frame in self.frames[len(self._decoded) :]]
        return self._decoded

    @property
    def texts(self) -> list[str]:
        """The texts of all messages of the agent and of users."""
        updates = [each["params"]["update"] for each in self.messages if each.get("method") == "session/update"]
        return [each["content"]["text"] for each in updates if "content" in each and "text" in each["content"]]

    def requests(self, method: str = "session/request_permission") -> list[dict[str, Any]]:
        return [each for each in self.messages if each.get("method") == method and "id" in each]

    async def asked(self, method: str = "session/request_permission") -> dict[str, Any]:
        """Wait until the agent requests something, and return the last such request."""
        await until(lambda: self.requests(method))
        return self.requests(method)[-1]

    def choose(self, request: dict[str, Any], kind: str = "allow_once") -> None:
        """Answer a permission request with its option of a kind."""
        option = next(each["optionId"] for each in request["params"]["options"] if each["kind"] == kind)
        self.answer(request["id"], {"outcome": {"outcome": "selected", "optionId": option}})

    def answer(self, id: object, result: object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result}))

    async def leave(self) -> None:
        """Cut the connection."""
        await self.transport.close()
        if self.serving is not None:
            with suppress(RequestError):  # it was refused
                await self.serving


class ScriptedAgent:
    """An agent over memory that does what a test says, frame by frame."""

    def __init__(self) -> None:
        self.transport: MemoryTransport | None = None
        self.lines: list[bytes] = []
        self.starts = 0
        self.capabilities: dict[str, object] = {"loadSession": True}
        self.answers: dict[str, Callable[[dict[str, Any]], object]] = {}
        """The result of each method that is answered at once."""
        self.sessions = 0

    async def start(self) -> Transport:
        ours, self.transport = memory_pair()
        self.starts += 1
        self.transport.attach(self)
        return ours

    def connection_lost(self, error: Exception) -> None:
        pass

    def block_received(self, block: object) -> None:
        assert isinstance(block, bytes | bytearray)
        for line in bytes(block).split(b"\n"):
            if line:
                self.lines.append(line)
                self._message(msgspec.json.decode(line))

    def _message(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if "id" not in message or method is None:
            return
        if method == "initialize":
            self.result(message["id"], {"protocolVersion": 1, "agentCapabilities": self.capabilities})
        elif method in self.answers:
            self.result(message["id"], self.answers[method](message["params"]))
        elif method == "session/new":
            self.sessions += 1
            self.result(message["id"], {"sessionId": f"s{self.sessions}"})

    def received(self, method: str) -> list[dict[str, Any]]:
        return [each for each in map(msgspec.json.decode, self.lines) if each.get("method") == method]

    async def got(self, method: str, count: int = 1) -> dict[str, Any]:
        """Wait until that many messages of a method were received; return the last one."""
        await until(lambda: len(self.received(method)) >= count)
        found: dict[str, Any] = self.received(method)[count - 1]
        return found

    def send(self, *frames: bytes) -> None:
        assert self.transport is not None
        for frame in frames:
            self.transport.out += frame + b"\n"
        self.transport.flush_soon()

    def result(self, id: object, result: object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "result": result}))

    def say(self, session: str, *texts: str) -> None:
        """Send pieces of a message."""
        self.send(*(chunk(session, text) for text in texts))

    def notify(self, method: str, params: object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def request(self, id: object, method: str, params: object) -> None:
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))

    def ask(self, id: object, session: str) -> None:
        """Request permission."""
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        call = {"toolCallId": f"call-{id}", "title": "Do it", "kind": "other"}
        self.request(id, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options})

    async def crash(self) -> None:
        """End without a word."""
        assert self.transport is not None
        await self.transport.close()


def chunk(session: str, text: str) -> bytes:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    params = {"sessionId": session, "update": update}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})


class HubClients:
    """A hub with a scripted agent, and the clients that a test connects to it."""

    def __init__(self, hub: Hub, agent: ScriptedAgent) -> None:
        self.hub = hub
        self.agent = agent
        self.clients: list[RawClient] = []

    async def client(
        self, principal: Principal = DRIVER, *, numbers: bool = False, agent: str = "demo", **capabilities: object
    ) -> RawClient:
        """Connect a client and initialize it."""
        client = RawClient(self.hub, principal, agent)
        self.clients.append(client)
        await client.initialize(numbers=numbers, **capabilities)
        return client

    async def leave(self) -> None:
        """Cut all connections."""
        for client in self.clients:
            await client.leave()


class Stage(HubClients):
    """A hub with stores in memory."""

    def __init__(self, hub: Hub, rows: MemoryRows, journal: MemoryJournal, agent: ScriptedAgent) -> None:
        super().__init__(hub, agent)
        self.rows = rows
        self.journal = journal


class StoredStage(HubClients):
    """A hub with the file of a gateway."""

    def __init__(self, hub: Hub, data: GatewayData, agent: ScriptedAgent) -> None:
        super().__init__(hub, agent)
        self.data = data

    async def fill_disk(self) -> None:
        """Let the file grow no more: SQLite reports a full disk."""
        await self.data.database.read(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall())

    async def free_disk(self) -> None:
        """Let it grow again."""
        pages = "PRAGMA max_page_count = 1000000"
        await self.data.database.read(lambda connection: connection.execute(pages).fetchall())


QUICK: Final = HubLimits(first_delay=0.01, longest_delay=0.05, prompts_per_minute=10_000)


async def demo(cwd: Path) -> Transport:
    return await spawn(DEMO, cwd=cwd)


@asynccontextmanager
async def stage(
    tmp_path: Path,
    limits: HubLimits = QUICK,
    source: Callable[[], Awaitable[Transport]] | None = None,
    earlier: Stage | None = None,
) -> AsyncIterator[Stage]:
    """A hub over memory; with the stores of an earlier one it is that gateway, started again."""
    journal = MemoryJournal() if earlier is None else earlier.journal
    rows = MemoryRows(journal) if earlier is None else earlier.rows
    agent = ScriptedAgent() if earlier is None else earlier.agent
    hub = Hub(
        {"demo": source or agent.start},
        rows,
        journal,
        roots=[str(tmp_path)],
        limits=limits,
        client_rules=ClientRules(frozenset({"x"})),
    )
    found = Stage(hub, rows, journal, agent)
    async with asyncio.timeout(limit()), hub:
        try:
            yield found
        finally:
            await found.leave()


@asynccontextmanager
async def stored_stage(
    tmp_path: Path, limits: HubLimits = QUICK, agent: ScriptedAgent | None = None
) -> AsyncIterator[StoredStage]:
    """A hub with the file of a gateway in a directory; with the agent of an earlier one it is that gateway, started again."""
    agent = agent or ScriptedAgent()
    async with (
        asyncio.timeout(limit()),
        GatewayData.open(tmp_path / "data") as data,
        Hub({"demo": agent.start}, data, data.journal, roots=[str(tmp_path)], limits=limits) as hub,
    ):
        found = StoredStage(hub, data, agent)
        try:
            yield found
        finally:
            await found.leave()
