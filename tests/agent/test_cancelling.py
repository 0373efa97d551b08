"""`session/cancel` ends what runs and what waits: each is answered `cancelled`, once, whatever its handler does."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from antiphon.agent import prompts as turns_module
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, RequestError, RequestRefused, TurnOver
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import only_prompt, playing

CANCELLED = v1.PromptResult(v1.StopReason.CANCELLED)
DONE = v1.PromptResult(v1.StopReason.END_TURN)
Handler = Callable[[AgentTurn], Awaitable[object]]


async def for_ever() -> None:
    await asyncio.Event().wait()


async def lets_it_through(turn: AgentTurn) -> object:
    await turn.say("begun")
    await for_ever()
    return None


async def swallows_it(turn: AgentTurn) -> object:
    await turn.say("begun")
    try:
        await for_ever()
    except asyncio.CancelledError:
        await turn.say("never mind")
    return v1.StopReason.END_TURN


async def raises_something_else(turn: AgentTurn) -> object:
    await turn.say("begun")
    try:
        await for_ever()
    finally:
        raise KeyError("cleanup went wrong")


async def refuses(turn: AgentTurn) -> object:
    await turn.say("begun")
    try:
        await for_ever()
    except asyncio.CancelledError:
        raise RequestError(-32050, "No") from None
    return None


async def takes_its_time(turn: AgentTurn) -> object:
    await turn.say("begun")
    try:
        await for_ever()
    finally:
        for _ in range(50):
            await asyncio.sleep(0)
        await turn.say("cleaned up")
    return None


async def is_in_a_task_group(turn: AgentTurn) -> object:
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(for_ever())
        await turn.say("begun")
    return None


async def is_deep_in_a_generator(turn: AgentTurn) -> object:
    async def pieces() -> AsyncIterator[str]:
        yield "begun"
        await for_ever()

    async for piece in pieces():
        await turn.say(piece)
    return None


async def waits_with_a_timeout(turn: AgentTurn) -> object:
    await turn.say("begun")
    async with asyncio.timeout(10):
        await for_ever()
    return None


async def is_in_a_thread(turn: AgentTurn) -> object:
    await turn.say("begun")
    try:
        await for_ever()
    finally:
        await asyncio.to_thread(lambda: None)
    return None


HANDLERS: dict[str, Handler] = {
    each.__name__: each
    for each in (
        lets_it_through,
        swallows_it,
        raises_something_else,
        refuses,
        takes_its_time,
        is_in_a_task_group,
        is_deep_in_a_generator,
        waits_with_a_timeout,
        is_in_a_thread,
    )
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("times", [1, 3])
async def test_whatever_a_handler_does_the_answer_is_cancelled_once_and_the_next_turn_works(
    handler: str, times: int
) -> None:
    async def prompt(turn: AgentTurn) -> object:
        return None if turn.text == "next" else await HANDLERS[handler](turn)

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await editor.until("begun")
        for _ in range(times):
            editor.cancel(session)
        assert await running == CANCELLED
        assert await editor.prompt(session, "next") == DONE
        assert editor.order[-2:] == ["answer:session/prompt"] * 2
        assert editor.order.count("answer:session/prompt") == 2


async def test_those_that_wait_are_cancelled_too_and_never_begin() -> None:
    begun: list[str] = []

    async def prompt(turn: AgentTurn) -> None:
        begun.append(turn.text)
        await turn.say("begun")
        await for_ever()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        asked = [editor.prompt(session, word) for word in "abc"]
        await editor.until("begun")
        editor.cancel(session)
        assert await asyncio.gather(*asked) == [CANCELLED] * 3
        assert begun == ["a"]
        assert editor.order.count("answer:session/prompt") == 3


async def test_a_cancel_right_behind_the_prompt_is_not_too_early_and_not_too_late() -> None:
    """All in one piece: the handler has not had its first step when it is cancelled, and the next prompt is not meant."""

    async def prompt(turn: AgentTurn) -> None:
        if turn.text != "next":
            await for_ever()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        text = '{"sessionId":"%s","prompt":[{"type":"text","text":"%s"}]}'
        frames = (
            f'{{"id":"a","method":"session/prompt","params":{text % (session, "for ever")}}}\n'
            f'{{"method":"session/cancel","params":{{"sessionId":"{session}"}}}}\n'
            f'{{"id":"b","method":"session/prompt","params":{text % (session, "next")}}}\n'
        )
        editor.connection.transport.out += frames.encode()
        editor.connection.transport.flush()
        await editor.until(lambda: len(editor.received) == 4)
        answers = {message["id"]: message["result"]["stopReason"] for message in editor.received[2:]}
        assert answers == {"a": "cancelled", "b": "end_turn"}


async def test_a_cancel_with_nothing_to_cancel_does_nothing_to_the_next_turn() -> None:
    async with playing(only_prompt(lambda _: None)) as editor:
        session = await editor.open()
        editor.cancel(session)
        editor.cancel("no such session")
        assert await editor.prompt(session) == DONE
        editor.cancel(session)
        assert await editor.prompt(session) == DONE


async def test_a_cancel_of_one_session_leaves_the_others_alone() -> None:
    gate = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        await turn.say(f"{turn.text} begun")
        await gate.wait()

    async with playing(only_prompt(prompt)) as editor:
        first, second = await editor.open(), await editor.open()
        asked = [editor.prompt(first, "a"), editor.prompt(second, "b")]
        await editor.until(lambda: {"a begun", "b begun"} <= set(editor.order))
        editor.cancel(first)
        assert await asked[0] == CANCELLED
        gate.set()
        assert await asked[1] == DONE


async def test_a_tool_call_that_is_cancelled_ends_as_failed_before_the_answer() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("outer") as outer, turn.tool("inner"):
            await outer.show("half of it")
            await turn.say("begun")
            await for_ever()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await editor.until("begun")
        editor.cancel(session)
        assert await running == CANCELLED
        failed = "tool_call_update:failed"
        assert editor.order[-4:] == ["begun", failed, failed, "answer:session/prompt"]


async def test_a_prompt_whose_request_is_cancelled_ends_and_is_answered_as_cancelled() -> None:
    ended = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        if turn.text == "next":
            return
        try:
            async with turn.tool("x"):
                await for_ever()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await editor.until("tool_call")
        waiting = editor.prompt(session, "next")
        running.cancel()
        assert await waiting == DONE
        assert ended.is_set()
        assert editor.order[-3:] == ["tool_call_update:failed", "error:session/prompt", "answer:session/prompt"]
        assert editor.received[-2]["error"]["code"] == Code.REQUEST_CANCELLED


async def test_a_waiting_prompt_that_is_cancelled_leaves_the_queue() -> None:
    gate = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        await turn.say(f"{turn.text} begun")
        await gate.wait()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        asked = [editor.prompt(session, word) for word in "abc"]
        await editor.until("a begun")
        asked[1].cancel()
        await editor.until("error:session/prompt")
        gate.set()
        assert [await asked[0], await asked[2]] == [DONE, DONE]
        assert "b begun" not in editor.order


async def test_a_turn_whose_session_and_request_are_cancelled_is_over_before_the_next_begins() -> None:
    running: list[str] = []
    gate = asyncio.Event()

    async def prompt(turn: AgentTurn) -> None:
        running.append(f"{turn.text} begins")
        await turn.say("begun")
        try:
            if turn.text == "a":
                await for_ever()
        finally:
            if turn.text == "a":
                await turn.say("cleaning")
                await gate.wait()
            running.append(f"{turn.text} ends")

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        first = editor.prompt(session, "a")
        await editor.until("begun")
        first.cancel()
        await editor.until("cleaning")
        editor.cancel(session)
        # Once more, by hand: our own client would not.
        id = next(id for id, method in editor._asked.items() if method == "session/prompt")
        editor.connection.post(m.CANCEL_REQUEST, v1.CancelRequest(id))  # type: ignore[arg-type]
        second = editor.prompt(session, "b")
        for _ in range(20):
            await asyncio.sleep(0)
        gate.set()
        assert await second == DONE
        assert running == ["a begins", "a ends", "b begins", "b ends"]


async def test_a_handler_that_ignores_its_cancellation_is_answered_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    monkeypatch.setattr(turns_module, "TURN_GRACE", 0.01)
    released, notified, troubles = asyncio.Event(), asyncio.Event(), list[Exception]()

    async def prompt(turn: AgentTurn) -> None:
        if turn.text == "next":
            return
        await turn.say("begun")
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        try:
            await turn.say("and another thing")
        except TurnOver as error:
            troubles.append(error)
            notified.set()
        raise KeyError("an error that is only logged")

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        running = editor.prompt(session)
        await editor.until("begun")
        editor.cancel(session)
        assert await running == CANCELLED
        assert await editor.prompt(session, "next") == DONE
        released.set()
        await notified.wait()
        assert len(troubles) == 1
        assert editor.order[-2:] == ["answer:session/prompt"] * 2
    assert "ignores its cancellation" in caplog.text


async def test_closing_a_session_in_the_middle_of_a_turn_ends_the_turn_first() -> None:
    async with playing(only_prompt(takes_its_time)) as editor:
        session = await editor.open()
        running = [editor.prompt(session) for _ in range(2)]
        await editor.until("begun")
        closing = asyncio.create_task(editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session)))
        late = editor.prompt(session)
        with pytest.raises(RequestRefused) as refusal:
            await late
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND
        assert await asyncio.gather(*running) == [CANCELLED] * 2
        await closing
        assert editor.order[-1] == "answer:session/close"
