"""A server of our own on the loopback interface, with an ASGI application in it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from antiphon.engines.base import Host
from antiphon.engines.demo.engine import Demo
from antiphon.transports.asgi.connections import cut_socket
from antiphon.transports.asgi.heads import header_of
from antiphon.transports.asgi.server import listen
from antiphon.transports.base import Transport
from tests.limits import limit
from tests.waits import until

__all__ = ["cut_before_an_event", "serve_demo", "served", "served_by_uvicorn"]


async def serve_demo(transport: Transport) -> None:
    """Be the demo agent over a transport."""
    await Host(Demo()).serve(transport)


@asynccontextmanager
async def served(app: Any, **options: Any) -> AsyncIterator[str]:
    """Run an application in a server of its own and give its host and port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        async with asyncio.timeout(limit(60)), listen(app, listening, **options):
            yield f"127.0.0.1:{listening.getsockname()[1]}"


def cut_before_an_event(app: Any, *, delivered: str) -> Any:
    """Cut the first stream of a session when its first event is on the way, which is lost; `delivered`: "nothing", or "the opening"."""
    is_cut = False

    async def cutting(scope: Any, receive: Any, send: Any) -> None:
        if is_cut or scope["type"] != "http" or scope["method"] != "GET" or not header_of(scope, b"acp-session-id"):
            await app(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            nonlocal is_cut
            if b"data:" in message.get("body", b""):
                is_cut = True
                cut_socket(scope)
                raise OSError("it was cut")
            if delivered == "the opening":
                await send(message)

        await app(scope, receive, sent)

    return cutting


@asynccontextmanager
async def served_by_uvicorn(app: Any) -> AsyncIterator[str]:
    """The same on uvicorn as others run it, which takes one message of a WebSocket at a time."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(app, ws="websockets-sansio", log_config=None, timeout_graceful_shutdown=5)
        )
        serving = asyncio.create_task(server.serve([listening]))
        try:
            await until(lambda: server.started)
            async with asyncio.timeout(limit(60)):
                yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
