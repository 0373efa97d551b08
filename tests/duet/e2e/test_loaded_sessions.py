"""A session that is opened again shows what it showed, and knows what was sent elsewhere meanwhile."""

import asyncio

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import holds, open_with, shown
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.codex.model.steps import command, patch
from tests.engines.model.steps import Text, Think

pytestmark = pytest.mark.slow


def work(at: Place) -> None:
    """Both think, answer and use tools."""
    at.write("song.txt", "do\nre\nmi\n")
    at.claude.model.answers(
        Think("how to begin"), Text("I read it. "), Call("Read", {"file_path": str(at.folder / "song.txt")})
    )
    at.claude.model.answers(Call("Write", {"file_path": str(at.folder / "new.txt"), "content": "la\n"}))
    at.claude.model.answers(Text("All is sung."))
    at.codex.model.answers(Think("and now I"), Text("I look. "), command("cat song.txt"))
    at.codex.model.answers(patch("*** Update File: song.txt", "@@", " do", "-re", "+RE", " mi"))
    at.codex.model.answers(Text("It is higher."))


async def test_after_a_restart_the_transcript_is_the_same(at: Place) -> None:
    work(at)
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        await client.say("sing the song")
        at.answer("You are welcome.", "Any time.")
        await client.say("thank you")
        id, before, title = client.session.id, shown(client), client.session.title
    async with connected(at) as client:
        await client.load(id)
        assert shown(client) == before and client.session.title == title
        assert client.option("route").current_value == "duet" and client.option("mode").current_value == "acceptEdits"
        at.answer("You did.", "Indeed.")
        reply = await client.say("did I thank you?")
        assert "You did." in reply.text and "Indeed." in reply.text
    for model in (at.claude.model, at.codex.model):
        assert "sing the song" in model.last.everything and "thank you" in model.last.everything


async def test_it_is_the_same_again_and_again_and_while_it_is_open(at: Place) -> None:
    work(at)
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        await client.say("sing the song")
        id, before = client.session.id, shown(client)
        await client.load(id)
        assert shown(client) == before
    for _ in range(2):
        async with connected(at) as client:
            await client.load(id)
            assert shown(client) == before


async def test_answers_to_our_own_commands_are_part_of_it(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await client.say("/status")
        await client.say("hello")
        await client.say("/codex")
        id, before = client.session.id, shown(client)
    async with connected(at) as client:
        await client.load(id)
        assert shown(client) == before and client.option("route").current_value == "codex"


async def test_pieces_of_a_message_come_in_one_piece(at_codex: Place) -> None:
    at_codex.codex.model.answers(Text("la " * 400, size=3))
    async with connected(at_codex) as client:
        reply = await client.say("sing")
        id = client.session.id
        assert len(client.updates_of("agent_message_chunk")) > 10
    async with connected(at_codex) as client:
        again = await client.load(id)
        assert again.text == reply.text and len(client.updates_of("agent_message_chunk")) == 1


async def test_messages_to_claude_code_in_a_terminal_come_after_those_here(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await at.claude.keeps("echo: remember the river")
        id, before = client.session.id, shown(client)
    done = await asyncio.to_thread(at.claude.run, "-p", "--continue", "and the sea")
    assert done.returncode == 0, done.stderr
    async with connected(at) as client:
        again = await client.load(id)
        after = shown(client)
        assert holds(after, before) and again.text == "echo: remember the riverecho: and the sea"
        assert [(line.kind, line.text) for line in after[len(before) :]] == [
            ("user", "and the sea"),
            ("agent", "echo: and the sea"),
        ]
        await client.say("what was it?")
        assert at.claude.model.last.texts[-3:] == ["remember the river", "and the sea", "what was it?"]
        once_more = shown(client)
    async with connected(at) as client:
        await client.load(id)
        assert shown(client) == once_more  # and it is not sent twice


async def test_messages_to_codex_in_a_terminal_come_after_those_here(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="codex")
        await client.say("remember the river")
        id, before = client.session.id, shown(client)
    [thread] = at.codex.contexts()
    done = await asyncio.to_thread(at.codex.run, "exec", "--skip-git-repo-check", "resume", thread, "and the sea")
    assert done.returncode == 0, done.stderr
    async with connected(at) as client:
        await client.load(id)
        after = shown(client)
        assert holds(after, before)
        assert [(line.kind, line.text) for line in after[len(before) :]] == [
            ("user", "and the sea"),
            ("agent", "echo: and the sea"),
        ]
        await client.say("what was it?")
    assert "and the sea" in at.codex.model.last.everything


async def test_a_session_whose_engine_has_forgotten_it_still_shows_its_history(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await at.claude.keeps("echo: remember the river")
        id, before = client.session.id, shown(client)
    for path in at.claude.projects.rglob("*.jsonl"):
        path.unlink()
    async with connected(at) as client:
        await client.load(id)
        assert shown(client) == before
        reply = await client.say("what was it?")
        assert reply.stop == "end_turn"
    assert "remember the river" in at.claude.model.last.everything  # in the summary, because the engine does not know
