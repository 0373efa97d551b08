"""Terminals on the gateway's machine: clients see what they print, as text in the tool calls that name them."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from antiphon.gateway.agents.terminals import SHOWN, TerminalOutputs
from tests.gateway.peers import RawClient, ScriptedAgent, stage
from tests.gateway.test_requests import answers, begun
from tests.gateway.test_turns import BOB, end
from tests.waits import until

PLAIN = {"type": "content", "content": {"type": "text", "text": "before"}}


def terminal(id: str) -> dict[str, object]:
    return {"type": "terminal", "terminalId": id}


def text(output: str) -> dict[str, object]:
    return {"type": "content", "content": {"type": "text", "text": f"```\n{output}```"}}


async def answered(agent: ScriptedAgent, count: int) -> None:
    """Wait until the agent has that many responses."""
    await until(lambda: len(answers(agent)) == count)


def contents(client: RawClient) -> list[Any]:
    """The contents of the tool calls that a client was shown, one after the other."""
    updates = [each["params"]["update"] for each in client.messages if each.get("method") == "session/update"]
    return [each["content"] for each in updates if "toolCallId" in each and "content" in each]


async def test_the_output_of_a_terminal_is_shown_as_text_to_clients_that_are_there_and_that_come_later(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        agent = place.agent
        client = await place.client(terminal=True)
        session = await begun(place, tmp_path, client)
        agent.request(1, "terminal/create", {"sessionId": session, "command": "printf", "args": ["one\\ntwo\\n"]})
        client.choose(await client.asked())
        await answered(agent, 1)
        id = msgspec.json.decode(answers(agent)[0])["result"]["terminalId"]

        def update(kind: str, content: list[object]) -> None:
            call = {"sessionUpdate": kind, "toolCallId": "c", "title": "printf", "content": content}
            agent.notify("session/update", {"sessionId": session, "update": call})

        update("tool_call", [PLAIN, terminal(id)])
        agent.request(2, "terminal/wait_for_exit", {"sessionId": session, "terminalId": id})
        await answered(agent, 2)
        agent.request(3, "terminal/release", {"sessionId": session, "terminalId": id})
        await answered(agent, 3)
        update("tool_call_update", [terminal(id)])
        update("tool_call_update", [terminal("of another client")])
        await end(place)
        shown = [[PLAIN], [PLAIN, text("one\ntwo\n")], [text("one\ntwo\n")], [terminal("of another client")]]
        await until(lambda: contents(client) == shown)
        later = await place.client(BOB)
        await later.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert contents(later) == shown


async def test_a_command_that_goes_on_is_shown_when_its_output_has_doubled_and_when_it_is_killed(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        agent = place.agent
        client = await place.client()
        session = await begun(place, tmp_path, client)
        code = "import time; print('started', flush=True); time.sleep(600)"
        agent.request(1, "terminal/create", {"sessionId": session, "command": sys.executable, "args": ["-c", code]})
        client.choose(await client.asked())
        await answered(agent, 1)
        there = {"sessionId": session, "terminalId": msgspec.json.decode(answers(agent)[0])["result"]["terminalId"]}
        call = {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "wait",
            "content": [terminal(there["terminalId"])],
        }
        agent.notify("session/update", {"sessionId": session, "update": call})
        number = 1
        while b"started" not in answers(agent)[-1]:
            number += 1
            agent.request(number, "terminal/output", there)
            await answered(agent, number)
        await until(lambda: contents(client) == [[], [text("started\n")]])
        agent.request(number + 1, "terminal/output", there)
        agent.request(number + 2, "terminal/kill", there)
        await answered(agent, number + 2)
        assert contents(client) == [[], [text("started\n")]], "what has not changed is not shown again"


def named(*content: bytes) -> bytes:
    return (
        b'{"jsonrpc":"2.0", "method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",'
        b'"toolCallId":"c","z": 1.0,"content" : [%b]}}}' % b" , ".join(content)
    )


def test_only_the_place_of_the_terminal_changes_in_a_message() -> None:
    outputs = TerminalOutputs()
    outputs.open("t")
    list(outputs.put("s", "t", "out\n", is_over=False))
    other, ours = b'{"type":"diff","path":"/a", "newText":"\\u0061"}', b'{"type":"terminal","terminalId":"t"}'
    written = msgspec.json.encode(text("out\n"))
    changed = outputs.shown(named(other, ours))
    assert changed == named(b"", b"").replace(b"[ , ]", b"[%b,%b]" % (other, written))
    for line in (
        named(other),
        named(b'{"type":"terminal","terminalId":"u"}'),
        b'{"params":{"update":{"content":7}},"terminalId":1}',
    ):
        assert outputs.shown(line) == line


def test_a_large_output_is_shown_by_its_end_and_a_growing_one_not_at_each_look() -> None:
    outputs = TerminalOutputs()
    outputs.open("t")
    outputs.shown(named(b'{"type":"terminal","terminalId":"t"}'))
    shown = [update for size in range(1, 1000) for update in outputs.put("s", "t", "x" * size, is_over=False)]
    assert len(shown) == 10
    assert len(list(outputs.put("s", "t", "x" * 999, is_over=True))) == 1
    (update,) = outputs.put("s", "t", "a" + "x" * SHOWN, is_over=True)
    assert b"a" + b"x" * SHOWN not in update and b"x" * SHOWN in update
    assert not list(outputs.put("s", "of another session", "x", is_over=True))
