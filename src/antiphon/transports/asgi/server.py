"""An ASGI application on a socket: uvicorn, with WebSockets that take and give many frames at once.

uvicorn hands each message over by itself: a task step, a dictionary and a system call for each frame of a hundred bytes. Here what
has gathered is framed in one pass and leaves in one write: eight times as many updates a second (`benchmarks/network.py`).
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from antiphon.transports.asgi.connections import LINES
from antiphon.transports.base import OUTPUT_HIGH
from antiphon.transports.framing import MAX_FRAME

if TYPE_CHECKING:
    from websockets.http11 import Request

    from antiphon.transports.asgi.connections import SocketConnection

__all__ = ["BoundedHead", "LineProtocol", "listen"]

PING_INTERVAL: Final = 20.0
"""Seconds between pings, and until a client that does not answer one is gone."""

SHUTDOWN_TIMEOUT: Final = 10
"""Seconds that requests and sockets have to end when the server does."""

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of the head of a request."""


EARLY_LIMIT: Final = 64 * 1024
"""Bytes of a WebSocket message before the connection is accepted. A client that keeps to the rules sends none yet."""

HEAD_TIMEOUT: Final = 10.0
"""Seconds in which the head of a request has to arrive, from the first byte of a connection on. Many slow ones are an attack."""


class BoundedHead(HttpToolsProtocol):
    """HTTP of uvicorn with limits on the head of a request, which the parser has not: on its size, and on its time."""

    _head_size = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the base class
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._head_size += len(data)
        super().data_received(data)
        if self._in_head and self._head_size > HEADER_LIMIT and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._await_head()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:  # behind the body it would become a header that no check has seen
            raise ValueError("fields behind a body are not taken")  # the parser ends the connection with 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if not is_path(self.url):
            raise ValueError("the target of a request is a path")  # the parser ends the connection with 400
        self._in_head, self._head_size = False, 0
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._stop_timer()
        self._in_head, self._head_size = True, 0
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self._head_overdue)

    def _head_overdue(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.write(_OVERDUE)
            self.transport.close()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


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
    """A server without handlers for signals: they belong to the program around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def listen(
    app: Any,
    listening: socket.socket,
    *,
    certificate: str | None = None,
    key: str | None = None,
    limit: int = MAX_FRAME,
) -> AsyncIterator[None]:
    """Serve an application on a socket that is bound, until the block is left: then all connections are closed.

    `certificate` and `key` are files for TLS. `limit`: the bytes of a WebSocket message.
    """
    config = uvicorn.Config(
        app, loop="none", http=BoundedHead, ws=LineProtocol, ws_max_size=limit, ws_per_message_deflate=False,
        ws_ping_interval=PING_INTERVAL, ws_ping_timeout=PING_INTERVAL, log_config=None, access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=SHUTDOWN_TIMEOUT, h11_max_incomplete_event_size=HEADER_LIMIT,
        ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    server = _Server(config)
    task = asyncio.get_running_loop().create_task(server.serve([listening]))
    try:
        while not server.started and not task.done():
            await asyncio.wait([task], timeout=0.01)
        if task.done():
            task.result()
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task])
        task.result()
