"""Much at once, through real processes: long streams, many sessions, big messages."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.errors import RequestRefused
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.client_services import ReadTextFile, ReadTextFileResult
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import Prompt, SessionUpdate
from antiphon.protocol.v1.version import V1
from antiphon.transports.framing import MAX_FRAME
from antiphon.transports.process import spawn
from tests.connection.ends import text_of

AGENT = """
import asyncio
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.stdio import open_stdio

async def main():
    router = Router()
    connection = Connection(open_stdio(), router, version=V1)

    async def prompt(asked):
        verb, number = asked.prompt[0].text.split()
        sender = connection.sender(asked.session_id)
        if verb == "count":
            for n in range(int(number)):
                await sender.say(f"{n} of {asked.session_id}")
        elif verb == "shout":
            await sender.say("x" * int(number))
        elif verb == "read":
            content = (await connection.request(m.READ_TEXT_FILE, v1.ReadTextFile(asked.session_id, number))).content
            await sender.say(f"{len(content)} {content[:3]}")
        return v1.PromptResult(v1.StopReason.END_TURN)

    router.on_request(m.PROMPT, prompt)
    async with connection:
        await connection.wait_closed()

asyncio.run(main())
"""


@asynccontextmanager
async def agent(router: Router | None = None, limit: int = MAX_FRAME) -> AsyncIterator[Connection]:
    child = await spawn([sys.executable, "-c", AGENT], limit=limit)
    async with asyncio.timeout(60), Connection(child, router, tolerant=True, version=V1) as connection:
        yield connection


def prompt(words: str, session: str = "s") -> Prompt:
    return Prompt(session, [TextBlock(words)])


@pytest.mark.slow
async def test_two_hundred_thousand_updates_arrive_in_order_before_the_answer() -> None:
    async with agent() as connection:
        turn = connection.stream(m.PROMPT, prompt("count 200000"), "s")
        n = 0
        async for update in turn:
            assert text_of(update) == f"{n} of s"
            n += 1
        assert n == 200_000 and turn.result.stop_reason == "end_turn"


@pytest.mark.slow
async def test_a_hundred_sessions_at_once_keep_their_own_order() -> None:
    received: dict[str, list[str]] = {}
    router = Router()
    router.on_notice(
        m.SESSION_UPDATE, lambda update: received.setdefault(update.session_id, []).append(text_of(update))
    )
    async with agent(router) as connection:
        names = [f"session-{n}" for n in range(100)]
        await asyncio.gather(*(connection.request(m.PROMPT, prompt("count 200", name)) for name in names))
    assert received == {name: [f"{n} of {name}" for n in range(200)] for name in names}


@pytest.mark.slow
async def test_a_ten_mebibyte_update_and_a_fifty_mebibyte_file() -> None:
    received: list[SessionUpdate] = []
    router = Router()
    router.on_notice(m.SESSION_UPDATE, received.append)
    router.on_request(m.READ_TEXT_FILE, lambda _: ReadTextFileResult("\nab" + "é" * (25 << 20)))
    async with agent(router) as connection:
        await connection.request(m.PROMPT, prompt(f"shout {10 << 20}"))
        await connection.request(m.PROMPT, prompt("read /file"))
    assert [len(text_of(received[0])), text_of(received[1])] == [10 << 20, f"{(25 << 20) + 3} \nab"]


async def test_a_message_over_the_limit_is_refused_and_the_next_one_is_not() -> None:
    router = Router()

    def read(asked: ReadTextFile) -> ReadTextFileResult:
        return ReadTextFileResult("y" * 5000 if asked.path == "/big" else "small")

    received: list[SessionUpdate] = []
    router.on_request(m.READ_TEXT_FILE, read)
    router.on_notice(m.SESSION_UPDATE, received.append)
    async with agent(router, limit=2000) as connection:
        await connection.request(m.PROMPT, prompt("shout 9999"))  # no handler takes it, so it is counted
        assert (connection.counts["Rejected"], received) == (1, [])
        await connection.request(m.PROMPT, prompt("read /small"))
        assert text_of(received[0]) == "5 sma"
        with pytest.raises(RequestRefused):
            await connection.request(m.PROMPT, prompt("nonsense"))
