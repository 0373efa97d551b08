"""Cancelling a turn, whatever it is at, and a CLI that hangs or dies."""

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from antiphon import v1
from antiphon.errors import RequestRefused
from antiphon.transports.process import ProcessTransport
from tests.engines.client import Client, connected
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.places import Place, is_gone
from tests.engines.subjects import proves

HANGS = "exec tail -f /dev/null"


def ends(client: Client) -> list[str]:
    """Return how prompts were answered."""
    return [each["result"]["stopReason"] for each in client.frames if "stopReason" in (each.get("result") or {})]


def last_status(client: Client) -> str:
    """Return how the last call ended."""
    call = client.updates_of("tool_call")[-1]
    changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
    return str([each["status"] for each in changes if "status" in each][-1])


@proves(
    "cancel.speaking",
    "cancel.asking",
    "cancel.next",
    claude=["cancel.tool", "permission.withdrawn"],
    codex=["cancel.command"],
)
async def test_a_turn_is_cancelled_whatever_it_is_at_and_the_next_prompt_works(at: Place) -> None:
    gate, pipe, cancelled = Gate(), at.pipe(), asyncio.Event()

    async def never(_: v1.RequestPermission) -> bool:
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    at.model.answers(Text("la la la "), Wait(gate), Text("and never this"))
    async with connected(at) as client:
        await client.open()
        await client.session.set_mode("default")
        # It answers.
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        await client.until(lambda: client.updates_of("agent_message_chunk"))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await gate.is_left()
        assert (await client.say("go on")).text == "echo: go on" and len(at.processes()) == 1

        # It asks.
        client.decisions.append(never)
        at.model.answers(at.calls.add_file(at.folder / "song.txt", "la\n"))
        turn = client.session.prompt("write")
        await client.until(lambda: client.asked)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await cancelled.wait()
        answered = [each for each in client.sent if "outcome" in (each.get("result") or {})]
        assert all(each["result"]["outcome"]["outcome"] == "cancelled" for each in answered)
        assert last_status(client) == "failed"
        assert (await client.say("go on")).text == "echo: go on" and not (at.folder / "song.txt").exists()

        # It runs a command.
        at.model.answers(at.calls.asked_command(f"echo $$ > {pipe}; {HANGS}"))
        turn = client.session.prompt("run")
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await is_gone(pid)
        assert last_status(client) == "failed"
        call = client.updates_of("tool_call")[-1]["toolCallId"]
        after = len(client.frames)
        assert (await client.say("go on")).text == "echo: go on"
        assert call not in str(client.frames[after:])  # nothing of a turn comes after its answer
    assert ends(client) == ["cancelled", "end_turn"] * 3 and "never this" not in str(client.frames)


@proves("cancel.hung", "robust.crash", "robust.orphans", codex=["server.killed"])
async def test_a_cli_that_hangs_or_dies_is_replaced_and_the_session_goes_on(at: Place) -> None:
    gate, pipe = Gate(), at.pipe()
    async with connected(at) as client:
        await client.say("remember the river")
        await client.session.set_mode("default")
        await at.keeps("echo: remember the river")
        # It hangs.
        at.model.answers(Text("la "), Wait(gate))
        turn = client.session.prompt("sing for ever")
        await gate.is_reached()
        [hung] = at.processes()
        os.kill(hung, signal.SIGSTOP)
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        assert (await client.say("go on")).text == "echo: go on"
        await is_gone(hung)
        assert len(at.processes()) == 1 and ends(client) == ["end_turn", "cancelled", "end_turn"]
        await at.keeps("echo: go on")

        # It dies in a turn.
        at.model.answers(Text("la "), at.calls.asked_command(f"echo $$ > {pipe}; {HANGS}"))
        turn = client.session.prompt("sing for ever")
        hanging = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        await client.until(lambda: client.updates_of("tool_call"))
        [died] = at.processes()
        os.kill(died, signal.SIGKILL)
        with pytest.raises(RequestRefused) as caught:
            await turn
        assert at.title in caught.value.message and last_status(client) == "failed"
        assert (await client.say("and on")).text == "echo: and on"
        assert "remember the river" in at.model.last.texts and "go on" in at.model.last.texts
        await is_gone(died)
        await is_gone(hanging)

        # We die.
        [left] = at.processes()
        transport = client.agent.connection.transport
        assert isinstance(transport, ProcessTransport)
        os.kill(transport.pid, signal.SIGKILL)
        await is_gone(left)


@proves("robust.orphans")
async def test_nothing_is_left_when_the_client_goes_in_the_middle_of_a_command(at: Place) -> None:
    pipe = at.pipe()
    at.model.answers(at.calls.command(f"setsid sh -c 'echo $$ > {pipe}; {HANGS}' & wait"))
    at.lets_everything_run()
    # Not by our own client: that one would clean up behind the agent.
    agent = await asyncio.create_subprocess_exec(
        *at.agent, cwd=at.folder, env=at.environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    ours, theirs = agent.stdin, agent.stdout
    assert ours is not None and theirs is not None

    def send(**message: Any) -> None:
        ours.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def result(id: int) -> Any:
        async for line in theirs:
            if (found := json.loads(line)).get("id") == id:
                return found["result"]
        raise AssertionError(id)

    send(id=1, method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}})
    send(id=2, method="session/new", params={"cwd": str(at.folder), "mcpServers": []})
    session = (await result(2))["sessionId"]
    send(id=3, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "hang"}]})
    hanging = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
    ours.close()
    await agent.wait()
    await is_gone(hanging)
    assert at.processes() == []
