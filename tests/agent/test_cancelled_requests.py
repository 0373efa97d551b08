"""Questions to the user that still wait when their turn ends: their requests are cancelled."""

import asyncio

import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing

CANCELLED = v1.PromptResult(v1.StopReason.CANCELLED)
DONE = v1.PromptResult(v1.StopReason.END_TURN)


async def for_ever() -> None:
    await asyncio.Event().wait()


def asking_router(asked: asyncio.Event, cancelled: asyncio.Event) -> Router:
    """A user who never answers."""

    async def permission(_: v1.RequestPermission) -> v1.PermissionResult:
        asked.set()
        try:
            await for_ever()
        finally:
            cancelled.set()
        raise AssertionError

    router = Router()
    router.on_request(m.REQUEST_PERMISSION, permission)
    return router


@pytest.mark.parametrize("who", ["the handler", "a task of the handler", "a task of a handler that is done"])
async def test_a_question_that_waits_for_the_user_is_cancelled(who: str) -> None:
    asked, cancelled, tasks = asyncio.Event(), asyncio.Event(), set[asyncio.Task[object]]()

    async def prompt(turn: AgentTurn) -> None:
        asking = asyncio.ensure_future(turn.ask_permission(v1.ToolCallPatch("c")))
        tasks.add(asking)
        if who == "the handler":
            await asking
        await asked.wait()
        if who == "a task of the handler":
            await for_ever()

    async with playing(only_prompt(prompt), None, asking_router(asked, cancelled)) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await asked.wait()
        if who != "a task of a handler that is done":
            editor.cancel(session)
        assert await running == (DONE if who == "a task of a handler that is done" else CANCELLED)
        await cancelled.wait()
        assert editor.order.count("$/cancel_request") == 1
        assert all(task.cancelled() for task in tasks)


async def test_a_client_that_answers_the_question_with_cancelled_is_harmless() -> None:
    """The spec's way: the client answers all open questions itself."""
    answers: list[bool] = []

    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x") as call:
            answers.append(bool(await call.permitted()))

    gate = asyncio.Event()

    async def permission(_: v1.RequestPermission) -> v1.PermissionResult:
        await gate.wait()
        return v1.PermissionResult(v1.Cancelled())

    router = Router()
    router.on_request(m.REQUEST_PERMISSION, permission)
    async with playing(only_prompt(prompt), None, router) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await editor.until("ask:session/request_permission")
        editor.cancel(session)
        gate.set()
        assert await running == CANCELLED
        assert "tool_call_update:failed" in editor.order
        assert answers in ([], [False])


async def test_a_question_in_the_middle_of_being_sent_is_cancelled_too() -> None:
    """Cancelled before the question's own task had its first step."""

    async def prompt(turn: AgentTurn) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await turn.read("f")

    async with playing(only_prompt(prompt), FULL) as editor:
        assert await editor.turn() == CANCELLED
        assert editor.order[-1] == "answer:session/prompt"
