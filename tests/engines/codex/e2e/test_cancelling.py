"""Cancelling a turn, whatever it does."""

import asyncio
import os
import signal

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import Client, connected
from tests.engines.codex.model.steps import command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.places import is_gone


def ends(client: Client) -> list[str]:
    results = [each.get("result") or {} for each in client.frames]
    return [each["stopReason"] for each in results if "stopReason" in each]


@proves("cancel.speaking", "cancel.next", on=BOTH)
async def test_a_turn_that_speaks_is_interrupted_and_the_next_prompt_works(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la la la "), Wait(gate), Text("and never this"))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        await client.until(lambda: client.updates_of("agent_message_chunk"))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await gate.is_left()
        told = await client.say("go on")
        assert told.text == "echo: go on" and ends(client) == ["cancelled", "end_turn"]
        assert "never this" not in str(client.frames) and len(at.processes()) == 1


@proves("cancel.asking", "cancel.next", on=BOTH)
async def test_a_question_that_waits_for_the_user_is_withdrawn(at: Place) -> None:
    at.model.answers(patch("*** Add File: song.txt", "+la"))
    async with connected(at) as client:
        client.decisions.append(lambda _: asyncio.Event().wait())
        await client.open()
        await client.session.set_mode("default")
        turn = client.session.prompt("write")
        await client.until(lambda: client.asked)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        assert (await client.say("go on")).text == "echo: go on" and ends(client) == ["cancelled", "end_turn"]
    assert not (at.folder / "song.txt").exists()


@proves("cancel.command", "cancel.next", on=BOTH)
async def test_a_command_that_runs_is_stopped(at: Place) -> None:
    pipe = at.pipe()
    at.model.answers(command(f"echo $$ > {pipe}; exec tail -f /dev/null", yield_time_ms=30_000))
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("bypassPermissions")
        turn = client.session.prompt("run")
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await is_gone(pid)
        [call] = client.updates_of("tool_call")
        changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
        assert [each["status"] for each in changes if "status" in each][-1] == "failed"
        assert (await client.say("go on")).text == "echo: go on" and ends(client) == ["cancelled", "end_turn"]
        answered = next(n for n, frame in enumerate(client.frames) if "stopReason" in (frame.get("result") or {}))
        assert call["toolCallId"] not in str(client.frames[answered:])  # nothing of a turn comes after its answer


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


@proves("cancel.hung")
async def test_a_server_that_hangs_is_ended_and_the_session_goes_on_in_a_new_one(at: Place) -> None:
    gate = Gate()
    async with connected(at) as client:
        await client.say("remember the river")
        at.model.answers(Text("la "), Wait(gate))
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        [hung] = at.processes()
        os.kill(hung, signal.SIGSTOP)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        told = await client.say("go on")
        await is_gone(hung)
        assert told.text == "echo: go on" and len(at.processes()) == 1
        assert ends(client) == ["end_turn", "cancelled", "end_turn"]
    assert "remember the river" in at.model.last.everything


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
