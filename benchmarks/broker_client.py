"""What the client of the broker does while its server is frozen: ours (`antiphon.fleet.nats`) next to `nats-py`.

`python -m benchmarks.broker_client` starts three servers. A client sends 50 messages a second, as a worker with agents that stream; its server
is stopped (`SIGSTOP`) for 30 seconds and continued. A receiver at another server notes what arrives, and how old it is. Needs `nats-py`.
"""

import argparse
import asyncio
import signal
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

import nats
from nats.aio import client
from nats.aio.msg import Msg

from antiphon.fleet.nats import connect_broker
from benchmarks.fleet_processes import Servers, brokers, wait_ready

FROZEN: Final = 30.0
"""Seconds for which the server is stopped."""

AFTER: Final = 5.0
"""Seconds for what comes behind it."""

PAUSE: Final = 0.02
SIZE: Final = 100_000
OLD: Final = 3.0
"""Seconds after which a message is worth nothing: the lease of a worker."""

SUBJECT: Final = "bench.sent"
SENT_AT: Final = struct.Struct(">d")


class Sender(NamedTuple):
    """A client that is connected."""

    port: Callable[[], int]
    """Returns the port of its server."""
    send: Callable[[bytes], Awaitable[None]]
    close: Callable[[], Awaitable[None]]


class Frozen(NamedTuple):
    """What was seen."""

    silence: float
    """Seconds after the freeze until something arrived that was sent after it."""
    old: int
    """Bytes that arrived more than `OLD` seconds after they were sent."""
    oldest: float
    """Seconds between the sending and the arrival of the oldest message."""


async def ours(servers: Servers) -> Sender:
    """Connect our client."""
    broker = await connect_broker(servers.addresses.split(","), name="bench")

    async def send(data: bytes) -> None:
        broker.publish(SUBJECT, data)

    def port() -> int:
        connection = broker._link._socket
        assert connection is not None
        return connection.address.port

    return Sender(port, send, broker.close)


async def theirs(servers: Servers) -> Sender:
    """Connect nats-py, with pings as often as it can have them: one that is missed is the end of a connection."""
    connected = await nats.connect(
        servers.addresses.split(","),
        ping_interval=1,
        max_outstanding_pings=1,
        reconnect_time_wait=0,
        max_reconnect_attempts=-1,
        pending_size=1 << 30,
        error_cb=_ignore,
    )

    def port() -> int:
        assert connected.connected_url is not None and connected.connected_url.port is not None
        return connected.connected_url.port

    async def send(data: bytes) -> None:
        with suppress(nats.errors.Error):
            await connected.publish(SUBJECT, data)

    return Sender(port, send, connected.close)


async def _ignore(error: Exception) -> None:
    """Handle an error of nats-py that is expected here."""


async def measure(
    servers: Servers, connect: Callable[[Servers], Awaitable[Sender]], seconds: float, size: int
) -> Frozen:
    """Freeze the server of a client for some seconds."""
    sender = await connect(servers)
    ports = [*servers.ports.values()]
    frozen = servers.processes[ports.index(sender.port())]
    other = next(port for port in ports if port != sender.port())
    receiver = await nats.connect(f"nats://127.0.0.1:{other}", allow_reconnect=False)
    arrived: list[tuple[float, float, int]] = []

    async def take(message: Msg) -> None:
        arrived.append((*SENT_AT.unpack_from(message.data), time.monotonic(), len(message.data)))

    await receiver.subscribe(SUBJECT, cb=take)
    await receiver.flush()

    async def send() -> None:
        while True:
            await sender.send(SENT_AT.pack(time.monotonic()) + bytes(size - SENT_AT.size))
            await asyncio.sleep(PAUSE)

    sending = asyncio.ensure_future(send())
    try:
        while not arrived:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(PAUSE)
        began = time.monotonic()
        frozen.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            frozen.send_signal(signal.SIGCONT)
        await asyncio.sleep(AFTER)
    finally:
        sending.cancel()
        await asyncio.wait([sending])
        await sender.close()
        await receiver.close()
    silence = min((at - began for sent, at, _ in arrived if sent > began), default=float("inf"))
    ages = [at - sent for sent, at, _ in arrived]
    return Frozen(silence, sum(length for sent, at, length in arrived if at - sent > OLD), max(ages))


def main() -> None:
    """Measure both, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker_client", description=__doc__)
    parser.add_argument("--seconds", type=float, default=FROZEN, help=f"how long the server is frozen ({FROZEN:g})")
    parser.add_argument(
        "--size", type=int, default=SIZE, help=f"bytes of a message, of which 50 are sent a second ({SIZE})"
    )
    given = parser.parse_args()
    seconds = given.seconds
    print(f"server frozen for {seconds:g} s    silence    older than {OLD:g} s    the oldest")
    for name, connect in (("antiphon", ours), (f"nats-py {client.__version__}", theirs)):
        with brokers(3) as servers:
            wait_ready(servers)
            seen = asyncio.run(measure(servers, connect, seconds, given.size))
        print(f"{name:24} {seen.silence:8.2f} s    {seen.old / 1e6:10.1f} MB    {seen.oldest:8.2f} s")


if __name__ == "__main__":
    main()
