"""A client for the demo agent that can do everything, and keeps every frame it saw."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from antiphon.client.files import Files
from antiphon.client.terminals import Terminals
from antiphon.connection.connection import Connection, Direction
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.process import spawn

EVERYTHING = v1.ClientCapabilities(
    fs=v1.FileCapabilities(True, True),
    terminal=True,
    auth=v1.AuthCapabilities(True),
    session=v1.ClientSessionCapabilities(
        v1.CompactionSupport(), v1.ConfigCapabilities(v1.BooleanConfigSupport()), v1.NoticeSupport()
    ),
    elicitation=v1.ElicitationCapabilities(v1.FormSupport(), v1.UrlSupport()),
    subagents=v1.SubagentSupport(),
    plan=v1.PlanSupport(),
)
NOTHING = v1.ClientCapabilities()
DEMO = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo"]


class DemoClient:
    """One running demo agent, its sessions, and what was sent."""

    def __init__(self, connection: Connection, workspace: Path) -> None:
        self.connection = connection
        self.workspace = workspace
        self.frames: list[dict[str, Any]] = []
        """What the agent sent."""
        self.answer_permission = "allow"
        self.exit: v1.WaitForExitResult | None = None
        """What it says of a command that ended, instead of what is true."""
        self.asked: list[v1.RequestPermission] = []
        connection.tap(self._see)

    def _see(self, direction: Direction, _: float, frame: bytes) -> None:
        if direction == "in":
            self.frames.append(msgspec.json.decode(frame))

    async def new(self) -> str:
        asked = v1.NewSession(str(self.workspace), [])
        return (await self.connection.request(m.NEW_SESSION, asked)).session_id

    async def prompt(self, session_id: str, text: str) -> tuple[list[v1.Update], v1.PromptResult]:
        """The updates of a turn and how it ended."""
        async with self.connection.stream(m.PROMPT, v1.Prompt(session_id, [v1.TextBlock(text)])) as turn:
            updates = [message.update async for message in turn]
        return updates, turn.result

    async def say(self, session_id: str, text: str) -> str:
        """The text of the answer."""
        return text_of((await self.prompt(session_id, text))[0])


def text_of(updates: list[v1.Update]) -> str:
    """What the agent sent."""
    chunks = [each.content for each in updates if isinstance(each, v1.AgentMessageChunk)]
    return "".join(block.text for block in chunks if isinstance(block, v1.TextBlock))


@asynccontextmanager
async def demo(
    workspace: Path, can: v1.ClientCapabilities = EVERYTHING, command: Sequence[str] = DEMO
) -> AsyncIterator[DemoClient]:
    """The demo agent as a child process, initialized."""
    router = Router()
    connection = Connection(await spawn(command), router, version=V1)
    client = DemoClient(connection, workspace)
    files, terminals, roots = Files(write=True), Terminals(), [str(workspace)]

    def permission(asked: v1.RequestPermission) -> v1.PermissionResult:
        client.asked.append(asked)
        return v1.PermissionResult(v1.Selected(client.answer_permission))

    async def exited(asked: v1.WaitForExit) -> v1.WaitForExitResult:
        result = await terminals.wait_for_exit(asked)
        return result if client.exit is None else client.exit

    def elicitation(asked: v1.CreateElicitation) -> v1.CreateElicitationResult:
        return v1.Accepted({"name": "Ada"} if isinstance(asked, v1.FormElicitation) else None)

    router.on_request(m.REQUEST_PERMISSION, permission)
    router.on_request(m.CREATE_ELICITATION, elicitation)
    router.on_notice(m.COMPLETE_ELICITATION, lambda _: None)
    router.on_notice(m.SESSION_UPDATE, lambda _: None)
    router.on_request(m.READ_TEXT_FILE, lambda asked: files.read(roots, asked))
    router.on_request(m.WRITE_TEXT_FILE, lambda asked: files.write(roots, asked))
    router.on_request(m.CREATE_TERMINAL, lambda asked: terminals.create(roots, asked))
    router.on_request(m.TERMINAL_OUTPUT, terminals.output)
    router.on_request(m.WAIT_FOR_EXIT, exited)
    router.on_request(m.KILL_TERMINAL, terminals.kill)
    router.on_request(m.RELEASE_TERMINAL, terminals.release)
    async with asyncio.timeout(30), connection:
        await connection.request(m.INITIALIZE, v1.Initialize(1, can))
        yield client
    await terminals.close()
