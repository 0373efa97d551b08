"""An agent that goes on after its answer: it watches a file in the background, and speaks by itself when the file changes.

`/watch FILE` watches; `/wait SECONDS` waits in a tool call that can be cancelled alone.
"""

import asyncio
import os

from antiphon import Agent, AgentSession, AgentTurn, v1

agent = Agent("watcher", version="1.0")


@agent.on
async def prompt(turn: AgentTurn) -> None:
    """Start what the user asks for."""
    match turn.command:
        case ("watch", file) if file:
            path = turn.path(file)
            turn.session.start_task(watch(turn.session, path, modified(path)))
            await turn.say("I watch it.")
        case ("wait", seconds) if seconds.isdecimal():
            async with turn.tool(f"Wait {seconds} seconds") as call, call.cancellable():
                await asyncio.sleep(int(seconds))  # if the client cancels the call, the block is left
            await turn.say("You cancelled it." if call.cancelled else "Time is up.")
        case _:
            await turn.say("Type `/watch FILE` or `/wait SECONDS`.")


async def watch(session: AgentSession, path: str, before: int | None) -> None:
    """Wait for a change in the background, then work without a prompt."""
    async with session.background(f"Watch {path}", v1.ToolKind.READ, at=[path]) as call:
        while True:
            await asyncio.sleep(0.05)
            if modified(path) != before:
                break
    if not call.cancelled:
        await session.wait_idle()  # a prompt may run
        async with session.work() as turn:
            await turn.say(f"{os.path.basename(path)} has changed.")


def modified(path: str) -> int | None:
    """Return when a file was changed last; None for a file that does not exist."""
    return os.stat(path).st_mtime_ns if os.path.exists(path) else None


if __name__ == "__main__":
    agent.run()
