"""Cancelling a turn, whatever it does."""

import asyncio

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import command
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.places import is_gone


@proves("cancel.background", on=BOTH)
async def test_a_command_that_an_earlier_turn_left_running_is_stopped_too(at: Place) -> None:
    pipe, gate = at.pipe(), Gate()
    at.model.answers(command(f"echo $$ > {pipe}; exec tail -f /dev/null", yield_time_ms=250))
    at.model.answers(Text("It runs."))
    at.model.answers(Text("la "), Wait(gate))
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("bypassPermissions")
        before = asyncio.create_task(client.say("run"))
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        assert (await before).text == "It runs."
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        await turn.cancel()
        await is_gone(pid)
        await client.until(
            lambda: [each for each in client.updates_of("tool_call_update") if each.get("status") == "failed"]
        )


@proves("cancel.speaking", on=BOTH)
async def test_a_prompt_that_is_cancelled_at_once_ends_and_the_server_lives_on(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        before = at.processes()
        for _ in range(3):
            turn = client.session.prompt("never mind")
            assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        assert (await client.say("this one")).text == "echo: this one" and at.processes() == before


@proves("cancel.speaking", "cancel.next", on=BOTH)
async def test_a_compaction_and_a_review_are_cancelled_like_any_turn(at: Place) -> None:
    at.git("init", "--quiet")
    at.write("song.txt", "la\n")
    async with connected(at) as client:
        await client.say("remember the river")
        for command in ("/compact", "/review"):
            gate = Gate()
            at.model.answers(Text("la "), Wait(gate))
            turn = client.session.prompt(command)
            await gate.is_reached()
            assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
            await gate.is_left()
            assert (await client.say("go on")).text == "echo: go on"
        assert len(at.processes()) == 1


@proves("cancel.speaking")
async def test_only_the_turn_that_is_cancelled_ends(at: Place) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        at.model.answers(Text("la "), Wait(gate), Text("la"))
    async with connected(at) as client:
        turns = []
        for gate in gates:
            turns.append((await client.open()).prompt("sing"))
            await gate.is_reached()
        assert (await turns[0].cancel()).stop_reason is v1.StopReason.CANCELLED
        gates[1].open()
        assert (await turns[1]).stop_reason is v1.StopReason.END_TURN
