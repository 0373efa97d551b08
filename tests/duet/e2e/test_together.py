"""Several sessions at once, and turns that are cancelled."""

import asyncio

import pytest

from antiphon import v1
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import first_words, open_with, stops
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.places import is_gone

pytestmark = pytest.mark.slow


async def test_two_sessions_with_different_routes_work_at_once_in_one_process(at: Place) -> None:
    gates = Gate(), Gate()
    at.claude.model.answers(Text("of the river "), Wait(gates[0]), Text("alone"))
    at.codex.model.answers(Text("of the sea "), Wait(gates[1]), Text("alone"))
    async with connected(at) as client:
        river = await client.open()
        await client.session.set_config_option("route", "claude")
        sea = await client.open()
        await client.session.set_config_option("route", "codex")
        assert river.id != sea.id
        turns = [
            asyncio.create_task(client.say(f"sing of {name}", where)) for name, where in (("one", river), ("two", sea))
        ]
        for gate in gates:
            await gate.is_reached()
        for gate in gates:
            gate.open()
        first, second = [await turn for turn in turns]
        assert client.option("route").current_value == "codex"
    assert first.text == "of the river alone" and second.text == "of the sea alone"


async def test_a_session_with_both_and_a_session_with_one_get_only_their_own_updates(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, mode="plan", route="duet")
        both = client.session
        alone = await client.open()
        at.answer("a first voice", "a second voice")
        reply = await client.say("plan", both)
        at.claude.model.answers(Text("nobody else"))
        assert (await client.say("and you?", alone)).text == "nobody else"
    assert "a first voice" in reply.text and "a second voice" in reply.text
    assert "a first voice" not in at.claude.model.last.everything


async def test_cancelling_while_both_answer_ends_both_once_and_the_next_prompt_works(at: Place) -> None:
    gates = Gate(), Gate()
    at.claude.model.answers(Text("la la "), Wait(gates[0]), Text("never this"))
    at.codex.model.answers(Text("lo lo "), Wait(gates[1]), Text("never this"))
    async with connected(at) as client:
        await open_with(client, mode="plan", route="duet")
        turn = client.session.prompt("plan for ever")
        for gate in gates:
            await gate.is_reached()
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        for gate in gates:
            await gate.is_left()
        at.answer("one again", "two again")
        reply = await client.say("go on")
    assert "one again" in reply.text and "two again" in reply.text and stops(client) == ["cancelled", "end_turn"]
    assert "never this" not in str(client.frames)


async def test_cancelling_the_first_means_that_the_second_does_not_begin(at: Place) -> None:
    gate = Gate()
    at.claude.model.answers(Text("la la "), Wait(gate), Text("never this"))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await gate.is_left()
        assert at.codex.model.asked == []
        at.answer("one again", "two again")
        reply = await client.say("go on")
    assert "one again" in reply.text and "two again" in reply.text and stops(client) == ["cancelled", "end_turn"]


async def test_cancelling_cancels_a_request_and_stops_a_tool_that_runs(at: Place) -> None:
    pipe = at.pipe()
    at.claude.model.answers(
        Call("Bash", {"command": f"echo $$ > {pipe}; exec tail -f /dev/null", "description": "Sing for ever"})
    )
    async with connected(at) as client:
        await open_with(client, route="duet")
        turn = client.session.prompt("sing for ever")
        pid = int(await first_words(pipe))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await is_gone(pid)
        client.decisions.append(lambda _: asyncio.Event().wait())
        at.claude.model.answers(Call("Bash", {"command": "touch never", "description": "Never"}))
        turn = client.session.prompt("ask me")
        await client.until(lambda: len(client.asked) == 2)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        at.answer("one again", "two again")
        assert "two again" in (await client.say("go on")).text
    assert not (at.folder / "never").exists() and stops(client) == ["cancelled", "cancelled", "end_turn"]


async def test_only_the_session_that_is_cancelled_ends(at_codex: Place) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        at_codex.codex.model.answers_by(lambda asked, gate=gate: (Text(f"{asked.prompt}: la "), Wait(gate), Text("la")))  # type: ignore[misc]
    async with connected(at_codex) as client:
        turns = []
        for gate in gates:
            turns.append((await client.open()).prompt("sing"))
            await gate.is_reached()
        assert (await turns[0].cancel()).stop_reason is v1.StopReason.CANCELLED
        gates[1].open()
        assert (await turns[1]).stop_reason is v1.StopReason.END_TURN
