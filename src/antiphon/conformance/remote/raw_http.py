"""HTTP/1.1 byte by byte: requests as a scenario wants them, responses as they came, and streams of events.

Nothing of our own transports is used, because a peer is judged by what it really sent.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from antiphon.traffic.entries import Direction, Entry, Json, JsonObject, parse

__all__ = [
    "CONNECTION",
    "SESSION",
    "ExchangeLog",
    "HttpAddress",
    "HttpHead",
    "HttpReply",
    "RawExchange",
    "RawStream",
    "read_head",
]

CONNECTION: Final = "Acp-Connection-Id"
SESSION: Final = "Acp-Session-Id"

HEAD_LIMIT: Final = 256 * 1024
"""Bytes that are read of the head of a message."""

BODY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes that are kept of a response."""


class ExchangeLog:
    """What was sent and received, numbered, as evidence."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._count = 0

    def note(self, direction: Direction, raw: bytes) -> Entry:
        """Number a piece of traffic."""
        self._count += 1
        return parse(self._count, time.monotonic() - self._begun, direction, raw)


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The head of a request or a response."""

    first: str
    """The first line."""
    fields: Sequence[tuple[str, str]]
    raw: bytes = field(repr=False)

    @property
    def status(self) -> int:
        """The status of a response; 0 for the head of a request."""
        words = self.first.split()
        return int(words[1]) if len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdecimal() else 0

    def get(self, name: str) -> str:
        """The value of a header, empty without it."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), "")

    def all(self, name: str) -> list[str]:
        """The values of a header that may be repeated."""
        return [value for key, value in self.fields if key.lower() == name.lower()]


async def read_head(reader: asyncio.StreamReader) -> HttpHead:
    """Read the head of a message.

    Raises:
        EOFError: the peer closed the connection before its end.
        ValueError: it is too large, or is no HTTP.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of the message is too large") from error
    first, *rest = raw[:-4].decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in rest]
    return HttpHead(first, [(name.strip(), value.strip()) for name, _, value in pairs], raw)


async def read_body(head: HttpHead, reader: asyncio.StreamReader, *, to_end: bool) -> bytes:
    """Read the body of a message. `to_end`: without a length it goes on until the connection ends, as that of a response does."""
    if "chunked" in head.get("transfer-encoding").lower():
        parts = []
        while piece := await read_chunk(reader):
            parts.append(piece)
        return b"".join(parts)
    if length := head.get("content-length"):
        return await reader.readexactly(min(int(length), BODY_LIMIT)) if length.isdecimal() else b""
    return await reader.read(BODY_LIMIT) if to_end else b""


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """Read one chunk of a body; empty at its end."""
    size = int((await reader.readline()).partition(b";")[0].strip() or b"0", 16)
    piece = await reader.readexactly(size) if size else b""
    await reader.readline()
    return piece


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A response, with its request."""

    request: Entry
    entry: Entry
    head: HttpHead
    body: bytes

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def message(self) -> Json:
        """The JSON of the body; `NO_JSON` if the body is not JSON."""
        return parse(0, 0.0, Direction.A2C, self.body).msg

    @property
    def evidence(self) -> tuple[Entry, Entry]:
        return self.request, self.entry


class HttpAddress:
    """Where a server is, and what it takes to be let in: opens connections to it."""

    def __init__(self, url: str, token: str | None, limit: float, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self.url = url
        self.secure = parts.scheme in ("https", "wss")
        self.limit = limit
        self.token = token
        self._tls = tls
        socket, _, path = parts.path.partition(":/")
        self._socket = socket if parts.scheme == "unix" else None
        self._host = parts.hostname or "localhost"
        self._port = parts.port or (443 if self.secure else 80)
        self.host = parts.netloc.rpartition("@")[2] or "localhost"
        self.target = (
            f"/{path or 'acp'}" if self._socket else (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        )

    def tls(self) -> ssl.SSLContext:
        """A context of its own, because what it offers may be changed."""
        return self._tls or ssl.create_default_context()

    async def open(self, tls: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect.

        Raises:
            OSError: the server is not reached, or does not answer in time.
        """
        async with asyncio.timeout(self.limit):
            if self._socket is not None:
                return await asyncio.open_unix_connection(self._socket, limit=HEAD_LIMIT)
            context = (tls or self.tls()) if self.secure else None
            return await asyncio.open_connection(self._host, self._port, ssl=context, limit=HEAD_LIMIT)

    def request_head(self, method: str, headers: Mapping[str, str | None]) -> bytes:
        """The head of a request. A header that is None is left out, also where it is one that is usually sent."""
        usual: dict[str, str | None] = {"Host": self.host, "User-Agent": "antiphon-check"}
        if self.token is not None:
            usual["Authorization"] = f"Bearer {self.token}"
        names = {name.lower() for name in headers}
        sent = {**{name: value for name, value in usual.items() if name.lower() not in names}, **headers}
        lines = [f"{name}: {value}" for name, value in sent.items() if value is not None]
        return "\r\n".join([f"{method} {self.target} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    async def exchange(
        self, log: ExchangeLog, method: str, headers: Mapping[str, str | None], body: bytes | None = None
    ) -> HttpReply:
        """Send a request on a connection of its own, and read the response.

        Raises:
            OSError, EOFError, ValueError: there is none, or it is no HTTP.
        """
        length = {} if body is None else {"Content-Length": str(len(body))}
        head = self.request_head(method, {**length, **headers, "Connection": "close"})
        request = log.note(Direction.C2A, _hidden(head, self.token) + (body or b"")[:2000])
        reader, writer = await self.open()
        try:
            async with asyncio.timeout(self.limit):
                writer.write(head + (body or b""))
                with suppress(ConnectionError):  # a server may answer and close before it has read all
                    await writer.drain()
                found = await read_head(reader)
                while found.status == 100:
                    found = await read_head(reader)
                kept = (
                    b""
                    if found.get("content-type").startswith("text/event-stream")
                    else await read_body(found, reader, to_end=True)
                )
        finally:
            await _end(writer)
        return HttpReply(request, log.note(Direction.A2C, found.raw + kept[:2000]), found, kept)


def _hidden(head: bytes, token: str | None) -> bytes:
    """A head as it is shown: without the token."""
    return head if token is None else head.replace(token.encode(), b"[token]")


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


class RawExchange:
    """A request whose connection goes on after the head of its response: what both sent, and what follows, as a task reads it."""

    def __init__(
        self, request: Entry, entry: Entry, head: HttpHead, log: ExchangeLog, writer: asyncio.StreamWriter
    ) -> None:
        self.request = request
        self.entry = entry
        self.head = head
        self.ended = False
        self.listener: Callable[[Entry], None] = lambda entry: None
        self.log = log
        self.writer = writer
        self._task: asyncio.Task[None] | None = None

    @property
    def evidence(self) -> tuple[Entry, Entry]:
        return self.request, self.entry

    @property
    def is_open(self) -> bool:
        """Whether more follows after the head."""
        raise NotImplementedError

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read what follows until it ends."""
        raise NotImplementedError

    @classmethod
    async def begin(
        cls,
        address: HttpAddress,
        log: ExchangeLog,
        headers: Mapping[str, str | None],
        listener: Callable[[Entry], None],
    ) -> Self:
        """Send the head of a request, and read what follows the head of its response from then on.

        Raises:
            OSError, EOFError, ValueError: there is no response, or it is no HTTP.
        """
        head = address.request_head("GET", headers)
        request = log.note(Direction.C2A, _hidden(head, address.token))
        reader, writer = await address.open()
        body = b""
        try:
            async with asyncio.timeout(address.limit):
                writer.write(head)
                found = await read_head(reader)
                if found.status >= 300 and (found.get("content-length") or found.get("transfer-encoding")):
                    body = await read_body(found, reader, to_end=False)
        except BaseException:
            await _end(writer)
            raise
        made = cls(request, log.note(Direction.A2C, found.raw + body[:2000]), found, log, writer)
        made.listener = listener
        if made.is_open:
            made._task = asyncio.create_task(made._read_all(reader), name=f"what a server sends to {cls.__name__}")
        else:
            await made.close()
        return made

    async def _read_all(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, EOFError, ValueError):
            await self.read(reader)
        self.ended = True
        self.listener(self.entry)

    async def close(self) -> None:
        """Cut the connection, as a client that leaves."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await _end(self.writer)
        self.ended = True


class RawStream(RawExchange):
    """A stream of events that was asked for: the response, and the events as they come."""

    def __init__(
        self, request: Entry, entry: Entry, head: HttpHead, log: ExchangeLog, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(request, entry, head, log, writer)
        self.events: list[tuple[Entry, str]] = []
        """The data of each event, with its id."""

    @property
    def is_open(self) -> bool:
        return self.head.status == 200 and self.head.get("content-type").startswith("text/event-stream")

    @classmethod
    async def open(
        cls,
        address: HttpAddress,
        log: ExchangeLog,
        headers: Mapping[str, str | None],
        listener: Callable[[Entry], None],
    ) -> "RawStream":
        """Ask for a stream, and read it from then on.

        Raises:
            OSError, EOFError, ValueError: there is no response, or it is no HTTP.
        """
        return await cls.begin(address, log, {"Accept": "text/event-stream", **headers}, listener)

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read events."""
        chunked = "chunked" in self.head.get("transfer-encoding").lower()
        rest, data, id = b"", list[bytes](), ""
        while piece := await (read_chunk(reader) if chunked else reader.read(65536)):
            *lines, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                name, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if name == b"data":
                    data.append(value)
                elif name == b"id" and line.startswith(b"id"):
                    id = value.decode("utf-8", "replace")
                elif not line and data:
                    entry = self.log.note(Direction.A2C, b"\n".join(data))
                    self.events.append((entry, id))
                    data = []
                    self.listener(entry)

    @property
    def messages(self) -> list[Entry]:
        return [entry for entry, _ in self.events]


def result_of(entry: Entry) -> JsonObject:
    """The result of a response; empty if it has none."""
    found = entry.msg.get("result") if isinstance(entry.msg, dict) else None
    return found if isinstance(found, dict) else {}
