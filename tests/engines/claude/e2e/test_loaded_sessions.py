"""Opening an earlier session when something is in the way: a long history, a cancel, another directory, a session that was cleared."""

import asyncio
import json
import os
import signal
from collections import Counter
from itertools import takewhile
from pathlib import Path
from uuid import uuid4

import pytest

from antiphon import v1
from antiphon.errors import Code, RequestRefused
from antiphon.protocol.v1 import methods as m
from tests.engines.claude.model.steps import Gate, Wait
from tests.engines.claude.place import Place, is_gone
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH, OLD
from tests.engines.client import connected

MANY = 10_000
"""Messages of a history that takes longer to send than a process to start."""


async def one_turn(at: Place, text: str = "remember the river") -> str:
    """A session with something in it, which is not open."""
    async with connected(at) as client:
        await client.say(text)
        await at.keeps(f"echo: {text}")
        return client.session.id


def lengthen(at: Place, id: str) -> None:
    """Send what was sent in a session again and again."""
    [file] = at.projects.rglob(f"{id}.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    texts = [line for line in lines if line.get("type") in ("user", "assistant")]
    before = texts[-1]["uuid"]
    with file.open("a", encoding="utf-8") as out:
        for number in range(MANY):
            line = {**texts[number % len(texts)], "uuid": str(uuid4()), "parentUuid": before}
            before = line["uuid"]
            out.write(json.dumps(line) + "\n")


@proves("sessions.load", "robust.orphans")
async def test_a_load_that_is_cancelled_leaves_no_process_and_loading_again_works(at: Place) -> None:
    id = await one_turn(at)
    await asyncio.to_thread(lengthen, at, id)
    at.settings(permissions={"defaultMode": "plan"})  # which the process will say when it is up
    async with connected(at) as client:
        asked = v1.LoadSession(id, str(at.folder), [])
        loading = asyncio.create_task(client.agent.connection.request(m.LOAD_SESSION, asked))
        await client.until(lambda: client.updates_of("user_message_chunk"))
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        await client.until(lambda: any("error" in each for each in client.frames))
        assert at.processes() == []
        before = len(client.frames)
        await client.load(id)
        sent = [*takewhile(lambda frame: "result" not in frame, client.frames[before:])]
        await client.until(lambda: client.updates_of("config_option_update"))
        assert client.option("mode").current_value == "plan"
        assert (await client.say("go on")).text == "echo: go on"
        await at.runs(1)
    kinds = Counter(frame["params"]["update"]["sessionUpdate"] for frame in sent)
    assert kinds["user_message_chunk"] + kinds["agent_message_chunk"] >= MANY
    assert kinds["config_option_update"] == 0  # the process was started when the whole history was sent


@proves("sessions.load", on=BOTH)
async def test_a_session_is_loaded_from_another_directory_or_the_error_has_a_hint(at: Place, tmp_path: Path) -> None:
    id = await one_turn(at)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with connected(at) as client:
        client.session = await client.agent.load_session(id, elsewhere, on_update=client.between.append)
        assert client.all_text == "echo: remember the river"
        if at.version != OLD:
            assert (await client.say("what was it?")).text == "echo: what was it?"
            assert at.model.last.texts == ["remember the river", "what was it?"]
            return
        for _ in range(2):  # it does not get better
            with pytest.raises(RequestRefused, match="in the directory where it was begun") as caught:
                await client.say("what was it?")
            assert caught.value.code == Code.RESOURCE_NOT_FOUND and caught.value.hint
        await client.load(id)
        assert (await client.say("what was it?")).text == "echo: what was it?"


@proves("robust.crash", "turn.commands", on=BOTH)
async def test_a_session_that_was_cleared_stays_so_when_the_program_dies(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await at.keeps("echo: remember the river")
        assert (await client.say("/clear")).stop == "end_turn"
        [pid] = await at.runs(1)
        os.kill(pid, signal.SIGKILL)
        await is_gone(pid)
        for text in ("what was it?", "and now?"):
            assert (await client.say(text)).text == f"echo: {text}"
        await at.runs(1)
    assert at.model.last.texts == ["what was it?", "and now?"]


@proves("robust.crash", on=BOTH)
async def test_a_program_that_dies_before_anything_was_answered_is_started_again(at: Place) -> None:
    gate = Gate()
    at.model.answers(Wait(gate))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("remember the river")
        await gate.is_reached()
        [pid] = await at.runs(1)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RequestRefused, match="ended unexpectedly"):
            await turn
        assert (await client.say("go on")).text == "echo: go on"
