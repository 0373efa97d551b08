"""An ASGI application on a socket: uvicorn, with WebSockets that take and give many frames at once.

uvicorn hands each message over by itself: a task step, a dictionary and a system call for each frame of a hundred bytes. Here what
has gathered is framed in one pass and leaves in one write: eight times as many updates a second (`benchmarks/network.py`).
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from antiphon.transports.asgi.connections import LINES, send_at_once
from antiphon.transports.asgi.sockets import OpenSockets
from antiphon.transports.base import OUTPUT_HIGH
from antiphon.transports.framing import MAX_FRAME

if TYPE_CHECKING:
    from websockets.frames import Frame
    from websockets.http11 import Request

    from antiphon.transports.asgi.connections import SocketConnection

__all__ = ["BoundedRequests", "LineProtocol", "listen"]

PING_INTERVAL: Final = 20.0
"""Seconds between pings, and until a client that does not answer one is gone."""

SHUTDOWN_TIMEOUT: Final = 10
"""Seconds that requests and sockets have to end when the server does."""

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of the head of a request."""

EARLY_LIMIT: Final = 64 * 1024
"""Bytes of a WebSocket message before the connection is accepted. A client that keeps to the rules sends none yet."""

HEAD_TIMEOUT: Final = 10.0
"""Seconds in which the head of a request has to arrive, from the first byte of a connection on, or from the response before it."""

BODY_TIMEOUT: Final = 90.0
"""Seconds in which the body of a request has to arrive. Applications wait for less; this is for those that do not wait at all."""

REST_TIMEOUT: Final = 5.0
"""Seconds in which a client has to take the last response, or to end a body that got its response before it was whole."""

HANDSHAKE_TIMEOUT: Final = 10.0
"""Seconds of a TLS handshake."""

HEADERS: Final = 128
"""Headers of a request."""

PIPELINED: Final = 8
"""Requests that a client may send before it has the response to the first of them."""


class RequestPhase(Enum):
    """What a connection waits for. Everything that a client has to do has a time limit, what the application does has none."""

    HEAD = auto()
    BODY = auto()
    RESPONSE = auto()
    REST = auto()


def phase_timeout(phase: RequestPhase) -> float | None:
    """Return the seconds that a phase may take; None: any time."""
    match phase:
        case RequestPhase.HEAD:
            return HEAD_TIMEOUT
        case RequestPhase.BODY:
            return BODY_TIMEOUT
        case RequestPhase.REST:
            return REST_TIMEOUT
        case RequestPhase.RESPONSE:
            return None


class BoundedRequests(HttpToolsProtocol):
    """HTTP of uvicorn with the limits that its parser has not: on the sizes, counts and times of what a client sends."""

    _arrived = 0
    """Bytes since the head began."""
    _head_size = 0
    """Bytes of the target and the headers that are whole."""
    _refusal = b""
    _phase = RequestPhase.HEAD
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the base class
        super().connection_made(transport)
        self._enter(RequestPhase.HEAD)

    def data_received(self, data: bytes) -> None:
        self._arrived += len(data)
        super().data_received(data)
        if self._phase is RequestPhase.HEAD and self._arrived > HEADER_LIMIT and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)  # of lines that have not ended
            self.transport.close()

    # The parser. What these raise ends the connection.

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests wait for their responses")
        self._arrived = self._head_size = 0
        self._enter(RequestPhase.HEAD)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is not RequestPhase.HEAD:  # behind the body it would become a header that no check has seen
            raise ValueError("fields behind a body are not taken")
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > HEADERS:
            self._refusal = _TOO_LARGE
            raise ValueError("the request has too many headers")

    def on_headers_complete(self) -> None:
        if not is_path(self.url):
            raise ValueError("the target of a request is a path")
        self._enter(RequestPhase.BODY)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._enter(RequestPhase.HEAD if self._is_answered else RequestPhase.RESPONSE)

    def _count(self, size: int) -> None:
        self._head_size += size
        if self._head_size > HEADER_LIMIT:
            self._refusal = _TOO_LARGE
            raise ValueError("the head of the request is too large")

    def send_400_response(self, msg: str) -> None:
        if self._refusal:
            self.transport.write(self._refusal)
            self.transport.close()
        else:
            super().send_400_response(msg)

    # The phases.

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or (self._phase is RequestPhase.BODY and self._is_answered):
            self._enter(RequestPhase.REST)
        elif self._phase is RequestPhase.RESPONSE and self._is_answered:
            self._arrived = 0
            self._enter(RequestPhase.HEAD)

    def handle_websocket_upgrade(self) -> None:
        self._enter(RequestPhase.RESPONSE)
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(RequestPhase.RESPONSE)
        super().connection_lost(exc)

    @property
    def _is_answered(self) -> bool:
        """Whether the last request has its whole response."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and cycle.response_complete

    def _enter(self, phase: RequestPhase) -> None:
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
        timeout = phase_timeout(phase)
        self._timer = None if timeout is None else self.loop.call_later(timeout, self._overdue)

    def _overdue(self) -> None:
        if self.transport.is_closing():
            self.transport.abort()  # what is left to send would hold it for as long as its client likes
            return
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or self._is_answered:
            may_answer = self._phase is RequestPhase.HEAD
        else:
            may_answer = not cycle.response_started
        if may_answer:
            self.transport.write(_OVERDUE)
        self.transport.close()
        self._enter(RequestPhase.REST)


def is_path(target: bytes) -> bool:
    """Whether the target of a request is a path. A whole address may name another host than `Host`, and a proxy may go by that."""
    return target.startswith(b"/")


_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_OVERDUE: Final = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class LineProtocol(WebSocketsSansIOProtocol):
    """A WebSocket of uvicorn that offers the extension `LINES` to the application."""

    paused = False
    _connection: "SocketConnection | None" = None
    _limit = MAX_FRAME

    def handle_connect(self, event: "Request") -> None:
        super().handle_connect(event)
        self.conn.max_message_size = EARLY_LIMIT
        if hasattr(self, "scope"):  # not for a handshake that was refused
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions[LINES] = self

    def attach(self, connection: "SocketConnection", limit: int) -> None:
        """Hand what arrives to `connection`, from now on; a message over the limit closes the socket."""
        self._connection = connection
        self._limit = self.conn.max_message_size = limit
        self.transport.set_write_buffer_limits(OUTPUT_HIGH)

    # What leaves.

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # else uvicorn logs an error for each handshake that was refused with a body

    @property
    def unsent(self) -> int:
        """Bytes that the client has not taken yet."""
        return self.transport.get_write_buffer_size()

    def write_lines(self, lines: bytes) -> None:
        """Send each line as a text frame, all in one write."""
        if self.disconnected or self.close_sent or self.transport.is_closing():
            return
        texts = lines.split(b"\n")
        texts.pop()  # behind the last line end
        pieces = [b""] * (2 * len(texts))
        pieces[::2] = map(_HEADERS.__getitem__, map(len, texts))  # half the time of a loop in Python
        pieces[1::2] = texts
        self.transport.write(b"".join(pieces))

    def abort(self) -> None:
        """End the connection now, whatever waits to be sent."""
        self.transport.abort()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()  # a client that does not read would hold it open

    def handle_ping(self) -> None:
        pong = b"".join(self.conn.data_to_send())
        if not self.paused:  # a client that reads none gets none, however many it asks for
            self.transport.write(pong)

    def pause_writing(self) -> None:
        self.paused = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self.paused = False
        super().resume_writing()
        if self._connection is not None:
            self._connection.writable()

    # What arrives.

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._connection is not None:
            self._connection.deliver()

    def handle_cont(self, event: "Frame") -> None:
        if len(self.frames) == 1:
            self.frames = [bytearray(self.frames[0]), b""]  # type: ignore[list-item] # joined in the end like the other
        self.frames[0] += event.data  # an object for each would be many times the size of small pieces
        if event.fin:
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        if self._connection is None:
            super().send_receive_event_to_app()
            return
        text, self.frames = b"".join(self.frames), []
        if len(text) > self._limit and not self.close_sent:
            self.conn.fail(1009, "a message is too large")
            self.handle_parser_exception()
        elif self.curr_msg_data_type == "text" and not self.close_sent:  # the proposal says to ignore binary messages
            if text.isascii() or _is_utf8(text):
                self._connection.text_received(text)
            else:
                self.conn.fail(1007, "a text frame is not UTF-8")
                self.handle_parser_exception()

    def read(self, wanted: bool) -> None:
        """Read, or read no more until it is wanted again."""
        with suppress(RuntimeError):  # uvloop: it is closing
            if wanted:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Headers(dict[int, bytes]):
    """The header of a text frame by the size of its text."""

    def __missing__(self, size: int) -> bytes:
        if size < 126:
            header = bytes((0x81, size))
        elif size < 65536:
            header = b"\x81\x7e" + size.to_bytes(2, "big")
        else:
            return b"\x81\x7f" + size.to_bytes(8, "big")  # not kept: these are rare, and there are many
        self[size] = header
        return header


_HEADERS: Final = _Headers()


class _Server(uvicorn.Server):
    """A server without handlers for signals, which belong to the program around it, and with a limit on TLS handshakes."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise RuntimeError("the application did not start")
        config, loop = self.config, asyncio.get_running_loop()
        handshake, shutdown = (HANDSHAKE_TIMEOUT, REST_TIMEOUT) if config.ssl else (None, None)

        def protocol() -> asyncio.Protocol:
            return BoundedRequests(config, self.server_state, self.lifespan.state)

        self.servers = [
            await loop.create_server(
                protocol, sock=each, ssl=config.ssl, backlog=config.backlog,
                ssl_handshake_timeout=handshake, ssl_shutdown_timeout=shutdown,
            )
            for each in sockets or ()
        ]  # fmt: skip
        self.started = True


@asynccontextmanager
async def listen(
    app: Any,
    listening: socket.socket,
    *,
    certificate: str | None = None,
    key: str | None = None,
    limit: int = MAX_FRAME,
    sockets: OpenSockets | None = None,
) -> AsyncIterator[None]:
    """Serve an application on a socket that is bound, until the block is left: then all connections are closed.

    `certificate` and `key` are files for TLS. `limit`: the bytes of a WebSocket message. `sockets` counts those that are open.
    """
    sockets = sockets or OpenSockets()
    send_at_once(listening)
    config = uvicorn.Config(
        sockets.watched(app), loop="none", http=BoundedRequests, ws=LineProtocol, ws_max_size=limit, ws_per_message_deflate=False,
        ws_ping_interval=PING_INTERVAL, ws_ping_timeout=PING_INTERVAL, log_config=None, access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=SHUTDOWN_TIMEOUT, h11_max_incomplete_event_size=HEADER_LIMIT,
        ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    server = _Server(config)
    task = asyncio.get_running_loop().create_task(server.serve([sockets.listener(listening)]))
    try:
        while not server.started and not task.done():
            await asyncio.wait([task], timeout=0.01)
        if task.done():
            task.result()
        yield
    finally:
        server.should_exit = True
        listening.close()  # its twin, which accepts, is closed by the server
        await asyncio.wait([task])
        task.result()
