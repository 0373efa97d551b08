"""The WebSocket server of the official Python SDK, with an agent that sends updates by its documented API."""

import sys
from typing import Any

import acp
import uvicorn
from acp.http.asgi import create_asgi_app
from acp.schema import AgentMessageChunk, TextContentBlock

COUNT = int(sys.argv[2])
TEXT = "A chunk of forty characters, as is usual."


class Agent(acp.Agent):
    """Answers every prompt with the number of updates that it was started with."""

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=1)

    async def new_session(self, **_: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id="sess_0")

    async def prompt(self, session_id: str, **_: Any) -> acp.PromptResponse:
        update = AgentMessageChunk(
            session_update="agent_message_chunk", content=TextContentBlock(type="text", text=TEXT)
        )
        for _number in range(COUNT):
            await self._client.session_update(session_id, update)
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    uvicorn.run(create_asgi_app(lambda _: Agent()), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
