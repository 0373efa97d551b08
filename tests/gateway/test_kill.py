"""A gateway process that is killed with SIGKILL in the middle of a turn, and started again on the same data."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from antiphon.transports.websocket import open_websocket
from tests.gateway.peers import RawClient
from tests.gateway.test_attachments import numbers
from tests.gateway.test_turns import attach
from tests.limits import limit
from tests.waits import until

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def gateway(directory: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Start a gateway, and give its process and address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.gateway.gateway_process", str(directory), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(limit()):
            port = int(await process.stdout.readline())
        yield process, f"ws://127.0.0.1:{port}/acp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["/slow 1000", "/permission"])
async def test_a_gateway_that_is_killed_in_a_turn_loses_and_doubles_nothing(tmp_path: Path, prompt: str) -> None:
    async with asyncio.timeout(limit()):
        async with gateway(tmp_path) as (process, address):
            client = RawClient(None, transport=await open_websocket(address))
            await client.initialize(numbers=True)
            session = await client.new(tmp_path)
            await client.response(client.prompt(session, "/many 20"))
            client.prompt(session, prompt)
            await until(lambda: client.requests() or client.texts[-1].strip() == "3")
            process.kill()
            await until(lambda: client.is_lost)
            await client.leave()
        seen = numbers(client)
        async with gateway(tmp_path) as (_, address):
            again = RawClient(None, transport=await open_websocket(address))
            await again.initialize(numbers=True)
            await attach(again, session, seen[-1])
            await until(lambda: any(m.get("method") == "_antiphon/session/turn_ended" for m in again.messages))
            ended = next(m for m in again.messages if m.get("method") == "_antiphon/session/turn_ended")["params"]
            assert ended["interrupted"] is True
            done = await again.response(again.prompt(session, "/many 5"))
            assert done["result"]["stopReason"] == "end_turn"
            found = seen + numbers(again)
            assert found == list(range(1, len(found) + 1))
            assert not again.requests()
            whole = RawClient(None, transport=await open_websocket(address))
            await whole.initialize()
            await whole.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
            assert whole.texts == client.texts + again.texts, "the content is the same too"
            assert whole.texts.count(prompt) == 1
            await again.leave()
            await whole.leave()
