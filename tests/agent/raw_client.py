"""A client of version 2 for tests, with nothing of ours in it: JSON objects over a transport, held against the rules of the protocol."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from antiphon.agent.agent import Agent
from antiphon.traffic.checker import TrafficChecker
from antiphon.traffic.entries import Direction, Entry
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit

__all__ = ["Json", "RawClient", "raw_client", "served"]

Json = dict[str, Any]

WITHOUT_SESSION = ("initialize", "session/new", "session/list")


class RawClient:
    """The client's end of a connection of version 2, with one session. `frames` is all that came."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.frames: list[Json] = []
        self.session = ""
        self.checker = TrafficChecker()
        self._last = 0
        self._lines = 0

    @property
    def updates(self) -> list[Json]:
        return [frame["params"]["update"] for frame in self.frames if frame.get("method") == "session/update"]

    @property
    def states(self) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == "state_update"]

    def deviations(self, provoked: str = "") -> list[str]:
        """What broke a rule of version 2, but for one that the test breaks itself."""
        return [f"{each.rule}: {each.text}" for each in self.checker.deviations if each.rule != provoked]

    def _check(self, direction: Direction, line: bytes) -> Json:
        message: Json = msgspec.json.decode(line)
        self._lines += 1
        self.checker.check(Entry(self._lines, time.monotonic(), direction, line, message))
        return message

    async def _put(self, message: Json) -> None:
        line = msgspec.json.encode({"jsonrpc": "2.0", **message})
        self._check(Direction.C2A, line)
        await self.transport.send(line)

    async def send(self, method: str, **params: Any) -> int:
        """Send a request, about the session if it is about one; returns its id."""
        self._last += 1
        about = {} if method in WITHOUT_SESSION else {"sessionId": self.session}
        await self._put({"id": self._last, "method": method, "params": {**about, **params}})
        return self._last

    async def notify(self, method: str, **params: Any) -> None:
        await self._put({"method": method, "params": {"sessionId": self.session, **params}})

    async def answer(self, id: object, result: Json) -> None:
        await self._put({"id": id, "result": result})

    async def until(self, test: Callable[[Json], bool]) -> Json:
        """Read up to the next frame that passes."""
        while True:
            line = await self.transport.receive()
            assert isinstance(line, bytes | bytearray), line
            self.frames.append(self._check(Direction.A2C, bytes(line)))
            if test(self.frames[-1]):
                return self.frames[-1]

    async def response(self, id: int) -> Json:
        return await self.until(lambda frame: frame.get("id") == id and "method" not in frame)

    async def ask(self, method: str, **params: Any) -> Json:
        """Send a request and return its result."""
        found = await self.response(await self.send(method, **params))
        assert "error" not in found, found
        result: Json = found["result"]
        return result

    async def prompt(self, text: str) -> str:
        """Send a prompt and return the id of its message."""
        result = await self.ask("session/prompt", prompt=[{"type": "text", "text": text}])
        return str(result["messageId"])

    async def update(self, **fields: Any) -> Json:
        """Read up to the next update with these fields."""

        def fits(frame: Json) -> bool:
            update = frame.get("params", {}).get("update", {}) if frame.get("method") == "session/update" else {}
            return bool(update) and all(update.get(name) == value for name, value in fields.items())

        found: Json = (await self.until(fits))["params"]["update"]
        return found

    async def open(self, cwd: str = "/") -> None:
        handshake = {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}, "capabilities": {}}
        assert (await self.ask("initialize", **handshake))["protocolVersion"] == 2
        self.session = (await self.ask("session/new", cwd=cwd, mcpServers=[]))["sessionId"]


@asynccontextmanager
async def raw_client(transport: Transport, cwd: str = "/", *, provoked: str = "") -> AsyncIterator[RawClient]:
    """A client with an open session. At the end both sides must have kept all rules."""
    client = RawClient(transport)
    async with asyncio.timeout(limit()):
        await client.open(cwd)
        yield client
        assert not client.deviations(provoked)


@asynccontextmanager
async def served(agent: Agent, *, provoked: str = "") -> AsyncIterator[RawClient]:
    """The same with an agent of this program."""
    near, far = memory_pair()
    serving = asyncio.ensure_future(agent.serve(far))
    async with raw_client(near, provoked=provoked) as client:
        yield client
    await near.close()
    async with asyncio.timeout(limit()):
        await serving
