"""Every dialect goes in as bytes at a real program and comes out at its handler in the schema's words."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.dialects.table import RULES
from antiphon.transports.process import ProcessTransport, spawn
from tests.dialects.mirror import RESULTS
from tests.dialects.row import GOOD
from tests.dialects.rows import ROWS, Row
from tests.rows import each_row

MIRROR = Path(__file__).with_name("mirror.py")

pytestmark = pytest.mark.asyncio(loop_scope="module")


class RemoteAgent:
    """Our end of the session with a mirror: bytes in, bytes out, and nothing of ours in between."""

    def __init__(self, transport: ProcessTransport) -> None:
        self.transport = transport
        self.last_id = 0

    async def say(self, **members: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **members}))

    async def receive(self) -> dict[str, Any]:
        frame = await self.transport.receive()
        assert isinstance(frame, bytes), self.transport.stderr
        return msgspec.json.decode(frame, type=dict[str, Any])

    async def ask(self, method: str, params: object) -> Any:
        """A question and its answer, which must not be a refusal."""
        self.last_id += 1
        await self.say(id=self.last_id, method=method, params=params)
        answer = await self.receive()
        assert answer.get("id") == self.last_id, answer
        assert "result" in answer, answer
        return answer["result"]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def far() -> AsyncIterator[RemoteAgent]:
    transport = await spawn([sys.executable, str(MIRROR)])
    yield RemoteAgent(transport)
    await transport.close()


async def send(far: RemoteAgent, row: Row) -> None:
    """The row's bytes into the mirror, and the words of its answer, where there is one."""
    method, sent = row.sent_as or row.method, msgspec.Raw(row.wire)
    if row.half == "result":
        await far.say(id="ask", method="_ask", params={"method": row.method, "params": GOOD[row.method]})
        question = await far.receive()
        assert question["method"] == row.method
        await far.say(id=question["id"], result=sent)
        assert await far.receive() == {"jsonrpc": "2.0", "id": "ask", "result": {}}
    elif row.method in m.CALLS_BY_NAME:
        says = msgspec.json.decode(RESULTS.get(row.method, b"{}")) if row.says is None else row.says
        await far.ask("_answer", {"method": row.method, "result": says})
        assert await far.ask(method, sent) == (says if row.received is None else row.received)
    else:
        await far.say(method=method, params=sent)


@each_row("row", ROWS, ids=lambda row: row.name)
async def test_what_a_peer_means_arrives(far: RemoteAgent, row: Row) -> None:
    names = {rule.name for rule in RULES}
    async with asyncio.timeout(10):
        await send(far, row)
        seen = await far.ask("_seen", {})
        assert (seen.get("method"), seen.get("half")) == (row.method, row.half), seen
        assert seen["value"] == row.seen
        assert seen["meanings"] == row.meanings
        assert sorted(rule for rule in seen["rules"] if rule in names) == sorted(row.rules)

        assert await far.ask("session/set_mode", {"sessionId": "s", "modeId": "good"}) == {}
        good = await far.ask("_seen", {})
        assert (good["value"], good["rules"]) == ({"sessionId": "s", "modeId": "good"}, [])
