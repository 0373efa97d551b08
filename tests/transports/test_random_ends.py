"""However and whenever the life of a child process ends, it is gone with its descriptors, and whatever waits is woken."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from antiphon.connection.connection import Connection
from antiphon.errors import AcpError, ConnectionClosed
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports import guard
from antiphon.transports.process import ProcessTransport, spawn
from tests.schedules import SCHEDULES, World, check

CHILDREN = {
    "echo": ["cat"],
    "shell": ["sh", "-c", "sleep 60 & exec cat"],
    "chatty": ["sh", "-c", "echo up >&2; exec cat"],
    "gone": ["sh", "-c", "read line; echo $line; exit 3"],
}
"""Children that send back what they get."""


async def child(world: World) -> None:
    kind = world.random.choice(list(CHILDREN))
    made: list[ProcessTransport] = []

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.kill(made[0].pid, signal.SIGKILL)

    async def converse(transport: ProcessTransport) -> None:
        sent = [f"{number} " + "x" * world.random.choice([1, 100, 200_000]) for number in range(4)]
        sending = world.start(say(transport, sent))
        received: list[str] = []
        while len(received) < (1 if kind == "gone" else 4) and (line := await transport.receive()) is not None:
            assert isinstance(line, bytes | bytearray)
            received.append(bytes(line).decode())
        await asyncio.wait([sending])
        assert received[:-1] == sent[: len(received)][:-1]
        if received:  # one that is killed in the middle of a line leaves its beginning
            assert sent[len(received) - 1] == received[-1] or (
                world.acted and sent[len(received) - 1].startswith(received[-1])
            )
        assert world.acted or len(received) == (1 if kind == "gone" else 4)

    async def say(transport: ProcessTransport, lines: list[str]) -> None:
        with suppress(ConnectionClosed):  # it is gone, which is what is tried here
            for line in lines:
                await transport.send(line.encode())
                await world.pause()

    transport = await spawn(CHILDREN[kind])
    made.append(transport)
    world.offer("close", transport.close)
    world.offer("kill", kill)
    try:
        await converse(transport)
        if world.random.random() < 0.5:
            await asyncio.gather(transport.close(), transport.close())
    finally:
        await transport.close()


async def connection(world: World) -> None:
    """The same through a connection: requests to a child that only sends them back end with it, or with us."""
    link = Connection(await spawn(CHILDREN[world.random.choice(["echo", "shell", "chatty"])]), version=V1)

    def kill() -> None:
        transport = link.transport
        assert isinstance(transport, ProcessTransport)
        with suppress(ProcessLookupError):
            os.kill(transport.pid, signal.SIGKILL)

    async def ask(number: int) -> None:
        with suppress(AcpError):  # it is refused by ourselves, since the child sends it back, or the child is gone
            await link.request(m.SET_MODE, v1.SetMode(f"s{number}", "x" * world.random.choice([1, 100_000])))

    world.offer("close", link.close)
    world.offer("kill", kill)
    async with link:
        await asyncio.wait([world.start(ask(number)) for number in range(4)], timeout=1)


@pytest.mark.slow
def test_a_child_is_gone_and_every_wait_is_over_however_its_life_ends() -> None:
    guard.prepare()
    for scenario in (child, connection):
        check(
            scenario,
            count=SCHEDULES // 5,
            virtual=False,
            keeps=lambda process: "watcher" in process or "-I -S" in process,
        )


SWEEP = """
import asyncio, os, resource, sys
from antiphon.errors import SpawnFailed
from antiphon.transports import guard
from antiphon.transports.process import spawn

async def main():
    guard.prepare()
    await (await spawn(["cat"])).close()
    used, outcomes = sorted(map(int, os.listdir("/dev/fd"))), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for free in range(30):
        held = []
        try:
            while True:
                held.append(os.dup(0))
        except OSError:
            pass
        for fd in held[:free]:
            os.close(fd)
        try:
            transport = await spawn(["cat"])
            outcomes.append("started")
            for fd in held[free:]:
                os.close(fd)
            await transport.close()
        except SpawnFailed as error:
            outcomes.append("failed")
            assert "Too many open files" in str(error), error
            for fd in held[free:]:
                os.close(fd)
        left = sorted(map(int, os.listdir("/dev/fd")))
        assert left == used, (free, left, used)
    assert outcomes == sorted(outcomes) and set(outcomes) == {"failed", "started"}, outcomes
    print("good")

asyncio.run(main())
"""


def test_without_a_free_descriptor_a_child_is_not_started_or_ended_with_an_error() -> None:
    """With each number of free descriptors from none to more than enough."""
    done = subprocess.run(
        [sys.executable, "-c", SWEEP], capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert done.stdout == "good\n", done.stderr
