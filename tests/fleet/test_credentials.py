"""The keys of a fleet: each role does what it has to at a real broker, and nothing else."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, Fence
from antiphon.fleet.credentials import FleetKeys, make_credentials, read_key, server_users
from antiphon.fleet.errors import BrokerRefused
from antiphon.fleet.nats.broker import NatsBroker, connect_broker
from antiphon.fleet.streams import ACCESS, SESSIONS, StoredStream
from tests.fleet.servers import NatsServer, nats_server
from tests.waits import until


def test_keys_are_made_once_and_for_their_user_alone(tmp_path: Path) -> None:
    first = make_credentials(tmp_path / "keys", workers=["gpu-1"])
    again = make_credentials(tmp_path / "keys", workers=["gpu-1", "gpu-2"])
    assert first.gateway.read_bytes() == again.gateway.read_bytes()
    assert {path.name for path in (tmp_path / "keys").iterdir()} == {
        "admin.key",
        "gateway.key",
        "gpu-1.key",
        "gpu-2.key",
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "keys").iterdir())
    again.admin.chmod(0o644)
    with pytest.raises(AcpError, match="others can read"):
        read_key(again.admin)


def test_what_is_sent_to_the_broker_has_nothing_secret(tmp_path: Path) -> None:
    keys = make_credentials(tmp_path, workers=["w1"])
    text = server_users(tmp_path)
    for path in (keys.admin, keys.gateway, *keys.workers.values()):
        key = read_key(path)
        assert key.public in text and key.seed not in text and (not key.access or key.access not in text)


@pytest.mark.parametrize("name", ["a.b", "*", "", "é", "a b", "../x"])
def test_a_name_that_would_be_another_subject_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AcpError) as caught:
        make_credentials(tmp_path, workers=[name])
    assert caught.value.hint


def test_a_key_of_another_role_is_not_taken_for_a_worker(tmp_path: Path) -> None:
    make_credentials(tmp_path)
    with pytest.raises(AcpError, match="a key with the role gateway"):
        make_credentials(tmp_path, workers=["gateway"])


@pytest.mark.slow
async def test_each_role_may_do_what_it_has_to_and_nothing_else(tmp_path: Path) -> None:
    keys = make_credentials(tmp_path / "keys", workers=["w1", "w2"])
    with nats_server(tmp_path / "server", more=server_users(tmp_path / "keys")) as server:
        async with AsyncExitStack() as stack:

            async def connected(key: Path, stream: StoredStream = SESSIONS) -> NatsBroker:
                broker = await connect_broker(server.url, name=key.stem, credentials=key, streams=(stream,))
                stack.push_async_callback(broker.close)
                return broker

            worker = await connected(keys.workers["w1"])  # first: it makes the stream
            other = await connected(keys.workers["w2"])
            gateway = await connected(keys.gateway)
            access = await connected(keys.gateway, ACCESS)
            await _check_worker(worker, gateway)
            await _check_gateway(gateway, access, worker)
            await _check_admin(await connected(keys.admin))
            await _check_detours(worker, other, access)
            await _check_untrusted(server, keys)


async def _check_worker(worker: Broker, gateway: Broker) -> None:
    epoch = await worker.append("acp.s.k.own", b"{}", expects=0)
    await worker.append("acp.s.k.ev", b"1", fence=Fence("acp.s.k.own", epoch))
    for subject in ("acp.a.token.1", "acp.open.w2.abc", "acp.ctl.w2.abc", "acp.all"):
        with pytest.raises(BrokerRefused):
            await worker.request(subject, b"{}", 5.0)
    heard: list[str] = []
    gateway.subscribe("acp.beat.>", lambda message: heard.append(message.subject))
    await gateway.read("acp.s.k.ev")  # the subscription is there
    worker.publish("acp.beat.w2.abc", b"as another")
    worker.publish("acp.beat.w1.abc", b"as itself")
    await until(lambda: bool(heard))
    assert heard == ["acp.beat.w1.abc"]


async def _check_gateway(gateway: Broker, access: Broker, worker: Broker) -> None:
    assert [message.data for message in await gateway.read("acp.s.k.ev")] == [b"1"]
    await access.append("acp.a.token.1", b"token")
    with pytest.raises(BrokerRefused):
        await gateway.append("acp.s.k.ev", b"2")
    worker.subscribe("acp.open.w1.abc", lambda message: worker.publish(message.reply, b"yes"))
    await worker.read("acp.s.k.ev")
    assert await gateway.request("acp.open.w1.abc", b"", 5.0) == b"yes"


async def _check_admin(admin: Broker) -> None:
    assert await admin.last("acp.s.k.own") is not None
    for subject in ("acp.s.k.ev", "acp.s.k.own", "acp.a.token.2"):
        with pytest.raises(BrokerRefused):
            await admin.request(subject, b"x", 5.0)


async def _check_detours(worker: NatsBroker, other: NatsBroker, access: NatsBroker) -> None:
    """Have the broker send what a worker may not: with no right for an answer, and as the answer to a read, for which it checks none."""
    taken: list[str] = []
    for subject in ("acp.open.w2.abc", "acp.all"):
        other.subscribe(subject, lambda message: taken.append(message.subject))
    followed: list[str] = []
    other.follow("acp.s.k.*", lambda message: followed.append(message.subject))
    access.follow("acp.a.token.*", lambda message: taken.append(message.subject))
    await asyncio.gather(other.last("acp.s.k.ev"), access.last("acp.a.token.1"))  # the subscriptions are there
    echoes: list[str] = []
    worker.subscribe("acp.beat.w1.abc", lambda message: echoes.append(message.reply))
    forbidden = (
        "acp.open.w2.abc",
        "acp.all",
        "acp.a.token.2",
        "acp.alive.token.2",
        "acp.live.k.own",
        "$JS.API.STREAM.PURGE.ACP_ACCESS",
    )
    for subject in forbidden:
        worker.publish("acp.beat.w1.abc", b"", subject)
    await until(lambda: len(echoes) == len(forbidden))
    assert not any(echoes)  # none is answered by a process of the fleet
    read = msgspec.json.encode({"last_by_subj": "acp.s.k.ev"})
    for subject in forbidden:
        worker.publish(subject, b"{}")
        worker.publish("$JS.API.DIRECT.GET.ACP_SESSIONS", read, subject)
    number = await worker.append("acp.s.k.row", b"{}")  # behind all of it
    await until(lambda: bool(followed))
    assert (taken, followed) == ([], ["acp.s.k.row"]) and number
    assert [message.data for message in await access.lasts("acp.a.>")] == [b"token"]
    await _check_consumers(worker, other)


async def _check_consumers(worker: NatsBroker, other: NatsBroker) -> None:
    """Have the broker make a consumer of the stream, as the answer to a read: it sends what the worker stores to any subject."""
    subjects = ("acp.all", "acp.ctl.w2.abc", "acp.c.up.w2.abc", "acp.live.k.forged")
    taken: list[str] = []
    for subject in subjects[:-1]:
        other.subscribe(subject, lambda message: taken.append(message.subject))
    other.follow("acp.s.k.forged", lambda message: taken.append(message.subject))
    seen: list[bytes] = []
    for subject in subjects:
        other._link.subscribe(subject, lambda message: seen.append(message.data))
    await other.last("acp.s.k.ev")  # the subscriptions are there
    for number, subject in enumerate(subjects):
        config = {
            "durable_name": f"c{number}",
            "deliver_subject": subject,
            "deliver_policy": "all",
            "ack_policy": "none",
        }
        request = {"stream_name": SESSIONS.name, "config": {**config, "filter_subject": "acp.s.k.forged"}}
        stored = await worker.append("acp.s.k.evil", msgspec.json.encode(request))
        read = msgspec.json.encode({"seq": stored})
        worker.publish(
            "$JS.API.DIRECT.GET.ACP_SESSIONS", read, f"$JS.API.CONSUMER.DURABLE.CREATE.ACP_SESSIONS.c{number}"
        )
    forged = {"Nats-Subject": "acp.s.k.forged", "Nats-Sequence": "1000000"}
    await worker.append("acp.s.k.forged", b"plain")
    await worker.append("acp.s.k.forged", b"with headers", headers=forged)
    both = 2 * len(subjects) + 2  # the last subject also gets what was stored
    await until(lambda: len([each for each in seen if each in (b"plain", b"with headers")]) >= both)
    assert taken == ["acp.s.k.forged", "acp.s.k.forged"]


async def _check_untrusted(server: NatsServer, keys: FleetKeys) -> None:
    with pytest.raises(BrokerRefused):
        await connect_broker(server.url, name="nobody")
    other = make_credentials(keys.admin.parent.parent / "other")
    with pytest.raises(BrokerRefused):
        await connect_broker(server.url, name="stranger", credentials=other.gateway)
