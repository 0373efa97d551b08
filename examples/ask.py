"""Send a prompt to an agent and print its answer: `python examples/ask.py [words …]`."""

import asyncio
import sys

import antiphon
from antiphon import v1


async def main(words: str) -> None:
    """One session, one turn."""
    async with antiphon.connect("demo") as agent:
        session = await agent.new_session()
        async for update in session.prompt(words):
            if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock):
                print(update.content.text, end="", flush=True)


asyncio.run(main(" ".join(sys.argv[1:]) or "hello"))
