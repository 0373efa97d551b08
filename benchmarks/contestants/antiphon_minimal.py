"""The smallest antiphon agent: its start-up is what is measured."""

import asyncio

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.initialize import Initialize, InitializeResult
from antiphon.transports.stdio import open_stdio


def initialize(asked: Initialize) -> InitializeResult:
    return InitializeResult(asked.protocol_version)


async def main() -> None:
    router = Router()
    router.on_request(m.INITIALIZE, initialize)
    async with Connection(open_stdio(), router) as connection:
        await connection.wait_closed()


asyncio.run(main())
