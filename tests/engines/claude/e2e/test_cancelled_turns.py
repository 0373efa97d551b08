"""Cancelling a turn, whatever it is at."""

from antiphon import v1
from tests.engines.claude.model.steps import Gate, Text, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.client import connected


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
