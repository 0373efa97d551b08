"""Turns that Claude Code starts by itself: called off, and not blamed for what comes later."""

import asyncio

import pytest

from antiphon import v1
from antiphon.errors import RequestRefused
from antiphon.protocol.v1 import methods as m
from tests.engines.claude.model.steps import Call, Gate, Step, Text, Wait
from tests.engines.claude.place import Place, is_gone
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, assistant, stand_in_plays
from tests.engines.claude.versions import BOTH
from tests.engines.client import Client, connected


async def work_by_itself(at: Place, client: Client, *steps: Step) -> None:
    """The turn of a prompt ends, then something does that it has begun: the program takes the word by itself, and the model says this."""
    pipe = at.pipe("background")
    run = {"command": f"cat {pipe}", "description": "Wait", "run_in_background": True}
    at.model.answers(Call("Bash", run))
    at.model.answers(Text("It runs. "))
    at.model.answers(*steps)
    reply = await client.say("run something long")
    assert reply.text == "It runs. " and reply.stop == "end_turn"
    await asyncio.to_thread(pipe.write_text, "done\n", encoding="utf-8")


def call_off(client: Client) -> None:
    client.agent.connection.post(m.CANCEL, v1.Cancel(client.session.id))


@proves("cancel.own", "cancel.next", on=BOTH)
async def test_a_turn_of_its_own_that_writes_text_is_cancelled(at: Place) -> None:
    gate = Gate()
    async with connected(at) as client:
        await work_by_itself(at, client, Text("It has "), Wait(gate), Text("never ended."))
        await gate.is_reached()
        await client.until(lambda: client.all_text.endswith("It has "))
        before = await at.runs(1)
        call_off(client)
        await gate.is_left()
        assert (await client.say("go on")).text == "echo: go on"
        assert await at.runs(1) == before
    assert client.all_text == "It runs. It has echo: go on"


@proves("cancel.own", "cancel.tool")
async def test_a_command_of_a_turn_of_its_own_is_stopped(at: Place) -> None:
    pipe = at.pipe()
    command = f"echo $$ > {pipe}; exec tail -f /dev/null"
    async with connected(at) as client:
        await work_by_itself(at, client, Call("Bash", {"command": command, "description": "Hang"}, id="toolu_hangs"))
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        call_off(client)
        await is_gone(pid)
        await client.until(lambda: "failed" in states(client, "toolu_hangs"))
        assert (await client.say("go on")).text == "echo: go on"


@proves("cancel.own", "cancel.asking")
async def test_a_question_of_a_turn_of_its_own_is_cancelled(at: Place) -> None:
    cancelled = asyncio.Event()

    async def hesitate(_: object) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "allow_once"

    async with connected(at) as client:
        command = {"command": "touch sung", "description": "Sing"}
        client.decisions.extend(["allow_once", hesitate])
        await work_by_itself(at, client, Call("Bash", command, id="toolu_asks"))
        await client.until(lambda: len(client.asked) == 2)
        call_off(client)
        await cancelled.wait()
        await client.until(lambda: "failed" in states(client, "toolu_asks"))
        assert (await client.say("go on")).text == "echo: go on"
    assert not (at.folder / "sung").exists()


def states(client: Client, id: str) -> list[str]:
    """What was sent of how a call goes."""
    updates = client.updates_of("tool_call_update")
    return [each["status"] for each in updates if each["toolCallId"] == id and "status" in each]


@proves("cancel.own", "cancel.next")
async def test_a_cancel_when_nothing_runs_does_nothing_to_the_next_prompt(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        call_off(client)  # it may not even be up
        assert (await client.say("one")).text == "echo: one"
        before = await at.runs(1)
        call_off(client)
        assert (await client.say("two")).text == "echo: two"
        assert await at.runs(1) == before


OVERLOADED = {
    **{name: value for name, value in RESULT.items() if name != "user_message_uuid"},
    "origin": {"kind": "task-notification"},
    "is_error": True,
    "result": "API Error: Overloaded",
    "api_error_status": 529,
}
"""A turn of its own fails."""


RECEIVED = assistant({"type": "text", "text": "heard"})
"""When this was sent, so was all before it."""


@proves("robust.crash", on=[STAND_IN])
async def test_the_error_of_a_turn_of_its_own_is_not_blamed_for_a_later_crash(at: Place) -> None:
    stand_in_plays(at, [RESULT, OVERLOADED, RECEIVED])
    async with connected(at) as client:
        await client.say("one")
        await client.until(lambda: client.all_text.endswith("heard"))
        with pytest.raises(RequestRefused, match="ended unexpectedly") as caught:
            await client.say("two")  # it has nothing to say to that, and dies
    assert "Overloaded" not in f"{caught.value} {caught.value.data}"
