"""The official Python SDK as a client, over its own stdio."""

import asyncio
from typing import Any

import acp
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
)

from benchmarks.contestants.probe import Probe, Task, big_text, task_from_argv


class BenchClient(acp.Client):
    """Counts updates, allows everything, serves one big file."""

    def __init__(self, task: Task, probe: Probe) -> None:
        self._task = task
        self._probe = probe

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self._probe.handled += 1

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> RequestPermissionResponse:
        self._probe.handled += 1
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> ReadTextFileResponse:
        self._probe.handled += 1
        return ReadTextFileResponse(content=big_text(self._task.kind, self._task.size))


async def main() -> None:
    task, probe = task_from_argv(), Probe()
    reader, writer = await acp.stdio_streams(limit=DEFAULT_STDIO_BUFFER_LIMIT_BYTES)
    conn = acp.connect_to_agent(BenchClient(task, probe), writer, reader)
    await conn.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_capabilities=ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True)),
    )
    sessions = [(await conn.new_session(cwd="/", mcp_servers=[])).session_id for _ in range(task.sessions)]
    probe.start()
    await asyncio.gather(*(conn.prompt(session_id=s, prompt=[acp.text_block("go")]) for s in sessions))
    probe.finish()
    await conn.close()


if __name__ == "__main__":
    asyncio.run(main())
