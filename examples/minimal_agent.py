"""The smallest agent on the core: it says back what it is told, word by word."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from antiphon import Connection, Router, open_stdio, v1
from antiphon.protocol.v1 import methods as m


async def main() -> None:
    """Serve whoever started this program until they close our stdin."""
    router = Router()
    connection = Connection(open_stdio(), router)

    def initialize(_: v1.Initialize) -> v1.InitializeResult:
        return v1.InitializeResult(1, agent_info=v1.Implementation("minimal", "1.0"))

    def new_session(_: v1.NewSession) -> v1.NewSessionResult:
        return v1.NewSessionResult("session-1")

    async def prompt(asked: v1.Prompt) -> v1.PromptResult:
        voice = connection.voice(asked.session_id)
        for block in asked.prompt:
            if isinstance(block, v1.TextBlock):
                for word in block.text.split():
                    await voice.say(word + " ")
        return v1.PromptResult(v1.StopReason.END_TURN)

    router.on_request(m.INITIALIZE, initialize)
    router.on_request(m.NEW_SESSION, new_session)
    router.on_request(m.PROMPT, prompt)
    async with connection:
        await connection.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
