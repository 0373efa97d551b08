"""Sessions whose machine is away: their history is shown by the gateway itself, and what needs a worker waits, then says why."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.fleet.gateway import reader
from tests.fleet.hubs import MemoryFleet, MemoryWorker
from tests.fleet.test_router import ATTACH, WATCHER, load, notices
from tests.gateway.peers import RawClient
from tests.gateway.test_attachments import numbers
from tests.gateway.test_turns import end
from tests.limits import limit
from tests.waits import idle, until


@asynccontextmanager
async def two_machines(directory: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MemoryFleet]:
    """A fleet of two machines that share no directory, though both have one of this name."""
    monkeypatch.setattr(reader, "LOOK_INTERVAL", 0.01)
    here = MemoryFleet()
    here.hosts = {"one": "first", "two": "second"}
    await here.hub.start()
    async with asyncio.timeout(limit()):
        try:
            yield here
        finally:
            await here.close()


async def begun(here: MemoryFleet, worker: MemoryWorker, cwd: Path, client: RawClient) -> str:
    """A session with one turn."""
    session = await client.new(cwd)
    asked = client.prompt(session, "work")
    await worker.agent.got("session/prompt")
    worker.agent.say(session, "done")
    await end(worker)
    await client.response(asked)
    return session


async def test_a_session_whose_machine_is_away_is_read_at_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        session = await begun(here, one, tmp_path, await here.client())
        async with here.worker("two", tmp_path):
            one.freeze()
            client = await here.client(numbers=True)
            await client.request("session/load", load(session, tmp_path))
            assert client.texts == ["work", "done"]
            found = await client.request(ATTACH, {"sessionId": session, "after": 0})
            assert found["number"] == 4 and found["turn"] is None
            read = await client.request("_antiphon/session/read", {"sessionId": session, "before": 3})
            assert len(read["events"]) == 2
            exported = await client.request("_antiphon/session/export", {"sessionId": session})
            assert "done" in exported["text"]
            assert here.journal.owners[here.key(session)] == "one", "nothing is claimed"
            watcher = await here.client(WATCHER)
            assert "only watch" in (await watcher.refused("session/delete", {"sessionId": session}))["message"]


async def test_a_prompt_to_a_session_whose_machine_is_away_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        client = await here.client(numbers=True)
        session = await begun(here, one, tmp_path, client)
        one.freeze()
        asked = client.prompt(session, "next")
        await client.request(ATTACH, {"sessionId": session, "after": 4})
        await idle()
        assert len(one.agent.received("session/prompt")) == 1
        one.is_alive = True
        await end(one, 2)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["work", "done", "next"]
        assert numbers(client) == [*range(1, numbers(client)[-1] + 1)]


async def test_a_prompt_that_has_waited_long_enough_for_a_machine_gets_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        client = await here.client()
        session = await begun(here, one, tmp_path, client)
        async with here.worker("two", tmp_path):
            one.freeze()
            await client.request("session/load", load(session, tmp_path))
            routed = next(each for each in here.hub._clients if session in each._links)
            routed._links[session]._held._timeout = 0.01
            error = (await client.response(client.prompt(session, "next")))["error"]
            assert error["message"].startswith(
                f"session `{session}` is not connected: the session waits for its machine"
            )
            assert "no worker there is connected" in error["message"] and error["data"]["recoverable"] is True
            assert error["data"]["hint"] == "start a worker on `first`"
            error = await client.refused("_antiphon/session/rename", {"sessionId": session, "title": "no"})
            assert "waits for its machine" in error["message"]


async def test_a_turn_of_a_machine_that_is_away_ends_when_the_machine_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        client = await here.client(numbers=True)
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        await one.agent.got("session/prompt")
        one.agent.say(session, "half")
        await until(lambda: client.texts == ["work", "half"])
        one.freeze()
        await client.request(ATTACH, {"sessionId": session, "after": 3})
        assert not [each for each in client.messages if each.get("id") == asked]
        one.is_alive = True
        one.agent.say(session, "whole")
        await end(one)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["work", "half", "whole"]
        assert notices(client, "moved") == []


async def test_a_session_whose_machine_is_away_can_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        client = await here.client()
        session = await begun(here, one, tmp_path, client)
        one.freeze()
        await client.request("session/delete", {"sessionId": session})
        assert not here.rows.rows
        error = await client.refused("session/load", load(session, tmp_path))
        assert "no worker is connected" in error["message"]


async def test_a_gateway_without_workers_shows_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_machines(tmp_path, monkeypatch) as here, here.worker("one", tmp_path) as one:
        session = await begun(here, one, tmp_path, await here.client())
        one.freeze()
        client = await here.client()
        assert [each["sessionId"] for each in (await client.request("session/list", {}))["sessions"]] == [session]
        await client.request("session/load", load(session, tmp_path))
        assert client.texts == ["work", "done"]
        error = await client.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert error["message"] == "no worker is connected"
        info = await client.request("_antiphon/gateway/info", {})
        assert [(each["name"], each["state"]) for each in info["agents"]] == [("demo", "closed")]
