"""WebSocket frames byte by byte, as RFC 6455 has them, and the client end of a socket that sends whatever a scenario wants."""

import asyncio
import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from antiphon.conformance.remote.raw_http import ExchangeLog, HttpAddress, HttpHead, RawExchange
from antiphon.traffic.entries import Direction, Entry

__all__ = [
    "BINARY",
    "CLOSE",
    "CONT",
    "PING",
    "PONG",
    "TEXT",
    "RawFrame",
    "RawSocket",
    "accept_key",
    "encode",
    "read_frame",
]

CONT: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What RFC 6455 adds to the key of a handshake."""

FRAME_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that are read of a frame."""


@dataclass(frozen=True, slots=True)
class RawFrame:
    """A frame as it was sent."""

    opcode: int
    payload: bytes
    fin: bool = True
    masked: bool = False
    reserved: int = 0

    @property
    def code(self) -> int:
        """The code of a close; 1005 without one."""
        return int.from_bytes(self.payload[:2], "big") if len(self.payload) > 1 else 1005


def accept_key(key: str) -> str:
    """The value of `Sec-WebSocket-Accept` for a key."""
    return base64.b64encode(hashlib.sha1(key.encode() + GUID, usedforsecurity=False).digest()).decode()


def encode(opcode: int, payload: bytes, *, fin: bool = True, mask: bool) -> bytes:
    """The bytes of a frame."""
    size = len(payload)
    head = bytearray([(0x80 if fin else 0) | opcode])
    flag = 0x80 if mask else 0
    if size < 126:
        head.append(flag | size)
    elif size < 65536:
        head += bytes([flag | 126]) + size.to_bytes(2, "big")
    else:
        head += bytes([flag | 127]) + size.to_bytes(8, "big")
    if not mask:
        return bytes(head) + payload
    key = os.urandom(4)
    return bytes(head) + key + masked(payload, key)


def masked(payload: bytes, key: bytes) -> bytes:
    """A payload with its mask put on, or taken off."""
    whole = int.from_bytes(payload, "big") ^ int.from_bytes((key * (len(payload) // 4 + 1))[: len(payload)], "big")
    return whole.to_bytes(len(payload), "big")


async def read_frame(reader: asyncio.StreamReader) -> RawFrame:
    """Read a frame.

    Raises:
        EOFError: the connection ended.
        ValueError: it is larger than anything that is meant.
    """
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    if size > FRAME_LIMIT:
        raise ValueError(f"a frame of {size} bytes")
    key = await reader.readexactly(4) if second & 0x80 else b""
    payload = await reader.readexactly(size)
    return RawFrame(
        first & 0x0F, masked(payload, key) if key else payload, bool(first & 0x80), bool(second & 0x80), first & 0x70
    )


class RawSocket(RawExchange):
    """A WebSocket to a server, or the refusal of one."""

    def __init__(
        self, request: Entry, entry: Entry, head: HttpHead, log: ExchangeLog, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(request, entry, head, log, writer)
        self.key = ""
        self.frames: list[RawFrame] = []
        self.messages: list[Entry] = []
        """Text messages, joined where they came in pieces."""

    @property
    def is_open(self) -> bool:
        """Whether the server switched to WebSocket."""
        return self.head.status == 101

    @property
    def closing(self) -> RawFrame | None:
        """The close of the server."""
        return next((frame for frame in self.frames if frame.opcode == CLOSE), None)

    @classmethod
    async def open(
        cls,
        address: HttpAddress,
        log: ExchangeLog,
        headers: Mapping[str, str | None],
        listener: Callable[[Entry], None],
    ) -> "RawSocket":
        """Do the handshake, and read frames from then on.

        Raises:
            OSError, EOFError, ValueError: there is no response, or it is no HTTP.
        """
        key = base64.b64encode(os.urandom(16)).decode()
        usual = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
        }
        made = await cls.begin(address, log, {**usual, **headers}, listener)
        made.key = key
        return made

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read frames."""
        parts: list[bytes] = []
        while True:
            frame = await read_frame(reader)
            self.frames.append(frame)
            entry = self.entry
            if frame.opcode in (TEXT, CONT):
                parts.append(frame.payload)
                if frame.fin:
                    entry = self.log.note(Direction.A2C, b"".join(parts))
                    self.messages.append(entry)
                    parts = []
            self.listener(entry)

    async def send_frame(self, opcode: int, payload: bytes, *, fin: bool = True, mask: bool = True) -> Entry:
        """Send a frame, whatever it is."""
        entry = self.log.note(
            Direction.C2A, payload[:2000] if opcode in (TEXT, CONT) else bytes([opcode]) + payload[:200]
        )
        with suppress(ConnectionError):
            self.writer.write(encode(opcode, payload, fin=fin, mask=mask))
            await self.writer.drain()
        return entry
