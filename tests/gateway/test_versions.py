"""Clients and agents of version 2 of ACP at the gateway that people start, over sockets."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.transports.remote import RemoteAddress
from tests.gateway.peers import RawClient
from tests.gateway.processes import ROOT, Gateway, call, running
from tests.gateway.second import HELLO, SecondClient, connected, stream_of
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow  # each starts a gateway

SECOND = (sys.executable, str(Path(__file__).with_name("second_agent.py")))
PROFILES = pytest.mark.parametrize("scheme", ["ws", "http"])


@pytest.fixture
def gateway(tmp_path: Path) -> Any:
    with running(tmp_path) as gateway:
        yield gateway


@asynccontextmanager
async def second(gateway: Gateway, **where: str) -> AsyncIterator[SecondClient]:
    async with asyncio.timeout(limit()):
        client = await connected(gateway, **where)
        try:
            await client.initialize()
            yield client
        finally:
            await client.leave()


@asynccontextmanager
async def first(gateway: Gateway) -> AsyncIterator[RawClient]:
    """A client of version 1."""
    async with asyncio.timeout(limit()):
        url = f"ws://127.0.0.1:{gateway.port}/acp"
        client = RawClient(None, transport=await RemoteAddress(url, token=gateway.token).open())
        try:
            await client.initialize()
            yield client
        finally:
            await client.leave()


def root(gateway: Gateway) -> Path:
    return gateway.directory / "root"


@PROFILES
@pytest.mark.parametrize("path", ["/acp", "/agents/agent/acp"])
async def test_a_client_of_version_2_has_a_turn(gateway: Gateway, scheme: str, path: str) -> None:
    async with second(gateway, scheme=scheme, path=path) as client:
        session = await client.new(root(gateway))
        asked = client.prompt(session, "/think hello")
        id = (await client.response(asked))["result"]["messageId"]
        await until(lambda: client.ends)
        assert client.states == ["running", "idle end_turn"]
        assert client.transcript["user_message", id] == "/think hello"
        assert "hello" in "".join(text for (kind, _), text in client.transcript.items() if kind == "agent_message")
        assert (await client.request("session/list", {}))["sessions"][0]["sessionId"] == session


def test_the_highest_common_version_is_chosen(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        refused = call(opened, 0, "initialize", protocolVersion=0)["error"]
        assert (refused["code"], refused["data"]) == (-32022, {"requested": 0, "supported": [1, 2]})
        assert call(opened, 1, "initialize", protocolVersion=2)["error"]["code"] == -32602, "it has no name"
        assert call(opened, 2, "initialize", protocolVersion=99)["result"]["protocolVersion"] == 2
    with gateway.open_socket() as opened:
        assert call(opened, 1, "initialize", **{**HELLO, "info": 7})["error"]["code"] == -32602
        made = call(opened, 2, "initialize", protocolVersion=1, clientCapabilities={})
        assert made["result"]["protocolVersion"] == 1, "a handshake that failed may be tried again in the other version"
        opened.send("no json")
        assert json.loads(opened.recv(timeout=limit()))["error"]["code"] == -32700
    with gateway.open_socket() as opened:
        call(opened, 1, "initialize", **HELLO)
        for line, code in (("no json", -32700), ('{"jsonrpc":"2.0","id":5,"method":7}', -32600), ("[]", -32600)):
            opened.send(line)
            assert json.loads(opened.recv(timeout=limit()))["error"]["code"] == code


async def test_prompts_are_held_by_the_gateway_and_cancelled_alone_or_together(gateway: Gateway) -> None:
    async with second(gateway) as client:
        session = await client.new(root(gateway))
        running_ = client.prompt(session, "/slow 10000")
        held = [client.prompt(session, f"/think {name}") for name in ("one", "two", "three")]
        await client.response(running_)
        client.notify("$/cancel_request", {"requestId": held[0]})
        assert (await client.response(held[0]))["error"]["code"] == -32800
        assert client.states == ["running"], "the work goes on"
        client.notify("session/cancel", {"sessionId": session})
        for each in held[1:]:
            assert (await client.response(each))["error"]["code"] == -32800
        await until(lambda: client.ends)
        await client.turn(session, "/think four")
        assert client.states == ["running", "idle cancelled", "running", "idle end_turn"]
        said = [text for (kind, _), text in client.transcript.items() if kind == "user_message"]
        assert said == ["/slow 10000", "/think four"]


async def test_work_that_fails_ends_with_its_error(gateway: Gateway) -> None:
    async with second(gateway) as client:
        session = await client.new(root(gateway))
        await client.turn(session, "/fail -32001")
        (ended,) = [each for each in client.updates if each.get("state") == "idle"]
        assert ended["stopReason"] == "error" and ended["error"]["code"] == -32001
        missing = await client.refused(
            "session/prompt", {"sessionId": "none", "prompt": [{"type": "text", "text": "x"}]}
        )
        assert missing["code"] == -32002 and missing["data"]["sessionId"] == "none"


@pytest.mark.parametrize("answers", [1, 2])
async def test_clients_of_both_versions_share_a_session(gateway: Gateway, answers: int) -> None:
    async with first(gateway) as old, second(gateway) as new:
        session = await old.new(root(gateway))
        await new.resume(session, root(gateway))
        asked = old.prompt(session, "/permission")
        questions = await old.asked(), await new.asked()
        assert new.states == ["idle", "running", "requires_action"]
        assert questions[1]["params"]["title"] and questions[1]["params"]["subject"]["type"] == "tool_call"
        chosen, other = (old, new) if answers == 1 else (new, old)
        chosen.choose(questions[answers - 1])
        assert (await old.response(asked))["result"]["stopReason"] == "end_turn"
        await until(lambda: new.ends)
        assert new.states == ["idle", "running", "requires_action", "running", "idle end_turn"]
        cancelled = [each["params"]["requestId"] for each in other.messages if each.get("method") == "$/cancel_request"]
        assert cancelled == [questions[2 - answers]["id"]]
        assert not [each for each in chosen.messages if each.get("method") == "$/cancel_request"]
        await new.turn(session, "/think of others")
        assert "/think of others" in old.texts and "/permission" in new.texts
        assert len(new.texts) == len(set(new.texts)), "nothing comes twice"


async def test_a_lost_client_resumes_with_the_same_messages(gateway: Gateway) -> None:
    async with second(gateway) as client:
        session = await client.new(root(gateway))
        await client.turn(session, "/think before")
        await client.response(client.prompt(session, "/slow 10000"))
        await until(lambda: any("2" in text for text in client.texts))
        before = client.transcript
    async with second(gateway) as client:
        resumed = await client.resume(session, root(gateway))
        assert client.states == ["running"] and "/think before" not in client.texts, "its history was not asked for"
        assert resumed["configOptions"] and resumed["availableCommands"][0]["type"] == "command"
        client.notify("session/cancel", {"sessionId": session})
        await until(lambda: client.ends)
        await client.turn(session, "/think after")
        live = client.transcript
        await client.resume(session, root(gateway), replayFrom={"type": "start"})
        assert client.states[-1] == "idle"
        after = client.transcript
    async with second(gateway) as client:
        await client.resume(session, root(gateway), replayFrom={"type": "start"})
        replayed = client.transcript
        assert client.states == ["idle"]
    users = [text for (kind, _), text in replayed.items() if kind == "user_message"]
    assert users == ["/think before", "/slow 10000", "/think after"]
    assert {key: after[key] for key in replayed} == replayed, "a replay puts nothing beside what there is"
    assert all(replayed[key].startswith(text) for key, text in before.items())
    last = [(key, text) for key, text in live.items() if "after" in text]
    assert len(last) == 3 and all(replayed[key] == text for key, text in last)


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_work_ends_for_all_when_its_session_is_closed_or_deleted(gateway: Gateway, method: str) -> None:
    async with second(gateway) as client, second(gateway) as other:
        session = await client.new(root(gateway))
        await other.resume(session, root(gateway))
        await client.response(client.prompt(session, "/slow 10000"))
        await client.request(method, {"sessionId": session})
        assert client.states[0] == "running" and client.states[-1].startswith("idle ") and len(client.ends) == 1
        await until(lambda: other.ends)


async def test_a_session_that_is_closed_or_unknown_is_refused(gateway: Gateway) -> None:
    async with second(gateway) as client, second(gateway) as other:
        session = await client.new(root(gateway))
        await other.resume(session, root(gateway))
        await client.response(client.prompt(session, "/slow 10000"))
        await client.request("session/close", {"sessionId": session})
        await until(lambda: other.ends)
        assert client.states == ["running", "idle cancelled"]
        refused = await client.refused(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        )
        assert refused["code"] == -32002
        await client.request("session/close", {"sessionId": "never there"})
        unknown = await client.refused("session/resume", {"sessionId": "never there", "cwd": str(root(gateway))})
        assert unknown["code"] == -32002 and unknown["data"]["sessionId"] == "never there"
        cursor = {"sessionId": session, "cwd": str(root(gateway)), "replayFrom": {"type": "_middle"}}
        assert (await client.refused("session/resume", cursor))["code"] == -32602
        assert (await client.refused("session/load", {"sessionId": session}))["code"] == -32601
        assert (await client.refused("_antiphon/session/attach", {"sessionId": session}))["code"] == -32601
        long = await client.refused("session/resume", {"sessionId": "x" * 2000, "cwd": "/"})
        assert long["code"] == -32602 and "1024" in long["data"]


# Agents of version 2.


@pytest.mark.parametrize("ends", [False, True], ids=["stays", "ends"])
async def test_an_agent_of_version_2_serves_clients_of_both(tmp_path: Path, ends: bool) -> None:
    with running(tmp_path, agent=(*SECOND, *(["--once"] if ends else []))) as gateway:
        async with first(gateway) as old, second(gateway) as new:
            session = await old.new(root(gateway))
            await new.resume(session, root(gateway))
            assert (await old.response(old.prompt(session, "hello")))["result"]["stopReason"] == "end_turn"
            assert "".join(old.texts) == "you said hello", (
                "what the agent repeats of the prompt is not shown to its sender"
            )
            asked = old.prompt(session, "/permission")
            question, other = await old.asked(), await new.asked()
            call_ = question["params"]["toolCall"]
            assert call_["kind"] == "execute" and "rm -r build" in json.dumps(call_)
            new.choose(other)
            assert (await old.response(asked))["result"]["stopReason"] == "end_turn"
            assert "allow_once" in "".join(old.texts)
            await until(lambda: len(new.ends) == 2)
            slow = new.prompt(session, "/slow")
            await new.response(slow)
            await until(lambda: "".join(new.texts).endswith("you said /slow"))
            new.notify("session/cancel", {"sessionId": session})
            await until(lambda: len(new.ends) == 3)
            assert new.ends == ["idle end_turn", "idle end_turn", "idle cancelled"]
            said = [text for (kind, _), text in new.transcript.items() if kind == "agent_message"]
            assert said[0] == "you said hello" and len(said) == 3, "each message once"
        async with second(gateway) as late:
            await late.resume(session, root(gateway), replayFrom={"type": "start"})
            assert late.transcript == new.transcript


async def test_a_turn_is_interrupted_by_the_end_of_an_agent_of_version_2_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    with running(tmp_path, agent=SECOND) as gateway:
        async with first(gateway) as old, second(gateway) as new:
            session = await old.new(root(gateway))
            await new.resume(session, root(gateway))
            refused = (await old.response(old.prompt(session, "/die")))["error"]
            assert refused["data"]["antiphon"] == {"interrupted": True}
            await until(lambda: new.ends)
            assert new.ends == ["idle error"]
            assert (await old.response(old.prompt(session, "hello")))["result"]["stopReason"] == "end_turn"
            await until(lambda: len(new.ends) == 2)
            assert "you said hello" in new.transcript.values()


def test_the_process_of_an_agent_of_version_2_is_counted(tmp_path: Path) -> None:
    with running(tmp_path, agent=SECOND) as gateway, gateway.open_socket() as opened:
        call(opened, 0, "initialize", **HELLO)
        (agent,) = gateway.admin(action="status")["agents"]
        assert agent["processes"] == 1 and agent["memory"] > 0


# Over HTTP.


def post(gateway: Gateway, connection: str, id: int, called: str, **params: object) -> None:
    body = {"jsonrpc": "2.0", "id": id, "method": called, "params": params}
    headers = {**gateway.bearer, "Acp-Connection-Id": connection}
    assert gateway.ask("/acp", headers, method="POST", body=body).status == 202


def test_a_stream_that_was_cut_goes_on_after_the_last_event(gateway: Gateway) -> None:
    opened = gateway.ask(
        "/acp", gateway.bearer, method="POST", body={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    )
    assert opened.json["result"]["protocolVersion"] == 2
    connection = opened.headers["acp-connection-id"]
    with stream_of(gateway, connection) as stream:
        post(gateway, connection, 1, "session/new", cwd=str(root(gateway)))
        session = stream.until(lambda message: message.get("id") == 1)["result"]["sessionId"]
    with stream_of(gateway, connection, session) as stream:
        text = [{"type": "text", "text": "/many 500"}]
        post(gateway, connection, 2, "session/prompt", sessionId=session, prompt=text)
        stream.until(
            lambda message: "7" in message.get("params", {}).get("update", {}).get("content", {}).get("text", "")
        )
        seen, last = stream.messages, stream.last
    with stream_of(gateway, connection, session, last) as stream:
        stream.until(lambda message: message.get("params", {}).get("update", {}).get("state") == "idle")
        seen += stream.messages
    pieces = [each["params"]["update"] for each in seen if "agent_message_chunk" in json.dumps(each)]
    assert len({each["messageId"] for each in pieces}) == 1
    assert [each["content"]["text"] for each in pieces] == [f"{number} " for number in range(500)]


def test_a_stream_whose_events_are_kept_no_more_has_to_be_opened_anew(gateway: Gateway) -> None:
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    connection = gateway.ask("/acp", gateway.bearer, method="POST", body=hello).headers["acp-connection-id"]
    with stream_of(gateway, connection) as stream:
        post(gateway, connection, 1, "session/new", cwd=str(root(gateway)))
        session = stream.until(lambda message: message.get("id") == 1)["result"]["sessionId"]
    with stream_of(gateway, connection, session) as stream:
        for id in (2, 3):
            text = [{"type": "text", "text": "/big 700"}]
            post(gateway, connection, id, "session/prompt", sessionId=session, prompt=text)
        stream.until(lambda message: message.get("id") == 2)
        seen = stream.last
        stream.until(lambda message: message.get("id") == 3)
        stream.until(lambda message: message.get("params", {}).get("update", {}).get("state") == "idle")
    headers = {**gateway.bearer, "Accept": "text/event-stream", "Acp-Connection-Id": connection}
    missed = gateway.ask("/acp", {**headers, "Acp-Session-Id": session, "Last-Event-ID": seen})
    assert missed.status == 404 and b"more was missed" in missed.body
    assert b"no such connection" in gateway.ask("/acp", headers).body, "it does not go on with a gap"


# What clients may do.


def test_a_client_of_version_2_signs_in_with_its_token(gateway: Gateway) -> None:
    with gateway.open_socket({}) as opened:
        offered = call(opened, 1, "initialize", **HELLO)["result"]
        assert offered["protocolVersion"] == 2 and [each["type"] for each in offered["authMethods"]] == ["agent"] * 2
        assert call(opened, 2, "session/new", cwd=str(root(gateway)))["error"]["code"] == -32000
        assert call(opened, 3, "auth/login", methodId="oauth", method="oauth", token="wrong")["error"]["code"] == -32000
        signed_in = call(opened, 4, "auth/login", methodId="oauth", method="oauth", token=gateway.token)
        assert signed_in["result"] == {}
        made = call(opened, 5, "session/new", cwd=str(root(gateway)))["result"]
        assert "sessionId" in made and "modes" not in made


async def test_the_roles_of_tokens_hold_in_version_2(gateway: Gateway) -> None:
    tokens = {role: gateway.admin(action="create token", name=role, role=role)["secret"] for role in ("drive", "watch")}
    async with second(gateway, token=tokens["drive"]) as driver, second(gateway, token=tokens["watch"]) as watcher:
        session = await driver.new(root(gateway))
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        assert (await driver.refused("auth/login", {"methodId": "demo"}))["code"] == -32600, "that is for admins"
        driver.notify("auth/logout", {})
        assert (await watcher.refused("session/new", {"cwd": str(root(gateway))}))["code"] == -32600
        await watcher.resume(session, root(gateway))
        assert (await watcher.refused("session/prompt", prompt))["code"] == -32600
        option = {"sessionId": session, "configId": "mode", "type": "id", "value": "plan"}
        assert (await watcher.refused("session/set_config_option", option))["code"] == -32600
        await driver.response(driver.prompt(session, "/permission"))
        question = await driver.asked()
        await until(lambda: "requires_action" in watcher.states)
        assert not watcher.requests(), "it could not answer"
        watcher.notify("session/cancel", {"sessionId": session})
        driver.choose(question)
        await until(lambda: watcher.ends)
        assert watcher.ends == ["idle end_turn"]
        await driver.request("session/set_config_option", option)
        await until(lambda: any(each["sessionUpdate"] == "config_option_update" for each in watcher.updates))
    noted = [(each["actor"], each["action"]) for each in gateway.admin(action="audit")["entries"]]
    assert ("drive", "prompt") in noted and ("drive", "session/set_config_option") in noted
    assert ("watch", "prompt") not in noted


def test_the_translator_is_not_loaded_for_version_1(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from tests.gateway.peers import stage
async def main():
    async with stage(Path({str(tmp_path)!r})) as on:
        client = await on.client()
        session = await client.new(Path({str(tmp_path)!r}))
        asked = client.prompt(session, "hello")
        request = await on.agent.got("session/prompt")
        on.agent.say(session, "a", "b")
        on.agent.result(request["id"], {{"stopReason": "end_turn"}})
        await client.response(asked)
asyncio.run(main())
loaded = [name for name in sys.modules if "translat" in name or name.startswith("antiphon.protocol.v2")]
print(*sorted(loaded))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, cwd=ROOT)
    assert done.stdout.split() == ["antiphon.protocol.translate", "antiphon.protocol.translate.choice"]
