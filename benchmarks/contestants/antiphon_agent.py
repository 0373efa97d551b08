"""Antiphon as an agent, over its own stdio."""

import asyncio
import time
from uuid import uuid4

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.client_services import ReadTextFile
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Initialize, InitializeResult
from antiphon.protocol.v1.permission import PermissionOption, PermissionOptionKind, RequestPermission, Selected
from antiphon.protocol.v1.session import NewSession, NewSessionResult, Prompt, PromptResult, SessionUpdate, StopReason
from antiphon.protocol.v1.tools import ContentItem, ToolCallPatch, ToolContent, ToolKind, ToolStatus
from antiphon.protocol.v1.updates import AgentMessageChunk, ToolCall, ToolCallUpdate
from antiphon.protocol.v1.version import V1
from antiphon.transports.stdio import open_stdio
from benchmarks.contestants.probe import Probe, Task, big_text, task_from_argv
from benchmarks.updates import TOOL_KIND, TOOL_TITLE, Text, ToolEnd, ToolStart, steps

KIND = ToolKind(TOOL_KIND)


def built(what: ToolStart | ToolEnd) -> ToolCall | ToolCallUpdate:
    """Build our object for one update of a tool call."""
    if isinstance(what, ToolStart):
        return ToolCall(what.call, TOOL_TITLE, kind=KIND, status=ToolStatus.PENDING)
    content: list[ToolContent] = [ContentItem(TextBlock(what.text))]
    return ToolCallUpdate(what.call, status=ToolStatus.COMPLETED, content=content)


class BenchAgent:
    """Does what the task says when it is prompted."""

    def __init__(self, task: Task, probe: Probe) -> None:
        self._task = task
        self._probe = probe
        router = Router()
        router.on_request(m.INITIALIZE, self._initialize)
        router.on_request(m.NEW_SESSION, self._new_session)
        router.on_request(m.PROMPT, self._prompt)
        self.connection = Connection(open_stdio(), router, version=V1)

    def _initialize(self, asked: Initialize) -> InitializeResult:
        return InitializeResult(asked.protocol_version)

    def _new_session(self, _: NewSession) -> NewSessionResult:
        return NewSessionResult(f"sess_{uuid4().hex}")

    async def _prompt(self, asked: Prompt) -> PromptResult:
        session, client = asked.session_id, self.connection
        updates = steps(self._task.count // self._task.sessions)
        self._probe.start()
        match self._task.kind:
            case "permission":
                await self._ask(session)
            case "big_update":
                await client.sender(session).say(big_text(self._task.kind, self._task.size))
            case "big_read" | "big_read_lines":
                answer = await client.request(m.READ_TEXT_FILE, ReadTextFile(session, "/big.txt"))
                if len(answer.content) != self._task.size:
                    raise ValueError(len(answer.content))
            case "objects":
                for what in updates:
                    update = AgentMessageChunk(TextBlock(what.text)) if isinstance(what, Text) else built(what)
                    await client.notify(m.SESSION_UPDATE, SessionUpdate(session, update))
            case _:
                sender = client.sender(session)
                for what in updates:
                    if isinstance(what, Text):
                        await sender.say(what.text)
                    else:
                        await sender.update(built(what))
        self._probe.lap()
        return PromptResult(StopReason.END_TURN)

    async def _ask(self, session: str) -> None:
        options = [PermissionOption("allow", "Allow", PermissionOptionKind.ALLOW_ONCE)]
        for index in range(self._task.count):
            began = time.perf_counter()
            question = RequestPermission(session, ToolCallPatch(f"call_{index}", title=TOOL_TITLE), options)
            answer = await self.connection.request(m.REQUEST_PERMISSION, question)
            self._probe.samples.append(time.perf_counter() - began)
            if not isinstance(answer.outcome, Selected):
                raise TypeError(answer)


async def main() -> None:
    probe = Probe()
    agent = BenchAgent(task_from_argv(), probe)
    async with agent.connection as connection:
        await connection.wait_closed()
    probe.finish()


if __name__ == "__main__":
    asyncio.run(main())
