"""What a user of the client SDK writes: `connect`, sessions, and `async for` over the updates of a prompt."""

import asyncio

from antiphon import connect
from antiphon.transports.stdio import open_stdio
from benchmarks.contestants.probe import Probe, Task


async def play(task: Task, probe: Probe) -> None:
    """Prompt every session of the task at once and iterate over all updates."""
    async with connect(open_stdio()) as agent:
        sessions = [await agent.new_session("/") for _ in range(task.sessions)]

        async def prompt(place: int) -> None:
            async for _ in sessions[place].prompt("go"):
                probe.handled += 1

        probe.start()
        await asyncio.gather(*(prompt(place) for place in range(task.sessions)))
        probe.finish()
