"""Tokens and audit entries of a fleet on a real NATS server: each behaviour once, with two gateways."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from antiphon.fleet.access.audit import AuditReceiver, AuditSender
from antiphon.fleet.broker import BrokerAway
from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.data import GatewayData
from tests.fleet.brokers import NatsWorld, nats_world
from tests.fleet.servers import nats_server
from tests.fleet.test_access import Gateway
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow

DRIVE = AccessRole.DRIVE


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nats_server(tmp_path_factory.mktemp("nats")) as server:
        yield server.port


@pytest.fixture
async def world(port: int) -> AsyncIterator[NatsWorld]:
    async with nats_world(lambda: port) as world:
        yield world


@pytest.fixture
async def both(world: NatsWorld, tmp_path: Path) -> AsyncIterator[tuple[Gateway, Gateway]]:
    made = [Gateway(await world.connect(f"gateway-{number}"), tmp_path, str(number)) for number in range(2)]
    async with asyncio.timeout(limit()):
        for each in made:
            await each.tokens.load()
        yield made[0], made[1]
        for each in made:
            await each.tokens.close()


async def test_tokens_are_made_and_revoked_for_both_gateways(both: tuple[Gateway, Gateway]) -> None:
    one, two = both
    assert one.own_secret != two.own_secret
    first, secret = await one.tokens.create("token", "phone", DRIVE, lifetime=1000)
    second, _ = await two.tokens.create("token", "phone", DRIVE)
    assert [first.name, second.name] == ["phone", f"phone {second.id}"]
    await until(lambda: two.tokens.find(secret) == first)
    browser = await two.tokens.create_for_browser(first)
    assert browser is not None
    await until(lambda: one.tokens.find(browser[1]) == browser[0])
    await one.tokens.revoke(first.id)
    await until(lambda: not two.tokens.is_good(first) and not two.tokens.is_good(browser[0]))
    assert two.ended == [first, browser[0]]
    assert (await two.tokens.create("token", "phone", DRIVE))[0].name == "phone"


async def test_a_launch_code_is_good_once_at_either_gateway(both: tuple[Gateway, Gateway]) -> None:
    for _ in range(10):
        code = await both[0].tokens.launch_code(DRIVE)
        found = await asyncio.gather(*(each.tokens.redeem(code) for each in both * 3))
        assert sum(each is not None for each in found) == 1
        assert await both[0].tokens.redeem(code) is None


async def test_gateways_that_make_tokens_of_one_name_at_once_make_different_names(
    both: tuple[Gateway, Gateway],
) -> None:
    made = await asyncio.gather(*(each.tokens.create("token", "laptop", DRIVE) for each in both * 5))
    assert len({token.name for token, _ in made}) == 10


async def test_shares_of_a_deleted_session_are_revoked_once(both: tuple[Gateway, Gateway]) -> None:
    share, secret = await both[0].tokens.create("share", "link", DRIVE, sessions=["key"])
    await until(lambda: both[1].tokens.find(secret))
    await asyncio.gather(*(each.tokens.forget_session("key") for each in both))
    await until(lambda: both[0].ended == both[1].ended == [share])


async def test_a_gateway_that_was_cut_off_goes_on_with_what_it_knows_and_catches_up(
    world: NatsWorld, both: tuple[Gateway, Gateway]
) -> None:
    one, two = both
    first, _ = await one.tokens.create("token", "first", DRIVE)
    second, secret = await one.tokens.create("token", "second", DRIVE)
    await until(lambda: two.tokens.is_good(second))
    world.cut(two.broker)
    await until(lambda: two.tokens.problem)
    await one.tokens.revoke(first.id)
    assert two.tokens.is_good(first)
    with pytest.raises(BrokerAway) as caught:
        await two.tokens.revoke(second.id)
    assert caught.value.hint and not two.tokens.is_good(second) and one.tokens.find(secret) is not None
    await world.mend(two.broker)
    await until(lambda: two.ended == [second, first] and first not in one.tokens.list("token"))
    await until(lambda: one.tokens.find(secret) is None)
    await until(lambda: not two.tokens.problem)


async def test_entries_of_a_worker_are_in_the_audit_log_of_one_gateway(world: NatsWorld, tmp_path: Path) -> None:
    principal = Principal("phone", DRIVE, None, "7", "7", "192.0.2.1")
    async with GatewayData.open(tmp_path / "one") as one, GatewayData.open(tmp_path / "two") as two:
        receivers = [AuditReceiver(await world.connect("gateway"), each.audit) for each in (one, two)]
        sender = AuditSender(await world.connect("worker"))
        for number in range(500):
            sender(principal, "prompt", "key", str(number))
        await until(lambda: not sender.waiting)
        await sender.close()
        for receiver in receivers:
            receiver.close()
        found = [*await one.audit.read(), *await two.audit.read()]
        assert sorted(int(entry.detail or "") for entry in found) == [*range(500)]
        assert {(entry.actor, entry.token, entry.address, entry.action, entry.session) for entry in found} == {
            ("phone", "7", "192.0.2.1", "prompt", "key")
        }
        assert await one.audit.broken() is None and await two.audit.broken() is None
