"""Both remote profiles over real sockets: our client transports and our server end, with the demo agent behind it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import uvicorn

import antiphon
from antiphon import v1
from antiphon.engines.demo.engine import Demo
from antiphon.engines.host import Host
from antiphon.transports.asgi import AcpEndpoint
from antiphon.transports.base import Transport
from antiphon.transports.http import open_http
from antiphon.transports.websocket import open_websocket
from tests.limits import limit

PROFILES = {"http": open_http, "ws": open_websocket}


async def serve_demo(transport: Transport) -> None:
    await Host(Demo()).serve(transport)


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Run an application in a server of its own and give its host and port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", ws="websockets-sansio", ws_max_size=64 * 1024 * 1024, timeout_graceful_shutdown=5)
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


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/state")


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_prompt_a_permission_a_cancel_and_a_load_go_over_the_network(profile: str, tmp_path: Any) -> None:
    asked: list[v1.RequestPermission] = []

    def permit(request: v1.RequestPermission) -> str:
        asked.append(request)
        return "allow_once"

    async with served(AcpEndpoint(serve_demo)) as host:
        transport = await PROFILES[profile](f"{profile}://{host}/acp")
        async with antiphon.connect(transport, permission=permit) as agent:
            session = await agent.new_session(tmp_path)
            other = await agent.new_session(tmp_path)
            result = await session.prompt("/run echo la")
            assert asked and result.stop_reason is v1.StopReason.END_TURN
            turn = other.prompt("/slow 1000")
            async for _ in turn:
                await other.cancel()
            assert (await turn).stop_reason is v1.StopReason.CANCELLED
            id, before = session.id, len(session.transcript.entries)
        transport = await PROFILES[profile](f"{profile}://{host}/acp")
        async with antiphon.connect(transport) as agent:
            loaded = await agent.load_session(id, tmp_path)
            assert len(loaded.transcript.entries) == before
