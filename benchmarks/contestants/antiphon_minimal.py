"""The smallest antiphon agent: its start-up is what is measured."""

from antiphon.connection.early import answer_initialize
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.initialize import Initialize, InitializeResult


def initialize(asked: Initialize) -> InitializeResult:
    return InitializeResult(asked.protocol_version)


async def serve(already_read: bytes) -> None:
    from antiphon.connection.connection import Connection
    from antiphon.connection.router import Router
    from antiphon.protocol.v1.version import V1
    from antiphon.transports.stdio import open_stdio

    router = Router()
    router.on_request(m.INITIALIZE, initialize)
    async with Connection(open_stdio(already_read=already_read), router, version=V1) as connection:
        await connection.wait_closed()


if __name__ == "__main__":
    first = answer_initialize(m.INITIALIZE, initialize)

    import asyncio

    asyncio.run(serve(first))
