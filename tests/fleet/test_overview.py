"""What `antiphon fleet status` shows of a broker that does not store: a state, until it stores again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.fleet.nats import NatsBroker, connect_broker
from antiphon.fleet.overview import FleetOverview, fleet_overview
from antiphon.fleet.records import appends
from antiphon.fleet.records.formats import OwnerRecord, owner_subject, row_subject
from antiphon.fleet.worker.worker import FleetWorker, WorkerOptions
from antiphon.gateway.data import GatewayData
from tests.fleet.servers import nats_cluster, nats_server
from tests.gateway.peers import ScriptedAgent
from tests.limits import limit
from tests.waits import until


@asynccontextmanager
async def worker(url: str, directory: Path) -> AsyncIterator[tuple[FleetWorker, NatsBroker]]:
    broker = await connect_broker(url, name="worker")
    try:
        async with (
            GatewayData.open(directory / "data") as data,
            FleetWorker(broker, data, {"demo": ScriptedAgent().start}, WorkerOptions("w", "here")) as found,
        ):
            yield found, broker
    finally:
        await broker.close()


async def limited(broker: NatsBroker, most: int) -> None:
    """Set how many bytes the stream of the sessions may have; -1: any number."""
    found = await broker._api("STREAM.INFO.ACP_SESSIONS", {})
    await broker._api("STREAM.UPDATE.ACP_SESSIONS", {**found["config"], "max_bytes": most})


async def shown(url: str, text: str) -> FleetOverview:
    """Wait until the state of the broker has a text."""
    async with asyncio.timeout(limit()):
        while text not in (found := await fleet_overview(url)).broker.state:
            pass
    return found


@pytest.mark.slow
async def test_a_broker_without_room_is_a_state_of_the_fleet_until_there_is_room(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        async with worker(server.url, tmp_path) as (work, broker):
            assert (await shown(server.url, "ok")).workers[0].state == "ok"
            await limited(broker, 1)
            storing = asyncio.ensure_future(work.rows.create("demo", "s", "/w"))
            found = await shown(server.url, "may not store more: maximum bytes exceeded")
            assert found.workers[0].state == "cannot store" and found.workers[0].problem == found.broker.state
            await limited(broker, -1)
            await storing
            await shown(server.url, "ok")


@pytest.mark.slow
async def test_a_server_that_follows_no_more_is_a_state_of_the_fleet(tmp_path: Path) -> None:
    """One that is frozen, and one whose disk was full: the others do not take these for gone."""
    with nats_cluster(tmp_path) as servers:
        broker = await connect_broker([each.url for each in servers], name="worker")
        try:
            answer = await broker._api("STREAM.INFO.ACP_SESSIONS", {})
            follower = next(each for each in servers if each.name != answer["cluster"]["leader"])
            url = next(each.url for each in servers if each.name == answer["cluster"]["leader"])
            await shown(url, "ok")
            follower.freeze()
            found = await shown(url, "1 of 3 servers are away")
            assert found.broker.servers == 3
            follower.thaw()
            await shown(url, "ok")
        finally:
            await broker.close()


async def test_an_append_that_takes_long_is_a_problem_while_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appends, "SLOW", 0.1)
    with nats_server(tmp_path) as server:
        async with worker(server.url, tmp_path) as (work, _):
            server.freeze()
            storing = asyncio.ensure_future(work.rows.create("demo", "s", "/w"))
            await until(lambda: "is slow" in work.state().problem)
            server.thaw()
            await storing
            assert not work.state().problem


async def test_of_sessions_with_one_id_the_status_has_the_one_that_lists_have(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as server:
        async with worker(server.url, tmp_path) as (found, _):
            await found.rows.create("demo", "again", "/w")
            later = await found.rows.create("demo", "again", "/w")
            shown = await fleet_overview(server.url)
            assert [each.key for each in shown.sessions] == [later.key] and shown.total == 1


async def test_a_session_of_a_worker_that_is_gone_has_no_owner(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as server:
        async with worker(server.url, tmp_path) as (found, broker):
            row = await found.rows.create("demo", "s", "/w")
            await broker.append(owner_subject(row.key), OwnerRecord("killed.abc123").encode())
            shown = await fleet_overview(server.url)
            assert [(each.key, each.owner) for each in shown.sessions] == [(row.key, "")]


async def test_damaged_records_of_one_session_do_not_hide_the_others(tmp_path: Path) -> None:
    with nats_server(tmp_path / "server") as server:
        async with worker(server.url, tmp_path) as (found, broker):
            row = await found.rows.create("demo", "good", "/w")
            await found.journal.claim(row.key)
            await broker.append(owner_subject("0" * 32), b"{")
            await broker.append(row_subject("0" * 32), b"{")
            shown = await fleet_overview(server.url)
            assert [(each.key, each.owner) for each in shown.sessions] == [(row.key, found.name)]
            assert "1 damaged row" in shown.broker.state
