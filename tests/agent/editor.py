"""An editor for tests: a client of the core's, with everything it received in the order of the wire, and an agent served to it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from antiphon.agent.agent import Agent
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from tests.limits import limit

Message = dict[str, Any]

FULL = v1.ClientCapabilities(
    fs=v1.FileCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    session=v1.ClientSessionCapabilities(
        v1.CompactionSupport(), v1.ConfigCapabilities(v1.BooleanConfigSupport()), v1.NoticeSupport()
    ),
    elicitation=v1.ElicitationCapabilities(v1.FormSupport(), v1.UrlSupport()),
)
"""A client that can do everything."""


class Editor:
    """The client's end. `received` is every frame from the agent; `order` says the same in a word each."""

    def __init__(self, transport: Transport, router: Router | None = None) -> None:
        self.connection = Connection(transport, router, version=V1)
        self.received: list[Message] = []
        self._asked: dict[object, str] = {}
        self._arrived = asyncio.Event()
        self.connection.tap(self._see)

    def _see(self, direction: str, _: float, frame: bytes) -> None:
        message: Message = msgspec.json.decode(frame)
        if direction == "in":
            self.received.append(message)
            self._arrived.set()
        elif "id" in message and "method" in message:
            self._asked[message["id"]] = message["method"]

    @property
    def order(self) -> list[str]:
        """What the agent sent: text as it is, `tool_call:pending`, `answer:session/new`, `ask:fs/read_text_file`."""
        return [self._word(message) for message in self.received]

    def _word(self, message: Message) -> str:
        if message.get("method") == "session/update":
            return _update_word(message["params"]["update"])
        if "method" in message:
            return f"ask:{message['method']}" if "id" in message else str(message["method"])
        kind = "error" if "error" in message else "answer"
        return f"{kind}:{self._asked[message['id']]}"

    def updates(self, kind: str | None = None) -> list[Message]:
        """The updates so far, or those of a kind."""
        found = [message["params"]["update"] for message in self.received if message.get("method") == "session/update"]
        return [update for update in found if kind is None or update["sessionUpdate"] == kind]

    async def until(self, ready: "Callable[[], bool] | str") -> None:
        """Wait for something to be received."""
        while not (ready in self.order if isinstance(ready, str) else ready()):
            self._arrived.clear()
            await self._arrived.wait()

    async def introduce(
        self, capabilities: v1.ClientCapabilities | None = None, name: str | None = None
    ) -> v1.InitializeResult:
        """`initialize`."""
        info = None if name is None else v1.Implementation(name, "1")
        asked = v1.Initialize(1, capabilities or v1.ClientCapabilities(), info)
        return await self.connection.request(m.INITIALIZE, asked)

    async def open(self, cwd: str = "/w") -> str:
        """A new session's id."""
        return (await self.connection.request(m.NEW_SESSION, v1.NewSession(cwd, []))).session_id

    def prompt(self, session: str, *content: "str | v1.ContentBlock") -> "asyncio.Task[v1.PromptResult]":
        """A prompt on its way."""
        blocks = [v1.TextBlock(each) if isinstance(each, str) else each for each in content or ("go",)]
        return asyncio.create_task(self.connection.request(m.PROMPT, v1.Prompt(session, blocks)))

    def cancel(self, session: str) -> None:
        """`session/cancel`."""
        self.connection.post(m.CANCEL, v1.Cancel(session))

    async def turn(self, agent_cwd: str = "/w") -> v1.PromptResult:
        """One prompt in a session of its own."""
        return await self.prompt(await self.open(agent_cwd))


def _update_word(update: Message) -> str:
    kind: str = update["sessionUpdate"]
    if kind == "agent_message_chunk" and update["content"]["type"] == "text":
        return str(update["content"]["text"])
    return f"{kind}:{update['status']}" if "status" in update else kind


@asynccontextmanager
async def playing(
    agent: Agent,
    capabilities: v1.ClientCapabilities | None = None,
    router: Router | None = None,
    *,
    introduced: bool = True,
    leaves: int = 0,
    name: str | None = None,
) -> AsyncIterator[Editor]:
    """An editor with this agent at the other end. When it leaves, nothing of the agent may be left running (but `leaves` tasks)."""
    before, troubles = asyncio.all_tasks(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    near, far = memory_pair()
    async with asyncio.timeout(limit()):
        serving = asyncio.create_task(agent.serve(far))
        editor = Editor(near, router)
        async with editor.connection:
            if introduced:
                await editor.introduce(capabilities, name)
            yield editor
        await serving
    ended: set[Any] = {serving}
    while (
        ended and len(left := asyncio.all_tasks() - before) > leaves
    ):  # a cancelled task needs a turn of the loop to end
        ended, _ = await asyncio.wait(left, timeout=limit(10), return_when=asyncio.FIRST_COMPLETED)
    assert len(left) == leaves, left
    gc.collect()
    assert not troubles, troubles


def only_prompt(handler: "Callable[[Any], Any]") -> Agent:
    """An agent with nothing but a handler for prompts."""
    agent = Agent("test")
    agent.prompt = handler  # type: ignore[method-assign, assignment]
    return agent
