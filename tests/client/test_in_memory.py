"""An agent of this program as the target of `connect`, opened with and without a block; extensions and `_meta` in both directions."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, AgentSession, AgentTurn, LocalProtocolError, RequestRefused, connect, v1


def echo() -> Agent:
    agent = Agent("echo")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        await turn.say(turn.text)

    return agent


async def test_an_agent_of_this_program_is_served_over_memory_and_ends_with_the_block() -> None:
    before = asyncio.all_tasks()
    async with connect(echo()) as agent:
        session = await agent.new_session("/")
        assert agent.name == "echo" and await session.prompt("hi").text() == "hi"
    assert asyncio.all_tasks() == before


async def test_a_connection_can_be_opened_without_a_block() -> None:
    before = asyncio.all_tasks()
    agent = await connect(echo())
    session = await agent.new_session("/")
    assert await session.prompt("hi").text() == "hi"
    await agent.close()
    assert asyncio.all_tasks() == before


async def test_an_agent_that_fails_to_introduce_itself_is_closed() -> None:
    class Broken(Agent):
        def initialize(self, asked: Any) -> Any:
            raise RuntimeError("no")

    before = asyncio.all_tasks()
    with pytest.raises(RequestRefused):
        await connect(Broken("broken"))
    assert asyncio.all_tasks() == before


async def test_both_sides_send_and_handle_extension_requests_and_notifications() -> None:
    agent, noted = echo(), asyncio.Event()
    seen: list[object] = []

    @agent.extension("_test/double")
    def double(params: Any) -> object:
        return {"twice": params["number"] * 2}

    @agent.extension("_test/note")
    async def note(params: Any) -> None:
        seen.append(params)

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        await turn.session.client.notify_extension("_test/seen", {"text": turn.text})
        answer = await turn.session.client.request_extension("_test/colour")
        await turn.say(answer["colour"])

    async def notified(params: Any) -> None:
        seen.append(params)
        noted.set()

    extensions = {"_test/colour": lambda _: {"colour": "green"}, "_test/seen": notified}
    async with connect(agent, extensions=extensions) as connected:
        await connected.notify_extension("_test/note", [1])
        assert await connected.request_extension("_test/double", {"number": 21}) == {"twice": 42}
        session = await connected.new_session("/")
        assert await session.prompt("hi").text() == "green"
        await noted.wait()
        assert seen == [[1], {"text": "hi"}]
        with pytest.raises(RequestRefused):
            await connected.request_extension("_test/unknown")
        with pytest.raises(LocalProtocolError, match="begin with `_`"):
            await connected.request_extension("session/new")
    with pytest.raises(LocalProtocolError, match="name of the protocol"):
        await connect(agent, extensions={"session/update": notified})


async def test_meta_of_a_session_and_of_a_prompt_reaches_the_agent() -> None:
    agent = echo()
    found: list[object] = []

    @agent.on
    def new_session(session: AgentSession) -> None:
        found.append(session.meta)

    @agent.on
    def prompt(turn: AgentTurn) -> None:
        found.append(turn.meta)

    async with connect(agent) as connected:
        session = await connected.new_session("/", meta={"who": "me"})
        await session.prompt("hi", meta={"trace": "1"})
        await session.prompt("hi")
    assert found == [{"who": "me"}, {"trace": "1"}, {}]


def asks() -> Agent:
    """An agent that asks for permission in the middle of each tool call."""
    agent = Agent("asks")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        for number in range(3):
            async with turn.tool(f"Write {number}", v1.ToolKind.EDIT, name="Write", input={}) as call:
                await call.show("to be written")
                assert await call.permitted()
                await call.show(f"{number} is written")

    return agent


@pytest.mark.parametrize("slow", [False, True])
async def test_a_permission_request_is_not_an_update_for_the_consumer_of_a_turn(slow: bool) -> None:
    asked = asyncio.Event()

    def permit(request: v1.RequestPermission) -> str:
        asked.set()
        return "allow_once"

    async with connect(asks(), permission=permit) as agent:
        session = await agent.new_session("/")
        turn = session.prompt("write")
        updates = [await anext(turn)]
        if slow:
            await asked.wait()
        updates += [update async for update in turn]
    assert {type(update) for update in updates} == {v1.ToolCall, v1.ToolCallUpdate}
