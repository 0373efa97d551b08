"""The official Python SDK between stdio and an agent that it starts: each message is decoded, handled and encoded again."""

import asyncio
import os
import sys
from typing import Any

import acp
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.interfaces import Client

from benchmarks.commands import neutral_command
from benchmarks.contestants.probe import REPORT, Probe


class Front(acp.Agent):
    """What the client sees: hands requests to the agent behind."""

    behind: Any
    client: Client

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> Any:
        return await self.behind.initialize(protocol_version=protocol_version, **kwargs)

    async def new_session(self, cwd: str, **kwargs: Any) -> Any:
        return await self.behind.new_session(cwd=cwd, **kwargs)

    async def prompt(self, session_id: str, prompt: Any, **kwargs: Any) -> Any:
        return await self.behind.prompt(session_id=session_id, prompt=prompt)


class Back(acp.Client):
    """What the agent sees: hands updates and requests to the client in front."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        await self._front.client.session_update(session_id, update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        return await self._front.client.request_permission(session_id=session_id, tool_call=tool_call, options=options)


async def main() -> None:
    probe, front = Probe(), Front()
    env = {**os.environ, REPORT: os.environ[REPORT] + ".behind"}
    command, *arguments = neutral_command("agent", *sys.argv[1:5])
    limit = DEFAULT_STDIO_BUFFER_LIMIT_BYTES
    async with acp.spawn_agent_process(
        Back(front), command, *arguments, env=env, transport_kwargs={"limit": limit}
    ) as (behind, _):
        front.behind = behind
        probe.start()
        await acp.run_agent(front)
        probe.finish()


if __name__ == "__main__":
    asyncio.run(main())
