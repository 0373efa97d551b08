"""Questions that are taken back, several at once, and turns that end while one is open."""

import asyncio
from typing import Any

import pytest

from antiphon.agent.questions import UserQuestions
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.engines.claude import wire
from antiphon.engines.claude.questions import CANCELLED_TEXT, ClaudeAsker
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.engines.claude.ask.user import CALL, Body, User, may, wants

QUESTION = {"questions": [{"question": "?", "options": [{"label": "a"}, {"label": "b"}]}]}
FORM = wants(requested_schema={"type": "object", "properties": {"a": {"type": "string"}}})


class Slow:
    """A user who answers only on request."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Future[str]] = {}
        self._asked = asyncio.Event()
        self.cancelled = 0
        self.router = Router()
        self.router.on_request(m.REQUEST_PERMISSION, self._permission)
        self.router.on_request(m.CREATE_ELICITATION, self._form)

    async def _permission(self, asked: v1.RequestPermission) -> v1.PermissionResult:
        return v1.PermissionResult(v1.Selected(await self._wait(asked.tool_call.tool_call_id)))

    async def _form(self, asked: Any) -> v1.CreateElicitationResult:
        return v1.Accepted({"question_1": await self._wait("form")})

    async def asked(self, count: int = 1) -> None:
        """Wait until there are so many questions."""
        while len(self.open) < count:
            self._asked.clear()
            await self._asked.wait()

    async def _wait(self, name: str) -> str:
        self.open[name] = asyncio.get_running_loop().create_future()
        self._asked.set()
        try:
            return await self.open[name]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest.mark.parametrize(
    "request_", [may(), may("ExitPlanMode", input={"plan": "p"}), may("AskUserQuestion", input=QUESTION), FORM]
)
async def test_a_question_that_the_cli_takes_back_is_cancelled_at_the_client(
    request_: wire.CanUseTool | wire.ElicitationRequest,
) -> None:
    slow = Slow()

    async def prompt(turn: AgentTurn) -> None:
        asker = ClaudeAsker(turn.session)
        if isinstance(request_, wire.ElicitationRequest):
            asking = asyncio.ensure_future(asker.elicit(request_, turn))
        else:
            asking = asyncio.ensure_future(asker.answer(request_, turn, CALL))
        await slow.asked()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        await editor.turn()
        await editor.until("$/cancel_request")
    assert slow.cancelled == 1


async def test_a_turn_that_ends_first_leaves_the_cli_an_answer() -> None:
    slow, bodies = Slow(), list[Body]()
    waiting: list[asyncio.Future[Any]] = []

    async def prompt(turn: AgentTurn) -> None:
        asker = ClaudeAsker(turn.session)
        waiting.append(asyncio.ensure_future(asker.answer(may(), turn, CALL)))
        waiting.append(asyncio.ensure_future(asker.elicit(FORM, turn)))
        await slow.asked(2)

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        await editor.turn()
        bodies = await asyncio.gather(*waiting)
    assert bodies == [{"behavior": "deny", "message": CANCELLED_TEXT, "interrupt": True}, {"action": "cancel"}]
    assert slow.cancelled == 2


async def test_a_question_in_a_turn_that_is_over_is_denied() -> None:
    stages: list[AgentTurn] = []
    async with playing(only_prompt(stages.append), FULL) as editor:
        await editor.turn()
        body = await ClaudeAsker(stages[0].session).answer(may(), stages[0], CALL)
    assert body["behavior"] == "deny"
    assert "turn has been answered" in body["message"]
    assert "hint" not in body["message"]


async def test_two_at_once_get_their_own_answers() -> None:
    slow, bodies = Slow(), list[Body]()

    async def prompt(turn: AgentTurn) -> None:
        asker = ClaudeAsker(turn.session)
        calls = [v1.ToolCallPatch(name) for name in ("one", "two")]
        asked = [asker.answer(may(input={"command": call.tool_call_id}), turn, call) for call in calls]
        bodies.extend(await asyncio.gather(*asked))

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        turn = asyncio.create_task(editor.turn())
        await slow.asked(2)
        slow.open["two"].set_result("allow")
        slow.open["one"].set_result("reject")
        await turn
    assert [body["behavior"] for body in bodies] == ["deny", "allow"]
    assert bodies[1]["updatedInput"] == {"command": "two"}


async def test_questions_outside_of_a_turn_are_asked_too() -> None:
    sessions: list[Any] = []
    user = User(v1.Selected("allow"))
    async with playing(only_prompt(lambda turn: sessions.append(turn.session)), FULL, user.router) as editor:
        await editor.turn()
        body = await ClaudeAsker(sessions[0]).answer(may(), UserQuestions(sessions[0]), CALL)
    assert body["behavior"] == "allow"


async def test_a_client_that_is_gone_allows_nothing() -> None:
    sessions: list[Any] = []
    async with playing(only_prompt(lambda turn: sessions.append(turn.session)), FULL) as editor:
        await editor.turn()
    body = await ClaudeAsker(sessions[0]).answer(may(), UserQuestions(sessions[0]), CALL)
    assert body["behavior"] == "deny"
    assert body["message"]
