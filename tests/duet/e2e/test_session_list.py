"""The list of sessions: ours and those of the engines, each session once."""

import asyncio

import pytest

from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with
from tests.engines.client import Client, connected

pytestmark = pytest.mark.slow


async def listed(client: Client) -> dict[str, str]:
    """Session → its title, in the order of the list."""
    rows = [each async for each in client.agent.list_sessions(client.at.folder)]
    assert len({each.session_id for each in rows}) == len(rows)
    assert all(each.updated_at for each in rows) and {each.cwd for each in rows} <= {str(client.at.folder)}
    return {each.session_id: str(each.title) for each in rows}


async def from_terminal(at: Place) -> None:
    """A user uses each program in a terminal."""
    done = await asyncio.to_thread(at.claude.run, "-p", "a song for Claude from the terminal")
    assert done.returncode == 0, done.stderr
    done = await asyncio.to_thread(at.codex.run, "exec", "--skip-git-repo-check", "a song for Codex from the terminal")
    assert done.returncode == 0, done.stderr


async def test_sessions_of_ours_and_those_of_the_terminals_are_listed(at: Place) -> None:
    await from_terminal(at)
    async with connected(at) as client:
        await client.say("a song from the editor")
        await at.claude.keeps("echo: a song from the editor")
        rows = await listed(client)
        assert len(rows) == 3 and next(iter(rows)) == client.session.id  # the last one first
        assert [each async for each in client.agent.list_sessions(at.home)] == []
    texts = " | ".join(rows.values())
    for words in ("from the editor", "for Claude from the terminal", "for Codex from the terminal"):
        assert words in texts


async def test_a_session_of_two_engines_is_one_row(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        at.answer("a first voice", "a second voice")
        await client.say("sing of the river")
        await at.claude.keeps("a first voice")
        assert list(await listed(client)) == [client.session.id]
    async with connected(at) as client:
        assert len(await listed(client)) == 1


async def test_a_session_of_a_terminal_is_loaded_and_from_then_on_is_one_of_ours(at: Place) -> None:
    await from_terminal(at)
    async with connected(at) as client:
        rows = await listed(client)
        for id, title in rows.items():
            engine = "claude" if "Claude" in title else "codex"
            again = await client.load(id)
            assert again.text == f"echo: {title}" and client.option("route").current_value == engine
            await client.say("and the sea")
            model = at.claude.model if engine == "claude" else at.codex.model
            assert "from the terminal" in model.last.everything
        assert set(await listed(client)) == set(rows)  # each session is one row still
        before = client.session.id
    async with connected(at) as client:
        again = await client.load(before)
        assert again.text.count("from the terminal") == 1 and "echo: and the sea" in again.text


async def test_a_session_without_a_prompt_is_not_listed(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        assert await listed(client) == {}


async def test_a_long_list_comes_in_pages_and_each_row_once(at_demo: Place) -> None:
    many = 52
    async with connected(at_demo) as client:
        for number in range(many):
            await client.open()
            await client.say(f"song {number}")
        rows = await listed(client)
        pages = [each for each in client.frames if "sessions" in (each.get("result") or {})]
    assert len(rows) == many and len(pages) > 1
