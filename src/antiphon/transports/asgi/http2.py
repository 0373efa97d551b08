"""An ASGI application on a socket with HTTP/2: hypercorn with TLS. Slower than `server.listen`, and what the transport proposal asks for."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from hypercorn.asyncio import serve
from hypercorn.config import Config

from antiphon.transports.framing import MAX_FRAME

__all__ = ["listen_http2"]

HEADER_LIMIT: Final = 64 * 1024
"""Bytes of the head of a request."""

HEADER_TIMEOUT: Final = 10.0
"""Seconds in which the next piece of a request has to arrive before it is whole."""

SHUTDOWN_TIMEOUT: Final = 10.0
"""Seconds that requests have to end when the server does."""


@asynccontextmanager
async def listen_http2(
    app: Any, listening: socket.socket, *, certificate: str, key: str, limit: int = MAX_FRAME
) -> AsyncIterator[None]:
    """Serve an application on a socket that is bound, until the block is left: then all connections are closed."""
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
    over = asyncio.Event()
    task = asyncio.ensure_future(serve(app, config, shutdown_trigger=over.wait))
    try:
        await asyncio.sleep(0)
        if task.done():
            task.result()
        yield
    finally:
        over.set()
        await asyncio.wait([task])
        task.result()
