"""The model of the tests drives the real Codex as a real one would: seen by what its server says."""

import asyncio

import pytest

from tests.engines.codex.bullets import on_versions
from tests.engines.codex.client import BareServer, bare
from tests.engines.codex.model.__main__ import played
from tests.engines.codex.model.steps import Broken, Fail, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Cut, Gate, Json, Stop, Text, Think, Used, Wait


async def started(codex: BareServer, at: Place) -> str:
    opened = await codex.ask("thread/start", cwd=str(at.folder), approvalPolicy="never", sandbox="danger-full-access")
    return str(opened["thread"]["id"])


def text_of(lines: list[Json]) -> str:
    return "".join(each["params"]["delta"] for each in lines if each.get("method") == "item/agentMessage/delta")


def ended(lines: list[Json]) -> Json:
    turn: Json = lines[-1]["params"]["turn"]
    return turn


@on_versions(*BOTH)
async def test_queued_answers_are_sent_and_other_prompts_are_echoed(at: Place) -> None:
    at.model.answers(Think("let me see"), Text("the first answer"), Used(1000, 20))
    async with bare(at) as codex:
        thread = await started(codex, at)
        lines = await codex.turn(thread, "one")
        assert text_of(lines) == "the first answer"
        used = [
            each["params"]["tokenUsage"]["last"] for each in lines if each.get("method") == "thread/tokenUsage/updated"
        ]
        assert (used[-1]["inputTokens"], used[-1]["outputTokens"]) == (1000, 20)
        assert text_of(await codex.turn(thread, "two")) == "echo: two"
    assert [asked.prompt for asked in at.model.asked] == ["one", "two"] and at.model.others == []


@on_versions(*BOTH)
async def test_tools_are_called_and_their_results_come_back(at: Place) -> None:
    at.model.answers(command("echo sung > song.txt"), patch("*** Add File: other.txt", "+la"))
    at.model.answers(Text("It is sung."))
    async with bare(at) as codex:
        lines = await codex.turn(await started(codex, at), "sing")
    assert (at.folder / "song.txt").read_text(encoding="utf-8") == "sung\n" and (at.folder / "other.txt").exists()
    assert [len(asked.results) for asked in at.model.asked] == [0, 2] and text_of(lines) == "It is sung."
    assert {"exec_command", "apply_patch", "update_plan"} <= set(at.model.last.tools)


@on_versions(*BOTH)
async def test_a_model_that_is_interrupted_knows_it(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("before "), Wait(gate))
    async with bare(at) as codex:
        thread = await started(codex, at)
        begun = await codex.ask(
            "turn/start", threadId=thread, input=[{"type": "text", "text": "hold", "text_elements": []}]
        )
        await gate.is_reached()
        await codex.ask("turn/interrupt", threadId=thread, turnId=begun["turn"]["id"])
        await gate.is_left()
    assert not gate.opened.is_set()


@on_versions(*BOTH)
async def test_errors_cut_lines_and_other_ends_are_seen_as_such(at: Place) -> None:
    async with bare(at) as codex:
        thread = await started(codex, at)
        at.model.otherwise = (Fail(400, "invalid_request_error", "no such chord"),)
        assert "no such chord" in str(ended(await codex.turn(thread, "fail"))["error"])
        at.model.otherwise = None
        for broken in ((Fail(500),), (Text("half a wo"), Cut()), (Broken(),)):
            at.model.answers(*broken)
            lines = await codex.turn(thread, "again")
            assert ended(lines)["status"] == "completed" and text_of(lines).endswith("echo: again")
        at.model.answers(Text("la"), Stop("max_output_tokens"))
        assert "max_output_tokens" in str(ended(await codex.turn(thread, "long"))["error"])


@on_versions(*BOTH)
async def test_a_gate_holds_the_model_until_it_is_opened(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("before "), Wait(gate), Text("after"))
    async with bare(at) as codex:
        turn = asyncio.create_task(codex.turn(await started(codex, at), "hold"))
        await gate.is_reached()
        assert not turn.done()
        gate.open()
        assert text_of(await turn) == "before after"


@pytest.mark.slow
async def test_ten_thousand_deltas_pass(at: Place) -> None:
    at.model.answers(Text("abcdefgh" * 10_000))
    async with bare(at) as codex:
        lines = await codex.turn(await started(codex, at), "stream")
    assert len(text_of(lines)) == 80_000


@pytest.mark.slow
async def test_the_model_alone_plays_what_a_prompt_asks_for(at: Place) -> None:
    play = 'Play: [[["text", "first "], ["call", "exec_command", {"cmd": "true"}]], [["text", "then"]]]'
    at.model.choose = played
    async with bare(at) as codex:
        thread = await started(codex, at)
        assert text_of(await codex.turn(thread, play)) == "first then"
        assert text_of(await codex.turn(thread, "hello")) == "echo: hello"
