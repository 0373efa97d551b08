"""The official Python SDK as an agent, over its own stdio."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import acp
from acp.interfaces import Client
from acp.schema import InitializeResponse, NewSessionResponse, PermissionOption, PromptResponse, ToolCallUpdate

from benchmarks.contestants.probe import Probe, Task, big_text, task_from_argv
from benchmarks.updates import TOOL_KIND, TOOL_TITLE, Step, Text, ToolStart, steps


def built(what: Step) -> Any:
    """Build the SDK's object for one update, with the SDK's helpers."""
    if isinstance(what, Text):
        return acp.update_agent_message_text(what.text)
    if isinstance(what, ToolStart):
        return acp.start_tool_call(what.call, TOOL_TITLE, kind=TOOL_KIND, status="pending")
    content = [acp.tool_content(acp.text_block(what.text))]
    return acp.update_tool_call(what.call, status="completed", content=content)


class BenchAgent(acp.Agent):
    """Does what the task says when it is prompted."""

    _conn: Client

    def __init__(self, task: Task, probe: Probe) -> None:
        self._task = task
        self._probe = probe

    def on_connect(self, conn: Client) -> None:
        self._conn = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=f"sess_{uuid4().hex}")

    async def prompt(self, session_id: str, prompt: Any, **kwargs: Any) -> PromptResponse:
        updates = steps(self._task.count // self._task.sessions)
        self._probe.start()
        match self._task.kind:
            case "permission":
                await self._ask(session_id)
            case "big_update":
                text = big_text(self._task.kind, self._task.size)
                await self._conn.session_update(session_id, acp.update_agent_message_text(text))
            case "big_read" | "big_read_lines":
                answer = await self._conn.read_text_file(session_id, "/big.txt")
                if len(answer.content) != self._task.size:
                    raise ValueError(len(answer.content))
            case _:
                for what in updates:
                    await self._conn.session_update(session_id, built(what))
        self._probe.lap()
        return PromptResponse(stop_reason="end_turn")

    async def _ask(self, session_id: str) -> None:
        options = [PermissionOption(option_id="allow", name="Allow", kind="allow_once")]
        for index in range(self._task.count):
            began = time.perf_counter()
            call = ToolCallUpdate(tool_call_id=f"call_{index}", title=TOOL_TITLE)
            answer = await self._conn.request_permission(session_id, call, options)
            self._probe.samples.append(time.perf_counter() - began)
            if answer.outcome.outcome != "selected":
                raise ValueError(answer)


async def main() -> None:
    probe = Probe()
    await acp.run_agent(BenchAgent(task_from_argv(), probe))
    probe.finish()


if __name__ == "__main__":
    asyncio.run(main())
