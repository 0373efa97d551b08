"""The one server: killed and started again, every thread comes back as it was."""

import os
import signal

import pytest

from antiphon.errors import Code, RequestRefused
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import Call, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.web_server import stdio_server
from tests.engines.places import is_gone


async def kill(at: Place) -> None:
    [pid] = at.processes()
    os.kill(pid, signal.SIGKILL)
    await is_gone(pid)


@proves("server.killed", "server.rights", "modes.again", on=BOTH)
async def test_a_server_that_dies_is_started_again_and_the_threads_have_the_same_rights(at: Place) -> None:
    async with connected(at) as client:
        edits, asks = await client.open(), await client.open()
        await edits.set_mode("acceptEdits")
        await asks.set_mode("default")
        await client.say("remember the river", edits)
        await client.say("remember the sea", asks)
        before = at.contexts()
        await kill(at)
        at.model.answers(patch("*** Add File: free.txt", "+la"))
        await client.say("go on", edits)
        assert client.asked == [] and (at.folder / "free.txt").exists()
        assert "remember the river" in at.model.last.texts
        client.decisions.append("reject_once")
        at.model.answers(patch("*** Add File: asked.txt", "+la"))
        await client.say("go on", asks)
        assert len(client.asked) == 1 and not (at.folder / "asked.txt").exists()
        assert "remember the sea" in at.model.last.texts and len(at.processes()) == 1
        after = at.contexts()
    for session in (edits.id, asks.id):
        [*_, then], [*_, now] = before[session], after[session]
        for what in ("approval_policy", "sandbox_policy", "model", "cwd"):
            assert now[what] == then[what], what


@proves("server.killed", "server.empty")
async def test_a_session_without_a_prompt_survives_its_server(at: Place) -> None:
    async with connected(at) as client:
        session = await client.open()
        await kill(at)
        assert (await client.say("remember the river")).text == "echo: remember the river"
        assert [each.session_id async for each in client.agent.list_sessions()] == [session.id]
        fork = await client.fork(session.id)
        await client.say("what did I say?")
        assert "remember the river" in at.model.last.texts
        assert "remember the river" in (await client.load(session.id)).text
        await client.agent.delete_session(fork.id)
        await client.agent.delete_session(session.id)
        assert [each async for each in client.agent.list_sessions()] == []


@proves("server.empty", on=BOTH)
async def test_a_thread_that_was_deleted_is_not_replaced_by_an_empty_one(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await kill(at)
        for kept in (*at.codex_home.glob("sessions/*/*/*/rollout-*.jsonl"), *at.codex_home.glob("*.sqlite*")):
            kept.unlink()
        with pytest.raises(RequestRefused) as caught:
            await client.say("what did I say?")
    assert caught.value.code == Code.RESOURCE_NOT_FOUND and len(at.model.asked) == 1


@proves("server.mcp-again")
async def test_a_thread_that_is_resumed_has_its_mcp_servers_again(at: Place) -> None:
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server(SECRET_SONG="la la la")])
        await client.say("hello")
        await kill(at)
        at.model.answers(Call("tell", {"name": "SECRET_SONG"}, namespace="mcp__little"))
        reply = await client.say("what is the song?")
    assert reply.call("mcp__little__tell")["status"] == "completed" and "la la la" in at.model.last.results[0]
