"""A process that is killed in the middle of a turn: nothing that the client was shown is lost."""

import asyncio
import os
import signal
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from antiphon.transports import tree
from tests.duet.e2e.bare import Bare, bare
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import Line, first_words, folded, holds, open_with, shown
from tests.engines.claude.model.steps import Call
from tests.engines.client import connected
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.places import comes

pytestmark = pytest.mark.slow

MANY = [pytest.param(False, id="some"), pytest.param(True, id="many", marks=pytest.mark.prove)]
"""Whether an agent is killed after every third update of a turn, which takes two agents each, or after its first and a late one."""

STRIDE = 3


async def killed(at: Place, text: str, updates: int) -> tuple[str, list[Line], bool]:
    """A session in which something was sent, killed after so many updates of the answer: its id, what was shown, and whether it came so far."""
    async with bare(at) as agent:
        id = await agent.open(str(at.folder))
        number = agent.prompt(id, text)
        came = await agent.kill_after(updates, number)
        return id, folded(agent.transcript), came


async def loaded(at: Place, id: str) -> list[Line]:
    async with connected(at) as client:
        await client.load(id)
        return shown(client)


def gone(at: Place) -> bool:
    return tree.processes_with(at.mark) == []


def moments(least: int, many: bool) -> Iterable[int]:
    """Return after how many updates an agent is killed: again and again until the turn is over, or early and late."""
    return count(1, STRIDE) if many else (1, least)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize(("words", "least"), [("/think songs", 10), ("/plan", 4), ("/edit song.txt la", 3)])
async def test_everything_is_there_whenever_the_demo_is_killed(
    at_demo: Place, words: str, least: int, many: bool
) -> None:
    for updates in moments(least, many):
        id, before, came = await killed(at_demo, words, updates)
        if not came:
            assert updates > least  # the turn was long enough to show something
            break
        after = await loaded(at_demo, id)
        assert before[0] == Line("user", words)
        assert holds(after, before), (updates, before, after)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", MANY)
async def test_everything_is_there_whenever_claude_code_is_at_work(at: Place, many: bool) -> None:
    song = at.folder / "song.txt"
    for updates in moments(5, many):
        song.unlink(missing_ok=True)
        at.claude.model.answers(
            Text("I will sing.", size=6), Call("Write", {"file_path": str(song), "content": "la\n"})
        )
        at.claude.model.otherwise = (Text("It is sung.", size=6),)
        id, before, came = await killed(at, "sing", updates)
        assert await asyncio.to_thread(comes, lambda: gone(at))  # and nothing of it goes on without us
        if not came:
            assert updates > 5
            break
        after = await loaded(at, id)
        assert before[0] == Line("user", "sing") and holds(after, before), (updates, before, after)


async def test_both_answers_are_there_and_the_session_goes_on(at: Place) -> None:
    gate = Gate()
    at.claude.model.answers(Text("a first voice"))
    at.codex.model.answers(Text("a second "), Wait(gate))
    at.configure('[duet]\nroute = "duet"\n')
    async with bare(at) as agent:
        id = await agent.open(str(at.folder))
        agent.prompt(id, "sing")
        await _until(agent, "a second")
        await agent.kill()
        before = folded(agent.transcript)
    async with connected(at) as client:
        await client.load(id)
        assert holds(shown(client), before) and "a second" in shown(client)[-1].text
        at.answer("one again", "two again")
        reply = await client.say("go on")
    assert "one again" in reply.text and "two again" in reply.text
    assert "a first voice" in at.claude.model.last.everything


async def _until(agent: Bare, words: str) -> None:
    while not any(words in line.text for line in folded(agent.transcript)):
        assert await agent.line() is not None


async def test_a_call_that_was_running_is_not_shown_as_running_for_ever(at: Place) -> None:
    pipe = at.pipe()
    at.claude.model.answers(
        Call("Bash", {"command": f"echo here > {pipe}; exec tail -f /dev/null", "description": "Sing"})
    )
    async with bare(at) as agent:
        id = await agent.open(str(at.folder))
        agent.prompt(id, "sing for ever")
        listening = asyncio.create_task(agent.listen())
        await first_words(pipe)
        agent.process.kill()
        await listening
    async with connected(at) as client:
        await client.load(id)
        [call] = [line for line in shown(client) if line.kind == "call"]
        assert call.status == "failed"
        assert (await client.say("go on")).stop == "end_turn"


async def test_what_was_chosen_is_there_too(at_codex: Place) -> None:
    async with connected(at_codex) as client:
        await open_with(client, route="codex", mode="acceptEdits")
        await client.say("hello")
        id = client.session.id
        [agent] = [pid for pid in tree.processes_with(at_codex.mark) if _is_agent(pid)]
        os.kill(agent, signal.SIGKILL)
    async with connected(at_codex) as client:
        await client.load(id)
        assert client.option("route").current_value == "codex"
        assert client.option("mode").current_value == "acceptEdits"


def _is_agent(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
    return b"antiphon" in words and b"agent" in words
