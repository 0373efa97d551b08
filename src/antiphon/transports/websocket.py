"""A WebSocket to a remote agent: a JSON-RPC message is a text frame.

`websockets` does the handshake, the masking and the proxies; we take its frames as they arrive, without its queue and its
tasks, because most of what arrives are updates of a hundred bytes.

Lenient in what it reads: several messages in one frame, each on a line, and a message with line ends in it.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    InvalidHandshake,
    InvalidMessage,
    InvalidProxyStatus,
    InvalidStatus,
    InvalidURI,
    ProxyError,
    WebSocketException,
)
from websockets.frames import Frame as SocketFrame
from websockets.frames import Opcode
from websockets.protocol import Event, State

from antiphon.errors import ConnectionClosed
from antiphon.transports.base import OUTPUT_HIGH, Transport
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.remote import (
    CLOSE_TIMEOUT,
    OPEN_TIMEOUT,
    ConnectionRefused,
    CookieJar,
    not_reached,
    on_lines,
    refused_by_status,
    shown_address,
    without_proxy,
)

__all__ = ["WebSocketTransport", "open_websocket"]

PING_INTERVAL: Final = 20.0
"""Seconds between pings. A connection that is half open, as of a laptop that slept, is found by the second."""

_CLOSES: Final = {
    1000: "the agent closed the connection",
    1001: "the server is shutting down",
    1002: "the server says that we broke the protocol",
    1003: "the server does not take what we sent",
    1006: "the connection was lost",
    1008: "the server refused to go on",
    1009: "a message was too large",
    1011: "the server failed",
    1012: "the server restarts",
    1013: "the server is too busy",
}


class _Socket(ClientConnection):
    """Hands frames over in the piece in which they arrived."""

    receiver: "WebSocketTransport"

    def process_event(self, event: Event) -> None:
        if self.response is not None and isinstance(event, SocketFrame) and event.opcode in _DATA:
            self.receiver.frame_received(event)
        else:
            super().process_event(event)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.receiver = WebSocketTransport(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.receiver.deliver()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.receiver.socket_lost()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.receiver.flush()


_DATA: Final = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class _Connect(connect):
    """A redirect is refused: it would take the token to an address that the user did not name."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class WebSocketTransport(Transport):
    """The client end of a WebSocket. Made by `open_websocket`."""

    def __init__(self, socket: _Socket) -> None:
        super().__init__()
        self._socket = socket
        self._fragments: list[bytes] = []
        self._is_text = False
        self._arrived = bytearray()
        self._paused = True  # until something reads

    # What arrives.

    def frame_received(self, frame: SocketFrame) -> None:
        """Take a frame of the socket. Binary messages are ignored, as the transport proposal says."""
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
            if frame.fin:
                if self._is_text:
                    self._message(bytes(frame.data))
                return
        self._fragments.append(bytes(frame.data))
        if frame.fin:
            whole, self._fragments = b"".join(self._fragments), []
            if self._is_text:
                self._message(whole)

    def _message(self, text: bytes) -> None:
        self._arrived += on_lines(text)
        self._arrived += b"\n"

    def deliver(self) -> None:
        """Hand over what has arrived, in one piece."""
        if self._arrived and not self._paused and self.sink is not None:
            block, self._arrived = bytes(self._arrived), bytearray()
            self.sink.block_received(block)

    def socket_lost(self) -> None:
        """The connection has ended: say why, after all that arrived before."""
        self._paused = False
        self.deliver()
        self._lose(ConnectionClosed(*_reason(self._socket)))

    def pause(self) -> None:
        self._paused = True
        with suppress(RuntimeError):  # uvloop: it is closing
            self._socket.transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self._arrived:
            self.loop.call_soon(self.deliver)
        with suppress(RuntimeError):
            self._socket.transport.resume_reading()

    def _start_reading(self) -> None:
        self._paused = False
        self.loop.call_soon(self.deliver)

    # What leaves.

    @property
    def unsent(self) -> int:
        return len(self.out) + self._socket.transport.get_write_buffer_size()

    @property
    def deaf(self) -> bool:
        return self._socket.protocol.state is not State.OPEN

    def flush(self) -> None:
        if not self.out or self._socket.paused or self.deaf:
            return
        lines, self.out = bytes(self.out), bytearray()
        protocol = self._socket.protocol
        for line in lines[:-1].split(b"\n"):
            protocol.send_text(line)
        self._socket.transport.write(b"".join(protocol.data_to_send()))

    async def drain(self) -> None:
        self.flush()
        await asyncio.sleep(0)
        while self.unsent >= OUTPUT_HIGH and not self.deaf:
            await self._socket.drain()
            self.flush()
            await asyncio.sleep(0)
        if self.deaf:
            raise ConnectionClosed(*_reason(self._socket))

    async def close(self) -> None:
        self._socket.close_timeout = CLOSE_TIMEOUT
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self.out and not self.deaf:
                    await self.drain()
        self.resume()  # the answer to our close has to be read
        await self._socket.close()
        self._lose(ConnectionClosed("the connection is closed"))


def _reason(socket: _Socket) -> tuple[str]:
    close = socket.protocol.close_rcvd or socket.protocol.close_sent
    if close is None:
        return (_CLOSES[1006],)
    sentence = _CLOSES.get(close.code, f"the server closed the connection with code {close.code}")
    return (f"{sentence}: {close.reason}" if close.reason and close.reason not in sentence else sentence,)


async def open_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    cookies: CookieJar | None = None,
    tls: ssl.SSLContext | None = None,
    limit: int = MAX_FRAME,
    timeout: float | None = OPEN_TIMEOUT,
    path: str | None = None,
) -> WebSocketTransport:
    """Open a WebSocket at a `ws://` or `wss://` address. Proxies are those of the environment.

    `path`: the Unix socket to use instead of the host of the address.

    Raises:
        ConnectionRefused: it was not reached, or refused.
    """
    jar = cookies or CookieJar()
    sent = dict(headers or {})
    if jar.header:
        sent["Cookie"] = jar.header
    options: dict[str, Any] = {"ssl": tls} if tls is not None else {}
    if without_proxy(url):
        options["proxy"] = None
    if path is not None:
        options |= {"unix": True, "path": path}
    try:
        opening = _Connect(
            url, additional_headers=sent, create_connection=_Socket, compression=None, max_size=limit, open_timeout=timeout,
            ping_interval=PING_INTERVAL, ping_timeout=PING_INTERVAL, write_limit=OUTPUT_HIGH, **options,
        )  # fmt: skip
        socket = await opening
    except (OSError, WebSocketException, ssl.SSLError, ValueError) as error:
        raise _refused(url if path is None else f"unix://{path}", error, timeout) from error
    if socket.response is not None:
        jar.store(socket.response.headers.get_all("Set-Cookie"))
    return cast("_Socket", socket).receiver


def _refused(url: str, error: Exception, timeout: float | None) -> ConnectionRefused:
    """Return the error for a connection that was not opened."""
    shown = shown_address(url)
    match error:
        case InvalidStatus():
            headers = error.response.headers
            return refused_by_status(
                url, error.response.status_code, headers.get("Location"), headers.get("Retry-After")
            )
        case OSError():  # before ValueError: an error about a certificate is both
            return not_reached(url, error, timeout)
        case InvalidURI() | ValueError():
            return ConnectionRefused(
                f"`{shown}` is not the address of a WebSocket", hint="write it like `wss://host/acp`"
            )
        case InvalidProxyStatus() | ProxyError():
            return ConnectionRefused(
                f"the proxy did not open the way to `{shown}`: {error}", hint="check HTTPS_PROXY and NO_PROXY"
            )
        case InvalidMessage() if isinstance(error.__cause__, EOFError):
            hint = "check that the server runs: a tunnel to one that does not ends so"
            return ConnectionRefused(f"`{shown}` closed the connection before it answered", hint=hint)
        case InvalidHandshake():
            return ConnectionRefused(f"`{shown}` does not speak WebSocket: {error}", hint="check the address")
        case _:
            return not_reached(url, error, timeout)
