"""Adding to a turn that runs, by the extension that editors use for it."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, RequestRefused
from antiphon.protocol.methods import Call
from tests.agent.editor import only_prompt, playing

if TYPE_CHECKING:
    from tests.agent.editor import Editor

STEER: "Call[Any, Any]" = Call("_session/steering", dict, dict, side="agent")
OPTED_IN = {"steering": {"idleBehavior": "promptRequired"}}


class Listening(Agent):
    """Answers a prompt with what is added to it."""

    def __init__(self) -> None:
        super().__init__("listening")
        self.added: asyncio.Queue[str] = asyncio.Queue()
        self.deaf = False

    async def prompt(self, turn: AgentTurn) -> None:
        await turn.say("begun")
        await turn.say(await self.added.get())

    def steer(self, turn: AgentTurn) -> bool:
        if not self.deaf:
            self.added.put_nowait(turn.text)
        return not self.deaf


def add(editor: "Editor", session: str, text: str, **more: Any) -> Any:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}], **more}
    return editor.connection.request(STEER, params)


async def test_what_is_added_reaches_the_turn_that_runs() -> None:
    async with playing(Listening()) as editor:
        session = await editor.open()
        turn = editor.prompt(session, "go")
        await editor.until(lambda: bool(editor.updates("agent_message_chunk")))
        assert await add(editor, session, "and this") == {"outcome": "injected"}
        await turn
        assert [update["content"]["text"] for update in editor.updates("agent_message_chunk")] == ["begun", "and this"]


async def test_without_a_turn_the_client_keeps_what_the_user_wrote() -> None:
    async with playing(Listening()) as editor:
        session = await editor.open()
        response = await add(editor, session, "too late", _meta=OPTED_IN)
        assert response == {"outcome": "promptRequired", "reason": "noRunningTurn"}
        with pytest.raises(
            RequestRefused, match="there is no turn that it could be added to: send it with `session/prompt`"
        ):
            await add(editor, session, "too late")


async def test_an_agent_that_finds_it_too_late_has_taken_nothing() -> None:
    agent = Listening()
    agent.deaf = True
    async with playing(agent) as editor:
        session = await editor.open()
        turn = editor.prompt(session, "go")
        await editor.until(lambda: bool(editor.updates("agent_message_chunk")))
        assert (await add(editor, session, "late", _meta=OPTED_IN))["outcome"] == "promptRequired"
        agent.added.put_nowait("end")
        await turn


@pytest.mark.parametrize("params", [{}, {"sessionId": "s"}, {"sessionId": "s", "prompt": []}, {"prompt": "x"}])
async def test_params_that_are_something_else_are_refused(params: dict[str, Any]) -> None:
    async with playing(Listening()) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await editor.connection.request(STEER, params)
        assert refusal.value.code == Code.INVALID_PARAMS


async def test_a_session_that_is_not_open_cannot_be_added_to() -> None:
    async with playing(Listening()) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await add(editor, "nobody", "x")
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND


async def test_only_agents_with_steering_advertise_it() -> None:
    async with playing(Listening()) as editor:
        assert (await editor.introduce()).meta == {"steering": {"supported": True}}
    async with playing(only_prompt(lambda _: None)) as editor:
        assert (await editor.introduce()).meta is None
        with pytest.raises(RequestRefused) as refusal:
            await add(editor, await editor.open(), "x")
        assert refusal.value.code == Code.METHOD_NOT_FOUND
