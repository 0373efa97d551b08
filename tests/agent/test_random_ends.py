"""However and whenever serving ends: every request is answered or fails, every tool call ends, every session is closed once."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.errors import AcpError, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.memory import memory_pair
from tests.agent.random_client import RandomClient
from tests.schedules import World, check


class Busy(Agent):
    """An agent whose hooks take their time, and which counts what it holds."""

    def __init__(self, world: World) -> None:
        super().__init__("busy")
        self.world = world
        self.holds: Counter[int] = Counter()
        self.at_work = 0
        self.closed = 0

    async def hold(self, session: AgentSession) -> None:
        """What a session holds is taken at the last moment: a hook that is cancelled before holds nothing."""
        await self.world.pause()
        self.holds[id(session)] += 1
        session.state = self  # kept alive by `holds` of the session below
        self.kept.append(session)

    kept: list[AgentSession]

    async def new_session(self, session: AgentSession) -> None:
        await self.hold(session)

    async def load_session(self, session: AgentSession) -> None:
        await session.say("history")
        await self.hold(session)

    async def resume_session(self, session: AgentSession) -> None:
        await self.hold(session)

    async def fork_session(self, session: AgentSession, session_id: str) -> None:
        await self.hold(session)

    async def close_session(self, session: AgentSession) -> None:
        await self.world.pause()
        self.holds[id(session)] -= 1

    async def close(self) -> None:
        await self.world.pause()
        self.closed += 1

    async def prompt(self, turn: AgentTurn) -> v1.StopReason | None:
        self.at_work += 1
        try:
            for _ in range(self.world.random.randint(1, 4)):
                await getattr(self, self.world.random.choice(["speak", "call", "choose", "permitted", "read"]))(turn)
                await self.world.pause()
        finally:
            self.at_work -= 1
        return None

    async def speak(self, turn: AgentTurn) -> None:
        await turn.say("x" * self.world.random.choice([1, 70_000]))

    async def call(self, turn: AgentTurn) -> None:
        async with turn.tool("work") as call:
            await self.world.pause()
            await call.show("done")

    async def choose(self, turn: AgentTurn) -> None:
        with suppress(ResponseError):
            await turn.choose("Which?", ["a", "b"])

    async def permitted(self, turn: AgentTurn) -> None:
        with suppress(ResponseError):
            await self.ask(turn)

    async def ask(self, turn: AgentTurn) -> None:
        async with turn.tool("dangerous") as call:
            if await call.permitted():
                await self.world.pause()

    async def read(self, turn: AgentTurn) -> None:
        with suppress(ResponseError):
            await turn.session.request(m.READ_TEXT_FILE, v1.ReadTextFile(turn.session.id, "/w/a"))


class Client(RandomClient):
    """A client that does what clients do, some of it in the worst moment."""

    def __init__(self, world: World, connection: Connection) -> None:
        super().__init__(world, connection)
        connection.router.on_request(m.READ_TEXT_FILE, self.read)
        self.requests: set[Any] = set()
        self.ids: list[str] = ["earlier"]

    async def read(self, asked: v1.ReadTextFile) -> v1.ReadTextFileResult:
        await self.world.pause()
        return v1.ReadTextFileResult("text")

    async def open(self) -> None:
        ask, id = self.connection.request, self.world.random.choice(self.ids)
        match self.world.random.choice(["new", "new", "load", "resume", "fork"]):
            case "new":
                self.ids.append((await ask(m.NEW_SESSION, v1.NewSession("/w", []))).session_id)
            case "load":
                await ask(m.LOAD_SESSION, v1.LoadSession(id, "/w", []))
            case "resume":
                await ask(m.RESUME_SESSION, v1.ResumeSession(id, "/w", []))
            case _:
                self.ids.append((await ask(m.FORK_SESSION, v1.ForkSession(id, "/w", []))).session_id)

    async def prompt(self) -> None:
        with suppress(ResponseError):  # a session that is not open
            await self.connection.request(m.PROMPT, v1.Prompt(self.world.random.choice(self.ids), [v1.TextBlock("go")]))

    async def cancel(self) -> None:
        for id in self.ids:
            self.connection.post(m.CANCEL, v1.Cancel(id))

    async def close(self) -> None:
        with suppress(ResponseError):
            await self.connection.request(m.CLOSE_SESSION, v1.CloseSession(self.world.random.choice(self.ids)))

    async def cancel_request(self) -> None:
        """A request whose asker gives up."""
        with suppress(TimeoutError, ResponseError):
            async with asyncio.timeout(0.0001):
                await self.world.random.choice([self.open, self.prompt, self.close])()

    def ways(self) -> list[Any]:
        return [
            self.open,
            self.open,
            self.prompt,
            self.prompt,
            self.prompt,
            self.cancel,
            self.close,
            self.cancel_request,
        ]


async def serving(world: World) -> None:
    near, far = memory_pair()
    agent = Busy(world)
    agent.kept = []
    client = Client(world, Connection(near, Router(), version=V1))
    serving = world.start(agent.serve(far), "serve")
    world.offer("close", client.connection.close)
    world.offer("kill", far.close)

    def nothing_held() -> None:
        assert not +agent.holds and not -agent.holds, agent.holds
        assert agent.closed == 1 and not agent.at_work
        if world.schedule.end not in ("close", "kill", "cancel"):  # else the last updates are not received
            assert set(client.calls.values()) <= {"completed", "failed"}, client.calls

    world.finally_(nothing_held)
    async with client.connection:
        await asyncio.sleep(0)  # a task that is cancelled before its first step does nothing
        world.offer("stop", serving.cancel)
        await client.connection.request(m.INITIALIZE, v1.Initialize(1))
        steps = [world.random.choice(client.ways()) for _ in range(world.random.randint(2, 10))]
        doing = []
        for step in steps:
            doing.append(world.start(step()))
            await world.pause(8)
        if world.random.random() < 0.5:
            await asyncio.wait(doing, timeout=world.random.choice([0, 0.01, 1]))
        for _ in range(10):  # what waits for an answer that never comes is cancelled
            with suppress(AcpError):
                await client.cancel()
            await asyncio.wait(doing, timeout=0.1)


def test_requests_tool_calls_and_sessions_all_end_however_serving_ends() -> None:
    check(serving, ("cancel", "close", "kill", "stop", "collect"), limit=60)
