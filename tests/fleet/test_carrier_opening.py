"""Connections that are opened over the broker: what the worker gets and answers, and what is left of one that was not opened."""

import asyncio

import pytest

from antiphon.errors import ConnectionClosed, LocalProtocolError
from antiphon.fleet.connection import CarrierLimits, CarrierTransport
from antiphon.fleet.simulation import SimulatedServer
from antiphon.transports.remote import ConnectionRefused
from tests.fleet.carriers import WORKER, Reader, ends, now, virtually
from tests.waits import idle, until


async def test_a_worker_gets_what_the_opener_sent() -> None:
    async with ends() as both:
        await both.dialer.open(WORKER, b'{"agent": "demo"}\n\x00')
        assert [hello for _, hello in both.accepted] == [b'{"agent": "demo"}\n\x00']


async def test_the_reason_of_a_refusal_reaches_the_opener() -> None:
    async with ends() as both:
        both.refuses = LocalProtocolError("all slots are taken", hint="try another worker")
        with pytest.raises(ConnectionRefused) as caught:
            await both.dialer.open(WORKER, b"")
        assert caught.value.advice == ("all slots are taken", "try another worker") and not caught.value.recoverable
        both.refuses = ConnectionClosed("not yet")
        with pytest.raises(ConnectionRefused) as caught:
            await both.dialer.open(WORKER, b"")
        assert caught.value.recoverable
        both.refuses = ZeroDivisionError()
        with pytest.raises(ConnectionRefused, match="failed"):
            await both.dialer.open(WORKER, b"")
        assert not both.dialer.connections and not both.listener.connections


async def test_a_worker_that_is_not_there_is_refused_and_may_be_there_later() -> None:
    async with ends() as both:
        with pytest.raises(ConnectionRefused, match="not there") as caught:
            await both.dialer.open("two", b"")
        assert caught.value.recoverable and caught.value.hint and not both.dialer.connections


def test_a_connection_to_a_worker_that_is_taken_for_dead_is_not_waited_for() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(CarrierLimits(open=60.0), server) as both:
            other, _ = await both.open()
            server.freeze(both.worker)
            opening = asyncio.ensure_future(both.dialer.open(WORKER, b""))
            await asyncio.sleep(1.0)
            began = now()
            both.dialer.lost("two")
            await asyncio.sleep(0.1)
            assert not opening.done() and other.lost is None
            both.dialer.lost(WORKER)
            with pytest.raises(ConnectionRefused, match="did not answer: it is taken for dead") as caught:
                await opening
            assert caught.value.recoverable and now() - began == pytest.approx(0.1)
            await Reader(other).end()
            assert not both.dialer.connections
            server.thaw(both.worker)
            await asyncio.sleep(0.1)
            assert not both.listener.connections

    virtually(scenario)


def test_a_worker_that_does_not_answer_is_refused_in_time_and_ends_the_connection_when_it_goes_on() -> None:
    limits = CarrierLimits(open=1.5)

    async def scenario(server: SimulatedServer) -> None:
        async with ends(limits, server) as both:
            other, _ = await both.open()
            server.freeze(both.worker)
            began = now()
            with pytest.raises(ConnectionRefused, match="did not answer") as caught:
                await both.dialer.open(WORKER, b"")
            assert caught.value.recoverable and now() - began == pytest.approx(limits.open)
            server.thaw(both.worker)
            await asyncio.sleep(0.1)
            _, (far, _) = both.accepted
            await Reader(far).end()
            assert other.lost is None and both.listener.connections == both.dialer.connections == 1

    virtually(scenario)


async def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    server = SimulatedServer()
    server.delay = (0.01, 0.01)
    async with ends(server=server) as both:
        opening = asyncio.create_task(both.dialer.open(WORKER, b""))
        await idle()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await until(lambda: both.accepted)
        await Reader(both.accepted[0][0]).end()
        assert not both.dialer.connections and not both.listener.connections


async def test_bytes_that_a_worker_sends_at_once_are_there_when_the_connection_is() -> None:
    async with ends() as both:
        accept = both.listener._accept

        def accepted(transport: CarrierTransport, hello: bytes) -> None:
            accept(transport, hello)
            transport.out += b"welcome\n"
            transport.flush()

        both.listener._accept = accepted
        near, _ = await both.open()
        assert await near.receive() == b"welcome"


async def test_a_listener_that_is_closed_takes_no_connections_and_ends_those_it_has() -> None:
    async with ends() as both:
        near, _ = await both.open()
        reader = Reader(near)
        await both.listener.close()
        await reader.end()
        with pytest.raises(ConnectionRefused):
            await both.dialer.open(WORKER, b"")


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x0b", b"\x0b" + b"x" * 20, b"\x04" + bytes(60), b"\x03" + bytes(60)])
async def test_messages_that_mean_nothing_are_ignored(data: bytes) -> None:
    async with ends() as both:
        near, far = await both.open()
        for subject in (f"acp.c.up.{WORKER}", f"acp.c.down.{both.dialer.name}"):
            both.gateway.publish(subject, data)
        await idle()
        await near.send(b"still there")
        assert await far.receive() == b"still there"


async def test_a_request_that_cannot_be_read_is_refused() -> None:
    async with ends() as both:
        for data in (b"", b"{}", b'{"connection":"00","sender":"g","epoch":1,"granted":1}'):
            assert b"error" in await both.gateway.request(f"acp.open.{WORKER}", data, 5)


async def test_a_name_that_stands_for_several_subjects_is_no_name() -> None:
    async with ends() as both:
        for name in ("*", "a b", "a..b", ">", ""):
            with pytest.raises(LocalProtocolError):
                await both.dialer.open(name, b"")
