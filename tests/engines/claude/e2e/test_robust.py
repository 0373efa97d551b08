"""When things go wrong: unknown lines, lines that are huge, a program that dies."""

import os
import signal
import sys

import pytest

from tests.engines.claude.model.steps import Text
from tests.engines.claude.place import Place, is_gone
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, assistant, stand_in_says
from tests.engines.client import connected

HUGE = 20 * 1024 * 1024


@proves("robust.unknown", on=[STAND_IN])
async def test_unknown_messages_are_ignored(at: Place) -> None:
    stand_in_says(
        at,
        {"type": "from_tomorrow", "session_id": "$SESSION"},
        {"type": "system", "subtype": "also_from_tomorrow", "words": ["a", {"b": None}]},
        {"type": "assistant", "message": "not a message at all"},
        {"type": "stream_event", "event": {"type": "content_block_from_tomorrow", "index": 7}},
        {"type": "control_request", "request_id": "7", "request": {"subtype": "from_tomorrow"}},
        {**assistant({"type": "text", "text": "still here"}, {"type": "hologram", "data": 1}), "from_tomorrow": [1]},
        {**RESULT, "from_tomorrow": {"a": 1}},
    )
    # The agent logs what matters to most; how often something was ignored matters to who looks for it.
    code = "import logging; logging.basicConfig(level='INFO'); from antiphon.cli.main import main; "
    command = (sys.executable, "-P", "-c", f"{code}main(['agent', '--engine', 'claude'])")
    async with connected(at, command=command) as client:
        for _ in range(2):
            reply = await client.say("sing")
            assert reply.text == "still here" and reply.stop == "end_turn"
        agent = client.agent
    assert "'from_tomorrow': 2" in agent.stderr and "'system/also_from_tomorrow': 2" in agent.stderr


@pytest.mark.prove  # it takes Claude Code long; `tests/engines/test_line_process.py` shows it of any program
@proves("robust.long-line", "turn.once")
async def test_a_line_of_20_mb_works(at: Place) -> None:
    at.model.answers(Text("la" * (HUGE // 2), size=HUGE // 4))
    async with connected(at) as client:
        reply = await client.say("sing at length")
        assert len(reply.text) == HUGE and reply.stop == "end_turn"
        assert (await client.say("more")).text == "echo: more"


@proves("robust.crash")
async def test_a_program_that_dies_between_turns_is_started_again(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await at.keeps("echo: remember the river")
        [pid] = at.processes()
        os.kill(pid, signal.SIGKILL)
        await is_gone(pid)
        assert (await client.say("go on")).text == "echo: go on"
    assert at.model.last.texts == ["remember the river", "go on"]
