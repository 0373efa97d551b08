"""The helpers for tests of agents and clients."""

from antiphon import Agent, AgentTurn, connect, v1
from antiphon.testing import RecordingClient, ScriptedAgent


async def test_a_recording_client_keeps_what_an_agent_sends() -> None:
    agent = Agent("greeter")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Look", v1.ToolKind.READ) as call:
            assert await call.permitted()
        await turn.say(f"hello {turn.text}")

    async with RecordingClient(agent) as client:
        result = await client.prompt("you")
    assert client.text == "hello you" and result.stop_reason == v1.StopReason.END_TURN
    assert [request.tool_call.title for request in client.permissions] == ["Look"]
    assert isinstance(client.updates[0], v1.ToolCall)


async def test_a_scripted_agent_answers_prompts_by_its_script() -> None:
    agent = ScriptedAgent(["Hello ", "you."], [v1.Plan([])])
    async with connect(agent) as connected:
        session = await connected.new_session("/")
        assert await session.prompt("hi").text() == "Hello you."
        assert [update async for update in session.prompt("a plan?")] == [v1.Plan([])]
        assert await session.prompt("more?").text() == ""
    assert agent.prompts == ["hi", "a plan?", "more?"]
