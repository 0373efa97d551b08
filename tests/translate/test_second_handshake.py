"""Agents that speak version 2 alone and take no second handshake, as real processes: they are started again, once."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

import antiphon
from antiphon import v1
from antiphon.protocol.exchange import RequestFailure
from antiphon.protocol.translate.choice import by_answer
from tests.limits import limit

AGENT = """
import json, sys
how, starts = sys.argv[1:]
open(starts, "a", encoding="utf-8").write("started\\n")
refused = False
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    sent = []
    if asked["method"] == "initialize" and (refused or asked["params"]["protocolVersion"] != 2 or how == "never"):
        if refused and how == "ends":
            sys.exit(0)
        refused = True
        answer["error"] = {"code": -32600, "message": "Invalid request", "data": {"details": "Unsupported ACP protocol 1"}}
        if how != "poisoned":
            answer["error"] = {"code": -32022, "message": "No", "data": {"requested": 1, "supported": [2]}}
    elif asked["method"] == "initialize":
        info = {"name": "new", "version": "1"}
        answer["result"] = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
    elif asked["method"] == "session/new":
        answer["result"] = {"sessionId": "s"}
    else:
        answer["result"] = {"messageId": "m"}
        content = {"type": "text", "text": "hi"}
        chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "a", "content": content}
        running, idle = ({"sessionUpdate": "state_update", "state": state} for state in ("running", "idle"))
        sent = [running, chunk, {**idle, "stopReason": "end_turn"}]
    print(json.dumps(answer), flush=True)
    for update in sent:
        params = {"sessionId": "s", "update": update}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=True)
    if refused and how == "ends":
        sys.exit(0)
"""
OLD_AGENT = """
import json, sys
for line in sys.stdin:
    result = {"protocolVersion": 1, "agentInfo": {"name": "old", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}), flush=True)
"""
BRIDGE = (sys.executable, "-m", "antiphon", "bridge", "--")


@pytest.mark.parametrize("bridged", [False, True], ids=["connect", "bridge"])
@pytest.mark.parametrize("how", ["ends", "poisoned"])
async def test_an_agent_that_takes_no_second_handshake_is_started_again(
    tmp_path: Path, how: str, bridged: bool
) -> None:
    starts = tmp_path / "starts"
    command = [*(BRIDGE if bridged else ()), sys.executable, "-c", AGENT, how, str(starts)]
    versions = (1,) if bridged else (1, 2)
    async with asyncio.timeout(limit()), antiphon.connect(command, versions=versions) as agent:
        turn = (await agent.new_session(tmp_path)).prompt("hello")
        assert await turn.text() == "hi"
        assert turn.result.stop_reason is v1.StopReason.END_TURN
    assert starts.read_text(encoding="utf-8").splitlines() == ["started"] * 2


async def test_an_agent_that_takes_no_handshake_at_all_is_started_twice_and_no_more(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    with pytest.raises(antiphon.AcpError):
        async with asyncio.timeout(limit()), antiphon.connect([sys.executable, "-c", AGENT, "never", str(starts)]):
            pass
    assert starts.read_text(encoding="utf-8").splitlines() == ["started"] * 2


def asked(version: int, *, info: bool = False) -> Raw:
    return Raw(
        msgspec.json.encode({"protocolVersion": version, **({"info": {"name": "c", "version": "1"}} if info else {})})
    )


MISSING = {"type": "missing", "loc": ["info"], "msg": "Field required"}


@pytest.mark.parametrize(
    ("params", "result", "failure", "found"),
    [
        (asked(2, info=True), {"protocolVersion": 1}, None, "V2ClientTranslator"),
        (asked(99, info=True), {"protocolVersion": 1}, None, "V2ClientTranslator"),
        (asked(99, info=True), None, RequestFailure(-32022, "no", {"supported": [1]}), "V2ClientTranslator"),
        (asked(99, info=True), {"protocolVersion": 2, "info": {}}, None, None),
        (asked(99), {"protocolVersion": 1}, None, None),
        (asked(1), None, RequestFailure(-32022, "no", {"supported": [2]}), "V1ClientTranslator"),
        (asked(1), None, RequestFailure(-32022, "no", {"supported": [3]}), None),
        (asked(1), None, RequestFailure(-32602, "no", {"errors": [MISSING]}), "V1ClientTranslator"),
        (asked(1), None, RequestFailure(-32602, "no", {"errors": [{**MISSING, "loc": ["cwd"]}]}), None),
        (asked(1), {"protocolVersion": 1}, None, None),
    ],
)
def test_what_an_agent_answers_chooses_the_translator(
    params: Raw, result: object, failure: RequestFailure | None, found: str | None
) -> None:
    answer = None if result is None else Raw(msgspec.json.encode(result))
    chosen = by_answer(lambda: 0.0, params, answer, failure)
    assert (None if chosen is None else type(chosen).__name__) == found


@pytest.mark.parametrize("how", ["ends", "poisoned"])
async def test_a_client_that_was_too_early_is_still_translated(tmp_path: Path, how: str) -> None:
    agent = await asyncio.create_subprocess_exec(
        *BRIDGE, sys.executable, "-c", AGENT, how, str(tmp_path / "starts"), stdin=-1, stdout=-1
    )
    assert agent.stdin is not None and agent.stdout is not None
    early = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    hello = {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 1}}
    async with asyncio.timeout(limit()):
        answers = []
        for message in (early, hello):
            agent.stdin.write(msgspec.json.encode(message) + b"\n")
            answers.append(msgspec.json.decode(await agent.stdout.readline()))
        assert [answer["id"] for answer in answers] == [1, 2]
        assert answers[1]["result"]["protocolVersion"] == 1
        agent.stdin.close()
        await agent.wait()


def test_a_version_that_no_agent_has_is_refused_in_the_shape_of_version_2_alone() -> None:
    answer = Raw(b'{"protocolVersion":1}')
    with pytest.raises(antiphon.RequestError) as refused:
        by_answer(lambda: 0.0, asked(0, info=True), answer, None)
    assert (refused.value.code, refused.value.data) == (-32022, {"requested": 0, "supported": [1, 2]})
    assert by_answer(lambda: 0.0, asked(0), answer, None) is None


async def test_a_handshake_that_was_refused_by_a_bridge_may_be_tried_again() -> None:
    agent = await asyncio.create_subprocess_exec(*BRIDGE, sys.executable, "-c", OLD_AGENT, stdin=-1, stdout=-1)
    assert agent.stdin is not None and agent.stdout is not None
    info = {"name": "c", "version": "1"}
    async with asyncio.timeout(limit()):
        answers = []
        for version in (0, 2):
            params = {"protocolVersion": version, "info": info}
            message = {"jsonrpc": "2.0", "id": version, "method": "initialize", "params": params}
            agent.stdin.write(msgspec.json.encode(message) + b"\n")
            answers.append(msgspec.json.decode(await agent.stdout.readline()))
        agent.stdin.close()
        await agent.wait()
    assert answers[0]["error"]["code"] == -32022
    assert (answers[1]["id"], answers[1]["result"]["protocolVersion"]) == (2, 2)
    assert answers[1]["result"]["info"]["name"] == "old"
