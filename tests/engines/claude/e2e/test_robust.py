"""When things go wrong: lines that nobody knows, lines that are huge, a program that dies."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import RequestRefused
from antiphon.transports.process import ProcessTransport
from tests.engines.claude.model.steps import Call, Gate, Text, Wait
from tests.engines.claude.place import AGENT, Place, is_gone
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, assistant, stand_in_says
from tests.engines.claude.versions import BOTH
from tests.engines.driving import connected

HUGE = 20 * 1024 * 1024


@proves("robust.unknown", on=[STAND_IN])
async def test_what_nobody_knows_is_ignored(at: Place) -> None:
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
            told = await client.say("sing")
            assert told.text == "still here" and told.stop == "end_turn"
        agent = client.agent
    assert "'from_tomorrow': 2" in agent.stderr and "'system/also_from_tomorrow': 2" in agent.stderr


@proves("robust.long-line", "turn.once")
async def test_a_line_of_20_mb_works(at: Place) -> None:
    at.model.answers(Text("la" * (HUGE // 2), size=HUGE // 4))
    async with connected(at) as client:
        told = await client.say("sing at length")
        assert len(told.text) == HUGE and told.stop == "end_turn"
        assert (await client.say("more")).text == "echo: more"


@proves("robust.crash", "robust.orphans", on=BOTH)
async def test_a_program_that_dies_in_a_turn_is_an_error_and_the_session_goes_on(at: Place) -> None:
    gate = Gate()
    async with connected(at) as client:
        await client.say("remember the river")
        await at.keeps("echo: remember the river")
        at.model.answers(Text("la "), Call("Read", {"file_path": "/nothing"}), Wait(gate))
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        await client.until(lambda: client.updates_of("tool_call"))
        [pid] = at.processes()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RequestRefused) as caught:
            await turn
        assert "Claude Code" in caught.value.message
        [call] = client.updates_of("tool_call")
        changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
        assert [each["status"] for each in changes if "status" in each][-1:] == ["failed"]
        assert (await client.say("go on")).text == "echo: go on"
        assert "remember the river" in at.model.last.texts
        await is_gone(pid)


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


@proves("robust.orphans")
async def test_nothing_is_left_when_the_client_goes_in_the_middle_of_a_command(at: Place) -> None:
    pipe = Path(at.environment["TMPDIR"]) / "pipe"
    os.mkfifo(pipe)
    command = f"setsid sh -c 'echo $$ > {pipe}; exec tail -f /dev/null' & wait"
    at.model.answers(Call("Bash", {"command": command, "description": "Hang"}))
    # Not by our own client: that one would clean up behind the agent.
    agent = await asyncio.create_subprocess_exec(
        *AGENT, cwd=at.folder, env=at.environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    ours, theirs = agent.stdin, agent.stdout
    assert ours is not None and theirs is not None

    def send(**message: Any) -> None:
        ours.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive(what: str) -> Any:
        async for line in theirs:
            message = json.loads(line)
            if what in message or message.get("method") == what:
                return message
        raise AssertionError(what)

    send(id=1, method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}})
    send(id=2, method="session/new", params={"cwd": str(at.folder), "mcpServers": []})
    await receive("result")
    session = (await receive("result"))["result"]["sessionId"]
    send(id=3, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "hang"}]})
    asked = await receive("session/request_permission")
    send(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "allow"}})
    hanging = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
    ours.close()
    await agent.wait()
    await is_gone(hanging)
    assert at.processes() == []


@proves("robust.orphans")
async def test_nothing_is_left_when_the_agent_is_killed(at: Place) -> None:
    async with connected(at) as client:
        await client.say("hello")
        [claude] = at.processes()
        transport = client.agent.connection.transport
        assert isinstance(transport, ProcessTransport)
        os.kill(transport.pid, signal.SIGKILL)
        await is_gone(claude)
