"""A session between the client and the engine, as the joint agent has it, receives everything in order, however long it takes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from antiphon.agent.session import AgentSession, SessionHost
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.handlers import allow_once
from antiphon.client.link import Retry
from antiphon.client.terminals import Terminals
from antiphon.engines.base import Host
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call, Notice
from antiphon.transports.memory import memory_pair
from tests.engines.acp import stand_in as s
from tests.engines.acp.place import TIMEOUT, StandIn, demo_engine
from tests.waits import idle


class WrappedSession(AgentSession):
    """Takes its time with each update, and has another id than the client's session."""

    def __init__(self, outer: AgentSession, log: list[str]) -> None:
        super().__init__("", outer.cwd, outer.client, outer.directories, outer.mcp_servers, host=WrappedHost(self))
        self.outer = outer
        self.log = log

    async def update(self, update: v1.Update) -> None:
        await idle()
        self.log.append(type(update).__name__)
        await self.outer.update(update)

    async def request(self, call: "Call[Any, Any]", params: Any, *, timeout: Any = v1.UNSET) -> Any:
        assert params.session_id == self.id != self.outer.id
        self.log.append(call.name)
        return await self.outer.request(call, structs.replace(params, session_id=self.outer.id), timeout=timeout)

    async def notify(self, notice: "Notice[Any]", params: Any) -> None:
        assert params["sessionId"] == self.id != self.outer.id
        self.log.append(notice.name)
        await self.outer.notify(notice, {**params, "sessionId": self.outer.id})


class WrappedHost(SessionHost):
    """Gives the wrapped session the id of the one that took the place of a lost one."""

    def __init__(self, wrapped: WrappedSession) -> None:
        super().__init__()
        self.wrapped = wrapped

    async def lost_session(self, id: str) -> str:
        self.wrapped.log.append(f"{self.wrapped.id} is {id} now")
        self.wrapped.id = id
        return "You were told: la"


class WrappingHost(Host):
    """Puts a wrapped session before each session."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.log: list[str] = []

    async def new_session(self, session: AgentSession) -> None:
        self.wrapped = WrappedSession(session, self.log)
        session.state = await self.engine.new(self.wrapped)  # type: ignore[misc]


@asynccontextmanager
async def before(host: WrappingHost) -> AsyncIterator[ConnectedAgent]:
    """A client of this agent."""
    near, far = memory_pair()
    serving = asyncio.get_running_loop().create_task(host.serve(far))
    connecting = connect(near, retry=Retry(()), permission=allow_once, terminals=Terminals())
    async with asyncio.timeout(TIMEOUT), connecting as agent:
        yield agent
    await serving


async def test_a_notification_that_is_not_an_update_goes_through_the_engine_session_with_the_id_that_the_client_knows(
    tmp_path: Path, workspace: Path
) -> None:
    host = WrappingHost(StandIn(s.Murmurs, tmp_path).engine)
    async with before(host) as agent:
        shown: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        agent.connection.router.other_notice = lambda method, params: shown.set_result(bytes(params))
        session = await agent.new_session(workspace)
        assert await session.prompt("la").text() == "onetwo"
        assert json.loads(await shown) == {"sessionId": session.id, "n": 1}
    assert host.log.index("AgentMessageChunk") < host.log.index("_stand_in/told")


async def test_a_wrapped_session_learns_of_a_new_id_and_its_summary_comes_before_the_prompt(
    tmp_path: Path, workspace: Path
) -> None:
    behind = StandIn(s.DiesAndNotes, tmp_path)
    host = WrappingHost(behind.engine)
    async with before(host) as agent:
        session = await agent.new_session(workspace)
        with pytest.raises(RequestRefused):
            await session.prompt("work")
        await session.prompt("/again")  # a command has to stand first
        await session.prompt("again")
        await session.prompt("and again")
        assert "gets a summary" in session.transcript.plain()
    assert host.wrapped.id == "s2.1" and host.log.count("s1.1 is s2.1 now") == 1
    texts = [[block["text"] for block in json.loads(prompt)] for prompt in behind.noted("prompt")]
    assert texts == [["work"], ["/again"], ["You were told: la\n\n", "again"], ["and again"]]


async def test_a_wrapped_session_receives_all_in_order_and_before_each_request_and_the_response(
    workspace: Path,
) -> None:
    host = WrappingHost(demo_engine())
    async with before(host) as agent:
        session = await agent.new_session(workspace)
        await session.prompt("hello")
        assert host.wrapped.id != session.id and host.wrapped.modes is not None
        host.log.clear()
        updates = [type(update).__name__ async for update in session.prompt("/edit a.txt sung")]
        assert (workspace / "a.txt").read_text(encoding="utf-8") == "sung\n"
        asked = host.log.index("session/request_permission")
        assert "ToolCall" in host.log[:asked]
        assert [each for each in host.log if "/" not in each] == updates
        host.log.clear()
        [*_, last] = [update async for update in session.prompt("/many 200")]
        assert isinstance(last, v1.AgentMessageChunk) and host.log.count("AgentMessageChunk") >= 200
