"""However and whenever a client, its agent or one of its turns ends: every verb ends, nothing is lost or mixed, nothing is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession as Served
from antiphon.agent.turn import AgentTurn as ServedTurn
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import DEFAULT_RETRY
from antiphon.client.handlers import ClientService, Elicitation
from antiphon.client.link import Link, LinkOptions
from antiphon.client.relay import LiveAgent
from antiphon.client.session import ClientSession
from antiphon.client.updates import ClientSessions, EarlyUpdates
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.errors import AcpError, LocalProtocolError, RequestError, RequestTimeout, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.schedules import World, check


class Worker(Agent):
    """Says numbered words, asks, and does not always end a cancelled turn."""

    def __init__(self, world: World, said: dict[str, list[str]]) -> None:
        super().__init__("worker")
        self.world = world
        self.said = said

    async def new_session(self, session: Served) -> None:
        await self.world.pause()

    async def resume_session(self, session: Served) -> None:
        await self.world.pause()

    async def load_session(self, session: Served) -> None:
        await session.say("history")

    async def close_session(self, session: Served) -> None:
        await self.world.pause()

    async def prompt(self, turn: ServedTurn) -> None:
        said = self.said.setdefault(turn.text, [])
        for number in range(self.world.random.randint(0, 5)):
            word = f"{turn.text}/{number} " + "x" * self.world.random.choice([1, 1, 70_000])
            said.append(word)
            await turn.say(word)
            await self.world.pause()
            match self.world.random.choice(["ask", "form", "linger", "fail", "", "", ""]):
                case "ask":
                    with suppress(ResponseError):
                        await turn.ask_permission(v1.ToolCallPatch("c"))
                case "form":
                    with suppress(ResponseError):
                        await turn.ask("name?", name=v1.StringProperty())
                case "linger":
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.5)
                case "fail":
                    raise RequestError(-32603, "no more")
                case _:
                    await turn.think("hm")


class Agents:
    """A target that can be started again: each start is another agent in this process."""

    restartable = True
    name = "the agent"

    def __init__(self, world: World, said: dict[str, list[str]]) -> None:
        self.world = world
        self.said = said
        self.far: list[Transport] = []

    async def close(self) -> None:
        """Nothing of it is left when its connection is closed."""

    async def open(self) -> Transport:
        await self.world.pause()
        near, far = memory_pair()
        self.far.append(far)
        serving = self.world.start(Worker(self.world, self.said).serve(far), "serve")
        serving.add_done_callback(lambda _: None)
        return near

    async def kill(self) -> None:
        if self.far:
            await self.far[-1].close()


@asynccontextmanager
async def connected(world: World, agents: Agents) -> AsyncIterator[ConnectedAgent]:
    async def permission(_: v1.RequestPermission) -> bool:
        await world.pause()
        if world.random.random() < 0.2:
            await asyncio.Event().wait()
        return True

    async def form(_: v1.FormElicitation) -> v1.Declined:
        await world.pause()
        return v1.Declined()

    sessions = ClientSessions()
    service = ClientService(sessions, permission=permission, elicitation=Elicitation(form), files=None, terminals=None)
    capabilities = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(v1.FormSupport()))
    link = Link(
        agents,  # type: ignore[arg-type]  # a program, but in this process
        service.router,
        v1.Initialize(V1.number, client_capabilities=capabilities),
        LinkOptions(None, DEFAULT_RETRY, None, 2),
    )
    agent = ConnectedAgent(link, sessions)
    try:
        await link.connected()
        world.offer("close", agent.close)
        yield agent
    finally:
        await agent.close()


class User:
    """Takes turns in every way that there is, in one session or in two."""

    def __init__(self, world: World, agent: ConnectedAgent) -> None:
        self.world = world
        self.agent = agent
        self.sessions: list[ClientSession] = []
        self.received: dict[str, list[str]] = {}
        self.whole: set[str] = set()
        self.held: list[Any] = []
        self.number = 0

    def prompt(self, **options: Any) -> tuple[str, Any]:
        self.number += 1
        name = f"p{self.number}"
        return name, self.world.random.choice(self.sessions).prompt(name, **options)

    def note(self, name: str, update: v1.Update) -> None:
        if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock):
            self.received.setdefault(name, []).append(update.content.text)

    async def iterate(self) -> None:
        name, turn = self.prompt()
        async for update in turn:
            self.note(name, update)
            await self.world.pause()
        if turn.result.stop_reason == v1.StopReason.END_TURN:
            self.whole.add(name)

    async def leave(self) -> None:
        name, turn = self.prompt()
        async with turn:
            async for update in turn:
                self.note(name, update)
                break

    async def cancel(self) -> None:
        name, turn = self.prompt()
        reading = self.world.start(self.read(name, turn))
        await self.world.pause(8)
        result = await turn.cancel()
        assert result.stop_reason in (v1.StopReason.CANCELLED, v1.StopReason.END_TURN)
        await asyncio.wait([reading])

    async def read(self, name: str, turn: Any) -> None:
        async for update in turn:
            self.note(name, update)

    async def forget(self) -> None:
        self.held.append(self.prompt()[1])
        await self.world.pause(8)
        self.held.clear()

    async def with_timeout(self) -> None:
        _, turn = self.prompt(timeout=0.2)
        with suppress(RequestTimeout):
            await turn

    async def twice(self) -> None:
        session = await self.agent.new_session("/w")
        turn = session.prompt(f"twice {self.number}")
        await self.world.pause()
        await asyncio.gather(session.close(), session.close())
        assert turn.result.stop_reason in (v1.StopReason.CANCELLED, v1.StopReason.END_TURN)

    async def cancel_session(self) -> None:
        await self.world.random.choice(self.sessions).cancel()

    async def close_session(self) -> None:
        await self.world.random.choice(self.sessions).close()

    async def load(self) -> None:
        self.sessions.append(await self.agent.load_session("earlier", "/w"))

    async def do(self, what: Any) -> None:
        with suppress(
            LocalProtocolError, ResponseError
        ):  # a session that another task has closed, a prompt that failed
            await what()

    def ways(self) -> list[Any]:
        return [
            self.iterate, self.iterate, self.iterate, self.leave, self.cancel, self.forget, self.with_timeout, self.twice,
            self.cancel_session, self.close_session, self.load,
        ]  # fmt: skip


async def client(world: World) -> None:
    said: dict[str, list[str]] = {}
    agents = Agents(world, said)
    users: list[User] = []
    world.offer("kill", agents.kill)

    def in_order() -> None:
        for user in users:
            for name, received in user.received.items():
                assert received == said.get(name, [])[: len(received)], name
                assert name not in user.whole or received == said.get(name, []), name
            for session in user.sessions:
                assert not session._inbox.turns, "a turn that is not read and never ended"
                assert not session._questions._open

    world.finally_(in_order)
    async with connected(world, agents) as agent:
        user = User(world, agent)
        users.append(user)
        world.offer("collect", user.held.clear)
        for _ in range(world.random.randint(1, 2)):
            user.sessions.append(await agent.new_session("/w"))
        doing = []
        for _ in range(world.random.randint(1, 6)):
            doing.append(world.start(user.do(world.random.choice(user.ways()))))
            await world.pause(8)
        _, rest = await asyncio.wait(doing, timeout=3)
        for _ in range(10):  # what waits for a person who never answers is cancelled
            if rest:
                for session in user.sessions:
                    with suppress(AcpError):
                        await session.cancel()
                _, rest = await asyncio.wait(rest, timeout=3)


def test_every_verb_of_a_client_ends_and_no_update_is_lost_however_it_ends() -> None:
    check(client, ("cancel", "close", "kill", "collect"), limit=120, logs=False)


async def relayed(world: World) -> None:
    """Sessions that are listened to, listened to anew and closed: what is sent is in order, and a closed one is not kept."""
    near, far = memory_pair()
    early, delivered = EarlyUpdates(), dict[str, list[str]]()
    router = Router()
    router.on_notice(m.SESSION_UPDATE, early.keep)
    agent, connection = Connection(far, version=V1), Connection(near, router, version=V1)
    life = LiveAgent(connection, v1.InitializeResult(1), "agent", early)
    world.offer("close", connection.close)
    world.offer("kill", agent.close)

    async def speak(id: str) -> None:
        for number in range(6):
            chunk = v1.AgentMessageChunk(v1.TextBlock(f"{number}" + "x" * world.random.choice([0, 70_000])))
            await agent.notify(m.SESSION_UPDATE, v1.SessionUpdate(id, chunk))
            await world.pause()

    async def listen(id: str) -> None:
        received = delivered.setdefault(id, [])

        async def send(update: v1.Update) -> None:
            assert isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock)
            received.append(update.content.text[0])
            await world.pause()

        for _ in range(world.random.randint(1, 2)):
            listener = await life.listen(id, send)
            await world.pause(20)
            await listener.drained()
            if world.random.random() < 0.7:
                await listener.close()

    def nothing_kept() -> None:
        assert not life._listeners and not connection.inbox.buffered
        for received in delivered.values():
            assert received == sorted(received)

    world.finally_(nothing_kept)
    ids = [f"s{number}" for number in range(3)]
    async with agent, connection:
        work = [world.start(each) for id in ids for each in (speak(id), listen(id))]
        try:
            await asyncio.wait(work, timeout=5)
        finally:
            for listener in tuple(life._listeners.values()):
                await asyncio.shield(listener.close())


def test_a_session_that_is_no_longer_listened_to_is_not_kept() -> None:
    check(relayed, ("close", "kill", "collect"))
