"""The smallest correct agent on the core: it repeats each prompt, word by word."""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import suppress

from antiphon import Code, Connection, RequestError, Router, open_stdio, v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1


async def main() -> None:
    """Serve the client that started this program until it closes our stdin."""
    router = Router()
    connection = Connection(open_stdio(), router, version=V1)
    sessions: set[str] = set()

    def initialize(_: v1.Initialize) -> v1.InitializeResult:
        router.on_request(m.NEW_SESSION, new_session)  # not before: `initialize` comes first
        info = v1.Implementation("minimal", "1.0")
        return v1.InitializeResult(1, agent_capabilities=v1.AgentCapabilities(), agent_info=info)

    def new_session(request: v1.NewSession) -> v1.NewSessionResult:
        if not os.path.isabs(request.cwd):
            raise RequestError(Code.INVALID_PARAMS, "the directory has to be absolute")
        sessions.add(id := uuid.uuid4().hex)
        return v1.NewSessionResult(id)

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        if request.session_id not in sessions:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "there is no such session")
        sender = connection.sender(request.session_id)
        for block in request.prompt:
            if isinstance(block, v1.TextBlock):
                for word in block.text.split():
                    await sender.say(word + " ")
        return v1.PromptResult(v1.StopReason.END_TURN)

    router.on_request(m.INITIALIZE, initialize)
    router.on_request(m.PROMPT, prompt)
    async with connection:
        await connection.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
