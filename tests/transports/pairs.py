"""Pairs of connected ends, one maker per transport, for tests that hold over all of them."""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from antiphon.fleet.carrier import CarrierDialer, CarrierListener
from antiphon.fleet.simulation import SimulatedServer
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.pipes import PipeTransport
from antiphon.transports.process import ProcessTransport, spawn

Pair = tuple[Transport, Transport]


async def over_memory() -> Pair:
    return memory_pair()


async def over_pipes() -> Pair:
    near_read, far_write = os.pipe()
    far_read, near_write = os.pipe()
    return PipeTransport(near_read, near_write), PipeTransport(far_read, far_write)


async def over_a_broker() -> Pair:
    server = SimulatedServer()
    accepted: list[Transport] = []
    CarrierListener(server.connect(), "worker", lambda transport, _: accepted.append(transport))
    near = await CarrierDialer(server.connect()).open("worker", b"{}")
    return near, accepted[0]


PAIRS: dict[str, Callable[[], Awaitable[Pair]]] = {"broker": over_a_broker, "memory": over_memory, "pipes": over_pipes}


@asynccontextmanager
async def python(program: str, *arguments: str) -> AsyncIterator[ProcessTransport]:
    """A real child that runs this program; ended with the test, whatever happens."""
    child = await spawn([sys.executable, "-u", "-c", program, *arguments])
    try:
        yield child
    finally:
        await child.close()
