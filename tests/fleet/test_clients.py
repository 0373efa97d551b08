"""Clients of a fleet as people use them: an editor through `antiphon agent --connect`, two sessions at once, and the real Claude Code and
Codex behind two workers of one machine. A worker is killed in the middle of a turn."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.duet.e2e.editors import Place, missing, place
from tests.engines.claude.model.steps import Call
from tests.engines.codex.model.steps import patch
from tests.engines.model.steps import Gate, Text, Wait
from tests.fleet.programs import FleetPrograms, fleet_programs
from tests.gateway.peers import RawClient
from tests.gateway.test_moves import notices
from tests.remote.test_editor import editor, words
from tests.waits import until

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetPrograms]:
    with fleet_programs(tmp_path / "fleet", {"HOME": str(tmp_path)}) as found:
        yield found


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    """A directory and a home with both engines."""
    if what := missing():
        pytest.skip(f"not installed: {what}")
    directory = tmp_path / "engines"
    directory.mkdir()
    with place(directory) as made:
        yield made


def pieces(client: RawClient) -> list[int]:
    """The numbers that the demo agent has counted."""
    return [int(text) for text in client.texts if text.strip().isdecimal()]


async def test_an_editor_goes_on_in_its_session_when_the_worker_was_killed_in_a_turn(fleet: FleetPrograms) -> None:
    for name in ("one", "two"):
        await asyncio.to_thread(fleet.worker, name)
    gateway = await asyncio.to_thread(fleet.gateway, "gateway")
    async with editor(words(gateway)) as client:
        await client.initialize(session={"notice": {}})
        session = await client.new(fleet.root)
        asked = client.prompt(session, "/slow 1000")
        await until(lambda: len(pieces(client)) > 3)
        owner = await asyncio.to_thread(fleet.owner)
        owner.kill()
        refused = (await client.response(asked))["error"]
        assert refused["message"].startswith("The turn was interrupted: ") and refused["data"]["hint"]
        assert pieces(client) == [*range(1, len(pieces(client)) + 1)], "nothing is lost, nothing twice"
        more = client.prompt(session, "/permission")
        client.choose(await client.asked())
        assert (await client.response(more))["result"]["stopReason"] == "end_turn"
        assert not client.is_lost
        assert (await asyncio.to_thread(fleet.owner)).name != owner.name


async def test_one_client_has_sessions_at_two_workers_and_cancels_and_loads_them(fleet: FleetPrograms) -> None:
    for name in ("one", "two"):
        await asyncio.to_thread(fleet.worker, name)
    gateway = await asyncio.to_thread(fleet.gateway, "gateway")
    async with editor(words(gateway)) as client:
        await client.initialize()
        sessions = [await client.new(fleet.root) for _ in range(2)]
        turns = [client.prompt(session, "/slow 1000") for session in sessions]
        await until(lambda: len(pieces(client)) > 6)
        owned = {each.id: each.owner for each in await asyncio.to_thread(fleet.sessions)}
        assert len({owned[session] for session in sessions}) == 2
        for session, turn in zip(sessions, turns, strict=True):
            client.notify("session/cancel", {"sessionId": session})
            assert (await client.response(turn))["result"]["stopReason"] == "cancelled"
    async with editor(words(gateway)) as again:
        await again.initialize()
        listed = await again.request("session/list", {})
        assert {each["sessionId"] for each in listed["sessions"]} == {*sessions}
        for session in sessions:
            await again.request("session/load", {"sessionId": session, "cwd": str(fleet.root), "mcpServers": []})
        assert [text for text in again.texts if text == "/slow 1000"] == ["/slow 1000"] * 2


@pytest.mark.prove
@pytest.mark.parametrize("engine", ["claude", "codex"])
async def test_a_real_engine_resumes_its_session_at_another_worker_of_the_machine(
    at: Place, fleet: FleetPrograms, engine: str
) -> None:
    at.environment["ANTIPHON_ROUTE"] = engine
    at.codex.settings(top='model_provider = "choir"\napproval_policy = "on-request"\nsandbox_mode = "read-only"')
    target = at.folder / "notes.txt"
    at.claude.model.answers(Call("Write", {"file_path": str(target), "content": "a line\n"}))
    at.codex.model.answers(patch("*** Add File: notes.txt", "+a line"))
    at.model(engine).answers(Text("It is written."))
    # A worker gives an agent little of its own environment: what the engines need of this one stands in the command.
    agent = ("env", *(f"{name}={value}" for name, value in at.environment.items()), *at.agent)
    for name in ("one", "two"):
        await asyncio.to_thread(fleet.worker, name, "--root", str(at.folder), agent=agent)
    gateway = await asyncio.to_thread(fleet.gateway, "gateway")
    async with editor(words(gateway)) as client:
        await client.initialize()
        session = await client.new(at.folder)
        asked = client.prompt(session, "write a line about herons")
        client.choose(await client.asked())
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert target.read_text(encoding="utf-8") == "a line\n"
        gate = Gate()
        at.model(engine).answers(Text("I begin "), Wait(gate))
        asked = client.prompt(session, "and now a long poem")
        await until(lambda: "I begin" in "".join(client.texts))
        owner = await asyncio.to_thread(fleet.owner)
        owner.kill()
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        more = client.prompt(session, "which bird was it")
        assert (await client.response(more))["result"]["stopReason"] == "end_turn"
        assert "echo: which bird was it" in "".join(client.texts)
        gate.open()
        assert (await asyncio.to_thread(fleet.owner)).name != owner.name
    known = json.dumps(at.model(engine).last.body)
    assert "write a line about herons" in known and "This session was with another process" not in known
    assert not notices(client) or "new session" not in str(notices(client)), "the engine has its own session again"
