"""Our own client in front of the Codex engine, and Codex without us in between."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.engines.client import Can, Client, Reply, connected
from tests.engines.codex.place import Place
from tests.engines.model.steps import Json, wait_limit

__all__ = ["BareServer", "Can", "Client", "Reply", "bare", "connected"]


class BareServer:
    """Codex's server without us: lines in, lines out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._number = 0
        self.received: list[Json] = []
        """All that it sent by itself."""

    def send(self, **line: Any) -> None:
        """One line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")

    async def line(self) -> Json:
        """The next line from it."""
        assert self._process.stdout is not None
        async with asyncio.timeout(wait_limit()):
            found: Json = json.loads(await self._process.stdout.readline())
            return found

    async def ask(self, method: str, **params: Any) -> Json:
        """A request and its result; what it says in between is kept."""
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        while True:
            line = await self.line()
            if line.get("id") == self._number and "method" not in line:
                assert "error" not in line, line
                result: Json = line["result"]
                return result
            self.received.append(line)

    async def until(self, method: str) -> Json:
        """All up to the next notification of this name. Whatever it asks for is accepted."""
        while True:
            line = await self.line()
            self.received.append(line)
            if "id" in line:
                self.send(id=line["id"], result={"decision": "accept"})
            if line.get("method") == method:
                return line

    async def turn(self, thread: str, text: str, **more: Any) -> list[Json]:
        """What it says to this, up to the end of the turn."""
        before = len(self.received)
        await self.ask(
            "turn/start", threadId=thread, input=[{"type": "text", "text": text, "text_elements": []}], **more
        )
        if not any(each.get("method") == "turn/completed" for each in self.received[before:]):
            await self.until("turn/completed")
        return self.received[before:]


@asynccontextmanager
async def bare(at: Place) -> AsyncIterator[BareServer]:
    """A server that was introduced to us."""
    process = await asyncio.create_subprocess_exec(
        at.program, "app-server", cwd=at.folder, env=at.environment, limit=2**26,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        codex = BareServer(process)
        who = {"name": "probe", "title": "Probe", "version": "1"}
        await codex.ask("initialize", clientInfo=who, capabilities={"experimentalApi": True})
        codex.send(method="initialized")
        yield codex
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
