"""How tests put an agent behind our engine, and a client before it: the agent is a process, the client is over memory."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.link import Retry
from antiphon.engines.acp.engine import AcpEngine
from antiphon.engines.base import Host
from antiphon.transports.memory import memory_pair
from tests.client.script import Agent
from tests.engines.demo_client import DEMO

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT = 30.0
"""Seconds after which a test has failed."""


class StandIn:
    """A scripted agent as an engine, and what it received so far."""

    def __init__(self, kind: type[Agent], folder: Path) -> None:
        self.log = folder / "heard.log"
        command = [sys.executable, "-S", "-m", kind.__module__, kind.__name__, str(self.log)]
        self.engine = AcpEngine("antiphon-stand-in", "The stand-in", command, {}, str(ROOT))

    @property
    def received(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def noted(self, about: str) -> list[str]:
        """What stands behind a word in its log."""
        return [line.removeprefix(f"{about} ") for line in self.received if line.startswith(f"{about} ")]


def demo_engine() -> AcpEngine:
    """The demo, as any other agent."""
    return AcpEngine("antiphon-demo-behind", "Demo", DEMO)


@asynccontextmanager
async def through(engine: AcpEngine, **options: Any) -> AsyncIterator[ConnectedAgent]:
    """A client of our agent over this engine."""
    near, far = memory_pair()
    host = Host(engine)
    serving = asyncio.get_running_loop().create_task(host.serve(far))
    try:
        async with asyncio.timeout(TIMEOUT), connect(near, retry=Retry(()), **options) as agent:
            yield agent
    finally:
        async with asyncio.timeout(TIMEOUT):
            await serving
