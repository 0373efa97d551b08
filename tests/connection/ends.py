"""Two connected ends for tests: a connection of ours, and a raw peer that says exactly what the test wants."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from antiphon.connection.connection import Connection
from antiphon.connection.reports import Report
from antiphon.connection.router import Router
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import SessionUpdate
from antiphon.protocol.v1.updates import AgentMessageChunk
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair


def chunk(text: str, session: str = "s") -> bytes:
    """An update as any agent sends it."""
    update = f'{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}'
    return (
        f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}'.encode()
    )


def text_of(update: SessionUpdate) -> str:
    """The text of a chunk."""
    assert isinstance(update.update, AgentMessageChunk) and isinstance(update.update.content, TextBlock)
    return update.update.content.text


def answer(id: int, result: str = "{}") -> bytes:
    """An answer as any peer sends it."""
    return f'{{"jsonrpc":"2.0","id":{id},"result":{result}}}'.encode()


END_TURN = '{"stopReason":"end_turn"}'


class Raw:
    """The other end of the wire, word for word."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def send(self, *frames: bytes) -> None:
        """Send these lines in one piece."""
        self.transport.out += b"".join(frame + b"\n" for frame in frames)
        self.transport.flush()

    async def receive(self) -> dict[str, Any]:
        """The next message, opened."""
        frame = await self.transport.receive()
        assert isinstance(frame, bytes), "the wire is closed"
        message: dict[str, Any] = msgspec.json.decode(frame)
        return message

    async def ask(self, method: str, params: object, id: object = 1) -> dict[str, Any]:
        """Ask, and receive the next message."""
        await self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        return await self.receive()


@asynccontextmanager
async def against_raw(
    router: Router | None = None,
    *,
    tolerant: bool = False,
    inbox_limit: int = 1 << 20,
    reports: list[Report] | None = None,
) -> AsyncIterator[tuple[Connection, Raw]]:
    """A connection of ours and the raw other end."""
    near, far = memory_pair()
    observer = reports.append if reports is not None else None
    async with Connection(
        near, router, tolerant=tolerant, inbox_limit=inbox_limit, observer=observer, version=V1
    ) as connection:
        try:
            yield connection, Raw(far)
        finally:
            await far.close()
