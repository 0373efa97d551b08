"""NATS that fails: killed, frozen, restarted, a leader lost, a network that is silent. What was acknowledged is there, in order, once."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest

from antiphon.fleet.broker import BrokerAway, Fence, StoredMessage, Unsure
from antiphon.fleet.nats import NatsBroker, connect_broker, server_link
from antiphon.fleet.nats.server_link import PINGS_MISSED
from tests.fleet.proxies import network
from tests.fleet.servers import NatsServer, nats_cluster, nats_server
from tests.limits import limit
from tests.waits import turns, until

pytestmark = [pytest.mark.slow, pytest.mark.prove]

SESSIONS = 12


class Load:
    """Workers that append to sessions of their own without a pause, and try again what has no answer."""

    def __init__(self, broker: NatsBroker) -> None:
        self._broker = broker
        self.stored: dict[str, list[int]] = {}
        """The numbers of the messages of each session, as they were acknowledged."""
        self.followed: dict[str, list[StoredMessage]] = {}
        self.failures = 0
        self._end = False
        broker.follow("acp.s.*.ev", lambda message: self.followed.setdefault(message.subject, []).append(message))

    @property
    def count(self) -> int:
        """How many messages were acknowledged."""
        return sum(map(len, self.stored.values()))

    async def more(self, count: int = 100) -> None:
        """Wait until each session has got further."""
        wanted = {subject: len(numbers) + count for subject, numbers in self.stored.items()}
        await until(lambda: all(len(self.stored[subject]) >= each for subject, each in wanted.items()))

    async def certainly(self, subject: str, data: bytes, *, name: str, fence: Fence | None = None) -> int:
        """Append, again and again, until it is stored."""
        while True:
            try:
                return await self._broker.append(subject, data, name=name, fence=fence)
            except BrokerAway:
                self.failures += 1
                await asyncio.sleep(0.02)

    async def _work(self, key: str) -> None:
        events = f"acp.s.{key}.ev"
        numbers = self.stored[events] = []
        fence = Fence(f"acp.s.{key}.own", await self.certainly(f"acp.s.{key}.own", b"", name=f"{key}-own"))
        while not self._end:
            at = len(numbers)
            numbers.append(await self.certainly(events, b"%d" % at, name=f"{key}-{at}", fence=fence))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Append until the end of the block, and a little longer."""
        tasks = [asyncio.ensure_future(self._work(f"{at:032x}")) for at in range(SESSIONS)]
        await until(lambda: len(self.stored) == SESSIONS)
        try:
            yield
            self._end = True
            async with asyncio.timeout(limit()):
                await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def check(self, broker: NatsBroker) -> None:
        """Everything that was acknowledged is stored under its number, in order, and nothing else is."""
        for subject, numbers in self.stored.items():
            found: list[StoredMessage] = []
            async with asyncio.timeout(limit()):
                while len(found) < len(numbers):
                    found += await broker.read(subject, after=found[-1].sequence if found else 0, limit=1000)
            assert [int(message.data) for message in found] == list(range(len(numbers)))
            assert [message.sequence for message in found] == numbers
            assert await broker.read(subject, after=numbers[-1]) == []
            live = [message.sequence for message in self.followed[subject]]
            assert live == sorted(set(live)), "in order, and none twice"
            assert set(live) <= set(numbers)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[NatsBroker]:
    """Make a connection for the length of a block."""
    broker = await connect_broker(url, name="test")
    try:
        yield broker
    finally:
        await broker.close()


async def leader_of(broker: NatsBroker, servers: dict[str, NatsServer]) -> NatsServer:
    """Return the server that leads the stream of sessions."""
    async with asyncio.timeout(limit()):
        while True:
            try:
                answer = await broker._api("STREAM.INFO.ACP_SESSIONS", {})
                return servers[answer["cluster"]["leader"]]
            except (BrokerAway, KeyError):
                await asyncio.sleep(0.05)


async def test_a_server_that_is_killed_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        async with connected(server.url) as broker:
            came_back: list[None] = []
            broker.on_reconnect(lambda: came_back.append(None))
            load = Load(broker)
            async with load.running():
                for times in range(1, 4):
                    await load.more()
                    server.kill()
                    await until(lambda: not broker.is_connected)
                    assert broker.problems
                    server.restart()
                    await until(lambda: len(came_back) == times)  # noqa: B023
                    assert not broker.problems
                await load.more()
            assert load.failures
            await load.check(broker)


@pytest.mark.parametrize("how", ["kill", "freeze", "stop"])
async def test_a_leader_that_is_lost_under_load_loses_and_doubles_nothing(tmp_path: Path, how: str) -> None:
    with nats_cluster(tmp_path) as members:
        servers = {server.name: server for server in members}
        async with connected(members[0].url) as broker:
            load = Load(broker)
            async with load.running():
                await load.more()
                leader = await leader_of(broker, servers)
                getattr(leader, how)()
                await load.more()
                getattr(leader, "thaw" if how == "freeze" else "restart")()
                await load.more()
            await load.check(broker)


async def test_a_process_goes_to_another_server_of_a_cluster_when_its_own_is_frozen(tmp_path: Path) -> None:
    with nats_cluster(tmp_path) as members:
        async with connected(members[0].url) as broker:
            await broker.append("acp.s.a.ev", b"1")
            mine = next(server for server in members if server.port == int(broker._link.info["port"]))
            mine.freeze()
            begin = broker.clock()
            await until(lambda: broker.connected_since is not None and broker.connected_since > begin)
            assert int(broker._link.info["port"]) != mine.port
            load = Load(broker)
            assert await load.certainly("acp.s.a.ev", b"2", name="2")
            mine.thaw()


async def test_a_network_that_is_silent_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_link, "PING_INTERVAL", 0.1)
    with nats_server(tmp_path) as server:
        async with network(server.port) as between, connected(between.url) as broker:
            between.is_open.clear()
            unanswered = asyncio.ensure_future(broker.append("acp.s.a.ev", b"1", name="1"))
            for _ in range(100):
                broker.publish("acp.c.x.up", bytes(1 << 18))
            assert broker.unsent > 1 << 20
            with pytest.raises(Unsure):
                await unanswered
            await until(lambda: not broker.is_connected)
            assert broker.unsent == 0, "nothing is kept to be sent later"
            assert "did not answer" in broker.problems[0]
            between.is_open.set()
            await until(lambda: broker.is_connected)
            assert await broker.append("acp.s.a.ev", b"1", name="1") == 1


async def test_nothing_that_was_published_without_a_connection_is_sent_later(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        async with connected(server.url) as other:
            found: list[bytes] = []
            other.subscribe("acp.c.>", lambda message: found.append(message.data))
            async with network(server.port) as between, connected(between.url) as broker:
                await other.last("acp.s.x.ev")
                between.refuses = True
                between.cut()
                await until(lambda: not broker.is_connected)
                broker.publish("acp.c.1", b"old")
                with pytest.raises(BrokerAway) as caught:
                    await broker.append("acp.s.a.ev", b"old")
                assert not isinstance(caught.value, Unsure)
                between.refuses = False
                await until(lambda: broker.is_connected)
                broker.publish("acp.c.1", b"new")
                await until(lambda: found)
                assert found == [b"new"] and await broker.last("acp.s.a.ev") is None


async def test_a_message_that_never_left_this_process_is_known_not_to_be_stored(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        async with connected(server.url) as broker:
            append = asyncio.ensure_future(broker.append("acp.s.a.ev", b"1"))
            await turns(1)
            assert broker.unsent
            broker._link._break()
            with pytest.raises(BrokerAway) as caught:
                await append
            assert not isinstance(caught.value, Unsure)
            await until(lambda: broker.is_connected)
            assert await broker.last("acp.s.a.ev") is None


async def test_a_message_is_not_sent_before_the_one_with_the_same_fence_has_its_answer(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        async with network(server.port) as between, connected(between.url) as broker:
            fence = Fence("acp.s.a.own", await broker.append("acp.s.a.own", b""))
            between.drops_up = True
            appends = [asyncio.ensure_future(broker.append("acp.s.a.ev", b"%d" % at, fence=fence)) for at in range(3)]
            await until(lambda: b"PUB" in between.dropped)
            between.cut()
            results = await asyncio.gather(*appends, return_exceptions=True)
            assert [type(result) for result in results] == [Unsure, BrokerAway, BrokerAway]
            assert between.dropped.count(b"PUB") == 1


async def test_what_a_leader_sends_late_does_not_come_behind_what_is_newer(tmp_path: Path) -> None:
    """A leader that was frozen sends what it had stored when another one leads already."""
    with nats_server(tmp_path) as server:
        client = await nats.connect(server.url)
        async with connected(server.url) as broker:
            found: list[tuple[str, int]] = []
            broker.follow("acp.s.*.ev", lambda message: found.append((message.subject, message.sequence)))
            await broker.last("acp.s.x.ev")
            for key, number in (("a", 5), ("b", 4), ("a", 3), ("a", 5), ("b", 6), ("a", 7), ("b", 6)):
                subject = f"acp.s.{key}.ev"
                headers = {
                    "Nats-Subject": subject,
                    "Nats-Sequence": str(number),
                    "Nats-Time-Stamp": "2026-01-01T00:00:00Z",
                }
                await client.publish(f"acp.live.{key}.ev", b"", headers=headers)
            await client.flush()
            await until(lambda: len(found) == 4)
            await broker.last("acp.s.x.ev")
            assert found == [("acp.s.a.ev", 5), ("acp.s.b.ev", 4), ("acp.s.b.ev", 6), ("acp.s.a.ev", 7)]
        await client.close()


async def test_a_process_whose_event_loop_was_blocked_keeps_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interval = 0.4  # a server that computes beside other tests may be silent for less than four of them
    monkeypatch.setattr(server_link, "PING_INTERVAL", interval)
    with nats_server(tmp_path) as server:
        async with connected(server.url) as broker:
            since = broker.connected_since
            for _ in range(2):
                time.sleep((PINGS_MISSED + 2) * interval)  # noqa: ASYNC251 as a slow disk would block it
                await broker.append("acp.s.a.ev", b"1")
            assert broker.connected_since == since


async def test_a_stale_copy_is_read_without_an_error_and_the_leader_has_the_last(tmp_path: Path) -> None:
    """A follower that was frozen while messages were stored answers reads from what it has."""
    with nats_cluster(tmp_path) as members:
        servers = {server.name: server for server in members}
        async with connected(members[0].url) as first:
            leader = await leader_of(first, servers)
        async with connected(leader.url) as broker:
            behind = next(server for server in members if server is not leader)
            await broker.append("acp.s.a.ev", b"0")
            behind.freeze()
            for at in range(1, 200):
                await broker.append("acp.s.a.ev", b"%d" % at)
            for _ in range(5):
                assert len(await broker.read("acp.s.a.ev")) <= 200
            behind.thaw()
            async with asyncio.timeout(limit()):
                while True:
                    found = [int(message.data) for message in await broker.read("acp.s.a.ev")]
                    assert found == list(range(len(found))), "a moment old, and never with a gap"
                    last = await broker.last("acp.s.a.ev")
                    assert last is not None and last.data == b"199"
                    if len(found) == 200:
                        break


async def test_the_server_that_was_lost_is_tried_after_all_others(tmp_path: Path) -> None:
    with nats_cluster(tmp_path) as servers:
        broker = await connect_broker([each.url for each in servers], name="one")
        tried: list[int] = []
        connect = broker._link._connect

        async def refuse(connection: Any) -> None:
            tried.append(connection.address.port)
            if len(tried) < len(servers):
                raise BrokerAway("not now")
            await connect(connection)

        socket = broker._link._socket
        assert socket is not None
        broker._link._connect = refuse  # type: ignore[method-assign]
        socket.abort()
        broker._link._forget(socket)
        await until(lambda: broker.is_connected)
        assert tried[-1] == socket.address.port and len({*tried}) == len(servers)
        await broker.close()
