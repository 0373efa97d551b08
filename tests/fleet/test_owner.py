"""The contract of owners of sessions: that of one process, and that of a fleet."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.fleet.owner import Hello
from antiphon.gateway.base import AccessRole, Principal
from antiphon.journal.owner import LocalOwner, NoOwner, Placement
from tests.fleet.workers import worker_fleet
from tests.gateway.peers import RawClient, stage

DRIVER = Principal("alice", AccessRole.DRIVE)


class Owned:
    """An owner, and the hub behind its one worker."""

    def __init__(self, owner: Any, hello: Any, directory: Path, rows: Any) -> None:
        self.owner = owner
        self._rows = rows
        self.hello = hello
        self.wanted = Placement("demo", str(directory))

    async def key(self, session_id: str) -> str:
        """Return the key of a session."""
        key: str = (await self._rows.find("demo", session_id)).key
        return key

    async def client(self) -> RawClient:
        """Place a session, and connect to its worker."""
        worker = await self.owner.place(self.wanted)
        client = RawClient(None, transport=await self.owner.connect(worker.name, self.hello))
        await client.initialize()
        return client


@asynccontextmanager
async def local(tmp_path: Path) -> AsyncIterator[Owned]:
    async with stage(tmp_path) as place:

        async def serve(transport: Any, principal: Principal) -> None:
            await place.hub.serve(transport, principal, "demo")

        yield Owned(
            LocalOwner(serve, place.hub.agents, lambda: place.hub.counts()["sessions"]), DRIVER, tmp_path, place.rows
        )


@asynccontextmanager
async def fleet(tmp_path: Path) -> AsyncIterator[Owned]:
    async with worker_fleet(tmp_path) as found:
        one = await found.start("one")
        yield Owned(found.owner, Hello(DRIVER, "demo"), tmp_path, one.worker.rows)


@pytest.fixture(params=[local, fleet])
async def owned(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Owned]:
    async with request.param(tmp_path) as found:
        yield found


async def test_a_session_is_opened_at_the_worker_that_it_was_placed_at(owned: Owned, tmp_path: Path) -> None:
    client = await owned.client()
    assert await client.new(tmp_path) == "s1"
    await client.leave()


async def test_an_agent_that_no_worker_has_is_refused_with_those_that_there_are(owned: Owned) -> None:
    with pytest.raises(NoOwner) as caught:
        await owned.owner.place(Placement("nothing", owned.wanted.cwd))
    assert "`nothing`" in caught.value.sentence and "demo" in caught.value.hint and caught.value.recoverable


async def test_a_worker_that_is_not_there_cannot_be_connected_to(owned: Owned) -> None:
    with pytest.raises(NoOwner) as caught:
        await owned.owner.connect("gone", owned.hello)
    assert "`gone`" in caught.value.sentence and caught.value.hint


async def test_the_worker_of_a_session_that_is_open_is_found(owned: Owned, tmp_path: Path) -> None:
    client = await owned.client()
    await client.new(tmp_path)
    [row] = (await client.request("_antiphon/sessions/list", {}))["sessions"]
    assert row["sessionId"] == "s1"
    worker = (await owned.owner.place(owned.wanted)).name
    assert await owned.owner.find(await owned.key("s1")) == worker
    await client.leave()


async def test_the_workers_can_be_watched(owned: Owned, tmp_path: Path) -> None:
    client = await owned.client()
    await client.new(tmp_path)
    watch = owned.owner.watch()
    worker = await anext(watch)
    assert worker.alive and worker.name == (await owned.owner.place(owned.wanted)).name
    await watch.aclose()
    await client.leave()
