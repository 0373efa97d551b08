"""However and whenever an engine, its CLI or its client ends: every request ends, every call ends, and no process is left."""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import antiphon.engines.claude.driver
import antiphon.engines.codex.driver
import antiphon.engines.process
from antiphon.agent.prompts import STEERING
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.engines.base import Engine, Host
from antiphon.engines.claude.engine import Claude
from antiphon.engines.codex.engine import Codex
from antiphon.engines.process import KeptProcess, run_once
from antiphon.errors import AcpError, ConnectionClosed, RequestRefused, SpawnFailed
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.memory import memory_pair
from tests.agent.editor import FULL
from tests.agent.random_client import RandomClient
from tests.engines.random_cli import ClaudeCli, Cli, CodexCli
from tests.engines.test_kept_process import FakeProcess, Owner
from tests.schedules import SCHEDULES, World, check

STEER: "Call[Any, Any]" = Call(STEERING, v1.Prompt, dict[str, str])


def kill(processes: "Sequence[FakeProcess | Cli]") -> None:
    """All at once."""
    for process in processes:
        process.die()


# One process.


class SlowOwner(Owner):
    """An owner that takes its time, has processes that die, and knows who waits for which."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.waiting: dict[FakeProcess, asyncio.Future[None]] = {}
        self.over: set[FakeProcess] = set()

    async def start(self) -> FakeProcess:
        await self.world.pause()
        if self.world.random.random() < 0.1:
            raise SpawnFailed("sing", OSError("there is none"))
        return await super().start()

    async def began(self, process: FakeProcess) -> None:
        await self.world.pause()
        if self.world.random.random() < 0.2:
            process.die()
        if self.world.random.random() < 0.1:
            raise ConnectionClosed("it says nothing")

    async def _receive(self, process: FakeProcess, line: str) -> None:
        await self.world.pause(1)
        await super()._receive(process, line)

    async def ended(self, process: FakeProcess) -> None:
        await self.world.pause(1)
        await super().ended(process)
        self.over.add(process)
        if (waiting := self.waiting.pop(process, None)) is not None and not waiting.done():
            waiting.set_result(None)


async def one_process(world: World) -> None:
    """Several use a process; each waits for its answer or for its end, as a prompt does."""
    owner = SlowOwner(world)
    running: KeptProcess[FakeProcess] = KeptProcess(owner)

    async def use() -> None:
        await world.pause(8)
        try:
            process = await running.ready()
        except AcpError:
            return
        assert process not in owner.over, "a process whose end was reported already"
        waits = owner.waiting.setdefault(process, asyncio.get_running_loop().create_future())
        process.send("work")
        if world.random.random() < 0.3:
            process.die()
        elif world.random.random() < 0.3:
            running.drop(process)
        if world.random.random() < 0.5:
            await asyncio.wait([waits], timeout=0.01)
        else:
            process.die()
            await asyncio.wait([waits])

    def left() -> None:
        assert all(process.end is not None for process in owner.started)
        assert owner.over == set(owner.started)

    world.offer("close", running.close)
    world.offer("kill", lambda: kill(owner.started))
    world.finally_(left)
    try:
        running.start_soon()
        await asyncio.gather(*(use() for _ in range(world.random.randint(1, 4))))
    finally:
        await running.close()


def test_a_process_is_never_handed_out_dead_and_never_left() -> None:
    check(one_process)


# Whole engines.


class Editor(RandomClient):
    """A client that does what clients do, some of it in the worst moment."""

    def __init__(self, world: World, connection: Connection) -> None:
        super().__init__(world, connection)
        self.closed: set[str] = set()

    async def work(self, cwd: str) -> None:
        """A session from its beginning to its end."""
        ask, pause, rng = self.connection.request, self.world.pause, self.world.random
        await pause(8)
        id = (await ask(m.NEW_SESSION, v1.NewSession(cwd, []))).session_id
        for number in range(rng.randint(1, 3)):
            await self.turn(id, f"turn {number}")
            if rng.random() < 0.2:
                await ask(m.SET_MODE, v1.SetMode(id, "plan"))
        if rng.random() < 0.7:
            await ask(m.CLOSE_SESSION, v1.CloseSession(id))

    async def turn(self, id: str, text: str) -> None:
        """A prompt. It is cancelled some time later, because a question may never be answered; perhaps something is added before."""
        prompt = self.world.start(self.connection.request(m.PROMPT, v1.Prompt(id, [v1.TextBlock(text)])))
        await asyncio.wait([prompt], timeout=self.world.random.choice([0, 0.002, 0.01]))
        if self.world.random.random() < 0.3 and not prompt.done():
            _ = self.world.start(self.add(id))
            await self.world.pause()
        while not prompt.done():
            self.connection.post(m.CANCEL, v1.Cancel(id))
            await asyncio.wait([prompt], timeout=0.05)
        if not self.world.acted:
            assert prompt.result().stop_reason in (v1.StopReason.END_TURN, v1.StopReason.CANCELLED)

    async def add(self, id: str) -> None:
        """Something for the turn that runs: it may be too late for that, and the user may take it back."""
        with suppress(RequestRefused, TimeoutError):
            async with asyncio.timeout(self.world.random.choice([0.001, 30])):
                await self.connection.request(STEER, v1.Prompt(id, [v1.TextBlock("more")]))


class Played:
    """An engine whose CLIs are in memory, served to a client in memory."""

    def __init__(self, kind: Callable[[], Engine], cli: type[Cli], cwd: Path, spawned: list[Cli]) -> None:
        self.kind, self.cli, self.cwd, self.spawned = kind, cli, str(cwd), spawned
        self.world: World | None = None

    async def spawn(self, *_: Any, **__: Any) -> Cli:
        assert self.world is not None
        await self.world.pause()
        self.spawned.append(child := self.cli(self.world))
        return child

    async def __call__(self, world: World) -> None:
        self.world = world
        self.spawned.clear()
        if world.random.random() < 0.3:  # the version of the CLI has to be asked for again, which takes its time
            shutil.rmtree(Path(self.cwd).parent / "state", ignore_errors=True)
        near, far = memory_pair()
        serving = world.start(Host(self.kind()).serve(far), "serving")
        connection = Connection(near, Router(), version=V1)
        editor = Editor(world, connection)
        world.offer("close", connection.close)
        world.offer("kill", lambda: kill(self.spawned))
        world.finally_(lambda: self.left(editor))
        async with connection:
            await connection.request(m.INITIALIZE, v1.Initialize(1, FULL))
            world.offer("stop", serving.cancel)
            work = [world.start(editor.work(self.cwd)) for _ in range(world.random.randint(1, 2))]
            await asyncio.wait(work)
            for each in work:
                if not world.acted:
                    each.result()
        await asyncio.wait([serving])

    def left(self, editor: Editor) -> None:
        assert self.world is not None
        assert [child.pid for child in self.spawned if child.lost is None] == []
        if self.world.schedule.end in ("", "kill"):  # the client is there to the end
            assert [id for id, status in editor.calls.items() if status not in ("completed", "failed")] == []


@pytest.fixture
def spawned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Cli]:
    for name, value in {
        "HOME": tmp_path, "ANTIPHON_STATE_DIR": tmp_path / "state", "ANTIPHON_CONFIG_DIR": tmp_path / "config",
        "CLAUDE_CONFIG_DIR": tmp_path / "claude", "CODEX_HOME": tmp_path / "codex", "ANTHROPIC_API_KEY": "k",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    for name, version in (("CLAUDE_CODE", "2.1.325 (Claude Code)"), ("CODEX", "codex-cli 0.166.0")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv(f"{name}_EXECUTABLE", str(program))
    monkeypatch.setattr(antiphon.engines.claude.driver, "INTERRUPT_LIMIT", 0.5)
    monkeypatch.setattr(antiphon.engines.codex.driver, "INTERRUPT_LIMIT", 0.5)
    monkeypatch.setattr(antiphon.engines.codex.driver, "END_LIMIT", 0.1)
    os.makedirs(tmp_path / "work")
    run_once(
        ["/bin/true"], dict(os.environ), str(tmp_path), 60
    )  # the first child starts the watcher of all children, which stays
    return []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cli"), [(Claude, ClaudeCli), (Codex, CodexCli)])
def test_an_engine_that_ends_in_any_way_leaves_nothing_and_no_caller_waiting(
    kind: Callable[[], Engine], cli: type[Cli], spawned: list[Cli], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(kind, cli, tmp_path / "work", spawned)
    monkeypatch.setattr(antiphon.engines.process, "spawn", played.spawn)
    check(
        played.__call__,
        ("cancel", "close", "stop", "kill", "collect"),
        virtual=False,
        count=min(SCHEDULES, 5000) // 2,
        limit=20,
    )
