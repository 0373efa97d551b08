"""A client and an agent as two processes, with every frame printed: `python examples/frames.py [words …]`."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from antiphon import Connection, spawn, v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1

AGENT = Path(__file__).with_name("minimal_agent.py")


def show(direction: str, _: float, frame: bytes) -> None:
    """Print a frame, with its direction."""
    arrow = "client → agent" if direction == "out" else "client ← agent"
    print(f"{arrow}  {frame.decode()}")


async def main(words: str) -> None:
    """Start the agent, send one prompt, end it."""
    async with Connection(await spawn([sys.executable, AGENT]), version=V1) as agent:
        agent.tap(show)
        await agent.request(m.INITIALIZE, v1.Initialize(1))
        session = await agent.request(m.NEW_SESSION, v1.NewSession(str(Path.cwd()), []))
        text = ""
        async with agent.stream(m.PROMPT, v1.Prompt(session.session_id, [v1.TextBlock(words)])) as turn:
            async for message in turn:
                if isinstance(message.update, v1.AgentMessageChunk) and isinstance(
                    message.update.content, v1.TextBlock
                ):
                    text += message.update.content.text
        print(f"\nthe agent answered: {text.strip()}\nand stopped because: {turn.result.stop_reason}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(" ".join(sys.argv[1:]) or "call and response"))
