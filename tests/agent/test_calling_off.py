"""What an agent does by itself, between prompts, is called off by the same word as a prompt."""

import asyncio
import logging

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.errors import RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import only_prompt, playing
from tests.agent.test_cancelling import CANCELLED, DONE, for_ever


class Restless(Agent):
    """Works by itself between prompts, until it is asked to stop."""

    def __init__(self) -> None:
        super().__init__("restless")
        self.called_off: asyncio.Queue[str] = asyncio.Queue()
        self.trouble: Exception | None = None

    async def prompt(self, turn: AgentTurn) -> None:
        await turn.say("begun")
        if turn.text != "next":
            await for_ever()

    async def cancel(self, session: AgentSession) -> None:
        self.called_off.put_nowait(session.id)
        if self.trouble is not None:
            raise self.trouble
        await session.update(v1.AgentMessageChunk(v1.TextBlock("I stop")))


async def test_an_agent_that_works_by_itself_gets_a_cancellation_between_prompts() -> None:
    agent = Restless()
    async with playing(agent) as editor:
        first, second = await editor.open(), await editor.open()
        editor.cancel("no such session")
        editor.cancel(second)
        await editor.until("I stop")
        assert await editor.prompt(first, "next") == DONE
        editor.cancel(first)
        await editor.until(lambda: editor.order.count("I stop") == 2)
        assert [agent.called_off.get_nowait() for _ in range(2)] == [second, first] and agent.called_off.empty()


async def test_while_a_prompt_runs_only_that_is_called_off() -> None:
    agent = Restless()
    async with playing(agent) as editor:
        session = await editor.open()
        asked = [editor.prompt(session), editor.prompt(session)]
        await editor.until("begun")
        editor.cancel(session)
        assert await asyncio.gather(*asked) == [CANCELLED] * 2
        assert await editor.prompt(session, "next") == DONE
        assert agent.called_off.empty() and "I stop" not in editor.order


async def test_a_session_that_is_being_closed_is_not_called_off() -> None:
    agent, gate = Restless(), asyncio.Event()

    async def close_session(session: AgentSession) -> None:
        await session.update(v1.AgentMessageChunk(v1.TextBlock("closing")))
        await gate.wait()

    agent.close_session = close_session  # type: ignore[method-assign]
    async with playing(agent) as editor:
        session = await editor.open()
        closing = asyncio.create_task(editor.connection.request(m.CLOSE_SESSION, v1.CloseSession(session)))
        await editor.until("closing")
        editor.cancel(session)
        other = await editor.open()  # everything before it has been read
        gate.set()
        await closing
        assert agent.called_off.empty()
        editor.cancel(other)
        await editor.until("I stop")


@pytest.mark.parametrize("trouble", [KeyError("no brakes"), RequestError(-32050, "no brakes")], ids=["any", "refusal"])
async def test_one_that_cannot_stop_is_logged_and_the_session_goes_on(
    trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    agent = Restless()
    agent.trouble = trouble
    async with playing(agent) as editor:
        session = await editor.open()
        editor.cancel(session)
        assert await agent.called_off.get() == session
        assert await editor.prompt(session, "next") == DONE
    assert "the hook `cancel` failed" in caplog.text and "no brakes" in caplog.text


async def test_the_hook_may_be_a_plain_function() -> None:
    agent, cancelled = only_prompt(lambda _: None), asyncio.Event()
    agent.cancel = lambda _: cancelled.set()  # type: ignore[method-assign, assignment]
    async with playing(agent) as editor:
        editor.cancel(await editor.open())
        await cancelled.wait()
