"""Sessions are opened, closed, forked and deleted by several clients at once, while connections, agents and the gateway end at any step:
every request is answered, every turn and every request of the agent has one end, and nothing of a session stays behind."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.base import GatewaySession, HubLimits
from antiphon.gateway.hub import Hub
from antiphon.journal.base import Lease
from antiphon.store.errors import StoreError
from tests.gateway.peers import MemoryJournal, MemoryRows, ScriptedAgent
from tests.gateway.test_random_ends import BusyAgent, User
from tests.schedules import World, check

STEPS = 6
LIMITS = HubLimits(
    first_delay=0.1,
    longest_delay=0.5,
    prompts_per_minute=10_000,
    unsent=400,
    answer_timeout=0.5,
    idle=0.4,
    session_idle=0.2,
)
OPENING = {"cwd": "/tmp", "mcpServers": []}
REQUESTS: dict[str, dict[str, Any]] = {
    "session/new": OPENING,
    "session/load": OPENING,
    "session/resume": OPENING,
    "session/fork": OPENING,
    "session/set_mode": {"modeId": "code"},
    "session/prompt": {"prompt": [{"type": "text", "text": "work"}]},
    "session/close": {},
    "session/delete": {},
    "session/list": {},
    "_antiphon/session/attach": {},
    "_antiphon/session/detach": {},
}


class SlowJournal(MemoryJournal):
    """A journal that takes its time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> int:
        await self._world.pause()
        return await super().append(lease, events, at)


class SlowRows(MemoryRows):
    """Rows that take their time."""

    def __init__(self, world: World, journal: MemoryJournal) -> None:
        super().__init__(journal)
        self._world = world

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
        await self._world.pause()
        return await super().create(agent, session_id, cwd, directories, owner, hidden=hidden)

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        await self._world.pause()
        return await super().find(agent, session_id)

    async def delete(self, key: str) -> None:
        await self._world.pause()
        await super().delete(key)


class LateAgent(BusyAgent):
    """An agent that answers later, and sends a replay before it answers a load."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        modes = {"currentModeId": "ask", "availableModes": []}
        self.capabilities["sessionCapabilities"] = {name: {} for name in ("close", "fork", "list")}
        self.answers = {
            "session/new": lambda _: {"sessionId": self.opened("s"), "modes": modes},
            "session/fork": lambda _: {"sessionId": self.opened("f"), "modes": modes},
            "session/load": lambda _: {},
            "session/set_mode": lambda _: {},
            "session/close": lambda _: {},
            "session/list": lambda _: {"sessions": []},
        }

    def opened(self, kind: str) -> str:
        """Return the id of a new session, sometimes one that was used before."""
        if self.sessions and self._random.random() < 0.1:
            return f"{kind}{self._random.randint(1, self.sessions)}"
        self.sessions += 1
        return f"{kind}{self.sessions}"

    def _message(self, message: dict[str, Any]) -> None:
        if message.get("method") == "session/load":
            self.say(message["params"]["sessionId"], "replayed")
        transport = self.transport

        def later() -> None:
            if self.transport is transport:  # else this process has ended
                super(LateAgent, self)._message(message)

        asyncio.get_running_loop().call_later(self._random.choice((0, 0, 0.01, 0.05)), later)


async def scenario(world: World) -> None:
    journal, agent = SlowJournal(world), LateAgent(world)
    rows = SlowRows(world, journal)
    world.finally_(lambda: _compare(rows, journal, agent))
    for _ in range(2):  # the second gateway finds what the first one left
        hub = Hub({"demo": agent.start}, rows, journal, roots=[str(Path("/tmp"))], limits=LIMITS)
        async with hub:
            arrived = asyncio.Event()
            users = [User(name, hub, arrived) for name in ("alice", "bob")]
            world.offer("cut", partial(_cut, world, users))
            world.offer("kill", lambda: agent.crash() if agent.starts else None)
            world.offer("stop", hub.close)
            world.offer("full", partial(_fill, journal))
            await asyncio.gather(*(world.start(_work(world, user, agent, hub, rows)) for user in users))
            for user in users:
                if user.client is not None:
                    await user.client.leave()
            counts = hub.counts()
            assert not counts["attachments"] and not counts["clients"]
            if not hub.is_draining:
                _compare_memory(hub)
        assert not journal.leases, "every lease is released"
        assert not any(row.turn for row in rows.rows.values()), "no turn runs"
        assert not hub.agents["demo"].uncommitted


async def _cut(world: World, users: list[User]) -> None:
    victims = [each for each in users if each.client is not None]
    if victims and (client := world.random.choice(victims).client) is not None:
        await client.transport.close()


async def _fill(journal: MemoryJournal) -> None:
    """Let the disk be full for some time."""
    journal.broken = StoreError("the disk is full", hint="free some")
    await asyncio.sleep(2.5)
    journal.broken = None


async def _work(world: World, user: User, agent: ScriptedAgent, hub: Hub, rows: MemoryRows) -> None:
    """Send some requests at once, wait for their responses, and sometimes leave before they have come."""
    for _ in range(STEPS):
        if hub.is_draining:
            return
        if user.client is None or user.client.is_lost:
            await user.connect("")
        client = user.client
        assert client is not None
        asked = []
        for _ in range(world.random.randint(1, 3)):
            method = world.random.choice([*REQUESTS] if agent.sessions else ["session/new"])
            session = f"{world.random.choice('sssf')}{world.random.randint(1, max(agent.sessions, 1))}"
            params = (
                REQUESTS[method]
                if method in ("session/new", "session/list")
                else {"sessionId": session, **REQUESTS[method]}
            )
            asked.append(client.begin(method, params))
            await world.pause()
        if world.random.random() < 0.2:
            await client.transport.close()
        if rows.rows and world.random.random() < 0.1:
            await hub.delete_stored(world.random.choice([*rows.rows.values()]))
        await user.turns(lambda asked=asked, client=client: _answered(client.messages) >= set(asked))


def _answered(messages: list[dict[str, Any]]) -> set[object]:
    return {each.get("id") for each in messages if "method" not in each}


def _compare_memory(hub: Hub) -> None:
    for session in hub.agents["demo"].sessions.values():
        assert not session.is_over and not session.attachments


def _compare(rows: MemoryRows, journal: MemoryJournal, agent: ScriptedAgent) -> None:
    assert not journal.events.keys() - rows.rows.keys(), "what is deleted has no events"
    for key, events in journal.events.items():
        kinds = b"".join(event[:1] for event in events)
        turns = [_header(event)["turn"] for event in events if event[:1] == b"T"]
        assert turns == [_header(event)["turn"] for event in events if event[:1] == b"E"], f"{key}: {kinds!r}"
        asked = [_header(event)["request"] for event in events if event[:1] == b"R"]
        assert sorted(asked) == sorted(_header(event)["request"] for event in events if event[:1] == b"A"), (
            f"{key}: {kinds!r}"
        )
        assert sum(b'"replayed"' in event for event in events) <= 1, (
            f"{key}: a replay was recorded that the journal had"
        )


def _header(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(event[1:].partition(b"\t")[0])
    return found


def test_sessions_end_whole_whatever_clients_and_ends_come_at_once() -> None:
    check(scenario, ends=("cut", "kill", "stop"))


def test_sessions_end_whole_whenever_the_disk_is_full_for_a_while() -> None:
    check(scenario, ends=("full",), logs=False)
