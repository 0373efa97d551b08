"""The keys of a fleet: each role does what it has to at a real broker, and nothing else."""

from pathlib import Path

import pytest

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, Fence
from antiphon.fleet.credentials import FleetKeys, make_credentials, read_key, server_users
from antiphon.fleet.errors import BrokerRefused
from antiphon.fleet.nats.broker import connect_broker
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


def test_what_the_broker_is_told_has_nothing_secret(tmp_path: Path) -> None:
    keys = make_credentials(tmp_path, workers=["w1"])
    text = server_users(tmp_path)
    for path in (keys.admin, keys.gateway, *keys.workers.values()):
        assert read_key(path).public in text and read_key(path).seed not in text


@pytest.mark.parametrize("name", ["a.b", "*", "", "é", "a b", "../x"])
def test_a_name_that_would_be_another_subject_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AcpError) as caught:
        make_credentials(tmp_path, workers=[name])
    assert caught.value.hint


def test_a_key_of_another_role_is_not_taken_for_a_worker(tmp_path: Path) -> None:
    make_credentials(tmp_path)
    with pytest.raises(AcpError, match="the key of a gateway"):
        make_credentials(tmp_path, workers=["gateway"])


@pytest.mark.slow
async def test_each_role_may_do_what_it_has_to_and_nothing_else(tmp_path: Path) -> None:
    keys = make_credentials(tmp_path / "keys", workers=["w1", "w2"])
    with nats_server(tmp_path / "server", more=server_users(tmp_path / "keys")) as server:
        worker = await connect_broker(
            server.url, name="w1", credentials=keys.workers["w1"]
        )  # first: it makes the streams
        gateway = await connect_broker(server.url, name="g", credentials=keys.gateway)
        admin = await connect_broker(server.url, name="a", credentials=keys.admin)
        try:
            await _check_worker(worker, gateway)
            await _check_gateway(gateway, worker)
            await _check_admin(admin)
            await _check_strangers(server, keys)
        finally:
            for broker in (worker, gateway, admin):
                await broker.close()


async def _check_worker(worker: Broker, gateway: Broker) -> None:
    epoch = await worker.append("acp.s.k.own", b"{}", expects=0)
    await worker.append("acp.s.k.ev", b"1", fence=Fence("acp.s.k.own", epoch))
    with pytest.raises(BrokerRefused):
        await worker.lasts("acp.a.>")
    with pytest.raises(BrokerRefused):
        await worker.append("acp.a.token.1", b"mine")
    heard: list[str] = []
    gateway.subscribe("acp.beat.>", lambda message: heard.append(message.subject))
    await gateway.read("acp.s.k.ev")  # the subscription is there
    worker.publish("acp.beat.w2.abc", b"as another")
    worker.publish("acp.beat.w1.abc", b"as itself")
    await until(lambda: bool(heard))
    assert heard == ["acp.beat.w1.abc"]


async def _check_gateway(gateway: Broker, worker: Broker) -> None:
    assert [message.data for message in await gateway.read("acp.s.k.ev")] == [b"1"]
    await gateway.append("acp.a.token.1", b"token")
    with pytest.raises(BrokerRefused):
        await gateway.append("acp.s.k.ev", b"2")
    worker.subscribe("acp.open.w1.abc", lambda message: worker.publish(message.reply, b"yes"))
    await worker.read("acp.s.k.ev")
    assert await gateway.request("acp.open.w1.abc", b"", 5.0) == b"yes"


async def _check_admin(admin: Broker) -> None:
    assert await admin.last("acp.s.k.own") is not None
    for subject in ("acp.s.k.ev", "acp.s.k.own", "acp.a.token.2"):
        with pytest.raises(BrokerRefused):
            await admin.append(subject, b"x")


async def _check_strangers(server: NatsServer, keys: FleetKeys) -> None:
    with pytest.raises(BrokerRefused):
        await connect_broker(server.url, name="nobody")
    other = make_credentials(keys.admin.parent.parent / "other")
    with pytest.raises(BrokerRefused):
        await connect_broker(server.url, name="stranger", credentials=other.gateway)
