"""Helpers for tests of agents and clients, without processes: a client that records what an agent sends, and an agent with a script.

async def test_the_agent_greets() -> None:
    async with RecordingClient(my_agent) as client:
        result = await client.prompt("hello")
    assert client.text == "hello yourself" and result.stop_reason == "end_turn"

async def test_my_client_shows_the_answer() -> None:
    agent = ScriptedAgent(["Hello ", "you."])
    async with antiphon.connect(agent) as connected:
        assert await my_client(connected) == "Hello you."
    assert agent.prompts == ["hi"]
"""

import os
from collections.abc import Awaitable, Iterable, Sequence
from typing import Self

from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.handlers import PermissionAnswer, PermissionHandler, allow_once
from antiphon.client.session import ClientSession
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1

__all__ = ["RecordingClient", "ScriptedAgent"]


class RecordingClient:
    """A client for tests of an agent: `async with RecordingClient(agent) as client`. It keeps everything that the agent sends.

    `permission` answers permission requests; all are allowed once unless given.
    """

    def __init__(
        self, agent: Agent, *, permission: PermissionHandler = allow_once, cwd: str | os.PathLike[str] = "/"
    ) -> None:
        self.updates: list[v1.Update] = []
        """Every update of the turns, in their order."""
        self.permissions: list[v1.RequestPermission] = []
        """Every permission request."""
        self._permission = permission
        self._connecting = connect(agent, permission=self._permit)
        self._cwd = cwd
        self._agent: ConnectedAgent | None = None
        self._session: ClientSession | None = None

    def _permit(self, request: v1.RequestPermission) -> "PermissionAnswer | Awaitable[PermissionAnswer]":
        self.permissions.append(request)
        return self._permission(request)

    async def __aenter__(self) -> Self:
        self._agent = await self._connecting
        self._session = await self._agent.new_session(self._cwd)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._agent is not None:
            await self._agent.close()

    @property
    def agent(self) -> ConnectedAgent:
        """The agent as a client sees it, for everything that has no short form here."""
        if self._agent is None:
            raise LocalProtocolError("not connected yet", hint="async with RecordingClient(agent) as client")
        return self._agent

    @property
    def session(self) -> ClientSession:
        """The session in which `prompt` prompts."""
        if self._session is None:
            raise LocalProtocolError("not connected yet", hint="async with RecordingClient(agent) as client")
        return self._session

    async def prompt(self, content: str | Sequence[v1.ContentBlock]) -> v1.PromptResult:
        """Send a prompt, record its updates, and return why the turn ended."""
        turn = self.session.prompt(content)
        async for update in turn:
            self.updates.append(update)
        return turn.result

    @property
    def text(self) -> str:
        """All text of the agent's messages so far."""
        chunks = [update.content for update in self.updates if isinstance(update, v1.AgentMessageChunk)]
        return "".join(content.text for content in chunks if isinstance(content, v1.TextBlock))


class ScriptedAgent(Agent):
    """An agent for tests of a client: each prompt is answered by the next turn of its script.

    A turn is a sequence of what it sends: text is a piece of the agent's message, anything else an update of its own. Without a turn that
    is left it answers nothing.
    """

    def __init__(self, *turns: Iterable[str | v1.Update], name: str = "scripted") -> None:
        super().__init__(name)
        self.prompts: list[str] = []
        """The text of every prompt, in their order."""
        self._turns = [list(turn) for turn in turns]

    async def prompt(self, turn: AgentTurn) -> None:
        """Send the next turn of the script."""
        self.prompts.append(turn.text)
        for each in self._turns.pop(0) if self._turns else ():
            await (turn.say(each) if isinstance(each, str) else turn.update(each))
