"""An ASGI application on a socket with HTTP/2: hypercorn with TLS. Slower than `server.listen`, and what the transport proposal asks for."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from hypercorn.asyncio import serve
from hypercorn.config import Config, Sockets
from hypercorn.protocol import ws_stream

from antiphon.transports.asgi.connections import send_at_once
from antiphon.transports.asgi.server import (
    HANDSHAKE_TIMEOUT,
    HEAD_TIMEOUT,
    HEADER_LIMIT,
    SHUTDOWN_TIMEOUT,
)
from antiphon.transports.asgi.sockets import OpenSockets
from antiphon.transports.framing import MAX_FRAME

__all__ = ["listen_http2"]

BACKLOG: Final = 100
"""Connections that may wait to be accepted."""

CONCURRENT: Final = 100
"""Requests that a client has open on one connection of HTTP/2."""


def _no_extensions(*_: object) -> None:
    """Agree to no extension of WebSockets: a few bytes that are compressed become any number before their size is checked."""


ws_stream.server_extensions_handshake = _no_extensions  # type: ignore[attr-defined,assignment] # there is no option


class _Config(Config):
    """A configuration whose socket is there."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__()
        self._listening = listening

    def create_sockets(self) -> Sockets:
        return Sockets([self._listening], [], [])


@asynccontextmanager
async def listen_http2(
    app: Any,
    listening: socket.socket,
    *,
    certificate: str,
    key: str,
    limit: int = MAX_FRAME,
    sockets: OpenSockets | None = None,
) -> AsyncIterator[None]:
    """Serve an application on a socket that is bound, until the block is left: then all connections are closed.

    Raises:
        OSError: the certificate or its key cannot be used.
    """
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
        certificate, key
    )  # the server would say so much later
    sockets = sockets or OpenSockets()
    app = sockets.watched(app)
    config = _Config(sockets.listener(listening))
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["h2", "http/1.1"]
    config.include_server_header = False
    config.accesslog = config.errorlog = None
    config.websocket_max_message_size = limit
    config.h11_max_incomplete_size = config.h2_max_header_list_size = HEADER_LIMIT
    config.h2_max_concurrent_streams = CONCURRENT
    config.keep_alive_timeout = HEAD_TIMEOUT  # of a head, too: a connection is idle until one is whole
    config.ssl_handshake_timeout = HANDSHAKE_TIMEOUT
    config.graceful_timeout = SHUTDOWN_TIMEOUT
    over, started = asyncio.Event(), asyncio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                started.set()

        await app(scope, receive, sent if scope["type"] == "lifespan" else send)

    send_at_once(listening)
    listening.listen(BACKLOG)  # what connects before the server accepts has to wait, and is not refused
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(partial(_report, before))
    task = asyncio.ensure_future(serve(watched, config, shutdown_trigger=over.wait))
    starting = asyncio.ensure_future(started.wait())
    try:
        await asyncio.wait([task, starting], return_when=asyncio.FIRST_COMPLETED)
        starting.cancel()
        if task.done():
            task.result()
        yield
    finally:
        over.set()
        await asyncio.wait([task])
        loop.set_exception_handler(before)
        task.result()


def _report(before: Any, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error of a callback, but not that a connection ended: hypercorn leaves that to us when it closes one over TLS."""
    if not is_end(context.get("exception")):
        (before or type(loop).default_exception_handler)(loop, context)


def is_end(error: object) -> bool:
    """Whether an error is the end of a connection: the peer cut it, or it was cancelled."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_end, error.exceptions))
    return isinstance(error, OSError | asyncio.CancelledError)
