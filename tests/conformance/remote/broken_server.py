"""A correct server, and faults between it and the check: a proxy that changes heads, bodies, events and frames as a fault wants it."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from antiphon.conformance.remote.raw_http import HttpHead, read_body, read_chunk, read_head
from antiphon.conformance.remote.raw_websocket import BINARY, CLOSE, TEXT, RawFrame, encode, read_frame
from antiphon.transports.asgi import AcpEndpoint, Admission, Refusal
from antiphon.transports.asgi.heads import foreign_origin, header_of
from tests.transports.serving import serve_demo, served

TOKEN = "antiphon-test-token"


async def admit(scope: Any) -> Admission | Refusal:
    """Let in who has the token, and no page of another host."""
    if foreign_origin(scope):
        return Refusal(403, "this origin is not allowed")
    given = header_of(scope, b"authorization").encode()
    fine = hmac.compare_digest(given, f"Bearer {TOKEN}".encode())
    return Admission(serve_demo) if fine else Refusal(401, "send the token")


@dataclass(slots=True)
class Seen:
    """One request that passes the proxy."""

    method: str
    fields: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str:
        return next((value for key, value in self.fields if key.lower() == name.lower()), "")

    def put(self, name: str, value: str | None) -> None:
        self.fields = [pair for pair in self.fields if pair[0].lower() != name.lower()]
        if value is not None:
            self.fields.append((name, value))

    @property
    def message(self) -> Any:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(self.body)
        return None

    @property
    def asked(self) -> str:
        found = self.message
        return found.get("method", "") if isinstance(found, dict) else ""


@dataclass(slots=True)
class Reply:
    """What comes back for it."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes = b""

    def put(self, name: str, value: str | None) -> None:
        self.fields = [pair for pair in self.fields if pair[0].lower() != name.lower()]
        if value is not None:
            self.fields.append((name, value))

    def get(self, name: str) -> str:
        return next((value for key, value in self.fields if key.lower() == name.lower()), "")


def _same(message: Any, seen: "Seen | None") -> list[Any]:
    return [message]


@dataclass(slots=True)
class ServerFault:
    """What a broken server does otherwise. Each function may change what it is given."""

    request: Callable[[Seen], Reply | None] = lambda seen: None
    """A reply of its own, in place of the server's."""
    reply: Callable[[Seen, Reply], None] = lambda seen, reply: None
    """Changes the head and the body of a reply; of a WebSocket, that of its handshake."""
    message: Callable[[Any, "Seen | None"], list[Any]] = _same
    """Messages of the server, in events and in frames, with the request of the stream."""
    sent: Callable[[Any], list[Any]] = lambda message: [message]
    """Messages of the client in frames."""
    frame: Callable[[bool, RawFrame], list[RawFrame]] = lambda of_client, frame: [frame]
    """Frames; `of_client`: those of the client. A close that is returned for one of the client is sent to it, as by the server."""
    keeps_streams: bool = False
    """Whether streams stay open where the server ends them."""
    ends_all: bool = False
    """Whether the end of one connection ends all."""
    twice: Callable[[Seen], bool] = lambda seen: False
    """Requests that are sent a second time."""
    follows: str = ""
    """How redirects are followed: with the `token`, or `without`."""


@dataclass(slots=True)
class BrokenServer:
    """The proxy."""

    fault: ServerFault
    upstream: str
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    streams: list[tuple[Seen, asyncio.StreamWriter]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with suppress(OSError, EOFError, ValueError, asyncio.CancelledError):
            head = await read_head(reader)
            seen = Seen(head.first.split()[0], list(head.fields), await read_body(head, reader, to_end=False))
            await self._answer(seen, reader, writer)
        writer.close()
        if self.fault.ends_all:
            for one in self.writers:
                one.close()

    async def _answer(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (own := self.fault.request(seen)) is not None:
            writer.write(_response(own))
            await writer.drain()
            return
        source, target = await self._sent(seen, self.upstream)
        if self.fault.twice(seen):
            await self._sent(seen, self.upstream)
        try:
            found = await read_head(source)
            if found.status == 307 and self.fault.follows:
                if self.fault.follows == "without":
                    seen.put("Authorization", None)
                source, target = await self._sent(seen, urlsplit(found.get("location")).netloc)
                found = await read_head(source)
            reply = Reply(found.status, list(found.fields))
            if found.status == 101:
                self.fault.reply(seen, reply)
                writer.write(_response(reply))
                await _both(self._frames(True, reader, target, writer), self._frames(False, source, writer, target))
            elif found.get("content-type").startswith("text/event-stream"):
                await self._stream(seen, found, reply, source, writer)
            else:
                reply.body = await read_body(found, source, to_end=not found.get("content-length"))
                self.fault.reply(seen, reply)
                writer.write(_response(reply))
                await writer.drain()
        finally:
            target.close()

    async def _sent(self, seen: Seen, upstream: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request on a connection of its own."""
        host, _, port = upstream.rpartition(":")
        source, target = await asyncio.open_connection(host, int(port), limit=4 * 1024 * 1024)
        self.writers.append(target)
        if seen.body:
            seen.put("Content-Length", str(len(seen.body)))
        lines = [f"{seen.method} /acp HTTP/1.1", *(f"{name}: {value}" for name, value in seen.fields), "", ""]
        target.write("\r\n".join(lines).encode("latin-1") + seen.body)
        return source, target

    async def _stream(
        self, seen: Seen, found: HttpHead, reply: Reply, source: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.fault.reply(seen, reply)
        reply.put("Transfer-Encoding", None)
        reply.put("Connection", "close")
        writer.write(_head(reply))
        self.streams.append((seen, writer))
        chunked, rest, id = "chunked" in found.get("transfer-encoding"), b"", b""
        if self.fault.message is _same and not chunked:
            while piece := await source.read(65536):
                writer.write(piece)
                await writer.drain()
            return
        while piece := await (read_chunk(source) if chunked else source.read(65536)):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                name, _, value = line.partition(b": ")
                if name == b"id":
                    id = b"id: " + value + b"\n"
                elif name == b"data":
                    for one in self.fault.message(msgspec.json.decode(value), seen):
                        to, message = one if isinstance(one, tuple) else (None, one)
                        for each in self._targets(to, seen, writer):
                            each.write(id + b"data: " + msgspec.json.encode(message) + b"\n\n")
            await writer.drain()
        if self.fault.keeps_streams:
            await asyncio.Event().wait()

    def _targets(self, to: str | None, seen: Seen, writer: asyncio.StreamWriter) -> list[asyncio.StreamWriter]:
        """The stream itself, or those that a fault names: `connection`, or `all` streams of connections."""
        if to is None:
            return [writer]
        own = [] if to == "all" else [seen.get("acp-connection-id")]
        return [
            each
            for other, each in self.streams
            if not other.get("acp-session-id") and (not own or other.get("acp-connection-id") in own)
        ]

    async def _frames(
        self, of_client: bool, source: asyncio.StreamReader, target: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError, EOFError, ValueError):
            while True:
                frame = await read_frame(source)
                for one in self.fault.frame(of_client, frame):
                    if of_client and one.opcode == CLOSE and frame.opcode != CLOSE:
                        back.write(encode(CLOSE, one.payload, mask=False))
                        return
                    for payload in self._payloads(of_client, one):
                        target.write(encode(one.opcode, payload, fin=one.fin, mask=one.masked))
                await target.drain()

    def _payloads(self, of_client: bool, frame: RawFrame) -> list[bytes]:
        if frame.opcode != TEXT or not frame.fin:
            return [frame.payload]
        try:
            message = msgspec.json.decode(frame.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return [frame.payload]
        changed = self.fault.sent(message) if of_client else self.fault.message(message, None)
        if changed == [message]:
            return [frame.payload]
        return [msgspec.json.encode(one[1] if isinstance(one, tuple) else one) for one in changed]


async def _both(*doing: Any) -> None:
    """Until one direction has ended."""
    tasks = [asyncio.ensure_future(one) for one in doing]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} x", *(f"{name}: {value}" for name, value in reply.fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _response(reply: Reply) -> bytes:
    if reply.status != 101:
        reply.put("Transfer-Encoding", None)
        reply.put("Content-Length", str(len(reply.body)))
        reply.put("Connection", "close")
    return _head(reply) + reply.body


@asynccontextmanager
async def broken_server(fault: ServerFault | None) -> AsyncIterator[str]:
    """A correct server with a token, and the fault before it: its host and port."""
    async with served(AcpEndpoint(admit=admit)) as host:
        if fault is None:
            yield host
            return
        proxy = BrokenServer(fault, host)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=256 * 1024)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for writer in proxy.writers:
                writer.close()


def closed(code: int) -> RawFrame:
    """A close of the server."""
    return RawFrame(CLOSE, code.to_bytes(2, "big"))


def binary(text: bytes) -> RawFrame:
    """A binary frame of the server."""
    return RawFrame(BINARY, text)
