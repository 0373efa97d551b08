"""Connections are cut and agents killed at any step: users who come back see every event once, in order, with its content."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.base import AccessRole, HubLimits, Principal
from antiphon.gateway.hub import Hub
from tests.gateway.peers import MemoryJournal, MemoryRows, RawClient, ScriptedAgent
from tests.schedules import World, check

PROMPTS = 3
LIMITS = HubLimits(first_delay=0.1, longest_delay=0.5, prompts_per_minute=10_000, unsent=400)


class BusyAgent(ScriptedAgent):
    """An agent that answers each prompt with some text and sometimes a permission request."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.answers["session/load"] = lambda params: {}
        self._random = world.random

    def _message(self, message: dict[str, Any]) -> None:
        super()._message(message)
        if message.get("method") == "session/prompt":
            self._work(message["id"], message["params"]["sessionId"], self._random.randint(0, 8))
        elif "method" not in message and isinstance(message.get("id"), str):
            prompt, session, left = message["id"].split("/")
            self._work(int(prompt), session, int(left))

    def _work(self, prompt: int, session: str, left: int) -> None:
        while left:
            left -= 1
            self.say(session, f"{prompt}.{left} " + "x" * self._random.randint(0, 300))
            if self._random.random() < 0.2:
                self.ask(f"{prompt}/{session}/{left}", session)
                return
        self.result(prompt, {"stopReason": "end_turn"})


class Arrivals(RawClient):
    """A client that says when something has arrived, or its connection has ended."""

    def __init__(self, hub: Hub, principal: Principal, arrived: asyncio.Event) -> None:
        self._arrived = arrived
        super().__init__(hub, principal)

    def block_received(self, block: object) -> None:
        super().block_received(block)
        self._arrived.set()

    def connection_lost(self, error: Exception) -> None:
        super().connection_lost(error)
        self._arrived.set()


class User:
    """A person who connects again after each cut, says where the last connection stopped, and answers what is asked."""

    def __init__(self, name: str, hub: Hub, arrived: asyncio.Event) -> None:
        self.name = name
        self.events: dict[int, object] = {}
        self.order: list[int] = []
        self.client: RawClient | None = None
        self._hub = hub
        self._arrived = arrived
        self._taken = 0

    @property
    def last(self) -> int:
        """The number of the last event that was seen."""
        return max(self.events, default=0)

    async def connect(self, session: str) -> RawClient:
        self.take()
        self.client = client = Arrivals(self._hub, Principal(self.name, AccessRole.DRIVE), self._arrived)
        self._taken = 0
        client.begin("initialize", {"protocolVersion": 1, "_meta": {"antiphon": {"numbers": True}}})
        await self.turns(lambda: client.frames)
        if session:
            client.begin("_antiphon/session/attach", {"sessionId": session, "after": self.last})
        return client

    async def turns(self, condition: Any) -> None:
        """Wait, and answer what is asked; until the condition holds or the connection is cut."""
        while True:
            self.take()
            self._arrived.clear()
            if self.client is None or self.client.is_lost or condition():
                return
            await self._arrived.wait()

    def take(self) -> None:
        """Look at what has arrived."""
        client = self.client
        if client is None:
            return
        for frame in client.frames[self._taken :]:
            message = msgspec.json.decode(frame)
            self._taken += 1
            self._note(message)
            if message.get("method") == "session/request_permission" and not client.is_lost:
                client.choose(message)

    def _note(self, message: dict[str, Any]) -> None:
        for part in (message.get("params"), message.get("result")):
            if isinstance(part, dict):
                number = ((part.get("_meta") or {}).get("antiphon") or {}).get("number")
                number = part.get("number") if number is None and "method" in message else number
                if number is not None:
                    self.order.append(number)
                    self.events[number] = (part.get("update") or {}).get("content", {}).get("text")


async def scenario(world: World) -> None:
    journal, agent = MemoryJournal(), BusyAgent(world)
    rows = MemoryRows(journal)
    async with Hub({"demo": agent.start}, rows, journal, roots=[str(Path("/tmp"))], limits=LIMITS) as hub:
        arrived = asyncio.Event()
        users = [User(name, hub, arrived) for name in ("alice", "bob")]
        client = await users[0].connect("")
        client.begin("session/new", {"cwd": "/tmp", "mcpServers": []})
        await users[0].turns(lambda: len(client.frames) > 1)
        session = "s1"

        async def cut() -> None:
            victim = world.random.choice([each for each in users if each.client is not None])
            assert victim.client is not None
            await victim.client.transport.close()

        async def work(user: User) -> None:
            for number in range(PROMPTS):
                if user.client is None or user.client.is_lost:
                    await user.connect(session)
                client = user.client
                assert client is not None
                asked = client.prompt(session, f"{user.name} {number}")
                await user.turns(lambda asked=asked, client=client: any(m.get("id") == asked for m in client.messages))
                if world.random.random() < 0.3:
                    await client.transport.close()

        world.offer("cut", cut)
        world.offer("kill", agent.crash)
        if not client.is_lost and agent.sessions:
            await asyncio.gather(*(world.start(work(user)) for user in users))
            await _see_all(hub, users, session, arrived)
        for user in users:
            if user.client is not None:
                await user.client.leave()
        _compare(users, journal, agent)


async def _see_all(hub: Hub, users: list[User], session: str, arrived: asyncio.Event) -> None:
    """Let every user come back until all have seen all."""
    while True:
        for user in users:
            if user.client is None or user.client.is_lost:
                await user.connect(session)
            user.take()
        here = hub.agents["demo"].sessions.get(session.encode())
        arrived.clear()
        if here is None or not (
            here.turns.running or here.turns.queued or any(user.last < here.recorded for user in users)
        ):
            return
        if not any(user.client is None or user.client.is_lost for user in users):
            await arrived.wait()


def _compare(users: list[User], journal: MemoryJournal, agent: ScriptedAgent) -> None:
    stored = journal.events.get("key0", [])
    texts = [
        ((msgspec.json.decode(frame).get("params") or {}).get("update") or {}).get("content", {}).get("text")
        if frame
        else None
        for frame in ((event.partition(b"\t")[2] if event[:1].isalpha() else event) for event in stored)
    ]
    for user in users:
        assert user.order == list(range(1, len(user.order) + 1)), f"{user.name} saw {user.order}"
        assert len(user.order) == len(stored) or not user.order
        seen = [user.events[number] for number in user.order]
        assert seen == texts[: len(seen)], "the content is that of the journal"
    sent = [each["params"]["prompt"][0]["text"] for each in agent.received("session/prompt")]
    assert len(sent) == len(set(sent)), "no prompt is sent twice"
    begun = sum(event.startswith(b"T") for event in stored)
    assert begun == sum(event.startswith(b"E") for event in stored), "every turn has one end"


def test_users_see_every_event_once_however_connections_and_agents_end() -> None:
    check(scenario, ends=("cut", "kill"))
