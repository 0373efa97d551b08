"""Adding to a turn that runs."""

from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from antiphon.protocol.methods import Call as Method
from tests.engines.claude.model.steps import Call, Cut, Fail, Gate, Text, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import OLD
from tests.engines.client import Client, connected

OUT_OF_TUNE = (Fail(400, "invalid_request_error", "no such chord"),)
STEER: "Method[Any, Any]" = Method("_session/steering", dict, dict, side="agent")


async def add(client: Client, text: str) -> Any:
    params = {"sessionId": client.session.id, "prompt": [{"type": "text", "text": text}]}
    return await client.agent.connection.request(STEER, params)


def shown_text(client: Client) -> str:
    """What was sent, with a mark where a prompt was answered."""
    shown = ""
    for frame in client.frames:
        update = frame.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            shown += update["content"]["text"]
        elif "stopReason" in (frame.get("result") or {}):
            shown += "|"
    return shown


@proves("turn.steering")
async def test_what_is_added_is_answered_before_the_prompt_ends(at: Place) -> None:
    first, second = Gate(), Gate()
    at.model.answers(Text("The river "), Wait(first), Text("is sung. "))
    at.model.answers(Text("The sea "), Wait(second), Text("too. "))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing of the river")
        await first.is_reached()
        assert await add(client, "and of the sea") == {"outcome": "injected"}
        first.open()
        await second.is_reached()
        await client.until(lambda: client.all_text.endswith("The sea "))
        later = client.session.prompt("and now?")  # waits until all of that is answered
        await client.until(lambda: any("and now?" in str(each) for each in client.sent))
        second.open()
        assert (await turn).stop_reason is (await later).stop_reason is v1.StopReason.END_TURN
    assert shown_text(client) == "The river is sung. The sea too. |echo: and now?|"
    assert at.model.last.texts == ["sing of the river", "and of the sea", "and now?"]


@proves("turn.steering")
async def test_what_is_added_reaches_the_model_between_two_steps(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("I look. "), Wait(gate), Call("Bash", {"command": "echo water", "description": "Look"}))
    at.model.answers(Text("Both are sung."))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing of the river")
        await gate.is_reached()
        await add(client, "and of the sea")
        gate.open()
        assert (await turn).stop_reason is v1.StopReason.END_TURN
        assert shown_text(client) == "I look. Both are sung.|"
    looked, knew = at.model.asked
    assert "water" in knew.result_texts[0] and "and of the sea" in knew.everything
    assert "and of the sea" not in looked.everything


@proves("turn.steering", "cancel.speaking", "cancel.next")
async def test_a_cancel_ends_the_turn_and_what_was_added_to_it(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la la "), Wait(gate))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing of the river")
        await gate.is_reached()
        await client.until(lambda: client.all_text == "la la ")
        await add(client, "and of the sea")
        before = await at.runs(1)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await gate.is_left()
        assert (await client.say("go on")).text == "echo: go on"
        assert await at.runs(1) == before
    assert shown_text(client) == "la la |echo: go on|"
    assert [asked.prompt for asked in at.model.asked] == ["sing of the river", "go on"]
    assert "and of the sea" not in at.model.last.everything


@proves("turn.steering", "stop.api-error")
async def test_an_error_is_not_hidden_by_the_answer_to_what_was_added(at: Place) -> None:
    gate = Gate()
    at.model.answers(Wait(gate), Cut())
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing of the river")
        await gate.is_reached()
        at.model.choose = lambda asked: None if asked.prompt == "and of the sea" else OUT_OF_TUNE
        await add(client, "and of the sea")
        gate.open()
        with pytest.raises(RequestRefused, match="no such chord"):
            await turn
        assert client.all_text == "echo: and of the sea"


@proves("turn.steering", on=[OLD])
async def test_an_older_program_takes_nothing_and_the_next_prompt_gets_its_own_answer(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("The river "), Wait(gate), Text("is sung. "))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing of the river")
        await gate.is_reached()
        with pytest.raises(RequestRefused, match="there is no turn that it could be added to") as caught:
            await add(client, "and of the sea")
        assert caught.value.code == Code.INVALID_REQUEST
        gate.open()
        assert (await turn).stop_reason is v1.StopReason.END_TURN
        await client.say("and now?")
    assert shown_text(client) == "The river is sung. |echo: and now?|"
    assert "and of the sea" not in at.model.last.everything


@proves("turn.steering")
async def test_without_a_turn_nothing_is_added(at: Place) -> None:
    async with connected(at) as client:
        await client.say("hello")
        with pytest.raises(RequestRefused, match="there is no turn that it could be added to"):
            await add(client, "too late")
        assert (await client.say("go on")).text == "echo: go on"
    assert at.model.last.texts == ["hello", "go on"]
