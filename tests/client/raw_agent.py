"""An agent of version 2 for tests, with nothing of ours in it: it inserts prompts, and sends what the test wants it to send."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit

__all__ = ["Json", "RawAgent", "raw_agent"]

Json = dict[str, Any]

WELCOME = {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}, "capabilities": {"session": {}}}


class RawAgent:
    """The agent's end of a connection. `received` is all that came; requests in `silent` get no response."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.received: list[Json] = []
        self.silent: set[str] = set()
        self.early: list[Json] = []
        """Updates that are sent before the response to `session/new`."""
        self._arrived = asyncio.Event()
        self._prompts = 0

    async def run(self) -> None:
        """Serve until the client is gone."""
        while True:
            line = await self.transport.receive()
            if line is None:
                return
            assert isinstance(line, bytes | bytearray), line
            message: Json = msgspec.json.decode(line)
            self.received.append(message)
            self._arrived.set()
            if "id" in message and message.get("method", "") not in ("", *self.silent):
                await self._respond(message)

    async def _respond(self, message: Json) -> None:
        result: Json = {}
        match message["method"]:
            case "initialize":
                result = WELCOME
            case "session/new":
                for update in self.early:
                    await self.update(**update)
                result = {"sessionId": "s"}
            case "session/prompt":
                self._prompts += 1
                result = {"messageId": f"prompt {self._prompts}"}
            case _:
                pass
        await self.send(id=message["id"], result=result)

    async def send(self, **message: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def update(self, kind: str, **fields: Any) -> None:
        update = {"sessionUpdate": kind, **fields}
        await self.send(method="session/update", params={"sessionId": "s", "update": update})

    async def state(self, state: str, **fields: Any) -> None:
        await self.update("state_update", state=state, **fields)

    async def say(self, text: str) -> None:
        await self.update("agent_message_chunk", messageId="m", content={"type": "text", "text": text})

    async def until(self, method: str, number: int = 1) -> Json:
        """Wait for a message of a method, the first or a later one, and return it."""
        while True:
            found = [message for message in self.received if message.get("method") == method]
            if len(found) >= number:
                return found[number - 1]
            self._arrived.clear()
            await self._arrived.wait()


@asynccontextmanager
async def raw_agent(**options: Any) -> AsyncIterator[tuple[RawAgent, ConnectedAgent]]:
    """Such an agent, and our client that is connected to it."""
    near, far = memory_pair()
    agent = RawAgent(far)
    serving = asyncio.ensure_future(agent.run())
    async with asyncio.timeout(limit()):
        async with connect(near, **{"versions": (2,), **options}) as connected:
            yield agent, connected
        await serving
