"""Questions that are taken back, several at once, turns that end while one is open, and questions that are none of ours."""

import asyncio
from typing import Any

import pytest

from antiphon.agent.questions import UserQuestions
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals import ApprovalAsker
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.engines.codex.approvals.user import (
    CALL,
    CHANGES,
    COMMAND,
    OLD_CHANGES,
    OLD_COMMAND,
    PERMISSIONS,
    QUESTIONS,
    SERVER,
    Body,
    User,
    answer,
    asks,
)

ONE = {"id": "q", "header": "H", "question": "?", "options": [{"label": "a", "description": ""}]}
NOTHING: Body = {"permissions": {}, "scope": "turn"}
EVERY: list[tuple[wire.ServerRequest, Body]] = [
    (asks(COMMAND, command="ls"), {"decision": "cancel"}),
    (asks(CHANGES), {"decision": "cancel"}),
    (asks(PERMISSIONS, permissions={"network": {"enabled": True}}), NOTHING),
    (asks(QUESTIONS, questions=[ONE]), {"answers": {}}),
    (asks(SERVER, mode="form", requestedSchema={"properties": {}}), {"action": "cancel"}),
    (asks(OLD_COMMAND, command=["ls"]), {"decision": "abort"}),
    (asks(OLD_CHANGES), {"decision": "abort"}),
]
NAMES = [asked.method for asked, _ in EVERY]


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


@pytest.mark.parametrize("asked", [asked for asked, _ in EVERY], ids=NAMES)
async def test_a_question_that_is_resolved_elsewhere_is_cancelled_at_the_client(asked: wire.ServerRequest) -> None:
    slow = Slow()

    async def prompt(turn: AgentTurn) -> None:
        asking = asyncio.ensure_future(ApprovalAsker(turn.session).answer(asked.method, asked.params, turn, CALL))
        await slow.asked()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        await editor.turn()
        await editor.until("$/cancel_request")
    assert slow.cancelled == 1


@pytest.mark.parametrize(("asked", "body"), EVERY, ids=NAMES)
async def test_a_turn_that_ends_first_leaves_the_server_an_answer(asked: wire.ServerRequest, body: Body) -> None:
    slow = Slow()
    waiting: list[asyncio.Future[Any]] = []

    async def prompt(turn: AgentTurn) -> None:
        waiting.append(
            asyncio.ensure_future(ApprovalAsker(turn.session).answer(asked.method, asked.params, turn, CALL))
        )
        await slow.asked()

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        await editor.turn()
        assert await waiting[0] == body
    assert slow.cancelled == 1


@pytest.mark.parametrize(("asked", "body"), EVERY, ids=NAMES)
async def test_a_question_in_a_turn_that_is_over_is_cancelled(asked: wire.ServerRequest, body: Body) -> None:
    turns: list[AgentTurn] = []
    async with playing(only_prompt(turns.append), FULL) as editor:
        await editor.turn()
        (turn,) = turns
        assert await ApprovalAsker(turn.session).answer(asked.method, asked.params, turn, CALL) == body
        assert editor.updates() == []


async def test_several_at_once_get_their_own_answers() -> None:
    slow, bodies = Slow(), list[Any]()

    async def prompt(turn: AgentTurn) -> None:
        asker = ApprovalAsker(turn.session)
        calls = [v1.ToolCallPatch(name) for name in ("one", "two", "three")]
        asked = asks(COMMAND, command="ls")
        bodies.extend(await asyncio.gather(*(asker.answer(asked.method, asked.params, turn, call) for call in calls)))

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        turn = asyncio.create_task(editor.turn())
        await slow.asked(3)
        slow.open["three"].set_result("allow")
        slow.open["one"].set_result("reject")
        slow.open["two"].set_result("reject_and_stop")
        await turn
    assert bodies == [{"decision": "decline"}, {"decision": "cancel"}, {"decision": "accept"}]


async def test_questions_outside_of_a_turn_are_asked_too() -> None:
    sessions: list[Any] = []
    user = User(v1.Selected("allow"))
    asked = asks(COMMAND, command="ls")
    async with playing(only_prompt(lambda turn: sessions.append(turn.session)), FULL, user.router) as editor:
        await editor.turn()
        body = await ApprovalAsker(sessions[0]).answer(asked.method, asked.params, UserQuestions(sessions[0]), CALL)
    assert body == {"decision": "accept"}


@pytest.mark.parametrize("asked", [asked for asked, _ in EVERY], ids=NAMES)
async def test_a_client_that_is_gone_allows_nothing(asked: wire.ServerRequest) -> None:
    sessions: list[Any] = []
    async with playing(only_prompt(lambda turn: sessions.append(turn.session)), FULL) as editor:
        await editor.turn()
    body = await ApprovalAsker(sessions[0]).answer(asked.method, asked.params, UserQuestions(sessions[0]), CALL)
    assert body is not None
    assert "accept" not in str(body)
    assert "approved" not in str(body)
    assert body.get("permissions", {}) == {}


async def test_questions_with_a_time_limit_go_unanswered_when_it_is_over() -> None:
    slow = Slow()
    asked = asks(QUESTIONS, questions=[ONE], autoResolutionMs=20)
    bodies: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        bodies.append(await ApprovalAsker(turn.session).answer(asked.method, asked.params, turn, None))

    async with playing(only_prompt(prompt), FULL, slow.router) as editor:
        await editor.turn()
        await editor.until("$/cancel_request")
    assert bodies == [{"answers": {}}]


@pytest.mark.parametrize("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "something/new"])
async def test_a_request_that_is_not_for_the_user_is_not_handled(method: str) -> None:
    assert await answer(asks(method, callId="c"), User()) is None


async def test_a_question_that_cannot_be_read_is_declined() -> None:
    user = User()
    assert await answer(asks(COMMAND, itemId=7), user) == {"decision": "decline"}
    assert user.asked == []
    assert "could not be read" in str(user.updates_of("notice"))
