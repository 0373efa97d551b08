"""However and whenever a joint session ends: every request ends, nothing stays locked or open, and what was shown is stored."""

import asyncio
import itertools
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from antiphon.agent.prompts import STEERING
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.duet.agent import JointAgent
from antiphon.duet.history import events
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.store.locks import SessionLock, look_at_all
from antiphon.store.schema import open_database
from antiphon.store.sessions import SessionStore
from antiphon.transports.memory import memory_pair
from tests.agent.editor import FULL
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, state_of
from tests.schedules import SCHEDULES, World, check

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome

STEER: "Final[Call[Any, Any]]" = Call(STEERING, v1.Prompt, dict[str, str])
NUMBER: Final = re.compile(r"<(\d+)>")


class BusySession(FakeEngineSession):
    """Counts itself as open until it is closed."""

    engine: "BusyEngine"

    async def close(self) -> None:
        await self.engine.world.pause()
        self.engine.open.discard(self)
        await super().close()


class BusyEngine(FakeEngine):
    """An engine that takes its time, says numbers, asks, and dies on request."""

    def __init__(self, name: str, world: World, numbers: "itertools.count[int]") -> None:
        super().__init__(name, self.busily)
        self.world, self.numbers = world, numbers
        self.open: set[FakeEngineSession] = set()
        self.plays: set[asyncio.Task[Any]] = set()
        self.steers = True
        self.steer = self.added

    async def new(self, session: AgentSession) -> FakeEngineSession:
        await self.world.pause()
        return self._opened(await super().new(session))

    async def load(self, session: AgentSession) -> FakeEngineSession:
        await self.world.pause()
        return self._opened(await super().load(session))

    async def fork(self, session: AgentSession, source: str) -> FakeEngineSession:
        await self.world.pause()
        return self._opened(await super().fork(session, source))

    def _opened(self, opened: FakeEngineSession) -> FakeEngineSession:
        opened.__class__ = BusySession
        self.open.add(opened)
        return opened

    def die(self) -> None:
        """All that it does fails."""
        for play in self.plays:
            play.cancel()

    async def busily(self, session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        play = asyncio.ensure_future(self.play_on(session, turn))
        self.plays.add(play)
        play.add_done_callback(self.plays.discard)
        try:
            return await play
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if play.done() and task is not None and not task.cancelling():
                raise RequestError(Code.INTERNAL_ERROR, "it died") from None
            raise

    async def play_on(self, session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        for _ in range(self.world.random.randint(1, 4)):
            await self.world.pause()
            match self.world.random.randrange(6):
                case 0:
                    async with turn.tool("work") as call:
                        await self.world.pause()
                        await call.permitted()
                case 1:
                    await session.session.update(v1.CurrentModeUpdate(self.world.random.choice(["default", "plan"])))
                case 2:
                    await session.session.entitle(f"title {next(self.numbers)}")
                case _:
                    await self.say(session)
        return None

    async def say(self, session: FakeEngineSession) -> None:
        number = next(self.numbers)
        await session.send(v1.AgentMessageChunk(v1.TextBlock(f"<{number}>"), f"m{number}"))

    async def added(self, session: FakeEngineSession, turn: AgentTurn) -> bool:
        await self.world.pause()
        await self.say(session)
        await self.world.pause()
        return self.world.random.random() < 0.7


class Editor:
    """A client that does what clients do, some of it in the worst moment."""

    def __init__(self, world: World, connection: Connection, cwd: str) -> None:
        self.world, self.connection, self.cwd = world, connection, cwd
        self.shown: dict[str, list[int]] = {}
        self.gone: set[str] = set()
        """Sessions whose history was put away or deleted."""
        connection.router.on_request(m.REQUEST_PERMISSION, self.permission)
        connection.tap(self.see)

    def see(self, direction: str, _: float, frame: bytes) -> None:
        if direction == "in" and b'"agent_message_chunk"' in frame:
            params = msgspec.json.decode(frame)["params"]
            numbers = [int(each) for each in NUMBER.findall(params["update"]["content"].get("text", ""))]
            self.shown.setdefault(params["sessionId"], []).extend(numbers)

    async def permission(self, asked: v1.RequestPermission) -> v1.PermissionResult:
        await self.world.pause()
        if self.world.random.random() < 0.3:
            await asyncio.Event().wait()
        return v1.PermissionResult(v1.Selected(asked.options[0].option_id))

    async def work(self) -> None:
        """A session from its beginning to its end, and what becomes of it."""
        ask, rng = self.connection.request, self.world.random
        await self.world.pause(8)
        id = (await ask(m.NEW_SESSION, v1.NewSession(self.cwd, []))).session_id
        for number in range(rng.randint(1, 3)):
            await self.turn(id, rng.choice(["", "/duet ", "/alto ", "/bass ", "/clear", "/status"]) + f"turn {number}")
        with suppress(RequestRefused):  # another one has it open
            match rng.randrange(5):
                case 0:
                    await ask(m.CLOSE_SESSION, v1.CloseSession(id))
                    self.shown.pop(id, None)
                    self.gone.add(id)
                    await ask(m.DELETE_SESSION, v1.DeleteSession(id))
                case 1:
                    await ask(m.CLOSE_SESSION, v1.CloseSession(id))
                    await ask(m.RESUME_SESSION, v1.ResumeSession(id, self.cwd, []))
                case 2:
                    await ask(m.FORK_SESSION, v1.ForkSession(id, self.cwd, mcp_servers=[]))
                case 3:
                    await ask(m.SET_CONFIG_OPTION, v1.SetConfigOption(id, "route", rng.choice(["duet", "bass"])))
                case _:
                    await ask(m.CLOSE_SESSION, v1.CloseSession(id))

    async def turn(self, id: str, text: str) -> None:
        """A prompt. It is cancelled some time later, because a question may never be answered; perhaps something is added before."""
        if "/clear" in text:
            self.gone.add(id)
        prompt = self.world.start(self.prompt(id, text))
        await asyncio.wait([prompt], timeout=self.world.random.choice([0, 0.002, 0.01]))
        if self.world.random.random() < 0.4 and not prompt.done():
            _ = self.world.start(self.add(id))
            await self.world.pause()
        while not prompt.done():
            self.connection.post(m.CANCEL, v1.Cancel(id))
            await asyncio.wait([prompt], timeout=0.05)

    async def prompt(self, id: str, text: str) -> None:
        await self.connection.request(m.PROMPT, v1.Prompt(id, [v1.TextBlock(text)]))

    async def add(self, id: str) -> None:
        """Something for the turn that runs: it may be too late for that, and the user may take it back."""
        with suppress(RequestRefused, TimeoutError):
            async with asyncio.timeout(self.world.random.choice([0.001, 30])):
                await self.connection.request(STEER, v1.Prompt(id, [v1.TextBlock("more")]))


class Joint:
    """The joint agent over two engines, served to a client in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        SessionLock.take(folder / "state", "any", "").release()  # its file stays open as long as the process lives

    async def __call__(self, world: World) -> None:
        for path in (self.folder / "state").glob("antiphon.sqlite3*"):
            path.unlink()
        numbers = itertools.count(1)
        engines = [BusyEngine(name, world, numbers) for name in ("alto", "bass")]
        near, far = memory_pair()
        serving = world.start(JointAgent({engine.name: engine for engine in engines}).serve(far), "serving")
        connection = Connection(near, Router(), version=V1)
        editor = Editor(world, connection, str(self.folder))
        world.offer("close", connection.close)
        world.offer("kill", engines[0].die)
        world.finally_(lambda: self.left(engines))
        world.finally_(lambda: self.stored(editor))
        async with connection:
            await connection.request(m.INITIALIZE, v1.Initialize(1, FULL))
            world.offer("stop", serving.cancel)
            await asyncio.wait([world.start(editor.work()) for _ in range(world.random.randint(1, 2))])
        await asyncio.wait([serving])

    def left(self, engines: list[BusyEngine]) -> None:
        assert [engine.name for engine in engines if engine.open] == []
        assert [found for _, found in look_at_all(self.folder / "state") if found] == []
        assert list((self.folder / "state" / "locks").glob("*.lock")) == []

    def stored(self, editor: Editor) -> None:
        """What was shown is stored, in the same order and once."""
        kept = asyncio.run(self._numbers(list(editor.shown)))
        for id, shown in editor.shown.items():
            if id not in editor.gone:
                found = iter(kept[id])
                assert all(number in found for number in shown), (id, shown, kept[id])
                assert len(kept[id]) == len(set(kept[id]))

    async def _numbers(self, ids: list[str]) -> dict[str, list[int]]:
        async with open_database(self.folder / "state") as database:
            store = SessionStore(database)
            found: dict[str, list[int]] = {}
            for id in ids:
                updates = [
                    each for each in events.unpack(await store.history(id)) if isinstance(each, events.UpdateEvent)
                ]
                found[id] = [int(each) for event in updates for each in NUMBER.findall(bytes(event.update).decode())]
        return found


@pytest.mark.slow
def test_whatever_ends_a_joint_session_leaves_nothing_and_stores_what_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_of(monkeypatch.setenv, tmp_path)
    check(
        Joint(tmp_path).__call__,
        ("cancel", "close", "stop", "kill", "collect"),
        virtual=False,
        count=min(SCHEDULES, 5000) // 2,
        limit=20,
    )
