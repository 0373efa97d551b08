"""What every transport promises."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from antiphon.errors import ConnectionClosed, LocalProtocolError
from antiphon.rpc.envelope import Frame
from antiphon.transports import pipes
from antiphon.transports.base import OUTPUT_HIGH, RECEIVE_HIGH, Transport
from tests.transports.pairs import PAIRS, Pair
from tests.waits import idle


@pytest.fixture(params=PAIRS, name="pair")
async def make_pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    near, far = await PAIRS[request.param]()
    async with asyncio.timeout(20):
        yield near, far
        await near.close()
        await far.close()


async def test_frames_arrive_whole_and_in_order(pair: Pair) -> None:
    near, far = pair
    sent = [b'{"n":%d}' % n for n in range(500)]
    for frame in sent:
        await near.send(frame)
    assert [await far.receive() for _ in sent] == sent


async def test_what_is_gathered_leaves_at_the_end_of_the_turn(pair: Pair) -> None:
    near, far = pair
    near.gather()
    for word in (b"one\n", b"two\n"):
        near.out += word
        near.flush_soon()
    assert near.unsent == len(b"one\ntwo\n")
    assert [await far.receive(), await far.receive()] == [b"one", b"two"]


async def test_what_is_gathered_leaves_before_the_end_of_the_turn_when_it_is_much(pair: Pair) -> None:
    near, far = pair
    near.gather()
    near.out += b"x" * OUTPUT_HIGH + b"\n"
    near.flush_soon()
    assert not near.out
    assert await far.receive() == b"x" * OUTPUT_HIGH


async def test_both_directions_at_once(pair: Pair) -> None:
    near, far = pair
    await asyncio.gather(near.send(b"to far"), far.send(b"to near"))
    assert (await near.receive(), await far.receive()) == (b"to near", b"to far")


async def test_a_frame_of_many_megabytes_arrives(pair: Pair) -> None:
    near, far = pair
    big = b"x" * 5_000_000
    sending = asyncio.create_task(near.send(big))
    assert await far.receive() == big
    await sending


async def test_a_slow_reader_makes_the_sender_wait_and_loses_nothing(pair: Pair) -> None:
    near, far = pair
    frame, count = b"x" * 1000, 3 * RECEIVE_HIGH
    sent = 0

    async def send_all() -> None:
        nonlocal sent
        for _ in range(count):
            await near.send(frame)
            sent += 1

    sending = asyncio.create_task(send_all())
    assert await far.receive() == frame
    await idle()
    assert sent < count and near.unsent < 4 * OUTPUT_HIGH  # it waits, and holds little
    for _ in range(count - 1):
        assert await far.receive() == frame
    await sending
    assert sent == count


async def test_the_end_of_one_side_is_the_end_of_reading_on_the_other(pair: Pair) -> None:
    near, far = pair
    await near.send(b"last words")
    await near.close()
    assert await far.receive() == b"last words"
    assert await far.receive() is None
    assert await far.receive() is None


async def test_what_was_sent_before_closing_arrives(pair: Pair) -> None:
    near, far = pair
    reading = asyncio.create_task(_read_all(far))
    for n in range(1000):
        near.out += b"%d\n" % n
    await near.close()
    assert await reading == [b"%d" % n for n in range(1000)]


async def _read_all(transport: Transport) -> list[Frame]:
    found = []
    while (frame := await transport.receive()) is not None:
        found.append(frame)
    return found


async def test_closing_twice_is_fine(pair: Pair) -> None:
    near, _ = pair
    await near.close()
    await near.close()


async def test_sending_into_a_closed_peer_ends_with_connection_closed(pair: Pair) -> None:
    near, far = pair
    await far.close()
    with pytest.raises(ConnectionClosed):
        await _send_for_long(near)


async def _send_for_long(transport: Transport) -> None:
    for _ in range(100):
        transport.out += b"x" * OUTPUT_HIGH + b"\n"
        await transport.drain()


async def test_a_frame_is_one_line(pair: Pair) -> None:
    near, _ = pair
    with pytest.raises(LocalProtocolError):
        await near.send(b"two\nlines")


async def test_a_transport_has_one_reader(pair: Pair) -> None:
    near, far = pair
    await far.send(b"x")
    assert await near.receive() == b"x"
    with pytest.raises(LocalProtocolError):
        near.attach(None)  # type: ignore[arg-type]


async def test_closing_gives_a_peer_that_does_not_read_a_moment_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pipes, "CLOSE_GRACE", 0.05)
    near, far = await PAIRS["pipes"]()
    near.out += b"x" * 1_000_000 + b"\n"
    async with asyncio.timeout(10):
        await near.close()
        await far.close()
    assert "unsent" in caplog.text


async def test_a_borrowed_descriptor_gets_its_mode_back() -> None:
    read_fd, write_fd = os.pipe()
    twin = os.dup(read_fd)
    transport = pipes.PipeTransport(read_fd, write_fd)
    assert not os.get_blocking(twin)
    await transport.close()
    assert os.get_blocking(twin)
    os.close(twin)


async def test_closing_as_soon_as_the_peer_no_longer_reads_leaves_no_writer_for_the_next_descriptor() -> None:
    """The loop would take that one for known already, and never wake it when there is space."""
    read_fd, write_fd = os.pipe()
    silent_fd, unused_fd = os.pipe()
    transport = pipes.PipeTransport(silent_fd, write_fd)

    async def speak() -> None:
        with pytest.raises(ConnectionClosed):
            await transport.send(b"x" * 1_000_000)
        await transport.close()

    speaking = asyncio.create_task(speak())
    await idle()  # the pipe is full
    os.close(read_fd)
    async with asyncio.timeout(10):
        await speaking
    os.close(unused_fd)
    assert not asyncio.get_running_loop().remove_writer(write_fd)
