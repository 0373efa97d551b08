"""What is sent while a turn runs: it waits with a notice, or it is added to the turn; it is never lost."""

import asyncio
from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import RequestRefused
from antiphon.protocol.methods import Call as Method
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with, shown, stops
from tests.engines.claude.model.steps import Call
from tests.engines.client import Client, connected
from tests.engines.codex.model.steps import command
from tests.engines.model.steps import Gate, Text, Wait

pytestmark = pytest.mark.slow

STEER: "Method[Any, Any]" = Method("_session/steering", dict, dict, side="agent")


async def add(client: Client, text: str) -> Any:
    params = {"sessionId": client.session.id, "prompt": [{"type": "text", "text": text}]}
    return await client.agent.connection.request(STEER, params)


def queue_notices(client: Client) -> bool:
    """Whether the user was shown that something waits."""
    words = [str(each).lower() for each in client.updates if each["sessionUpdate"] in ("notice", "agent_message_chunk")]
    return any(word in each for each in words for word in ("queue", "waits", "waiting", "next in line"))


async def test_a_prompt_while_a_turn_runs_waits_with_a_notice(at_codex: Place) -> None:
    gate = Gate()
    at_codex.codex.model.answers(Text("The river "), Wait(gate), Text("is sung."))
    async with connected(at_codex) as client:
        await client.open()
        first = client.session.prompt("sing of the river")
        await gate.is_reached()
        second = client.session.prompt("and of the sea")
        await client.until(lambda: queue_notices(client))
        assert len(at_codex.codex.model.asked) == 1
        gate.open()
        assert (await first).stop_reason is (await second).stop_reason is v1.StopReason.END_TURN
    assert [asked.prompt for asked in at_codex.codex.model.asked] == ["sing of the river", "and of the sea"]
    assert "echo: and of the sea" in client.all_text and stops(client) == ["end_turn", "end_turn"]


async def test_a_prompt_that_waited_stands_in_the_history_where_it_was_answered(at: Place) -> None:
    gate = Gate()
    at.claude.model.answers(Text("The river "), Wait(gate), Text("is sung."))
    async with connected(at) as client:
        await client.open()
        turns = [client.session.prompt("sing of the river")]
        await gate.is_reached()
        turns.append(client.session.prompt("and of the sea"))
        await client.until(lambda: queue_notices(client))
        gate.open()
        for turn in turns:
            await turn
        id = client.session.id
    async with connected(at) as client:
        await client.load(id)
        spoken = [(line.kind, line.text) for line in shown(client)]
    assert [each for each in spoken if "river" in each[1] or "sea" in each[1]] == [
        ("user", "sing of the river"),
        ("agent", "The river is sung."),
        ("user", "and of the sea"),
        ("agent", "echo: and of the sea"),
    ]


async def test_a_cancel_also_cancels_what_waits(at_codex: Place) -> None:
    gate = Gate()
    at_codex.codex.model.answers(Text("la la "), Wait(gate))
    async with connected(at_codex) as client:
        await client.open()
        turns = [client.session.prompt("sing for ever")]
        await gate.is_reached()
        turns.append(client.session.prompt("and then some"))
        await client.until(lambda: queue_notices(client))
        await client.session.cancel()
        assert [(await turn).stop_reason for turn in turns] == [v1.StopReason.CANCELLED] * 2
        assert (await client.say("go on")).text == "echo: go on"
    assert [asked.prompt for asked in at_codex.codex.model.asked] == ["sing for ever", "go on"]


@pytest.mark.parametrize("engine", ["claude", "codex"])
async def test_what_is_added_reaches_the_engine_that_works(at: Place, engine: str) -> None:
    gate = Gate()
    use = Call("Bash", {"command": "true", "description": "Look"}) if engine == "claude" else command("true")
    at.model(engine).answers(Text("I look. "), Wait(gate), use)
    at.model(engine).answers(Text("Both are sung."))
    async with connected(at) as client:
        await open_with(client, route=engine)
        turn = asyncio.create_task(client.say("sing of the river"))
        await gate.is_reached()
        assert await add(client, "and of the sea") == {"outcome": "injected"}
        gate.open()
        result = await turn
        id, before = client.session.id, shown(client)
    assert result.stop == "end_turn" and "Both are sung." in result.text
    assert "and of the sea" in at.model(engine).last.everything and len(at.model(engine).asked) == 2
    async with connected(at) as client:
        await client.load(id)
        texts = [line.text for line in shown(client) if line.kind == "user"]
        assert texts == ["sing of the river", "and of the sea"], before


async def test_what_is_added_while_both_work_reaches_both(at: Place) -> None:
    gates = Gate(), Gate()
    at.claude.model.answers(Text("I look. "), Wait(gates[0]), Call("Glob", {"pattern": "*"}))
    at.codex.model.answers(Text("I look, too. "), Wait(gates[1]), command("ls"))
    async with connected(at) as client:
        await open_with(client, route="duet", mode="plan")
        turn = asyncio.create_task(client.say("plan a song"))
        for gate in gates:
            await gate.is_reached()
        assert await add(client, "and of the sea") == {"outcome": "injected"}
        for gate in gates:
            gate.open()
        assert (await turn).stop == "end_turn"
    for model in (at.claude.model, at.codex.model):
        assert "and of the sea" in model.last.everything


async def test_without_a_turn_nothing_is_added(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await client.say("hello")
        with pytest.raises(RequestRefused, match="no turn"):
            await add(client, "too late")
        assert (await client.say("go on")).text == "echo: go on"
