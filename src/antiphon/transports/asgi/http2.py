"""An ASGI application on a socket with HTTP/2: hypercorn with TLS. Slower than `server.listen`, and what the transport proposal asks for."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from hypercorn.asyncio import serve
from hypercorn.config import Config

from antiphon.transports.framing import MAX_FRAME

__all__ = ["listen_http2"]

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of the head of a request."""

HEADER_TIMEOUT: Final = 10.0
"""Seconds in which the next piece of a request has to arrive before it is whole."""

BACKLOG: Final = 100
"""Connections that may wait to be accepted."""

SHUTDOWN_TIMEOUT: Final = 10.0
"""Seconds that requests have to end when the server does."""


@asynccontextmanager
async def listen_http2(
    app: Any, listening: socket.socket, *, certificate: str, key: str, limit: int = MAX_FRAME
) -> AsyncIterator[None]:
    """Serve an application on a socket that is bound, until the block is left: then all connections are closed.

    Raises:
        OSError: the certificate or its key cannot be used.
    """
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
        certificate, key
    )  # the server would say so much later
    config = Config()
    config.bind = [f"fd://{os.dup(listening.fileno())}"]
    config.certfile, config.keyfile = certificate, key
    config.alpn_protocols = ["h2", "http/1.1"]
    config.include_server_header = False
    config.accesslog = config.errorlog = None
    config.websocket_max_message_size = limit
    config.h11_max_incomplete_size = config.h2_max_header_list_size = HEADER_LIMIT
    config.keep_alive_timeout = HEADER_TIMEOUT
    config.graceful_timeout = SHUTDOWN_TIMEOUT
    over, started = asyncio.Event(), asyncio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                started.set()

        await app(scope, receive, sent if scope["type"] == "lifespan" else send)

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
