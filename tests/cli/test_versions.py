"""Programs of different versions as people start them: `antiphon agent`, `antiphon bridge`, `antiphon run`."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import v1
from tests.agent.raw_client import raw_client
from tests.limits import limit

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = [sys.executable, "-m", "antiphon", "bridge", "--"]
AGENT = """
import antiphon
agent = antiphon.Agent("notes", "1", versions={versions})
@agent.on
async def prompt(turn):
    await turn.say("hello ")
    await turn.say(turn.text)
agent.run()
"""
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def agent(folder: Path, *versions: int) -> list[str]:
    script = folder / "agent.py"
    script.write_text(AGENT.format(versions=versions), encoding="utf-8")
    return [sys.executable, str(script)]


@pytest.mark.slow
@pytest.mark.parametrize(("client", "spoken"), [(1, 2), (2, 1)], ids=["v1 client, v2 agent", "v2 client, v1 agent"])
async def test_a_bridge_joins_an_editor_and_an_agent_of_different_versions(
    tmp_path: Path, client: int, spoken: int
) -> None:
    command = [*BRIDGE, *agent(tmp_path, spoken)]
    async with asyncio.timeout(limit()), antiphon.connect(command, versions=(client,)) as connected:
        session = await connected.new_session(tmp_path)
        turn = session.prompt("you")
        chunks = [update async for update in turn if isinstance(update, v1.AgentMessageChunk)]
        assert (await turn).stop_reason is v1.StopReason.END_TURN
    assert "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, v1.TextBlock)) == "hello you"


WHICH = """
import atexit, sys
atexit.register(lambda: sys.stderr.write(repr(sorted(name for name in sys.modules if name.startswith(("antiphon.protocol.v2", "antiphon.protocol.translate", "antiphon.protocol.extension", "antiphon.agent.work"))))))
from antiphon.cli.main import main
sys.argv = ["antiphon", "agent", "--engine", "demo"]
main()
"""


def handshake(version: int) -> Json:
    name = {"name": "n", "version": "1"}
    params: Json = {"protocolVersion": version}
    params |= {"clientCapabilities": {}, "clientInfo": name} if version == 1 else {"info": name, "capabilities": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


@pytest.mark.slow
async def test_the_demo_shows_what_version_2_adds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"]
    process = await antiphon.spawn(command, cwd=tmp_path)
    async with raw_client(process, str(tmp_path)) as client:
        id = await client.prompt("/ids")
        first = await client.update(sessionUpdate="agent_message_chunk")
        assert f"`{id}`" in first["content"]["text"]
        await client.update(sessionUpdate="agent_message_chunk", messageId=first["messageId"])
        await client.update(sessionUpdate="state_update", state="idle")

        await client.prompt("/count 100000")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.ask("tool_call/cancel", toolCallId=offered["toolCallId"])
        await client.update(toolCallId=offered["toolCallId"], status="cancelled")
        assert (await client.update(sessionUpdate="state_update", state="idle"))["stopReason"] == "end_turn"

        await client.prompt("/later 1")
        await client.update(sessionUpdate="state_update", state="idle")
        await client.update(sessionUpdate="state_update", state="running")
        assert (await client.update(sessionUpdate="state_update", state="idle"))["stopReason"] == "end_turn"

        await client.prompt("/background 100000")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        work = [{"type": "tool_call", "toolCallId": offered["toolCallId"]}]
        assert client.states[-1]["background"] == work
        await client.ask("tool_call/cancel", toolCallId=offered["toolCallId"])
        await client.update(sessionUpdate="state_update", background=[])

        await client.prompt("/background 100000")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.ask("session/close")
        ends = [
            each["status"]
            for each in client.updates
            if each.get("toolCallId") == offered["toolCallId"] and "status" in each
        ]
        assert ends[-1] == "cancelled" and client.states[-1]["background"] == []
    await process.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, 2])
def test_our_agent_answers_in_the_version_of_the_client_and_loads_the_other_only_then(
    tmp_path: Path, version: int
) -> None:
    opened = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}}
    sent = json.dumps(handshake(version)) + "\n" + (json.dumps(opened) + "\n" if version else "")
    ran = subprocess.run(
        [sys.executable, "-c", WHICH],
        input=sent,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit(),
        encoding="utf-8",
    )
    answers = {message["id"]: message for message in map(json.loads, ran.stdout.splitlines()) if "id" in message}
    if version == 0:
        assert answers[1]["error"]["code"] == -32022
        assert answers[1]["error"]["data"] == {"requested": 0, "supported": [1, 2]}
        return
    assert answers[1]["result"]["protocolVersion"] == version
    assert "sessionId" in answers[2]["result"]
    if version == 1:
        assert ran.stderr.endswith("[]")
    else:
        assert "antiphon.protocol.translate.v2_client" in ran.stderr
        assert "info" in answers[1]["result"]
