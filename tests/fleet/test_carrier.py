"""Connections that the broker carries: bytes whole and in order, a window, and an end that both sides learn of. On a clock that jumps."""

import asyncio
import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import ConnectionClosed
from antiphon.fleet.connection import CLOSE, DATA, PROBE, STATE, CarrierLimits, CarrierTransport
from antiphon.fleet.simulation import SimulatedServer
from antiphon.transports.base import OUTPUT_HIGH
from tests.fleet.carriers import WORKER, Reader, count, ends, lose, lose_once, now, virtually
from tests.waits import idle

KIB, MIB = 1024, 1024 * 1024
SMALL = CarrierLimits(chunk=1000, window=4000, least_window=2000, windows=8000, frame=64 * KIB)


# What arrives.


@settings(max_examples=40, deadline=None)
@given(
    chunk=st.integers(1, 3000),
    lines=st.lists(st.floats(0, 4), max_size=20),
    window=st.floats(1, 5),
    seed=st.integers(0, 1000),
)
def test_lines_arrive_whole_and_in_order_however_they_are_cut(
    chunk: int, lines: list[float], window: float, seed: int
) -> None:
    """The sizes of lines and windows are in chunks."""
    draw = Random(seed)
    limits = CarrierLimits(chunk=chunk, window=2 + int(window * chunk), least_window=1, windows=2 + int(window * chunk))
    sent = {
        way: b"".join(b"%d" % (n % 10) * int(size * chunk) + way + b"\n" for n, size in enumerate(lines))
        for way in (b"up", b"down")
    }

    async def send(transport: CarrierTransport, data: bytes) -> None:
        while data:
            size = draw.randint(1, 3 * chunk)
            transport.out += data[:size]
            data = data[size:]
            draw.choice([transport.flush, transport.flush_soon])()
            if draw.random() < 0.3:
                await transport.drain()

    async def play(server: SimulatedServer) -> None:
        server.delay = (0.0, 0.01)
        async with ends(limits, server) as both:
            near, far = await both.open()
            readers = Reader(near), Reader(far)
            await asyncio.gather(send(near, sent[b"up"]), send(far, sent[b"down"]))
            await readers[1].has(len(sent[b"up"]))
            await readers[0].has(len(sent[b"down"]))
            assert readers[1].received == sent[b"up"] and readers[0].received == sent[b"down"]

    virtually(play, seed=seed)


async def test_small_frames_of_one_turn_leave_in_one_message() -> None:
    async with ends() as both:
        near, far = await both.open()
        reader, sent = Reader(far), count(both.gateway)
        for number in range(100):
            near.out += b'{"n":%d}\n' % number
            near.flush_soon()
        await reader.has(100 * 7)
        assert len(sent) == 1


async def test_a_message_of_64_mib_arrives_and_the_window_bounds_what_is_on_the_way() -> None:
    async with ends(CarrierLimits(frame=80 * MIB)) as both:
        near, far = await both.open()
        reader = Reader(far)
        line = b"x" * (64 * MIB)
        sending = asyncio.create_task(near.send(line))
        await reader.has(64 * MIB + 1)
        assert reader.received == line + b"\n"
        await sending


async def test_a_line_over_the_limit_is_not_kept_and_those_behind_it_arrive() -> None:
    async with ends(SMALL) as both:
        near, far = await both.open()
        reader = Reader(far)
        near.out += b"a" * (100 * KIB) + b"\nnext\n"
        near.flush()
        await reader.has(5)
        assert reader.received == b"next\n" and [each.size for each in reader.overlong] == [100 * KIB]


async def test_a_connection_sends_no_message_that_the_broker_does_not_take() -> None:
    async with ends(server=SimulatedServer(max_payload=5000)) as both:
        near, far = await both.open()
        reader, sent = Reader(far), count(both.gateway)
        await near.send(b"x" * 50_000)
        await reader.has(50_001)
        assert max(map(len, sent)) == 5000


# The window.


async def test_a_reader_that_pauses_makes_the_writer_wait_and_holds_no_more_than_a_window() -> None:
    async with ends() as both:
        near, far = await both.open()
        reader = Reader(far)
        far.pause()
        sending = asyncio.create_task(_send_all(near, 8 * MIB))
        await idle()
        assert not sending.done() and len(near.out) < 2 * OUTPUT_HIGH and not reader.received
        assert len(far._arrived) == CarrierLimits().window
        far.resume()
        await reader.has(8 * MIB)
        await sending
        assert not near.unsent and not far._arrived


async def _send_all(transport: CarrierTransport, size: int) -> None:
    for _ in range(size // KIB):
        await transport.send(b"x" * (KIB - 1))


async def test_what_comes_before_a_reader_is_there_waits_for_it() -> None:
    async with ends(SMALL) as both:
        near, far = await both.open()
        near.out += b"x" * 9999 + b"\n"
        near.flush()
        await idle()
        assert len(far._arrived) == 4000 and near.unsent == 6000
        await Reader(far).has(10_000)


async def test_bytes_that_come_before_a_resumed_reader_has_got_the_earlier_ones_wait_behind_them() -> None:
    async with ends() as both:
        near, far = await both.open()
        reader = Reader(far)
        far.pause()
        await near.send(b"first")
        await idle()
        far.resume()
        far.message_received(DATA, 2, 0, 0, b"second\n")
        await reader.has(13)
        assert reader.received == b"first\nsecond\n"


async def test_with_many_connections_each_has_a_smaller_window() -> None:
    async with ends(SMALL) as both:
        opened = [await both.open() for _ in range(10)]
        near, far = opened[-1]
        near.out += b"x" * 9999 + b"\n"
        near.flush()
        await idle()
        assert len(far._arrived) == SMALL.least_window
        await Reader(far).has(10_000)


async def test_connections_wait_while_the_process_has_much_to_send_to_the_broker() -> None:
    server = SimulatedServer()
    async with ends(CarrierLimits(unsent=100_000, chunk=10_000), server) as both:
        opened = [await both.open() for _ in range(4)]
        readers = [Reader(far) for _, far in opened]
        server.freeze(both.gateway)
        for near, _ in opened:
            near.out += b"x" * 99_999 + b"\n"
            near.flush()
        assert both.gateway.unsent <= 120_000 and sum(near.unsent for near, _ in opened) > 250_000
        server.thaw(both.gateway)
        for reader in readers:
            await reader.has(100_000)


@pytest.mark.parametrize("first", [9_000, SMALL.window])
def test_a_grant_that_is_lost_is_asked_for(first: int) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(SMALL, server) as both:
            near, far = await both.open()
            reader = Reader(far)
            far.pause()
            near.out += b"x" * first
            near.flush()
            await asyncio.sleep(5)  # its chunks are confirmed
            near.out += b"y" * 9999 + b"\n"
            near.flush()  # and it waits for room
            lost = lose_once(both.worker, STATE)
            far.resume()
            await reader.has(first + 10_000)
            assert lost

    virtually(scenario)


async def test_a_peer_that_sends_more_than_was_granted_is_cut_off() -> None:
    async with ends(SMALL) as both:
        near, _ = await both.open()
        reader = Reader(near)
        near._allowed = 10**9
        near.out += b"x" * 10_000
        near.flush()
        assert "granted" in (await reader.end()).sentence


# The end.


async def test_a_close_ends_the_other_end_behind_all_bytes_before_it() -> None:
    async with ends(SMALL) as both:
        near, far = await both.open()
        reader = Reader(far)
        far.pause()
        near.out += b"x" * 9999 + b"\nlast"
        closing = asyncio.create_task(near.close())
        await idle()
        assert reader.error is None and not closing.done()
        far.resume()
        assert "closed" in (await reader.end()).sentence
        assert reader.received == b"x" * 9999 + b"\nlast"
        await closing
        await idle()
        assert not both.dialer._peers and not both.listener._peers, "it was confirmed"


async def test_a_close_that_the_other_end_has_not_read_yet_ends_its_writers_at_once() -> None:
    async with ends() as both:
        near, far = await both.open()
        reader = Reader(far)
        far.pause()
        await near.send(b"last words")
        await near.close()
        await idle()
        assert far.deaf and reader.error is None
        with pytest.raises(ConnectionClosed):
            await far.drain()
        far.resume()
        await reader.end()
        assert reader.received == b"last words\n"


def test_a_close_waits_no_longer_than_its_limit_for_a_reader_that_does_not_read() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(SMALL, server) as both:
            near, far = await both.open()
            reader = Reader(far)
            far.pause()
            near.out += b"x" * 9999 + b"\n"
            began = now()
            await near.close()
            assert now() - began == pytest.approx(SMALL.close)
            far.resume()
            await reader.end()
            assert not reader.received, "the beginning of a line is no line"

    virtually(scenario)


async def test_both_ends_that_close_with_full_windows_do_not_wait_for_each_other() -> None:
    async with ends(SMALL) as both:
        near, far = await both.open()
        for end in (near, far):
            Reader(end)
            end.pause()
            end.out += b"x" * 9999 + b"\n"
            end.flush()
        await idle()
        async with asyncio.timeout(SMALL.close):
            await asyncio.gather(near.close(), far.close())


async def test_the_reason_of_an_abort_reaches_the_other_end_and_nothing_that_waited_does() -> None:
    async with ends(SMALL) as both:
        near, far = await both.open()
        readers = Reader(near), Reader(far)
        near.out += b"x" * 9999 + b"\n"
        near.flush()
        await near.abort("the token was revoked")
        assert readers[0].error is not None and readers[0].error.sentence == "the token was revoked"
        assert (await readers[1].end()).sentence == "the token was revoked" and not readers[1].received


@pytest.mark.parametrize("which", ["gateway", "worker", "both"])
def test_both_ends_learn_that_a_connection_to_the_broker_was_lost(which: str) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            readers = Reader(near), Reader(far)
            cut = [both.gateway, both.worker] if which == "both" else [getattr(both, which)]
            await asyncio.sleep(10)
            began = now()
            for broker in cut:
                server.cut(broker)
            await asyncio.sleep(0.3)  # less than it takes to be noticed by anything else
            for broker in cut:
                server.mend(broker)
            for reader in readers:
                assert (await reader.end()).recoverable
            assert now() - began < 0.5
            await both.open()

    virtually(scenario)


def test_an_end_whose_broker_stays_away_does_not_wait_for_it() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            readers = Reader(near), Reader(far)
            server.cut(both.gateway)
            near.out += b"x" * MIB + b"\n"
            began = now()
            with pytest.raises(ConnectionClosed):
                await near.drain()
            assert now() - began <= CarrierLimits().ping and "broker" in str(readers[0].error)
            await readers[1].end()
            assert now() - began <= CarrierLimits().silence + CarrierLimits().ping
            server.mend(both.gateway)
            await both.open()

    virtually(scenario)


def test_a_peer_learns_of_a_lost_connection_as_soon_as_the_broker_is_there_again() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            readers = Reader(near), Reader(far)
            server.cut(both.gateway)
            await readers[0].end()
            assert far.lost is None
            server.mend(both.gateway)
            began = now()
            await readers[1].end()
            assert now() - began < 0.1

    virtually(scenario)


@pytest.mark.parametrize("which", ["gateway", "worker"])
def test_a_peer_that_is_frozen_is_given_up_and_finds_its_connections_over_when_it_goes_on(which: str) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            readers = (Reader(near), Reader(far))[:: 1 if which == "worker" else -1]
            frozen = getattr(both, which)
            exchange = both.listener if which == "worker" else both.dialer
            await asyncio.sleep(10)
            assert near.lost is None and far.lost is None, "idle is not silent"
            timer = exchange._timer
            assert timer is not None
            timer.cancel()  # it does nothing by itself, either
            server.freeze(frozen)
            began = now()
            assert "nothing came" in (await readers[0].end()).sentence
            assert 2 <= now() - began <= CarrierLimits().silence + CarrierLimits().ping
            assert readers[1].error is None
            server.thaw(frozen)
            exchange._look()
            assert "given up" in (await readers[1].end()).sentence
            await both.open()

    virtually(scenario)


def test_a_process_that_stood_still_itself_does_not_take_its_peers_for_gone() -> None:
    async def scenario(_: SimulatedServer) -> None:
        skipped = 0.0
        server = SimulatedServer(lambda: now() + skipped)
        async with ends(server=server) as both:
            near, far = await both.open()
            await asyncio.sleep(1.5)
            skipped = 1000.0  # the timers of both come late
            await asyncio.sleep(20)
            assert near.lost is None and far.lost is None

    virtually(scenario)


async def test_a_worker_that_is_known_to_be_gone_ends_its_connections_at_once() -> None:
    async with ends() as both:
        near, _ = await both.open()
        reader = Reader(near)
        both.dialer.lost("another")
        assert near.lost is None
        both.dialer.lost(WORKER, "the worker was killed")
        assert near.deaf and (await reader.end()).sentence == "the worker was killed"
        assert not both.dialer.connections


# Messages that are lost on the way.


@pytest.mark.parametrize("behind", [b"", b"more\n"])
def test_bytes_that_are_lost_end_the_connection_at_both_ends_also_when_none_follow(behind: bytes) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            readers = Reader(near), Reader(far)
            assert not lose_once(both.gateway, DATA)
            near.out += b"lost\n"
            near.flush()
            near.out += behind
            near.flush()
            for reader in readers:
                assert "lost" in (await reader.end()).sentence
            assert not readers[1].received

    virtually(scenario)


async def test_a_line_whose_end_was_lost_before_a_close_is_no_line() -> None:
    async with ends() as both:
        near, far = await both.open()
        reader = Reader(far)
        near.out += b"one\nhalf of "
        near.flush()
        assert not lose_once(both.gateway, DATA)
        near.out += b"two"
        await near.close()
        await reader.end()
        assert reader.received == b"one\n"


def test_a_connection_that_the_other_end_does_not_know_is_over_when_it_is_used() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            other, _ = await both.open()
            reader = Reader(near)
            far.end(ConnectionClosed("forgotten"), reports=False)
            near.out += b"x\n"
            near.flush()
            assert "no such connection" in (await reader.end()).sentence
            assert other.lost is None

    virtually(scenario)


def test_bytes_whose_first_probe_is_lost_too_are_missed_by_the_next_one() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            reader = Reader(far)
            lost = lose(both.gateway, lambda _, data: data[0] in (DATA, PROBE) and len(lost) < 2)
            near.out += b"lost\n"
            near.flush()
            await reader.end()
            assert [each[0] for each in lost] == [DATA, PROBE]

    virtually(scenario)


def test_a_close_that_is_lost_is_repeated_and_nothing_stays_behind() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            near, far = await both.open()
            other, _ = await both.open()
            reader = Reader(far)
            lost = lose_once(both.gateway, CLOSE)
            await near.close()
            await reader.end()
            assert lost and other.lost is None
            await other.close()
            await asyncio.sleep(2)
            assert not both.dialer._peers and not both.listener._peers
            assert both.dialer._timer is None and both.listener._timer is None

    virtually(scenario)


# Many.


def test_a_thousand_idle_connections_cost_two_messages_a_second_and_little_memory() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with ends(server=server) as both:
            first = [await both.open() for _ in range(10)]
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            opened = [await both.open() for _ in range(1000)]
            for pair in opened:
                for end in pair:
                    Reader(end)
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert used / 2000 < 3000, "bytes of one end, with a reader"
            sent = count(both.gateway), count(both.worker)
            await asyncio.sleep(20)
            assert len(sent[0]) + len(sent[1]) <= 50
            assert all(end.lost is None for pair in [*first, *opened] for end in pair)
            for number, (near, _) in enumerate(opened):
                near.out += b"%d\n" % number
                near.flush()
            await asyncio.sleep(1)
            for number, (_, far) in enumerate(opened):
                reader = far.sink
                assert isinstance(reader, Reader) and reader.received == b"%d\n" % number

    virtually(scenario)
