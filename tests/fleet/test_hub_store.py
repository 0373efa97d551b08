"""A hub whose journal and rows are on a broker: a session lives as with a file, and the broker may be away for a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from antiphon.fleet.records.formats import events_subject, owner_of, owner_subject
from antiphon.gateway.base import HubLimits
from antiphon.gateway.hub import Hub
from tests.fleet.row_copies import CopyFleet, RowCopy, copies_in
from tests.gateway.peers import QUICK, HubClients, ScriptedAgent
from tests.limits import limit
from tests.waits import turns, until


@asynccontextmanager
async def hub_of(copy: RowCopy, tmp_path: Path, limits: HubLimits = QUICK) -> AsyncIterator[HubClients]:
    """A hub with the journal and the rows of a process."""
    agent = ScriptedAgent()
    agent.answers = {"session/load": lambda params: {}, "session/close": lambda params: {}}
    async with (
        asyncio.timeout(limit()),
        Hub({"demo": agent.start}, copy.rows, copy.journal, roots=[str(tmp_path)], limits=limits) as hub,
    ):
        clients = HubClients(hub, agent)
        try:
            yield clients
        finally:
            await clients.leave()


async def owner(fleet: CopyFleet, key: str) -> str:
    broker = fleet.server.connect()
    found = owner_of(await broker.last(owner_subject(key))).worker
    await broker.close()
    return found


async def test_a_session_is_stored_closed_read_at_another_worker_and_deleted(tmp_path: Path) -> None:
    async with copies_in(tmp_path / "copies") as fleet:
        first, second = await fleet.start("w1"), await fleet.start("w2")
        async with hub_of(first, tmp_path) as place:
            client = await place.client()
            session = await client.new(tmp_path)
            prompt = client.prompt(session, "hello")
            sent = await place.agent.got("session/prompt")
            place.agent.say(session, "one", "two")
            place.agent.result(sent["id"], {"stopReason": "end_turn"})
            await client.response(prompt)
            row = await first.rows.find("demo", session)
            assert row is not None and await owner(fleet, row.key) == "w1"
        assert await owner(fleet, row.key) == ""
        async with hub_of(second, tmp_path) as place:
            client = await place.client()
            await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
            await until(lambda: client.texts == ["hello", "one", "two"])
            assert await owner(fleet, row.key) == "w2"
            found = await second.rows.find("demo", session)
            assert found is not None and (found.turn, found.text) == ("", "hello")
            await place.hub.delete_stored(found)
            assert await second.rows.find("demo", session) is None
            assert await second.broker.last(events_subject(row.key)) is None
        await until(lambda: (row.key, None) in first.changed)


async def test_what_an_agent_sends_while_the_broker_is_away_is_shown_when_it_is_there_again(tmp_path: Path) -> None:
    limits = HubLimits(uncommitted=2000)
    async with copies_in(tmp_path / "copies") as fleet:
        copy = await fleet.start("w1")
        async with hub_of(copy, tmp_path, limits) as place:
            client = await place.client()
            session = await client.new(tmp_path)
            prompt = client.prompt(session, "go")
            sent = await place.agent.got("session/prompt")
            fleet.server.stop()
            for each in range(200):
                place.agent.say(session, f"{each}")
                await turns(3)
            shown, waits = client.texts.copy(), (copy.journal.unstored, place.hub.counts()["uncommitted"])
            fleet.server.start()
            assert shown == [] and 0 < waits[0] <= waits[1] < 100 * 150, "the agent is not read on meanwhile"
            place.agent.result(sent["id"], {"stopReason": "end_turn"})
            await client.response(prompt)
            assert client.texts == [f"{each}" for each in range(200)]
            row = await copy.rows.find("demo", session)
            assert row is not None
            numbers = [entry.number for entry in await copy.journal.read(row.key)]
            assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 203
