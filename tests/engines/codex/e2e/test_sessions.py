"""Sessions: new, resumed, forked, loaded, listed, deleted, and added to while a turn runs."""

import asyncio
from typing import Any

import pytest

from antiphon import v1
from antiphon.protocol.methods import Call
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import Call as Use
from tests.engines.codex.model.steps import Search, command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.web_server import stdio_server
from tests.engines.model.steps import Gate, Text, Think, Wait

STEER: Call[Any, Any] = Call("_session/steering", dict, dict, side="agent")


@proves("sessions.new", on=BOTH)
async def test_a_new_session_works_in_its_own_directory_and_in_those_that_are_added(at: Place) -> None:
    other, added, outside = at.write("other/x", "").parent, at.temporary / "added", at.temporary / "outside"
    added.mkdir()
    async with connected(at) as client:
        await client.open(other, additional_directories=[added])
        await client.session.set_mode("acceptEdits")
        at.model.answers(command("pwd"))
        reply = await client.say("where are you?")
        client.decisions.append("reject")
        for directory in (other, added, outside):
            at.model.answers(patch(f"*** Add File: {directory}/song.txt", "+la"))
        await client.say("write")
    assert reply.call("Bash")["rawOutput"]["aggregatedOutput"] == f"{other}\n"
    assert [(each / "song.txt").exists() for each in (other, added, outside)] == [True, True, False]
    assert [str(asked.tool_call.title) for asked in client.asked] == [f"Write {outside}/song.txt"]


@proves("sessions.load", on=BOTH)
async def test_a_loaded_session_is_replayed_whole(at: Place) -> None:
    at.write("song.txt", "do\nre\nmi\n")
    at.model.answers(Think("how to begin"), Text("I read it. "), command("cat song.txt"))
    at.model.answers(patch("*** Update File: song.txt", "@@", " do", "-re", "+RE", " mi"))
    at.model.answers(Use("add", {"a": 1, "b": 2}, namespace="mcp__little"), Search("songs"))
    at.model.answers(Text("All is sung."))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server()])
        await client.session.set_mode("acceptEdits")
        before = await client.say("sing the song")
        id = client.session.id
    async with connected(at) as client:
        again = await client.load(id)
        text = "".join(each.content.text for each in again.of(v1.UserMessageChunk))
        assert text == "sing the song"
        assert again.text == before.text == "I read it. All is sung." and again.thoughts == "how to begin"
        for name in ("Bash", "Edit", "mcp__little__add", "WebSearch"):
            then, now = before.call(name), again.call(name)
            assert now["status"] == then["status"] == "completed" and now["title"] == then["title"]
            assert now["rawInput"] == then["rawInput"] and now.get("kind") == then.get("kind")
        [diff] = [each for each in again.call("Edit")["content"] if each["type"] == "diff"]
        assert "re\n" in diff["oldText"] and "RE\n" in diff["newText"]
        assert again.call("Bash")["rawOutput"] == before.call("Bash")["rawOutput"]
        assert (await client.say("more")).text == "echo: more"
    assert at.model.last.texts == ["sing the song", "more"]


@pytest.mark.prove  # Codex has to be talked to in 52 sessions first
@proves("sessions.paging")
async def test_a_long_list_comes_in_pages(at: Place) -> None:
    many = 52
    async with connected(at) as client:
        for number in range(many):
            await client.open()
            await client.say(f"song {number}")
        listed = [each async for each in client.agent.list_sessions()]
        pages = [each for each in client.frames if "sessions" in (each.get("result") or {})]
    assert len({each.session_id for each in listed}) == many and len(pages) == 2
    assert {str(each.title) for each in listed} == {f"song {number}" for number in range(many)}


@proves("sessions.steering", on=BOTH)
async def test_a_prompt_while_a_turn_runs_is_added_to_it(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la "), Wait(gate), command("true"))
    async with connected(at) as client:
        await client.open()
        turn = asyncio.create_task(client.say("sing"))
        await gate.is_reached()
        added = {"sessionId": client.session.id, "prompt": [{"type": "text", "text": "in a higher voice"}]}
        outcome = await client.agent.connection.request(STEER, added)
        gate.open()
        result = await turn
    assert outcome == {"outcome": "injected"} and result.stop == "end_turn"
    assert at.model.last.texts == ["sing", "in a higher voice"] and len(at.model.asked) == 2
