"""The brokers that the contract of `fleet.broker` is tested with: the simulated one, a NATS server, and a cluster of three."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from antiphon.fleet.broker import Broker
from antiphon.fleet.nats import connect_broker
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from tests.fleet.proxies import Network, network
from tests.waits import until

__all__ = ["BrokerWorld", "NatsWorld", "SimulatedWorld", "nats_world", "simulated_world"]


class BrokerWorld(Protocol):
    """A broker, with connections that can be lost."""

    async def connect(self, name: str = "test") -> Broker:
        """Make a connection."""

    def cut(self, broker: Broker) -> None:
        """Lose a connection. It does not come back by itself."""

    async def mend(self, broker: Broker) -> None:
        """Wait until a lost connection is there again."""

    async def lose(self, broker: Broker, append: Coroutine[Any, Any, int], *, stored: bool) -> Exception:
        """Lose the connection while a message is stored, or before that; return what the append raises when it is there again."""


class SimulatedWorld:
    """A broker in memory."""

    def __init__(self, server: SimulatedServer) -> None:
        self.server = server

    async def connect(self, name: str = "test") -> SimulatedBroker:
        """Make a connection."""
        return self.server.connect(name)

    def cut(self, broker: Broker) -> None:
        """Lose a connection."""
        assert isinstance(broker, SimulatedBroker)
        self.server.cut(broker)

    async def mend(self, broker: Broker) -> None:
        """Let a lost connection come back."""
        assert isinstance(broker, SimulatedBroker)
        self.server.mend(broker)

    async def lose(self, broker: Broker, append: Coroutine[Any, Any, int], *, stored: bool) -> Exception:
        """Lose the answer to an append."""
        assert isinstance(broker, SimulatedBroker)
        self.server.lose_answer(broker, stored=stored)
        return await error_of(append)


class NatsWorld:
    """NATS, with a network for each connection."""

    def __init__(self, stack: AsyncExitStack, ports: Callable[[], int]) -> None:
        self._stack, self._ports = stack, ports
        self._networks: dict[Broker, Network] = {}

    async def connect(self, name: str = "test") -> Broker:
        """Make a connection through a network of its own."""
        between = await self._stack.enter_async_context(network(self._ports()))
        broker = await connect_broker(between.url, name=name)
        self._stack.push_async_callback(broker.close)
        self._networks[broker] = between
        return broker

    def cut(self, broker: Broker) -> None:
        """Lose a connection."""
        between = self._networks[broker]
        between.refuses = True
        between.cut()

    async def mend(self, broker: Broker) -> None:
        """Let a lost connection come back."""
        between = self._networks[broker]
        between.refuses = between.drops_up = between.drops_down = False
        await until(lambda: broker.is_connected)

    async def lose(self, broker: Broker, append: Coroutine[Any, Any, int], *, stored: bool) -> Exception:
        """Lose the connection while an append is under way."""
        between = self._networks[broker]
        between.dropped.clear()
        between.drops_down, between.drops_up = stored, not stored
        appending = asyncio.ensure_future(error_of(append))
        sign = b'"stream":' if stored else b"PUB "
        await until(lambda: sign in between.dropped)
        self.cut(broker)
        error = await appending
        await self.mend(broker)
        return error


async def error_of(append: Coroutine[Any, Any, int]) -> Exception:
    """Return what an append raises."""
    try:
        number = await append
    except Exception as error:
        return error
    raise AssertionError(f"it was stored as {number}")


@asynccontextmanager
async def simulated_world() -> AsyncIterator[SimulatedWorld]:
    """Make a broker in memory."""
    yield SimulatedWorld(SimulatedServer())


@asynccontextmanager
async def nats_world(ports: Callable[[], int]) -> AsyncIterator[NatsWorld]:
    """Connect to servers that run, whose streams are made empty."""
    async with AsyncExitStack() as stack:
        world = NatsWorld(stack, ports)
        broker = await world.connect()
        await broker.remove("acp.s.>")
        await broker.remove("acp.a.>")
        yield world
