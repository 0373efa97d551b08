"""An agent process with nothing between it and the test, so that it can be killed between two lines and nothing that it wrote is lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from antiphon.protocol.base import decoder
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import SessionUpdate
from antiphon.transcript.transcript import Transcript
from tests.duet.e2e.editors import Place
from tests.engines.model.steps import wait_limit

__all__ = ["Bare", "bare"]

Json = dict[str, Any]

PASSING: Final = {
    "available_commands_update", "config_option_update", "current_mode_update", "current_model_update", "session_info_update",
}  # fmt: skip
"""How things stand: no part of what was sent, and sent whenever a session is opened."""


class Bare:
    """Lines in, lines out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.transcript = Transcript()
        """What the client was shown."""
        self.shown = 0
        """Updates since the prompt that was sent last, without those that only say how things stand."""
        self._number = 0

    def send(self, method: str, **params: Any) -> int:
        """A request: its number."""
        assert self.process.stdin is not None
        self._number += 1
        line = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        return self._number

    def prompt(self, session: str, text: str) -> int:
        """Say something, as the user sees it."""
        self.shown = 0
        block = {"type": "text", "text": text}
        self.transcript.add_prompt([TextBlock(text)])
        return self.send("session/prompt", sessionId=session, prompt=[block])

    async def line(self) -> Json | None:
        """The next line; None at the end. An update is entered as what it shows, and what is asked for is allowed once."""
        assert self.process.stdout is not None
        async with asyncio.timeout(wait_limit()):
            read = await self.process.stdout.readline()
        if not read.endswith(b"\n"):  # half a line cannot be shown
            return None
        found: Json = json.loads(read)
        if found.get("method") == "session/update":
            self.shown += found["params"]["update"]["sessionUpdate"] not in PASSING
            self.transcript.apply(_UPDATES.decode(json.dumps(found["params"]).encode()).update)
        elif found.get("method") == "session/request_permission":
            [allow, *_] = [each["optionId"] for each in found["params"]["options"] if each["kind"] == "allow_once"]
            self._answer(found["id"], {"outcome": {"outcome": "selected", "optionId": allow}})
        return found

    def _answer(self, id: object, result: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")

    async def answered(self, number: int) -> Json:
        """Read up to the answer to a request: its result."""
        while (line := await self.line()) is not None:
            if line.get("id") == number and "method" not in line:
                assert "error" not in line, line
                result: Json = line["result"]
                return result
        raise AssertionError("the agent is gone")

    async def open(self, folder: str) -> str:
        """A new session: its id."""
        client: Json = {"session": {"notices": {}, "compaction": {}}}
        await self.answered(self.send("initialize", protocolVersion=1, clientCapabilities=client))
        made = await self.answered(self.send("session/new", cwd=folder, mcpServers=[]))
        return str(made["sessionId"])

    async def kill_after(self, updates: int, number: int) -> bool:
        """Kill it when it has shown so many updates of the turn, and take in what it wrote before. False: the turn was over before that."""
        while self.shown < updates:
            line = await self.line()
            assert line is not None, "it ended by itself"
            if line.get("id") == number and "method" not in line:
                return False
        await self.kill()
        return True

    async def kill(self) -> None:
        """Kill it, and take in what it wrote before."""
        self.process.kill()
        await self.listen()
        await self.process.wait()

    async def listen(self) -> None:
        """Take in whatever it writes, to its end."""
        while await self.line() is not None:
            pass


_UPDATES = decoder(SessionUpdate)


@asynccontextmanager
async def bare(at: Place) -> AsyncIterator[Bare]:
    """The agent, started."""
    process = await asyncio.create_subprocess_exec(
        *at.agent, cwd=at.folder, env=at.environment, limit=2**26,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Bare(process)
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
