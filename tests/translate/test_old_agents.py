"""What a client of version 2 gets of an agent of version 1 that names its messages, repeats prompts, or knows no such session."""

import asyncio
import sys
from typing import Any

import pytest

from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.protocol.v1.initialize import AgentCapabilities, CloseSupport, ResumeSupport, SessionCapabilities
from tests.limits import limit
from tests.translate.pump import Json, Pump

ABLE = AgentCapabilities(
    load_session=True, session_capabilities=SessionCapabilities(resume=ResumeSupport(), close=CloseSupport())
)


@pytest.fixture
def pump() -> Pump:
    found = Pump(V2ClientTranslator)
    link: Any = found.links[0]
    found.client(
        {"id": 0, "method": "initialize", "params": {"protocolVersion": 2, "info": {"name": "c", "version": "1"}}}
    )
    answer(found, {"protocolVersion": 1, "agentInfo": {"name": "a", "version": "1"}})
    link._agent = link._agent.__class__(protocol_version=1, agent_capabilities=ABLE)
    return found


def answer(pump: Pump, result: Json) -> None:
    [*_, last] = (message for message in pump.at_agent if "method" in message and "id" in message)
    pump.agent({"id": last["id"], "result": result})


def update(pump: Pump, **body: Any) -> None:
    pump.agent({"method": "session/update", "params": {"sessionId": "s", "update": body}})


def prompt(pump: Pump, id: int, text: str, *, echo: str | None = None) -> None:
    block = {"type": "text", "text": text}
    pump.client({"id": id, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [block]}})
    if echo is not None:
        update(pump, sessionUpdate="user_message_chunk", messageId=echo, content=block)
    update(pump, sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"re: {text}"})
    answer(pump, {"stopReason": "end_turn"})


def resume(pump: Pump, id: int, *, replay: bool) -> None:
    start = {"replayFrom": {"type": "start"}} if replay else {}
    pump.client({"id": id, "method": "session/resume", "params": {"sessionId": "s", "cwd": "/w", **start}})
    if replay:
        for number, text in enumerate(("one", "two"), 1):
            content = {"type": "text", "text": text}
            update(pump, sessionUpdate="user_message_chunk", messageId=f"prompt-{number}", content=content)
            update(pump, sessionUpdate="agent_message_chunk", content={"type": "text", "text": f"re: {text}"})
    answer(pump, {})


def users(pump: Pump) -> list[tuple[str, str]]:
    """The ids and texts of the messages of the user."""
    bodies = [m["params"]["update"] for m in pump.at_client if m.get("method") == "session/update"]
    found = []
    for body in bodies:
        if body["sessionUpdate"].startswith("user_message"):
            content = body["content"] if isinstance(body["content"], list) else [body["content"]]
            found += [(body["messageId"], block["text"]) for block in content]
    return found


def test_a_prompt_has_one_id_live_and_replayed_and_no_other_has_it(pump: Pump) -> None:
    prompt(pump, 1, "one")
    prompt(pump, 2, "two")
    resume(pump, 3, replay=True)
    prompt(pump, 4, "three")
    ids = {text: {id for id, other in users(pump) if other == text} for text in ("one", "two", "three")}
    assert ids == {"one": {"user-1"}, "two": {"user-2"}, "three": {"user-3"}}


def test_messages_after_a_history_that_is_not_known_have_ids_of_their_own(pump: Pump) -> None:
    pump.now = 5.0
    resume(pump, 1, replay=False)
    prompt(pump, 2, "one")
    [(id, _)] = users(pump)
    assert id not in ("user-1", "")


def test_a_history_that_an_agent_replays_unasked_changes_no_ids(pump: Pump) -> None:
    prompt(pump, 1, "one")
    before = len(pump.at_client)
    pump.client({"id": 2, "method": "session/resume", "params": {"sessionId": "s", "cwd": "/w"}})
    update(pump, sessionUpdate="user_message_chunk", content={"type": "text", "text": "one"})
    answer(pump, {})
    assert [message.get("method") for message in pump.at_client[before:]] == ["session/update", None]  # its state
    prompt(pump, 3, "two")
    assert users(pump) == [("user-1", "one"), ("user-2", "two")]


def test_a_prompt_that_the_agent_repeats_is_shown_once(pump: Pump) -> None:
    prompt(pump, 1, "one", echo="x")
    assert users(pump) == [("user-1", "one")]


def test_what_stands_beside_an_update_is_kept_and_stands_beside_no_other(pump: Pump) -> None:
    piece = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    pump.agent({"method": "session/update", "params": {"sessionId": "s", "update": piece, "_meta": {"trace": "1"}}})
    update(pump, **piece)
    assert [message["params"].get("_meta") for message in pump.at_client[-2:]] == [{"trace": "1"}, None]


def test_methods_that_version_2_has_no_more_are_unknown(pump: Pump) -> None:
    pump.client({"id": 1, "method": "session/load", "params": {}})
    assert pump.at_client[-1]["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["session/close", "session/prompt"])
def test_an_unknown_session_is_named_and_closing_it_succeeds(pump: Pump, method: str) -> None:
    params = {"sessionId": "s", **({"prompt": [{"type": "text", "text": "hi"}]} if method == "session/prompt" else {})}
    pump.client({"id": 1, "method": method, "params": params})
    error = {"code": -32002, "message": "Resource not found", "data": "open it first"}
    pump.agent({"id": pump.at_agent[-1]["id"], "error": error})
    found = pump.at_client[-1]
    if method == "session/close":
        assert found["result"] == {}
    else:
        named = {"code": -32002, "message": "Resource not found: open it first", "data": {"sessionId": "s"}}
        assert found["error"] == named


def test_the_output_of_a_terminal_takes_no_memory_but_its_digest(pump: Pump) -> None:
    link: Any = pump.links[0]
    for _ in range(40):
        output = {"terminal_id": "t", "data": "x" * 50_000}
        update(pump, sessionUpdate="tool_call_update", toolCallId="c", _meta={"terminal_output_delta": output})
        pump.at_client.clear()
    [log] = link._sessions["s"].updates._terminals.values()
    log.fold()
    assert log.length == 40 * 50_000
    assert not log._pending


async def test_a_batch_is_refused_by_an_agent_that_is_translated() -> None:
    agent = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "antiphon", "agent", "--engine", "demo", stdin=-1, stdout=-1
    )
    assert agent.stdin is not None and agent.stdout is not None
    hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}\n'
    agent.stdin.write(hello + b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]\n')
    async with asyncio.timeout(limit()):
        assert b'"protocolVersion":2' in await agent.stdout.readline()
        refused = await agent.stdout.readline()
        assert b'"id":null' in refused and b"-32600" in refused
        agent.stdin.close()
        await agent.wait()


@pytest.mark.parametrize("replay", [False, True])
def test_a_session_that_is_open_and_not_stored_yet_is_resumed(pump: Pump, replay: bool) -> None:
    pump.client({"id": 1, "method": "session/new", "params": {"cwd": "/w"}})
    answer(pump, {"sessionId": "s"})
    start = {"replayFrom": {"type": "start"}} if replay else {}
    pump.client({"id": 2, "method": "session/resume", "params": {"sessionId": "s", "cwd": "/w", **start}})
    missing = {"code": -32002, "message": "Resource not found", "data": "it has no prompt"}
    pump.agent({"id": pump.at_agent[-1]["id"], "error": missing})
    state, response = pump.at_client[-2:]
    assert state["params"]["update"] == {"sessionUpdate": "state_update", "state": "idle"}
    assert response["id"] == 2 and "result" in response


def test_a_session_with_prompts_that_the_agent_does_not_find_is_not_resumed(pump: Pump) -> None:
    prompt(pump, 1, "one")
    pump.client({"id": 2, "method": "session/resume", "params": {"sessionId": "s", "cwd": "/w"}})
    missing = {"code": -32002, "message": "Resource not found", "data": "it was deleted"}
    pump.agent({"id": pump.at_agent[-1]["id"], "error": missing})
    assert pump.at_client[-1]["error"]["code"] == -32002
