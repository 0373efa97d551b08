"""An agent that answers `initialize` before it has imported the rest of itself: an editor waits for nothing else."""

from __future__ import annotations

from antiphon.connection.early import answer_initialize
from antiphon.protocol import v1


def initialize(_: v1.Initialize) -> v1.InitializeResult:
    """Say who we are. Uses nothing that takes long to import."""
    return v1.InitializeResult(1, agent_info=v1.Implementation("quick", "1.0"))


def main() -> None:
    """Answer the handshake, then import the rest and serve."""
    already_read = answer_initialize(initialize)

    import asyncio

    asyncio.run(serve(already_read))


async def serve(already_read: bytes) -> None:
    """Serve whoever started this program until they close our stdin."""
    from antiphon.connection.connection import Connection
    from antiphon.connection.router import Router
    from antiphon.protocol.v1 import methods as m
    from antiphon.transports.stdio import open_stdio

    router = Router()
    router.on_request(m.INITIALIZE, initialize)
    router.on_request(m.NEW_SESSION, lambda _: v1.NewSessionResult("session-1"))
    router.on_request(m.PROMPT, lambda _: v1.PromptResult(v1.StopReason.END_TURN))
    async with Connection(open_stdio(already_read=already_read), router) as connection:
        await connection.wait_closed()


if __name__ == "__main__":
    main()
