"""A client that shows what the agent does: its state, its background work, and a tool call that is cancelled alone.

python examples/watch_client.py DIRECTORY
"""

import asyncio
import sys
from pathlib import Path

from antiphon import ClientSession, connect, v1

AGENT = [sys.executable, str(Path(__file__).with_name("watch_agent.py"))]


async def main(directory: Path, *versions: int) -> None:
    """Cancel one tool call, then change a file that the agent watches, and wait until it has spoken."""
    spoken = asyncio.Event()

    def show_later(update: v1.Update) -> None:  # what comes outside of turns
        show(update)
        if isinstance(update, v1.AgentMessageChunk):
            spoken.set()

    async with connect(AGENT, versions=versions) as agent:
        session = await agent.new_session(directory, on_update=show_later)
        states = asyncio.create_task(show_states(session))
        turn = session.prompt("/wait 1")
        async for update in turn:
            show(update)
            if isinstance(update, v1.ToolCallUpdate) and session.cancellable:  # never, in version 1
                await session.cancel_tool_call(update.tool_call_id)
        print(await session.prompt("/watch notes.txt").text())
        (directory / "notes.txt").write_text("new", encoding="utf-8")
        await spoken.wait()
        await session.wait_idle()
        await session.close()
        await states


async def show_states(session: ClientSession) -> None:
    """Print the state whenever it, or the background work, has changed."""
    async for state in session.states():
        print(f"[{state}]", *(f"{work.kind} {work.id} in the background" for work in session.background or ()))


def show(update: v1.Update) -> None:
    """Print the text of the agent, and how its tool calls end."""
    if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock):
        print(update.content.text)
    elif isinstance(update, v1.ToolCallUpdate) and isinstance(update.status, v1.ToolStatus):
        print(f"{update.tool_call_id}: {update.status}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if sys.argv[1:] else ".").absolute(), 2, 1))
