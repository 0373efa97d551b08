"""The one server: killed and started again, every thread comes back as it was."""

import os
import signal

from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import connected
from tests.engines.codex.model.steps import Call, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.mcp_servers.serving import stdio_server
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


@proves("server.killed")
async def test_a_session_in_which_nothing_was_said_yet_survives_its_server(at: Place) -> None:
    async with connected(at) as client:
        await client.open()
        await kill(at)
        assert (await client.say("hello")).text == "echo: hello"


@proves("server.mcp-again")
async def test_a_thread_that_is_resumed_has_its_mcp_servers_again(at: Place) -> None:
    async with connected(at) as client:
        await client.open(mcp_servers=[stdio_server(SECRET_SONG="la la la")])
        await client.say("hello")
        await kill(at)
        at.model.answers(Call("tell", {"name": "SECRET_SONG"}, namespace="mcp__little"))
        told = await client.say("what is the song?")
    assert told.call("mcp__little__tell")["status"] == "completed" and "la la la" in at.model.last.results[0]
