"""An ordinary agent over memory that says what a test wants it to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from antiphon.client.agent import ConnectedAgent
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.client.agents import connected

P = TypeVar("P")
R = TypeVar("R")

END = v1.PromptResult(v1.StopReason.END_TURN)


def chunk(text: str, message_id: str | None = None) -> v1.AgentMessageChunk:
    """A piece of an answer."""
    return v1.AgentMessageChunk(v1.TextBlock(text), message_id=message_id)


class Talker:
    """Says these things in each turn, and remembers what it was sent."""

    def __init__(self, *updates: v1.Update) -> None:
        self.router = Router()
        self.updates = updates
        self.prompts: list[list[v1.ContentBlock]] = []
        self.connection: Connection | None = None
        self.router.on_request(m.PROMPT, self.prompt)

    def answers(self, call: Call[P, R], result: R) -> list[P]:
        """Answer this with the same every time; the list fills with what was asked."""
        asked: list[P] = []

        def answer(params: P) -> R:
            asked.append(params)
            return result

        self.router.on_request(call, answer)
        return asked

    async def send(self, session_id: str, *updates: v1.Update) -> None:
        assert self.connection is not None
        for update in updates:
            await self.connection.notify(m.SESSION_UPDATE, v1.SessionUpdate(session_id, update))

    async def prompt(self, asked: v1.Prompt) -> v1.PromptResult:
        self.prompts.append(asked.prompt)
        await self.send(asked.session_id, *self.updates)
        return END

    @asynccontextmanager
    async def connect(
        self, capabilities: v1.AgentCapabilities | None = None, **options: Any
    ) -> AsyncIterator[ConnectedAgent]:
        async with connected(self.router, capabilities, **options) as (agent, connection):
            self.connection = connection
            yield agent
