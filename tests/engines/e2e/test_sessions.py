"""Sessions: new, resumed, forked, loaded, listed and deleted."""

from typing import Any
from uuid import uuid4

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from antiphon.transcript.fork_point import fork_meta
from tests.engines.client import Client, connected
from tests.engines.codex.model.steps import Search
from tests.engines.mcp_servers.web_server import stdio_server
from tests.engines.model.steps import Text, Think
from tests.engines.places import Place
from tests.engines.subjects import proves

SEARCHES: dict[str, list[Any]] = {"claude": [], "codex": [Search("songs")]}
"""Searches of the web, which the model of Codex does by itself."""


def shown(client: Client) -> list[str]:
    """Return what of a session the client was shown."""
    return [each["sessionUpdate"] for each in client.updates if each["sessionUpdate"].endswith("message_chunk")]


@proves("sessions.load", "sessions.resume")
async def test_a_session_of_another_agent_is_loaded_or_resumed_with_its_history(at: Place) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    at.model.answers(Think("how to begin"), Text("I read it. "), at.calls.command(f"cat {song}"))
    at.model.answers(at.calls.edit_file(song, "re", "RE"))
    at.model.answers(at.calls.mcp_tool("little", "add", a=1, b=2), *SEARCHES[at.engine])
    at.model.answers(Text("All is sung."))
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server()])
        await client.session.set_mode("acceptEdits")
        before = await client.say("sing the song")
        id = client.session.id
    async with connected(at) as client:
        again = await client.load(id)
        assert "".join(each.content.text for each in again.of(v1.UserMessageChunk)) == "sing the song"
        assert again.text == before.text == "I read it. All is sung." and again.thoughts == "how to begin"
        for name in ("Bash", "Edit", "mcp__little__add", *(["WebSearch"] if SEARCHES[at.engine] else [])):
            then, now = before.call(name), again.call(name)
            assert now["status"] == then["status"] == "completed" and now["title"] == then["title"]
            assert now["rawInput"] == then["rawInput"] and now.get("kind", "other") == then.get("kind", "other")
        [diff] = [each for each in again.call("Edit")["content"] if each["type"] == "diff"]
        assert "re\n" in diff["oldText"] and "RE\n" in diff["newText"]
        assert "mi" in str(again.call("Bash")["content"])
        assert (await client.say("more")).text == "echo: more"
        assert at.model.last.texts == ["sing the song", "more"]
        await at.keeps("echo: more")
    async with connected(at) as client:
        await client.resume(id)
        assert shown(client) == []
        assert (await client.say("what was it?")).text == "echo: what was it?" and client.session.id == id
    assert at.model.last.texts == ["sing the song", "more", "what was it?"]


@proves("sessions.list", "sessions.delete", "sessions.fork", "sessions.load", codex=["sessions.unknown"])
async def test_sessions_are_listed_also_those_of_a_terminal_and_are_forked_and_deleted(at: Place) -> None:
    at.talks_in_a_terminal("a song from the terminal")
    async with connected(at) as client:
        for open_it in (client.load, client.resume, client.fork):
            unknown = str(uuid4())
            with pytest.raises(RequestRefused) as caught:
                await open_it(unknown)
            assert caught.value.code == Code.RESOURCE_NOT_FOUND and unknown in str(caught.value)

        await client.say("a song from the editor")
        await at.keeps("echo: a song from the editor")
        ours = client.session
        listed = [each async for each in client.agent.list_sessions()]
        editor, terminal = listed
        assert editor.session_id == ours.id
        assert "editor" in str(editor.title) and "terminal" in str(terminal.title)
        assert {each.cwd for each in listed} == {str(at.folder)} and all(each.updated_at for each in listed)
        assert [each async for each in client.agent.list_sessions(at.home)] == []
        again = await client.load(terminal.session_id)
        assert again.text == "echo: a song from the terminal"
        await client.session.close()
        for _ in range(2):  # twice is not an error
            await client.agent.delete_session(terminal.session_id)
        assert [each.session_id async for each in client.agent.list_sessions(at.folder)] == [ours.id]

        fork = await client.fork(ours.id)
        assert fork.id != ours.id
        await client.say("the fork goes on")
        assert at.model.last.texts == ["a song from the editor", "the fork goes on"]
        await client.say("and so does the first", ours)
        assert at.model.last.texts == ["a song from the editor", "and so does the first"]


async def test_a_fork_that_is_cut_before_a_prompt_never_sends_it_to_the_model_again(at: Place) -> None:
    async with connected(at) as client:
        for prompt in ("name a river", "name a song", "name a river"):
            await client.say(prompt)
        await at.keeps("echo: name a song")
        first = client.session
        await client.fork(first.id, meta=fork_meta(["name a song", "name a river"]))
        await client.say("go on from there")
        assert at.model.last.texts == ["name a river", "go on from there"]
        await client.fork(first.id, meta=fork_meta(["name a river", "name a song", "name a river"]))
        await client.say("all is new")
        assert at.model.last.texts == ["all is new"]
        with pytest.raises(RequestRefused, match="no such prompt"):
            await client.fork(first.id, meta=fork_meta(["never sent"]))
        await client.say("and the first goes on", first)
        assert at.model.last.texts == ["name a river", "name a song", "name a river", "and the first goes on"]
