"""What an agent does once a client is connected, before its first request. Nothing waits for it."""

import asyncio

from antiphon.agent.agent import Agent
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import playing


class Ready(Agent):
    """Does some work ahead."""

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        super().__init__()
        self.begun, self.ended = asyncio.Event(), asyncio.Event()
        self.ahead = self._get_ready
        self._seconds, self._error = seconds, error

    async def _get_ready(self) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(self._seconds)
            if self._error is not None:
                raise self._error
        finally:
            self.ended.set()


async def test_it_is_done_before_a_session_is_asked_for() -> None:
    agent = Ready()
    async with playing(agent):
        await asyncio.wait_for(agent.ended.wait(), 5)


async def test_its_failure_is_not_sent_and_harms_nothing() -> None:
    agent = Ready(error=OSError("no such program"))
    async with playing(agent) as it:
        await asyncio.wait_for(agent.ended.wait(), 5)
        assert (await it.connection.request(m.NEW_SESSION, v1.NewSession("/w", []))).session_id


async def test_it_is_called_off_when_the_client_leaves() -> None:
    agent = Ready(seconds=3600)
    async with playing(agent):
        await asyncio.wait_for(agent.begun.wait(), 5)
    assert agent.ended.is_set()


async def test_a_client_that_only_shakes_hands_is_gone_before_anything_is_done() -> None:
    agent = Ready()
    async with playing(agent):
        pass
    assert not agent.begun.is_set()
