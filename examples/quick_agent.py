"""An agent that answers `initialize` before it has imported the rest of itself: an editor waits for nothing else."""

from __future__ import annotations

from antiphon.connection.early import answer_initialize
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

initialized: list[v1.Initialize] = []


def initialize(request: v1.Initialize) -> v1.InitializeResult:
    """Answer `initialize`. Uses nothing that takes long to import."""
    initialized.append(request)
    info = v1.Implementation("quick", "1.0")
    return v1.InitializeResult(1, agent_capabilities=v1.AgentCapabilities(), agent_info=info)


def main() -> None:
    """Answer the handshake, then import the rest and serve."""
    already_read = answer_initialize(m.INITIALIZE, initialize)

    import asyncio

    asyncio.run(serve(already_read))


async def serve(already_read: bytes) -> None:
    """Serve the client that started this program until it closes our stdin."""
    import os
    import uuid

    from antiphon.connection.connection import Connection
    from antiphon.connection.router import Router
    from antiphon.errors import Code, RequestError
    from antiphon.protocol.v1.version import V1
    from antiphon.transports.stdio import open_stdio

    router = Router()
    connection = Connection(open_stdio(already_read=already_read), router, version=V1)
    sessions: set[str] = set()

    def new_session(request: v1.NewSession) -> v1.NewSessionResult:
        if not initialized:
            raise RequestError(Code.INVALID_REQUEST, "`initialize` has to come first")
        if not os.path.isabs(request.cwd):
            raise RequestError(Code.INVALID_PARAMS, "the directory has to be absolute")
        sessions.add(id := uuid.uuid4().hex)
        return v1.NewSessionResult(id)

    async def prompt(request: v1.Prompt) -> v1.PromptResult:
        if request.session_id not in sessions:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "there is no such session")
        await connection.sender(request.session_id).say("That was quick.")
        return v1.PromptResult(v1.StopReason.END_TURN)

    router.on_request(m.INITIALIZE, initialize)
    router.on_request(m.NEW_SESSION, new_session)
    router.on_request(m.PROMPT, prompt)
    async with connection:
        await connection.wait_closed()


if __name__ == "__main__":
    main()
