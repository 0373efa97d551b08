"""Clients of version 2 at a hub whose agent does what the test says: what is live, what is replayed, and what others do meanwhile."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.peers import DRIVER, RawClient, ScriptedAgent, Stage, stage
from tests.gateway.second import SecondClient
from tests.waits import idle, until

Json = dict[str, Any]


async def second(on: Stage, **capabilities: object) -> SecondClient:
    """A client of version 2 that is connected to the hub."""
    client = SecondClient(on.hub, DRIVER)
    on.clients.append(client)
    await client.initialize(capabilities=capabilities)
    return client


def text(words: str, kind: str = "agent_message_chunk", **more: object) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": words}, **more}


def send(agent: ScriptedAgent, session: str, update: Json) -> None:
    agent.notify("session/update", {"sessionId": session, "update": update})


async def begun(on: Stage, client: RawClient, session: str, words: str) -> tuple[int, int]:
    """Send a prompt, and return the ids of the request here and at the agent."""
    count = len(on.agent.received("session/prompt")) + 1
    asked = client.prompt(session, words)
    return asked, int((await on.agent.got("session/prompt", count))["id"])


async def test_a_prompt_is_answered_when_it_is_stored_and_not_before(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await second(on)
        session = await client.new(tmp_path)
        on.journal.gate.clear()
        asked = client.prompt(session, "hello")
        await idle()
        assert not client.states and not [each for each in client.messages if each.get("id") == asked]
        on.journal.gate.set()
        assert (await client.response(asked))["result"]["messageId"]
        assert client.states == ["running"]


async def test_what_the_agent_repeats_of_the_prompt_is_shown_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client, other = await second(on), await second(on)
        session = await client.new(tmp_path)
        await other.resume(session, tmp_path)
        asked, there = await begun(on, client, session, "hello there")
        for piece in ("hello ", "there"):
            send(on.agent, session, text(piece, "user_message_chunk", messageId="of the agent"))
        send(on.agent, session, text("and something else", "user_message_chunk", messageId="another"))
        on.agent.result(there, {"stopReason": "end_turn"})
        await until(lambda: client.ends and other.ends)
        id = (await client.response(asked))["result"]["messageId"]
        shown = {("user_message", id): "hello there", ("user_message", "another"): "and something else"}
        assert client.transcript == other.transcript == shown


async def test_a_prompt_of_another_client_is_work_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client, other = await second(on), await on.client()
        session = await other.new(tmp_path)
        await client.resume(session, tmp_path)
        _, there = await begun(on, other, session, "first")
        waiting = client.prompt(session, "second")
        await until(lambda: client.states == ["idle", "running"])
        on.agent.say(session, "a")
        await until(lambda: "a" in client.texts)
        assert not [each for each in client.messages if each.get("id") == waiting], (
            "it is held, though the agent shows life"
        )
        on.agent.result(there, {"stopReason": "max_tokens"})
        there = (await on.agent.got("session/prompt", 2))["id"]
        on.agent.result(there, {"stopReason": "end_turn"})
        await until(lambda: len(client.ends) == 2)
        assert client.states == ["idle", "running", "idle max_tokens", "running", "idle end_turn"]
        assert [*client.transcript.values()] == ["first", "a", "second"]


@pytest.mark.parametrize("answer", ['{"stopReason":7}', "null", "[]", '{"stopReason":"_later"}'])
async def test_work_ends_for_all_whatever_its_agent_answers(tmp_path: Path, answer: str) -> None:
    async with stage(tmp_path) as on:
        client, other = await second(on), await second(on)
        session = await client.new(tmp_path)
        await other.resume(session, tmp_path)
        _, there = await begun(on, client, session, "hello")
        on.agent.send(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (there, answer.encode()))
        await until(lambda: client.ends and other.ends)
        assert client.ends == other.ends
        _, there = await begun(on, other, session, "again")
        error = b'{"code":-32000,"message":"sign in","data":{"x":1}}'
        on.agent.send(b'{"jsonrpc":"2.0","id":%d,"error":%b}' % (there, error))
        await until(lambda: len(client.ends) == len(other.ends) == 2)
        for each in (client, other):
            ended = [update for update in each.updates if update.get("stopReason")][-1]
            assert ended["error"]["code"] == -32000 and ended["error"]["data"]["x"] == 1


async def test_a_form_is_filled_in_by_a_client_that_has_forms(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        able, plain = await second(on, elicitation={"form": {}}), await second(on)
        session = await able.new(tmp_path)
        await plain.resume(session, tmp_path)
        _, there = await begun(on, able, session, "ask")
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        form = {"sessionId": session, "mode": "form", "message": "Who?", "requestedSchema": schema}
        on.agent.request(7, "elicitation/create", form)
        asked = await able.asked("elicitation/create")
        await until(lambda: plain.states == ["idle", "running", "requires_action"])
        assert not plain.requests("elicitation/create")
        able.answer(asked["id"], {"action": "accept", "content": {"name": "Ann"}})
        await until(lambda: any(b'"Ann"' in line for line in on.agent.lines))
        on.agent.result(there, {"stopReason": "end_turn"})
        await until(lambda: able.ends and plain.ends)
        assert able.states == ["running", "requires_action", "running", "idle end_turn"]


async def test_a_handshake_is_repeated_until_another_request_comes_and_the_last_one_counts(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await second(on, elicitation={"form": {}, "url": {}})
        assert (await client.refused("initialize", {"protocolVersion": 2}))["code"] == -32602
        await client.initialize(capabilities={"elicitation": {"form": {}}})
        session = await client.new(tmp_path)
        assert (await client.initialize())["protocolVersion"] == 2, (
            "as it was answered before: it changes nothing any more"
        )
        _, there = await begun(on, client, session, "ask")
        asked = {"sessionId": session, "message": "See", "elicitationId": "e", "url": "https://example.org"}
        on.agent.request(7, "elicitation/create", {**asked, "mode": "url"})
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        on.agent.request(8, "elicitation/create", {**asked, "mode": "form", "requestedSchema": schema})
        await client.asked("elicitation/create")
        await idle()
        assert [each["params"]["mode"] for each in client.requests("elicitation/create")] == ["form"]
        on.agent.result(there, {"stopReason": "end_turn"})


async def test_an_answer_that_comes_after_a_cancellation_is_ignored(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        client = await second(on)
        session = await client.new(tmp_path)
        _, there = await begun(on, client, session, "ask")
        on.agent.ask(7, session)
        question = await client.asked()
        client.notify("session/cancel", {"sessionId": session})
        await until(lambda: any(each.get("method") == "$/cancel_request" for each in client.messages))
        client.choose(question)
        on.agent.result(there, {"stopReason": "cancelled"})
        await until(lambda: client.ends)
        assert client.ends == ["idle cancelled"]
        answers = [line for line in on.agent.lines if b'"id":7' in line]
        assert len(answers) == 1 and b'"cancelled"' in answers[0]


async def test_a_session_that_only_the_agent_has_is_resumed_without_its_history(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:

        def load(params: Json) -> Json:
            send(on.agent, "old", text("a prompt of long ago", "user_message_chunk"))
            send(on.agent, "old", text("an answer of long ago"))
            return {}

        on.agent.answers["session/load"] = load
        client, other = await second(on), await second(on)
        await client.resume("old", tmp_path)
        assert client.states == ["idle"] and not client.transcript
        await other.resume("old", tmp_path, replayFrom={"type": "start"})
        assert [*other.transcript.values()] == ["a prompt of long ago", "an answer of long ago"]
        _, there = await begun(on, client, "old", "on")
        on.agent.say("old", "new")
        on.agent.result(there, {"stopReason": "end_turn"})
        await until(lambda: client.ends and other.ends)
        assert client.transcript.items() <= other.transcript.items() and [*client.transcript.values()] == ["on", "new"]


@pytest.mark.parametrize("seed", range(8))
async def test_messages_are_the_same_live_and_in_every_replay(tmp_path: Path, seed: int) -> None:
    """Random turns of several clients: pieces with ids and without, thoughts, calls, repeated prompts."""
    chance = random.Random(seed)
    async with stage(tmp_path) as on:
        client, plain = await second(on), await on.client()
        session = await client.new(tmp_path)
        await plain.request("session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        late = await second(on)
        for turn in range(6):
            sender = chance.choice([client, plain])
            _, there = await begun(on, sender, session, f"prompt {turn}")
            for place in range(chance.randrange(12)):
                kind = chance.choice(
                    ["agent_message_chunk", "agent_thought_chunk", "agent_message_chunk", "call", "echo"]
                )
                named = {"messageId": f"m{turn}{chance.randrange(2)}"} if chance.random() < 0.4 else {}
                if kind == "call":
                    send(on.agent, session, {"sessionUpdate": "tool_call", "toolCallId": f"c{place}", "title": "x"})
                elif kind == "echo":
                    send(on.agent, session, text(f"prompt {turn}", "user_message_chunk", **named))
                else:
                    send(on.agent, session, text(f"{turn}.{place} ", kind, **named))
            on.agent.result(there, {"stopReason": "end_turn"})
            await until(lambda done=turn + 1: len(client.ends) == done)  # type: ignore[misc]
            if turn == 2:
                await late.resume(session, tmp_path)
        await until(lambda: len(late.ends) == 3)
        again = await second(on)
        await again.resume(session, tmp_path, replayFrom={"type": "start"})
        assert again.transcript == client.transcript
        assert late.transcript.items() <= client.transcript.items()
        whole = {**client.transcript}
        await client.resume(session, tmp_path, replayFrom={"type": "start"})
        assert client.transcript == whole and client.states[-1] == "idle"
