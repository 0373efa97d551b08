"""Additions to a turn that runs: whatever becomes of them, every update of the engine is shown and stored once, in its order."""

import asyncio
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from antiphon.agent.prompts import STEERING
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, Editor, playing
from tests.duet.fake_engines import FakeEngine, FakeEngineSession, agent_over, state_of
from tests.waits import turns

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome

STEER: "Final[Call[Any, Any]]" = Call(STEERING, v1.Prompt, dict[str, str])
TOOL: Final = "asked about"


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state_of(monkeypatch.setenv, tmp_path)


class NumberingEngine:
    """An engine that numbers what it says, and does with additions what a seed says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.begun, self.over = asyncio.Event(), asyncio.Event()
        self.count = 0
        self.working: FakeEngineSession | None = None
        self.engine = FakeEngine("alto", self.play)
        self.engine.steers = True
        self.engine.steer = self.steer

    async def play(self, session: FakeEngineSession, turn: AgentTurn) -> "Outcome":
        self.working = session
        self.begun.set()
        await self.over.wait()
        return None

    async def send_one(self) -> None:
        """One update: a message, a new mode or a title. Only the messages are numbered."""
        assert self.working is not None
        kind = self.random.random()
        if kind < 0.1:
            await self.working.session.update(v1.CurrentModeUpdate(self.random.choice(["default", "acceptEdits"])))
        elif kind < 0.2:
            await self.working.session.update(v1.SessionInfoUpdate(title=f"title {self.count}"))
        else:
            size = self.random.choice(
                (0, 0, 0, 0, 0, 3_000_000)
            )  # more than waits for the disk without the engine waiting too
            self.count += 1
            await self.working.send(
                v1.AgentMessageChunk(v1.TextBlock(f"<{self.count}>" + "x" * size), f"message-{self.count}")
            )

    async def ask(self) -> None:
        """A question about a call that was announced just before it."""
        assert self.working is not None
        id = f"{TOOL} {self.count}"
        await self.working.send(v1.ToolCall(tool_call_id=id, title=id))
        options = [v1.PermissionOption("no", "No", v1.PermissionOptionKind.REJECT_ONCE)]
        request = v1.RequestPermission(self.working.session.id, v1.ToolCallUpdate(tool_call_id=id), options)
        await self.working.session.request(m.REQUEST_PERMISSION, request)

    async def steer(self, session: FakeEngineSession, turn: AgentTurn) -> bool:
        for _ in range(self.random.randint(0, 3)):
            await self.send_one()
            await turns(1)
        match self.random.randint(0, 5):
            case 0:
                raise RequestError(Code.INTERNAL_ERROR, "the CLI is gone")
            case 1:
                await asyncio.Event().wait()  # until the client cancels the request
            case 2:
                await self.ask()
            case 3:
                return False
            case _:
                pass
        return True


async def steered(editor: Editor, session: str, numbering: NumberingEngine) -> None:
    """Additions, several at once, some of them cancelled at a random moment; the engine goes on all the while."""
    rng = numbering.random
    pending: list[asyncio.Task[Any]] = []
    for number in range(6):
        prompt = v1.Prompt(session, [v1.TextBlock(f"add {number}")])
        pending.append(asyncio.create_task(editor.connection.request(STEER, prompt)))
        for _ in range(rng.randint(0, 4)):
            await numbering.send_one()
            await turns(1)
        if rng.random() < 0.6:
            pending.pop(rng.randrange(len(pending))).cancel()
    for task in pending:
        await turns(rng.randint(1, 30))
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


def numbers(updates: list[dict[str, Any]]) -> list[int]:
    texts = [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]
    return [int(text[1 : text.index(">")]) for text in texts if text.startswith("<")]


@pytest.mark.parametrize("seed", range(12))
async def test_every_update_is_shown_and_stored_once_and_in_order_while_a_turn_is_steered(seed: int) -> None:
    numbering = NumberingEngine(seed)
    router = Router()
    asked: list[bool] = []

    async def permission(request: v1.RequestPermission) -> v1.PermissionResult:
        known = [each["toolCallId"] for each in editor.updates("tool_call")]
        asked.append(request.tool_call.tool_call_id in known)
        return v1.PermissionResult(v1.Selected("no"))

    router.on_request(m.REQUEST_PERMISSION, permission)
    async with playing(agent_over(numbering.engine), FULL, router) as editor:
        session = await editor.open()
        turn = editor.prompt(session, "begin")
        await numbering.begun.wait()
        await steered(editor, session, numbering)
        numbering.over.set()
        await turn
        shown = numbers(editor.updates())
    assert shown == list(range(1, numbering.count + 1))
    assert all(asked)
    async with playing(agent_over(numbering.engine), FULL) as editor:
        await editor.connection.request(m.LOAD_SESSION, v1.LoadSession(session, "/w", []))
        assert numbers(editor.updates()) == shown
