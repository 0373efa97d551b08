"""Two real processes in conversation, every frame shown: `python examples/conversation.py [words …]`."""

import asyncio
import sys
from pathlib import Path

from antiphon.connection.connection import Connection, Direction
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Initialize
from antiphon.protocol.v1.session import NewSession, Prompt
from antiphon.protocol.v1.updates import AgentMessageChunk
from antiphon.transports.process import spawn

AGENT = Path(__file__).with_name("minimal_agent.py")


def show(direction: Direction, _: float, frame: bytes) -> None:
    """Print a frame as it passes: what is said to the agent, and what it says."""
    arrow = "client → agent" if direction == "out" else "client ← agent"
    print(f"{arrow}  {frame.decode()}")


async def main(words: str) -> None:
    """Start the agent, talk to it once, end it."""
    async with Connection(await spawn([sys.executable, str(AGENT)]), tolerant=True) as agent:
        agent.tap(show)
        await agent.request(m.INITIALIZE, Initialize(1))
        session = await agent.request(m.NEW_SESSION, NewSession(str(Path.cwd()), []))
        turn = agent.stream(m.PROMPT, Prompt(session.session_id, [TextBlock(words)]), session.session_id)
        said = ""
        async for news in turn:
            if isinstance(news.update, AgentMessageChunk) and isinstance(news.update.content, TextBlock):
                said += news.update.content.text
        print(f"\nthe agent said: {said.strip()}\nand stopped because: {turn.result.stop_reason}")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "call and response"))
