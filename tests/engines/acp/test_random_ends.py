"""However and whenever an agent behind us, or our client, ends: every request ends, every call ends, and closed sessions are forgotten."""

import asyncio
import gc
import itertools
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import antiphon.client.link
import antiphon.engines.acp.session
from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.engines.acp.engine import AcpEngine
from antiphon.engines.acp.session import AcpSession
from antiphon.engines.base import Host
from antiphon.errors import ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.agent.editor import FULL
from tests.engines.test_random_ends import Editor
from tests.schedules import SCHEDULES, World, check


class RandomAgent(Agent):
    """An agent that takes its time, asks, opens pages, and never says what became of most of them."""

    def __init__(self, world: World, numbers: "itertools.count[int]") -> None:
        super().__init__("behind")
        self.world, self.numbers = world, numbers

    async def new_session(self, session: AgentSession) -> None:
        await self.world.pause()
        await session.say("hello")

    async def load_session(self, session: AgentSession) -> None:
        await session.say("history")
        await self.world.pause()

    async def resume_session(self, session: AgentSession) -> None:
        await self.world.pause()

    async def close_session(self, session: AgentSession) -> None:
        await self.world.pause()

    async def steer(self, turn: AgentTurn) -> bool:
        await self.world.pause()
        return self.world.random.random() < 0.7

    async def set_mode(self, session: AgentSession, mode_id: str) -> None:
        await self.world.pause()

    async def prompt(self, turn: AgentTurn) -> None:
        for _ in range(self.world.random.randint(1, 4)):
            await self.world.pause()
            match self.world.random.randrange(4):
                case 0:
                    with suppress(ResponseError):
                        await self.call(turn)
                case 1:
                    with suppress(ResponseError):
                        await self.page(turn)
                case _:
                    await turn.say(f"<{next(self.numbers)}>")

    async def call(self, turn: AgentTurn) -> None:
        """Something that needs permission."""
        async with turn.tool("work") as call:
            await self.world.pause()
            await call.permitted()

    async def page(self, turn: AgentTurn) -> None:
        """A page that the user is to open."""
        id = f"page-{next(self.numbers)}"
        asked = v1.UrlElicitation(
            session_id=turn.session.id, elicitation_id=id, url="http://127.0.0.1/", message="open it"
        )
        await turn.session.request(m.CREATE_ELICITATION, asked)
        if self.world.random.random() < 0.3:
            await turn.session.notify(m.COMPLETE_ELICITATION, v1.CompleteElicitation(id))


class Watched(AcpEngine):
    """An engine whose sessions are known without being held."""

    def __init__(self) -> None:
        super().__init__("antiphon-behind", "The agent behind", ["behind"])
        self.opened: list[weakref.ref[AcpSession]] = []

    async def new(self, session: AgentSession) -> AcpSession:
        made = await super().new(session)
        self.opened.append(weakref.ref(made))
        return made


class RandomUser(Editor):
    """A client that opens pages, or not, and closes every session."""

    async def elicitation(self, asked: Any) -> v1.CreateElicitationResult:
        await self.world.pause()
        answers: list[v1.CreateElicitationResult] = [v1.Accepted(None), v1.Declined(), v1.Dismissed()]
        return self.world.random.choice(answers)

    async def work(self, cwd: str) -> None:
        ask, rng = self.connection.request, self.world.random
        await self.world.pause(8)
        id = (await ask(m.NEW_SESSION, v1.NewSession(cwd, []))).session_id
        for number in range(rng.randint(1, 3)):
            await self.turn(id, f"turn {number}")
        await ask(m.CLOSE_SESSION, v1.CloseSession(id))


class Played:
    """The engine over agents in memory, served to a client in memory."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = str(cwd)
        self.world: World
        self.served: list[tuple[asyncio.Task[None], Transport]] = []
        self.numbers = itertools.count(1)

    async def spawn(self, *_: Any, **__: Any) -> Transport:
        await self.world.pause()
        near, far = memory_pair()
        serving = asyncio.get_running_loop().create_task(
            RandomAgent(self.world, self.numbers).serve(far), name="behind"
        )
        self.served.append((serving, far))
        return near

    async def kill(self) -> None:
        """End all agents in the middle of whatever they do."""
        for serving, far in tuple(self.served):
            await far.close()
            serving.cancel()

    async def __call__(self, world: World) -> None:
        self.world = world
        self.served.clear()
        near, far = memory_pair()
        engine = Watched()
        serving = world.start(Host(engine).serve(far), "serving")
        connection = Connection(near, Router(), version=V1)
        editor = RandomUser(world, connection)
        connection.router.on_request(m.CREATE_ELICITATION, editor.elicitation)
        connection.router.on_notice(m.COMPLETE_ELICITATION, lambda _: None)
        world.offer("close", connection.close)
        world.offer("kill", self.kill)
        world.finally_(self.left)
        async with connection:
            await connection.request(m.INITIALIZE, v1.Initialize(1, FULL))
            world.offer("stop", serving.cancel)
            work = [world.start(editor.work(self.cwd)) for _ in range(world.random.randint(1, 2))]
            await asyncio.wait(work)
            if not world.schedule.step:
                await asyncio.sleep(0.01)  # the frames that closed them have ended
                gc.collect()
                assert [each for each in engine.opened if each() is not None] == [], "a closed session is kept"
            del work
        await asyncio.wait([serving])

    def left(self) -> None:
        assert [task for task, _ in self.served if not task.done()] == []


@pytest.mark.slow
def test_whatever_ends_an_agent_behind_us_leaves_no_process_and_no_task_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("state", "config"):
        monkeypatch.setenv(f"ANTIPHON_{name.upper()}_DIR", str(tmp_path / name))
    monkeypatch.setattr(antiphon.engines.acp.session, "CANCEL_LIMIT", 1.0)
    played = Played(tmp_path)
    monkeypatch.setattr(antiphon.client.link, "spawn", played.spawn)
    ends = ("cancel", "close", "stop", "kill", "collect")
    check(played.__call__, ends, virtual=False, count=min(SCHEDULES, 5000) // 2, limit=20)
