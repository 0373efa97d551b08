"""What workers have done for clients is in the audit log of a gateway, once and in order, also when no gateway is there for a while."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest

from antiphon.fleet.access import audit as fleet_audit
from antiphon.fleet.access.audit import AUDIT_SUBJECT, AuditReceiver, AuditSender
from antiphon.fleet.simulation import SimulatedServer
from antiphon.gateway.base import AccessRole, Principal
from tests.fleet.carriers import virtually

WHO = Principal("phone", AccessRole.DRIVE, None, "7", "7", "192.0.2.1")


class Log:
    """What a gateway would write into its audit log."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def add(self, action: str, **more: Any) -> None:
        self.entries.append({"action": action, **more})

    @property
    def details(self) -> list[str]:
        return [each["detail"] for each in self.entries]


class Gateway:
    """A gateway that takes entries."""

    def __init__(self, server: SimulatedServer) -> None:
        self.broker = server.connect("gateway")
        self.log = Log()
        self.receiver = AuditReceiver(self.broker, self.log)  # type: ignore[arg-type]


@asynccontextmanager
async def worker(server: SimulatedServer, otherwise: Callable[..., None] | None = None) -> AsyncIterator[AuditSender]:
    """The audit of a worker."""
    sender = AuditSender(server.connect("worker"), otherwise)
    try:
        yield sender
    finally:
        await sender.close()


def test_an_entry_has_the_client_and_the_time_at_which_it_was_made() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with worker(server) as audit:
            audit(WHO, "prompt", "key", "x" * 5000)
            await asyncio.sleep(10)
            gateway = Gateway(server)
            await asyncio.sleep(10)
            (entry,) = gateway.log.entries
            at = entry.pop("at")
            assert entry == {"action": "prompt", "actor": "phone", "token": "7", "address": "192.0.2.1", "session": "key", "detail": "x" * 4096}  # fmt: skip
            assert datetime.now(UTC) - at > timedelta(seconds=9) and not audit.waiting

    virtually(scenario)


def test_entries_are_stored_once_by_one_of_the_gateways_and_in_their_order() -> None:
    async def scenario(server: SimulatedServer) -> None:
        gateways = [Gateway(server) for _ in range(3)]
        server.delay = (0.0, 0.01)
        async with worker(server) as audit:
            for number in range(1000):
                audit(WHO, "prompt", "key", str(number))
                if number % 100 == 0:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(5)
            found = [[int(each) for each in gateway.log.details] for gateway in gateways]
            assert sorted(chain.from_iterable(found)) == [*range(1000)] and all(each == sorted(each) for each in found)
            assert not audit.waiting

    virtually(scenario)


def test_long_entries_are_sent_in_messages_that_the_broker_takes() -> None:
    async def scenario(_: SimulatedServer) -> None:
        server = SimulatedServer(max_payload=1024 * 1024 - 4096)
        gateway = Gateway(server)
        async with worker(server) as audit:
            for _number in range(100):
                audit(WHO, "prompt", "key", "\x01" * 4096)
            await asyncio.sleep(5)
            assert len(gateway.log.entries) == 100

    virtually(scenario)


def test_entries_wait_for_a_gateway_and_for_the_broker() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with worker(server) as audit:
            audit(WHO, "prompt", "key", "without a gateway")
            await asyncio.sleep(3)
            gateway = Gateway(server)
            await asyncio.sleep(6)
            server.stop()
            audit(WHO, "prompt", "key", "without a broker")
            await asyncio.sleep(3)
            assert audit.waiting == 1
            server.start()
            await asyncio.sleep(6)
            assert gateway.log.details == ["without a gateway", "without a broker"] and not audit.waiting

    virtually(scenario)


def test_entries_whose_confirmation_was_lost_are_not_stored_twice_by_the_same_gateway() -> None:
    async def scenario(server: SimulatedServer) -> None:
        gateway = Gateway(server)
        answers: list[bytes] = []
        publish = gateway.broker.publish

        def losing(subject: str, data: bytes, reply: str = "") -> None:
            answers.append(data)
            if len(answers) > 2:
                publish(subject, data, reply)

        gateway.broker.publish = losing  # type: ignore[method-assign]
        async with worker(server) as audit:
            for number in range(3):
                audit(WHO, "prompt", "key", str(number))
            await asyncio.sleep(30)
            assert gateway.log.details == ["0", "1", "2"] and len(answers) == 3 and not audit.waiting

    virtually(scenario)


def test_what_no_gateway_takes_is_kept_by_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_audit, "ENTRIES", 5)

    async def scenario(server: SimulatedServer) -> None:
        kept: list[str] = []
        async with worker(server, lambda who, action, key, detail: kept.append(f"{who.name} {detail}")) as audit:
            for number in range(8):
                audit(WHO, "prompt", "key", str(number))
            assert kept == ["phone 0", "phone 1", "phone 2"], "there is room for no more"
            await asyncio.sleep(1)
            began = asyncio.get_running_loop().time()
        assert kept == [f"phone {number}" for number in range(8)], "the worker has ended"
        assert asyncio.get_running_loop().time() - began <= fleet_audit.CLOSE_LIMIT

    virtually(scenario)


def test_entries_that_are_given_up_while_others_are_sent_are_in_one_log_or_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_audit, "ENTRIES", 20)
    monkeypatch.setattr(fleet_audit, "ENTRIES_AT_ONCE", 7)

    async def scenario(server: SimulatedServer) -> None:
        gateway = Gateway(server)
        kept: list[str] = []
        server.delay = (0.0, 0.2)
        async with worker(server, lambda _who, _action, _key, detail: kept.append(detail)) as audit:
            for number in range(300):
                audit(WHO, "prompt", "key", str(number))
                await asyncio.sleep(server.random.choice([0.0, 0.0, 0.05]))
            await asyncio.sleep(5)
        assert {*kept} | {*gateway.log.details} == {str(number) for number in range(300)}
        assert len({*gateway.log.details}) == len(gateway.log.details) and kept

    virtually(scenario)


async def test_without_another_place_an_entry_that_no_gateway_takes_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fleet_audit, "CLOSE_LIMIT", 0.05)
    with caplog.at_level(logging.WARNING):
        async with worker(SimulatedServer()) as audit:
            audit(WHO, "prompt", "key", "ls")
    assert "phone" in caplog.text and "ls" in caplog.text


def test_what_a_gateway_cannot_read_does_not_keep_the_others_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        server = SimulatedServer()
        gateway = Gateway(server)
        broker = server.connect()
        assert await broker.request(AUDIT_SUBJECT, b"?", 5) == fleet_audit.UNREADABLE
        gateway.receiver.close()
        kept: list[str] = []
        broker.subscribe(AUDIT_SUBJECT, lambda message: broker.publish(message.reply, fleet_audit.UNREADABLE))
        async with worker(server, lambda _who, _action, _key, detail: kept.append(detail)) as audit:
            audit(WHO, "prompt", "key", "ls")
            await asyncio.sleep(0)
        assert kept == ["ls"]

    asyncio.run(play())
    assert "cannot be read" in caplog.text


async def test_a_worker_that_ends_sends_what_is_left() -> None:
    server = SimulatedServer()
    gateway = Gateway(server)
    async with worker(server) as audit:
        audit(WHO, "prompt", "key", "last")
    assert gateway.log.details == ["last"]
