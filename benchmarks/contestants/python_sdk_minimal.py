"""The smallest agent of the official Python SDK: its start-up is what is measured."""

import asyncio
from typing import Any

from acp import Agent, InitializeResponse, run_agent


class Minimal(Agent):
    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)


asyncio.run(run_agent(Minimal()))
