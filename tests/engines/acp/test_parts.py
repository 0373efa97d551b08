"""Who stands between the client and the engine, as the joint agent does, is told everything in its order, however long it takes."""

import asyncio
from pathlib import Path
from typing import Any

from msgspec import structs

from antiphon.agent.session import Session
from antiphon.client.connect import connect
from antiphon.client.handlers import allow_once
from antiphon.client.retry import Retry
from antiphon.client.terminals import Terminals
from antiphon.engines.host import Host
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.transports.memory import memory_pair
from tests.engines.acp.place import PATIENCE, demo_engine


class Part(Session):
    """Takes its time with each update, and has another id than the client's session."""

    def __init__(self, outer: Session, book: list[str]) -> None:
        super().__init__("", outer.cwd, outer.client, outer.directories, outer.mcp_servers)
        self.outer = outer
        self.book = book

    async def update(self, update: v1.Update) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        self.book.append(type(update).__name__)
        await self.outer.update(update)

    async def request(self, call: "Call[Any, Any]", params: Any) -> Any:
        assert params.session_id == self.id != self.outer.id
        self.book.append(call.name)
        return await self.outer.request(call, structs.replace(params, session_id=self.outer.id))


class Joint(Host):
    """Puts a part before each session."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.book: list[str] = []

    async def new_session(self, session: Session) -> None:
        self.part = Part(session, self.book)
        session.state = await self.engine.new(self.part)  # type: ignore[misc]


async def test_a_part_hears_all_in_order_and_before_each_question_and_the_answer(workspace: Path) -> None:
    near, far = memory_pair()
    host = Joint(demo_engine())
    serving = asyncio.get_running_loop().create_task(host.serve(far))
    connecting = connect(near, retry=Retry(()), permission=allow_once, terminals=Terminals())
    async with asyncio.timeout(PATIENCE), connecting as agent:
        session = await agent.new_session(workspace)
        await session.prompt("hello")
        assert host.part.id != session.id and host.part.modes is not None
        host.book.clear()
        told = [type(update).__name__ async for update in session.prompt("/edit a.txt sung")]
        assert (workspace / "a.txt").read_text(encoding="utf-8") == "sung\n"
        asked = host.book.index("session/request_permission")
        assert "ToolCall" in host.book[:asked]
        assert [each for each in host.book if "/" not in each] == told
        host.book.clear()
        [*_, last] = [update async for update in session.prompt("/many 200")]
        assert isinstance(last, v1.AgentMessageChunk) and host.book.count("AgentMessageChunk") >= 200
    await serving
