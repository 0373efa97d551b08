"""Cancelling a turn, whatever it is at."""

import asyncio
import os
import signal
from pathlib import Path

from antiphon import v1
from tests.engines.claude.model.steps import Call, Gate, Text, Wait
from tests.engines.claude.place import Place, is_gone
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import Client, connected


def ends(client: Client) -> list[str]:
    """How prompts were answered."""
    return [each["result"]["stopReason"] for each in client.frames if "stopReason" in (each.get("result") or {})]


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


@proves("cancel.tool", "cancel.next", on=BOTH)
async def test_a_command_that_runs_is_stopped(at: Place) -> None:
    pipe = Path(at.environment["TMPDIR"]) / "pipe"
    os.mkfifo(pipe)
    at.model.answers(Call("Bash", {"command": f"echo $$ > {pipe}; exec tail -f /dev/null", "description": "Hang"}))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("run")
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await is_gone(pid)
        [call] = client.updates_of("tool_call")
        changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
        assert [each["status"] for each in changes if "status" in each][-1] == "failed"
        assert (await client.say("go on")).text == "echo: go on" and ends(client) == ["cancelled", "end_turn"]


@proves("cancel.hung")
async def test_a_program_that_hangs_is_ended_and_the_session_goes_on_in_a_new_one(at: Place) -> None:
    gate = Gate()
    async with connected(at) as client:
        await client.say("remember the river")
        await at.keeps("echo: remember the river")
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


@proves("cancel.speaking")
async def test_a_prompt_that_is_cancelled_before_the_program_is_up_never_runs(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("never mind")
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        assert (await client.say("this one")).text == "echo: this one"
    assert at.model.last.prompt == "this one"


@proves("cancel.speaking", "robust.orphans")
async def test_a_session_that_is_closed_in_a_turn_ends_the_turn_and_the_program(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la la "), Wait(gate))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        await client.session.close()
        assert turn.result.stop_reason is v1.StopReason.CANCELLED
        await gate.is_left()
        await at.runs(0)
