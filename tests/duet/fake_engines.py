"""Engines of our own making, and the joint agent over them: everything is real but the models."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.duet.agent import JointAgent
from antiphon.engines.base import Engine, EngineSession
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome

__all__ = ["FakeEngine", "FakeEngineSession", "agent_over", "state_of"]

Play = Callable[["FakeEngineSession", AgentTurn], Awaitable[Any]]

MODES = [v1.Mode(id, id.capitalize()) for id in ("default", "acceptEdits", "plan")]


class FakeEngineSession(EngineSession):
    """A engine in one session. What it was given is in `engine.given`."""

    def __init__(self, engine: "FakeEngine", session: AgentSession) -> None:
        self.engine = engine
        self.session = session
        engine.sessions.append(session)
        offered = engine.offered_modes
        session.modes = v1.ModeState(offered[0].id, list(offered))
        session.models = v1.ModelState([v1.SessionModel("loud", "Loud"), v1.SessionModel("soft", "Soft")], "loud")
        session.config_options = [
            v1.SelectConfig(
                id="model",
                name="Model",
                category=v1.ConfigCategory.MODEL,
                current_value="loud",
                options=[v1.SelectOption("loud", "Loud"), v1.SelectOption("soft", "Soft")],
            )
        ]

    async def prompt(self, turn: AgentTurn) -> "Outcome":
        self.engine.given.append(turn.text)
        self.engine.kept.setdefault(self.session.id, []).append(v1.UserMessageChunk(v1.TextBlock(turn.text)))
        outcome: Outcome = await self.engine.play(self, turn)
        return outcome

    async def send(self, *updates: v1.Update) -> None:
        """Say something, and remember it."""
        for update in updates:
            self.engine.kept.setdefault(self.session.id, []).append(update)
            await self.session.update(update)

    async def set_mode(self, mode_id: str) -> None:
        if self.engine.stubborn:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", "I sing as I like")
        self.engine.modes.append(mode_id)

    async def steer(self, turn: AgentTurn) -> bool:
        return await self.engine.steer(self, turn)

    async def close(self) -> None:
        self.engine.closed += 1


async def echo(session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
    """Say the last line back."""
    name, number = session.engine.name, len(session.engine.given)
    await session.send(v1.AgentMessageChunk(v1.TextBlock(f"{name}: {turn.text.splitlines()[-1]}"), f"m{number}"))
    return None


async def _too_late(session: FakeEngineSession, turn: AgentTurn) -> bool:
    return False


class FakeEngine(Engine):
    """An engine that plays a script."""

    unique_ids = True
    read_only = "plan"

    def __init__(self, name: str, play: Play = echo) -> None:
        self.name = name
        self.title = name.capitalize()
        self.play = play
        self.given: list[str] = []
        self.modes: list[str] = []
        self.kept: dict[str, list[v1.Update]] = {}
        """Its own history: session → what was sent."""
        self.sessions: list[AgentSession] = []
        self.closed = 0
        self.broken: Exception | None = None
        self.offered_modes = MODES
        self.stubborn = False
        """Whether it refuses to change its mode."""
        self.steer: Callable[[FakeEngineSession, AgentTurn], Awaitable[bool]] = _too_late
        self._numbers = 0

    async def new(self, session: AgentSession) -> FakeEngineSession:
        await asyncio.sleep(0)
        if self.broken is not None:
            raise self.broken
        self._numbers += 1
        session.id = f"{self.name}-{self._numbers}"
        await session.offer(v1.Command("review", "Its own review"), v1.Command("tune", f"Tune {self.name}"))
        return FakeEngineSession(self, session)

    async def load(self, session: AgentSession) -> FakeEngineSession:
        if session.id not in self.kept:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", f"no song `{session.id}`")
        opened = FakeEngineSession(self, session)
        for update in self.kept[session.id]:
            await session.update(update)
        return opened

    async def fork(self, session: AgentSession, source: str) -> FakeEngineSession:
        self._numbers += 1
        session.id = f"{self.name}-{self._numbers}"
        self.kept[session.id] = list(self.kept.get(source, ()))
        return FakeEngineSession(self, session)

    def list(self, query: v1.ListSessions) -> Iterable[v1.SessionInfo]:
        return [v1.SessionInfo(id, "/w", title=id, updated_at="2026-01-01T00:00:00Z") for id in self.kept]

    async def delete(self, session_id: str) -> None:
        self.kept.pop(session_id, None)


def agent_over(*engines: FakeEngine) -> JointAgent:
    """The joint agent over these."""
    return JointAgent({engine.name: engine for engine in engines})


def state_of(monkeypatch_env: Callable[[str, str], None], path: Path, *, resumes: bool = False) -> None:
    """A state and a configuration of one's own."""
    for name in ("state", "config"):
        (path / name).mkdir(exist_ok=True)
        monkeypatch_env(f"ANTIPHON_{name.upper()}_DIR", str(path / name))
    monkeypatch_env("ANTIPHON_AUTO_RESUME", "true" if resumes else "false")
