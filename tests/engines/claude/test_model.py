"""The model of the tests drives the real Claude Code as a real one would: seen by the program's own output."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.engines.claude.model.__main__ import played
from tests.engines.claude.model.steps import Call, Cut, Fail, Gate, Stop, Text, Think, Used, Wait, wait_limit
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import on_versions
from tests.engines.claude.versions import BOTH

WORDS = (
    "-p",
    "--verbose",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--include-partial-messages",
)
MORE = ("--permission-prompt-tool", "stdio")

Line = dict[str, Any]


class BareCli:
    """Claude Code without us: lines in, lines out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send(self, **line: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    async def line(self) -> Line:
        assert self.process.stdout is not None
        async with asyncio.timeout(wait_limit()):
            found: Line = json.loads(await self.process.stdout.readline())
            return found

    async def turn(self, text: str) -> list[Line]:
        """What it says to this, up to the result. Whatever it asks for is allowed."""
        self.send(type="user", uuid=str(uuid4()), message={"role": "user", "content": text})
        lines: list[Line] = []
        while not lines or lines[-1]["type"] != "result":
            lines.append(await self.line())
            if lines[-1]["type"] == "control_request":
                allowed = {"behavior": "allow", "updatedInput": lines[-1]["request"]["input"]}
                answer = {"subtype": "success", "request_id": lines[-1]["request_id"], "response": allowed}
                self.send(type="control_response", response=answer)
        return lines


@asynccontextmanager
async def bare(at: Place, *words: str) -> AsyncIterator[BareCli]:
    process = await asyncio.create_subprocess_exec(
        at.program, *WORDS, *MORE, *words, cwd=at.folder, env=at.environment, limit=2**26,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield BareCli(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def text_of(lines: list[Line]) -> str:
    deltas = [line["event"].get("delta", {}) for line in lines if line["type"] == "stream_event"]
    return "".join(delta.get("text", "") for delta in deltas)


@on_versions(*BOTH)
async def test_queued_answers_are_sent_and_other_prompts_are_echoed(at: Place) -> None:
    at.model.answers(Think("let me see"), Text("the first answer"), Used(1000, 20))
    async with bare(at) as claude:
        lines = await claude.turn("one")
        assert text_of(lines) == "the first answer" and lines[-1]["result"] == "the first answer"
        assert lines[-1]["usage"]["input_tokens"] == 1000 and lines[-1]["usage"]["output_tokens"] == 20
        assert text_of(await claude.turn("two")) == "echo: two"
    assert [asked.prompt for asked in at.model.asked] == ["one", "two"]
    assert {asked.kind for asked in at.model.asked} == {"main"} and at.model.aside == []


@on_versions(*BOTH)
async def test_tools_are_called_and_their_results_come_back(at: Place) -> None:
    at.model.answers(Call("Bash", {"command": "echo sung > song.txt", "description": "Sing"}))
    at.model.answers(Text("It is sung."))
    async with bare(at) as claude:
        lines = await claude.turn("sing")
    assert (at.folder / "song.txt").read_text(encoding="utf-8") == "sung\n"
    assert [len(asked.results) for asked in at.model.asked] == [0, 1] and lines[-1]["result"] == "It is sung."


@on_versions(*BOTH)
async def test_a_gate_holds_the_model_until_it_is_opened(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("before "), Wait(gate), Text("after"))
    async with bare(at) as claude:
        turn = asyncio.create_task(claude.turn("hold"))
        await gate.is_reached()
        assert not turn.done()
        gate.open()
        assert text_of(await turn) == "before after"
    assert not gate.left.is_set()


@on_versions(*BOTH)
async def test_a_model_that_is_interrupted_knows_it(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("before "), Wait(gate))
    async with bare(at) as claude:
        turn = asyncio.create_task(claude.turn("hold"))
        await gate.is_reached()
        claude.send(type="control_request", request_id="1", request={"subtype": "interrupt"})
        assert (await turn)[-1]["terminal_reason"] == "aborted_streaming"
        await gate.is_left()


@on_versions(*BOTH)
async def test_errors_cut_lines_and_other_ends_are_seen_as_such(at: Place) -> None:
    async with bare(at) as claude:
        at.model.otherwise = (Fail(400, "invalid_request_error", "no such chord"),)
        assert "no such chord" in (await claude.turn("fail"))[-1]["result"]
        at.model.otherwise = None
        at.model.answers(Fail(529, "overloaded_error", "too many singers", (("retry-after", "0"),)))
        lines = await claude.turn("again")
        assert [line["error_status"] for line in lines if line.get("subtype") == "api_retry"] == [529]
        assert lines[-1]["result"] == "echo: again"
        at.model.answers(Text("half a wo"), Cut())
        assert (await claude.turn("cut"))[-1]["terminal_reason"] in ("completed", "api_error")
        at.model.answers(Text("no"), Stop("refusal"))
        at.model.answers(Text("no"), Stop("refusal"))
        assert (await claude.turn("refuse"))[-1]["stop_reason"] == "refusal"


@on_versions(*BOTH)
async def test_sub_agents_titles_and_summaries_are_distinguished(at: Place) -> None:
    task = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    at.model.answers(Call("Agent", task | {"run_in_background": False}))
    at.model.agent_answers(Text("seen"))
    at.model.side_answers(Text("<summary>All was seen.</summary>"))
    async with bare(at) as claude:
        await claude.turn("send somebody")
        assert [asked.prompt for asked in at.model.aside] == ["look around"]
        assert at.model.aside[0].kind == "agent" and "seen" in at.model.last.everything
        await claude.turn("/compact")
        assert at.model.aside[-1].kind == "side" and "TEXT ONLY" in at.model.aside[-1].prompt
        await claude.turn("what was it?")
    assert "All was seen." in at.model.last.everything


@pytest.mark.slow
@pytest.mark.prove
async def test_ten_thousand_deltas_pass(at: Place) -> None:
    at.model.answers(Text("abcdefgh" * 10_000))
    async with bare(at) as claude:
        lines = await claude.turn("stream")
    assert sum(line["type"] == "stream_event" for line in lines) >= 10_000


@pytest.mark.slow
async def test_the_model_alone_plays_what_a_prompt_asks_for(at: Place) -> None:
    play = 'Play: [[["text", "first "], ["call", "Bash", {"command": "true", "description": "Nothing"}]], [["text", "then"]]]'
    at.model.choose = played
    async with bare(at) as claude:
        assert text_of(await claude.turn(play)) == "first then"
        assert text_of(await claude.turn("hello")) == "echo: hello"
