"""Clients over streamable HTTP: a stream that is cut goes on where its client was, at one gateway as in a fleet."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.hubs import fleet
from tests.fleet.streams import HttpClient
from tests.gateway.peers import DRIVER, HubClients, stage
from tests.gateway.test_turns import end
from tests.waits import until


@asynccontextmanager
async def serving(kind: str, directory: Path) -> AsyncIterator[tuple[Any, HubClients]]:
    """A hub to connect to, and the worker behind it: the same one on one machine."""
    if kind == "one machine":
        async with stage(directory) as place:
            yield place.hub, place
    else:
        async with fleet(directory, "one") as here:
            yield here.hub, here.workers["one"]


@asynccontextmanager
async def client_of(kind: str, directory: Path, **offer: Any) -> AsyncIterator[tuple[HttpClient, HubClients, str]]:
    """A client with a session and its stream."""
    async with serving(kind, directory) as (hub, worker):
        client = HttpClient(hub, DRIVER)
        await client.initialize(**offer)
        session = (await client.request("session/new", {"cwd": str(directory), "mcpServers": []}))["sessionId"]
        client.listen(session)
        yield client, worker, session
        await client.leave()


kinds = pytest.mark.parametrize("kind", ["one machine", "fleet"])


@kinds
@pytest.mark.parametrize("numbers", [False, True], ids=["without numbers", "with numbers"])
async def test_a_stream_that_is_cut_at_any_event_goes_on_where_it_was(tmp_path: Path, kind: str, numbers: bool) -> None:
    async with client_of(kind, tmp_path, numbers=numbers) as (client, worker, session):
        asked = await client.prompt(session, "work")
        await worker.agent.got("session/prompt")
        for step in range(8):
            worker.agent.say(session, f"{step}")
            if step % 2:
                await until(lambda step=step: f"{step}" in client.texts)  # type: ignore[misc]
            await client.cut(session)
            client.listen(session)
        await end(worker)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        own = ["work"] if numbers else []
        assert client.texts == [*own, *map(str, range(8))]


@kinds
async def test_a_response_that_was_on_its_way_when_the_stream_was_cut_is_sent_again(tmp_path: Path, kind: str) -> None:
    async with client_of(kind, tmp_path) as (client, worker, session):
        asked = await client.prompt(session, "work")
        await worker.agent.got("session/prompt")
        worker.agent.say(session, "on")
        await until(lambda: client.texts == ["on"])
        await client.cut(session)
        worker.agent.say(session, "more")
        await end(worker)
        key = worker.hub.agents["demo"].sessions[session.encode()]
        await until(lambda: key.last == 5)  # it waits in the stream, which has no reader
        client.listen(session)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["on", "more"]
        # A client that saw nothing of the turn comes back with its first event: it is not shown its own message.
        await client.cut(session)
        client.seen = [each for each in client.seen if each[1].get("id") == 1]
        client._last[session] = "1"
        client.listen(session)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert client.texts == ["on", "more"]


@kinds
async def test_an_error_that_ended_a_turn_is_sent_again_with_its_event(tmp_path: Path, kind: str) -> None:
    async with client_of(kind, tmp_path) as (client, worker, session):
        asked = await client.prompt(session, "work")
        await worker.agent.got("session/prompt")
        await worker.agent.crash()
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        await client.cut(session)
        client.seen = [each for each in client.seen if each[1].get("id") != asked]
        client._last[session] = "2"
        client.listen(session)
        assert "interrupted" in (await client.response(asked))["error"]["message"]


@kinds
async def test_a_permission_request_that_was_missed_is_asked_again_and_can_be_answered(
    tmp_path: Path, kind: str
) -> None:
    async with client_of(kind, tmp_path) as (client, worker, session):
        await client.prompt(session, "work")
        await worker.agent.got("session/prompt")
        await client.cut(session)
        worker.agent.ask(4, session)
        client.listen(session)
        await until(lambda: [each for each in client.messages if each.get("method") == "session/request_permission"])
        await client.cut(session)
        client.seen = [each for each in client.seen if each[1].get("method") != "session/request_permission"]
        client._last[session] = "2"
        client.listen(session)
        await until(lambda: [each for each in client.messages if each.get("method") == "session/request_permission"])
        request = client.messages[-1]
        result = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        await client.post({"jsonrpc": "2.0", "id": request["id"], "result": result})
        await until(lambda: any(b"allow_once" in line for line in worker.agent.lines))


@kinds
async def test_a_stream_that_is_opened_for_the_first_time_with_an_event_begins_there(tmp_path: Path, kind: str) -> None:
    async with client_of(kind, tmp_path) as (first, worker, session):
        worker.agent.say(session, "one", "two", "three")
        await until(lambda: len(first.texts) == 3)
        hub = first.hub
        second = HttpClient(hub, DRIVER)
        await second.initialize()
        second._last[session] = "1"
        second.listen(session)
        await until(lambda: second.texts == ["two", "three"])
        worker.agent.say(session, "four")
        await until(lambda: second.texts == ["two", "three", "four"])
        await second.leave()


async def test_a_stream_that_is_opened_again_while_the_session_moves_misses_nothing(tmp_path: Path) -> None:
    async with fleet(tmp_path, "one", "two") as here:
        client = HttpClient(here.hub, DRIVER)
        await client.initialize()
        session = (await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": []}))["sessionId"]
        client.listen(session)
        key = here.key(session)
        one = here.workers[here.journal.owners[key]]
        two = next(each for each in here.workers.values() if each is not one)
        asked = await client.prompt(session, "work")
        await one.agent.got("session/prompt")
        one.agent.say(session, "a", "b")
        await until(lambda: client.texts == ["a", "b"])
        await client.cut(session)
        client._last[session] = "3"
        client.seen = [each for each in client.seen if each[0] != "4"]
        await here.move(key, two.name)
        client.listen(session)
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        assert client.texts == ["a", "b"]
        again = await client.prompt(session, "more")
        await two.agent.got("session/prompt")
        two.agent.say(session, "c")
        await end(two)
        await client.response(again)
        assert client.texts == ["a", "b", "c"]
        numbers = [int(id) for id, message in client.events if message.get("method") == "session/update"]
        assert numbers == sorted(set(numbers))
        await client.leave()
