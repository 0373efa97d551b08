"""The helpers for tests of agents and clients."""

import asyncio
from pathlib import Path

from antiphon import Agent, AgentSession, AgentTurn, connect, reject, v1
from antiphon.testing import RecordingClient, ScriptedAgent
from antiphon.testing.fixtures import ConnectClient, acp_client
from tests.limits import limit

__all__ = ["acp_client"]


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


async def test_a_recording_client_of_version_2_sees_the_work_beside_the_answer() -> None:
    agent = Agent("worker")

    async def work(session: AgentSession) -> None:
        async with session.background("Watch"):
            await asyncio.Event().wait()

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        turn.session.start_task(work(turn.session))

    async with asyncio.timeout(limit()), RecordingClient(agent, versions=(2,)) as client:
        await client.prompt("go")
        async for _ in client.session.states():
            if client.session.background:
                break
        assert [work.kind for work in client.session.background or ()] == ["tool_call"]


async def test_a_scripted_agent_answers_prompts_by_its_script() -> None:
    agent = ScriptedAgent(["Hello ", "you."], [v1.Plan([])])
    async with connect(agent) as connected:
        session = await connected.new_session("/")
        assert await session.prompt("hi").text() == "Hello you."
        assert [update async for update in session.prompt("a plan?")] == [v1.Plan([])]
        assert await session.prompt("more?").text() == ""
    assert agent.prompts == ["hi", "a plan?", "more?"]


class Clerk(Agent):
    """An agent that asks for everything that an editor can answer."""

    async def prompt(self, turn: AgentTurn) -> None:
        """Read, ask, edit after permission, and run a command."""
        answers = await turn.ask("Which line?", line=v1.StringProperty(title="Line"))
        async with turn.tool("Edit song.txt", v1.ToolKind.EDIT) as call:
            if not await call.permitted():
                await turn.say("Not allowed.")
                return
            line = answers["line"] if answers else ""
            await turn.write("song.txt", f"{await turn.read('song.txt')}{line}")
        async with turn.tool("Run", v1.ToolKind.EXECUTE) as call:
            await turn.say((await call.run(["echo", "sung"])).output)


def test_a_plain_test_has_an_editor_that_answers(acp_client: ConnectClient, tmp_path: Path) -> None:
    client = acp_client(
        Clerk("clerk"), answers={"line": "la\n", "other": 1}, files={"song.txt": "do\n"}, terminals=True, cwd=tmp_path
    )
    assert client.prompt("go").stop_reason == v1.StopReason.END_TURN
    assert client.text == "sung\n" and client.files == {"song.txt": "do\nla\n"}
    assert list(tmp_path.iterdir()) == [], "buffers are not on the disk"
    assert [form.message for form in client.questions] == ["Which line?"]
    assert len(client.permissions) == 1 and client.updates


def test_an_editor_whose_user_says_no(acp_client: ConnectClient, tmp_path: Path) -> None:
    client = acp_client(Clerk("clerk"), answers={"line": "la"}, permission=reject, files={"song.txt": ""}, cwd=tmp_path)
    client.prompt("go")
    assert client.text == "Not allowed." and client.files == {"song.txt": ""}


def test_clients_of_one_test_share_a_loop_and_do_what_has_no_short_form(acp_client: ConnectClient) -> None:
    first, second = acp_client(ScriptedAgent(["one"])), acp_client(ScriptedAgent(["two"]))
    second.run(second.recording.prompt("?"))
    first.prompt("?")
    assert (first.text, second.text) == ("one", "two")
