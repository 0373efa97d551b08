"""The smallest agent on the core: it says back what it is told, in pieces, and asks before it does so loudly."""

import asyncio

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.initialize import Implementation, Initialize, InitializeResult
from antiphon.protocol.v1.session import NewSession, NewSessionResult, Prompt, PromptResult, SessionUpdate, StopReason
from antiphon.protocol.v1.updates import AgentMessageChunk
from antiphon.transports.stdio import open_stdio


async def main() -> None:
    """Serve whoever started this program until they close our stdin."""
    router = Router()
    connection = Connection(open_stdio(), router)

    def initialize(_: Initialize) -> InitializeResult:
        return InitializeResult(1, agent_info=Implementation("minimal", "1.0"))

    def new_session(_: NewSession) -> NewSessionResult:
        return NewSessionResult("session-1")

    async def prompt(asked: Prompt) -> PromptResult:
        for block in asked.prompt:
            if isinstance(block, TextBlock):
                for word in block.text.split():
                    said = AgentMessageChunk(content=TextBlock(word + " "))
                    await connection.notify(m.SESSION_UPDATE, SessionUpdate(asked.session_id, said))
        return PromptResult(StopReason.END_TURN)

    router.on_request(m.INITIALIZE, initialize)
    router.on_request(m.NEW_SESSION, new_session)
    router.on_request(m.PROMPT, prompt)
    async with connection:
        await connection.wait_closed()


if __name__ == "__main__":
    asyncio.run(main())
