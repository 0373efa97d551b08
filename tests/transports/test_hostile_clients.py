"""Clients that cost a server much for little: they do not read, never end what they began, or send what is dear to take."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.transports.asgi import AcpEndpoint, connections, http2, server, sockets
from antiphon.transports.asgi.connections import Scope, SocketConnection
from antiphon.transports.asgi.heads import LOOPBACK, foreign_host, foreign_origin, header_of, refused_request
from antiphon.transports.asgi.http2 import listen_http2
from antiphon.transports.asgi.server import LineProtocol
from antiphon.transports.base import Transport
from antiphon.transports.remote import head_of, on_lines
from tests.limits import limit
from tests.rows import each_row
from tests.transports.serving import serve_demo, served
from tests.transports.test_network import TLS
from tests.waits import until

TLS_FILES: dict[str, Any] = {"certificate": str(TLS / "server.pem"), "key": str(TLS / "server.key")}
UPGRADE = (
    b"GET /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
Server = Callable[[Any], Any]


@asynccontextmanager
async def served_by_hypercorn(app: Any) -> AsyncIterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        async with asyncio.timeout(limit()), listen_http2(app, listening, **TLS_FILES):
            yield f"127.0.0.1:{listening.getsockname()[1]}"


def connected(host: str) -> socket.socket:
    """A connection that takes as little as it can before it has to be read."""
    name, _, port = host.rpartition(":")
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(limit())
    raw.connect((name, int(port)))
    return raw


def over_tls(raw: socket.socket) -> socket.socket:
    context = ssl.create_default_context(cafile=str(TLS / "authority.pem"))
    context.check_hostname = False
    return context.wrap_socket(raw)


def upgraded(raw: socket.socket) -> socket.socket:
    """Open a WebSocket, and read the answer alone."""
    raw.sendall(UPGRADE)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += raw.recv(1)
    assert b" 101 " in head[:20]
    return raw


def frame(first: int, data: bytes = b"") -> bytes:
    """A frame of a client, whose mask is zero."""
    assert len(data) < 126
    return struct.pack("!BB4x", first, 0x80 | len(data)) + data


@pytest.mark.parametrize("server", [served, served_by_hypercorn])
@pytest.mark.parametrize("way", ["close", "abort"])
async def test_a_client_that_never_reads_does_not_delay_the_end_of_its_connection(
    server: Server, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CLOSE_TIMEOUT", 0.2)
    ended, open_now = asyncio.Event(), asyncio.Event()

    async def serve(transport: Transport) -> None:
        transport.out += b'"%b"\n' % (b"x" * 1_000_000) * 20
        transport.flush()
        open_now.set()
        await (transport.close() if way == "close" else transport.abort("it is not wanted"))
        ended.set()

    async with server(AcpEndpoint(serve)) as host:
        opened = await asyncio.to_thread(connected, host)
        if server is served_by_hypercorn:
            opened = await asyncio.to_thread(over_tls, opened)
        with await asyncio.to_thread(upgraded, opened):
            await open_now.wait()
            await ended.wait()
            assert await asyncio.to_thread(read_all, opened) < 20_000_000, "what waited was not kept for it"


def read_all(raw: socket.socket) -> int:
    """Read until the connection ends, in whatever way, and return how many bytes that were."""
    size = 0
    try:
        while part := raw.recv(65536):
            size += len(part)
    except OSError:
        pass
    return size


async def test_a_stream_whose_client_never_reads_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "STALL_TIMEOUT", 0.2)
    over = asyncio.Event()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        finally:
            over.set()

    async with served(app) as host:
        with await asyncio.to_thread(connected, host) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await over.wait()


@pytest.mark.parametrize("module", [server, http2])
async def test_a_handshake_that_does_not_end_is_not_waited_for(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HANDSHAKE_TIMEOUT", 0.2)
    app = AcpEndpoint(serve_demo)
    async with served_by_hypercorn(app) if module is http2 else served(app, **TLS_FILES) as host:
        with await asyncio.to_thread(connected, host) as raw:
            assert await asyncio.to_thread(ended, raw)


def ended(raw: socket.socket) -> bool:
    try:
        return raw.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET /acp HTTP/1.1\r\nHost: 127"], ids=["silence", "half a head"])
async def test_a_request_that_does_not_come_is_not_waited_for_on_the_other_server(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2, "HEAD_TIMEOUT", 0.2)
    async with served_by_hypercorn(AcpEndpoint(serve_demo)) as host:
        with await asyncio.to_thread(lambda: over_tls(connected(host))) as raw:
            raw.sendall(sent)
            assert await asyncio.to_thread(ended, raw)


async def test_the_oldest_socket_without_a_request_goes_first_on_the_other_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "ADDRESS_SOCKETS", 2)
    async with served_by_hypercorn(AcpEndpoint(serve_demo)) as host:
        raw = [await asyncio.to_thread(connected, host) for _ in range(2)]
        with raw[0], raw[1], await asyncio.to_thread(lambda: over_tls(connected(host))):
            assert await asyncio.to_thread(ended, raw[0])


class Kept:
    """A sink that keeps the first message, and knows when the connection is over."""

    def __init__(self) -> None:
        self.received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()

    def block_received(self, block: Any) -> None:
        self.received.set_result(bytes(block))

    def connection_lost(self, error: Exception) -> None:
        self.over.set()


async def test_pings_whose_answers_are_not_read_take_no_memory() -> None:
    protocols: list[LineProtocol] = []
    kept = Kept()

    async def serve(transport: Transport) -> None:
        assert isinstance(transport, SocketConnection)
        protocols.append(transport._lines)  # type: ignore[arg-type]
        transport.attach(kept)
        await kept.over.wait()

    async with served(AcpEndpoint(serve)) as host:
        with await asyncio.to_thread(lambda: upgraded(connected(host))) as raw:
            flood = frame(0x89, b"x" * 125) * 80_000 + frame(0x81, b"{}")
            await asyncio.to_thread(raw.sendall, flood)
            await kept.received
            assert 0 < protocols[0].unsent < 1_500_000  # what one reading answers may be on top of the limit


async def test_little_is_taken_of_a_client_that_nothing_reads_yet() -> None:
    connected_as: asyncio.Future[SocketConnection] = asyncio.get_running_loop().create_future()
    may_read, frames = asyncio.Event(), [b'"%06d%b"' % (number, b"x" * 100) for number in range(80_000)]
    taken = bytearray()

    class Taking(Kept):
        def block_received(self, block: Any) -> None:
            taken.extend(block)
            if taken.count(b"\n") == len(frames) and not self.received.done():
                self.received.set_result(bytes(taken))

    kept = Taking()

    async def serve(transport: Transport) -> None:
        assert isinstance(transport, SocketConnection)
        connected_as.set_result(transport)
        await may_read.wait()
        transport.attach(kept)
        await kept.over.wait()

    async with served(AcpEndpoint(serve)) as host:
        with await asyncio.to_thread(lambda: upgraded(connected(host))) as raw:
            flood = b"".join(frame(0x81, each) for each in frames)
            sending = asyncio.ensure_future(asyncio.to_thread(raw.sendall, flood))
            transport = await connected_as
            assert transport._lines is not None
            await until(lambda: not transport._lines.transport.is_reading())  # type: ignore[union-attr]
            assert len(transport._arrived) < 2_000_000
            may_read.set()
            await sending
            assert (await kept.received).split() == frames


async def test_a_message_in_many_small_pieces_is_kept_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    kept = Kept()

    class Watched(LineProtocol):
        def handle_cont(self, event: Any) -> None:
            super().handle_cont(event)
            pieces.append(len(self.frames))

    async def serve(transport: Transport) -> None:
        transport.attach(kept)
        await kept.over.wait()

    monkeypatch.setattr(server, "LineProtocol", Watched)
    text = b'"' + b"abcdefghij" * 300 + b'"'
    async with served(AcpEndpoint(serve)) as host:
        with await asyncio.to_thread(lambda: upgraded(connected(host))) as raw:
            rest = b"".join(frame(0x00, text[at : at + 1]) + frame(0x00) for at in range(1, len(text)))
            await asyncio.to_thread(raw.sendall, frame(0x01, text[:1]) + rest + frame(0x80))
            assert await kept.received == text + b"\n"
    assert max(pieces) == 2


@pytest.mark.parametrize("server", [served, served_by_hypercorn])
async def test_nothing_that_is_compressed_is_taken(server: Server) -> None:
    async with server(AcpEndpoint(serve_demo)) as host:
        opened = await asyncio.to_thread(connected, host)
        if server is served_by_hypercorn:
            opened = await asyncio.to_thread(over_tls, opened)
        with opened:
            offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
            opened.sendall(UPGRADE[:-2] + offer)
            head = (await asyncio.to_thread(opened.recv, 65536)).lower()
            assert b" 101 " in head[:20] and b"sec-websocket-extensions" not in head


def test_thousands_of_brackets_are_no_message() -> None:
    deep = b'{"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert head_of(deep) is None
    assert on_lines(deep + b"\n") == deep


# Names.

HOSTS = {
    "localhost": ("localhost", False), "a port": ("LocalHost:80", False), "IPv4": ("127.0.0.1:8321", False), "IPv6": ("[::1]:1", False),
    "a name below localhost": ("random.localhost", True), "a name that ends so": ("evillocalhost", True), "a dot": ("localhost.", True),
    "another way to write it": ("127.1", True), "a number": ("2130706433", True), "any address": ("0.0.0.0", True),
    "mapped": ("[::ffff:127.0.0.1]", True), "another host": ("evil.example", True), "a port that is a name": ("localhost:evil", True),
    "a user": ("localhost@evil.example", True), "none": ("", True), "a named one": ("agents.example.org:443", False),
}  # fmt: skip


@each_row(("host", "foreign"), HOSTS.values(), ids=HOSTS)
def test_only_names_of_this_machine_and_those_that_were_given_are_taken(host: str, foreign: bool) -> None:
    scope: Scope = {"headers": [(b"host", host.encode())]}
    assert foreign_host(scope, LOOPBACK | {"agents.example.org"}) is foreign
    assert not foreign_host(scope, {"*"})


ORIGINS = {
    "none": ("", "localhost", False), "its own": ("http://localhost:1", "localhost:1", False), "letters": ("HTTP://LOCALHOST", "localhost", False),
    "another port": ("http://localhost:2", "localhost:1", True), "a sandbox": ("null", "localhost", True),
    "a sandbox without a host": ("null", "", True), "another scheme": ("https://localhost", "localhost", True),
    "a friend": ("https://friend.example", "localhost", False),
}  # fmt: skip


@each_row(("origin", "host", "foreign"), ORIGINS.values(), ids=ORIGINS)
def test_pages_of_others_are_foreign(origin: str, host: str, foreign: bool) -> None:
    scope: Scope = {"headers": [(b"host", host.encode()), (b"origin", origin.encode())]}
    assert foreign_origin(scope, {"https://friend.example"}, "http") is foreign


async def test_an_agent_on_a_network_answers_to_the_names_that_it_was_given() -> None:
    statuses = []
    for hosts in ((), ("agents.example.org",), ("*",)):
        async with served(AcpEndpoint(serve_demo, hosts=hosts)) as host:
            with await asyncio.to_thread(connected, host) as raw:
                request = b"GET /acp HTTP/1.1\r\nHost: Agents.example.org:80\r\nConnection: close\r\n\r\n"
                statuses.append(await asyncio.to_thread(status_of, raw, request))
    assert statuses == [421, 406, 406]


def status_of(raw: socket.socket, request: bytes) -> int:
    raw.sendall(request)
    return int(raw.recv(65536).split()[1])


def test_a_header_that_decides_may_be_there_once() -> None:
    for name in (b"host", b"origin", b"authorization", b"acp-connection-id", b"acp-session-id", b"last-event-id"):
        refusal = refused_request({"headers": [(b"host", b"localhost"), (name, b"a"), (name, b"b")]}, LOOPBACK)
        assert refusal is not None and refusal.status == 400
    assert header_of({"headers": [(b"x", b"a"), (b"x", b"b")]}, b"x") == "a"
