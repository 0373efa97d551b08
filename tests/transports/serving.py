"""A server of our own on the loopback interface, with an ASGI application in it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.transports.base import Transport
from antiphon.transports.framing import MAX_FRAME
from tests.limits import limit

__all__ = ["serve_demo", "served"]


async def serve_demo(transport: Transport) -> None:
    """Be the demo agent over a transport."""
    await Host(Demo()).serve(transport)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Run an application in a server of its own and give its host and port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level="warning", ws="websockets-sansio", ws_max_size=MAX_FRAME, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve([listening]))
    try:
        async with asyncio.timeout(limit(60)):
            while not server.started:
                await asyncio.wait([task], timeout=0.01)
            yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()
