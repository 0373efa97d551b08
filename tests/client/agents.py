"""How tests reach agents: scripted ones as real processes, ordinary ones over memory."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.link import Retry
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.memory import memory_pair
from tests.client.script import Agent
from tests.limits import limit

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = Retry((0, 0, 0, 0))


class Scripted:
    """A program of `tests.client.deviations` or `troubles`, and what it received so far."""

    def __init__(self, kind: type[Agent], folder: Path) -> None:
        self.log = folder / "heard.log"
        self.command = [sys.executable, "-S", "-m", kind.__module__, kind.__name__, str(self.log)]

    @property
    def received(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()

    def connect(self, **options: Any) -> AbstractAsyncContextManager[ConnectedAgent]:
        return connect(self.command, **{"cwd": ROOT, "retry": AT_ONCE, **options})


@asynccontextmanager
async def connected(
    router: Router, capabilities: v1.AgentCapabilities | None = None, **options: Any
) -> AsyncIterator[tuple[ConnectedAgent, Connection]]:
    """A client and the agent's end of the connection, over memory. What the router lacks to be an agent is filled in."""
    near, far = memory_pair()
    welcome = v1.InitializeResult(1, agent_capabilities=capabilities or v1.AgentCapabilities())
    if "initialize" not in router.calls:
        router.on_request(m.INITIALIZE, lambda _: welcome)
    if "session/new" not in router.calls:
        router.on_request(m.NEW_SESSION, lambda _: v1.NewSessionResult("s"))
    async with (
        asyncio.timeout(limit()),
        Connection(far, router, version=V1) as agent_side,
        connect(near, **options) as agent,
    ):
        yield agent, agent_side
