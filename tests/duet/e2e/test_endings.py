"""How a prompt to several engines ends: no engine is stopped by another's error, and there is one answer."""

import pytest

from antiphon.errors import RequestRefused
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import by, notices, open_with, stops
from tests.engines.claude.model.steps import Call
from tests.engines.claude.model.steps import Fail as ClaudeFail
from tests.engines.client import connected
from tests.engines.codex.model.steps import Fail as CodexFail
from tests.engines.codex.model.steps import command
from tests.engines.model.steps import Stop, Text, Used

pytestmark = pytest.mark.slow

NO_CLAUDE = (ClaudeFail(400, "invalid_request_error", "no such chord"),)
NO_CODEX = (CodexFail(400, "invalid_request_error", "no such key"),)


@pytest.mark.parametrize("mode", ["acceptEdits", pytest.param("plan", marks=pytest.mark.prove)])
async def test_an_error_of_the_first_engine_does_not_silence_the_second(at: Place, mode: str) -> None:
    at.claude.model.otherwise = NO_CLAUDE
    at.codex.model.answers(Text("a second voice"))
    async with connected(at) as client:
        await open_with(client, mode=mode, route="duet")
        reply = await client.say("sing")
        assert reply.stop == "end_turn" and "a second voice" in by(client, "codex")
        assert "no such chord" in str(client.updates)  # and the user knows why there is only one voice
        at.claude.model.otherwise = None
        at.answer("again one", "again two")
        reply = await client.say("again")
    assert "again one" in reply.text and "again two" in reply.text


@pytest.mark.parametrize("mode", ["acceptEdits", pytest.param("plan", marks=pytest.mark.prove)])
async def test_an_error_of_the_second_engine_does_not_silence_the_first(at: Place, mode: str) -> None:
    at.claude.model.answers(Text("a first voice"))
    at.codex.model.otherwise = NO_CODEX
    async with connected(at) as client:
        await open_with(client, mode=mode, route="duet")
        reply = await client.say("sing")
    assert reply.stop == "end_turn" and "a first voice" in by(client, "claude")
    assert "no such key" in str(client.updates)


async def test_only_where_all_fail_the_prompt_does_with_the_first_error(at: Place) -> None:
    at.claude.model.otherwise, at.codex.model.otherwise = NO_CLAUDE, NO_CODEX
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        with pytest.raises(RequestRefused, match="no such chord"):
            await client.say("sing")
        assert "no such key" in str(client.updates)  # the other one is not hidden
        at.claude.model.otherwise = at.codex.model.otherwise = None
        at.answer("a first voice", "a second voice")
        assert "a second voice" in (await client.say("again")).text


async def test_an_error_of_an_engine_that_is_alone_is_the_error_of_the_prompt(at: Place) -> None:
    at.claude.model.otherwise = NO_CLAUDE
    async with connected(at) as client:
        with pytest.raises(RequestRefused, match="no such chord"):
            await client.say("sing")


async def test_a_program_that_cannot_be_started_does_not_silence_the_other(at: Place) -> None:
    at.environment["CODEX_EXECUTABLE"] = str(at.program("broken-codex", "exit 3"))
    at.claude.model.answers(Text("a first voice"))
    async with connected(at) as client:
        await open_with(client, route="duet")
        reply = await client.say("sing")
    assert reply.stop == "end_turn" and "a first voice" in reply.text and "Codex" in str(client.updates)


async def test_one_that_refuses_makes_it_a_refusal(at: Place) -> None:
    at.claude.model.otherwise = (Text("No. "), Stop("refusal"))
    at.codex.model.answers(Text("a second voice"))
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        reply = await client.say("sing")
    assert reply.stop == "refusal" and "a second voice" in reply.text and stops(client) == ["refusal"]


async def test_one_that_runs_out_of_tokens_makes_it_that(at: Place) -> None:
    at.claude.model.answers(Text("a first voice"))
    at.codex.model.answers(Text("la la la"), Stop("max_output_tokens"))
    at.configure("[duet]\nnudge = false\n")
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="duet")
        reply = await client.say("sing")
    assert reply.stop == "max_tokens" and "a first voice" in reply.text and stops(client) == ["max_tokens"]


async def test_a_runaway_is_stopped_after_so_many_turns(at: Place) -> None:
    at.configure("[duet]\nmax_turns = 3\nreview_rounds = 50\n")
    at.claude.model.otherwise = (Text("I have sung."),)
    at.codex.model.otherwise = (Text("It is still flat."),)
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", review="fix")
        reply = await client.say("sing")
        assert reply.stop == "max_turn_requests" and "3" in notices(client)
        assert len(at.claude.model.asked) + len(at.codex.model.asked) == 3
        await client.say("again")  # what the user asks for begins anew
    assert len(at.claude.model.asked) + len(at.codex.model.asked) == 6


async def test_a_turn_that_uses_too_many_tokens_is_cancelled(at: Place) -> None:
    at.configure("[duet]\nmax_tokens = 10_000\n")
    for number in range(8):  # every request is a little larger than the one before, as they are
        at.codex.model.answers(command("true"), Used(input=4_000 + number, output=10))
    async with connected(at) as client:
        await open_with(client, mode="bypassPermissions", route="codex")
        reply = await client.say("go round in circles")
        assert reply.stop == "max_tokens" and "10,000" in notices(client)
        asked = len(at.codex.model.asked)
    assert asked < 8


async def test_a_turn_that_costs_too_much_is_followed_by_no_other(at: Place) -> None:
    at.configure("[duet]\nmax_cost = 0.01\n")
    song = {"file_path": str(at.folder / "song.txt"), "content": "la\n"}
    at.claude.model.answers(Call("Write", song), Used(input=100_000, output=1_000))
    at.claude.model.answers(Text("I have sung."), Used(input=100_000, output=1_000))
    at.codex.model.otherwise = (Text("It is flat."),)
    async with connected(at) as client:
        await open_with(client, mode="acceptEdits", route="review", review="fix")
        await client.say("sing")
    assert "0.01" in notices(client) and len([each for each in at.claude.model.asked if each.is_prompt]) == 1
