"""A small agent over memory that is correct and can do little: what a test is about, its own kind of it does differently."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.prompts import PURPOSES, Prompts
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair

Message = dict[str, Any]

PLACES = {"write": " {file} {text}", "ask": " {file} {text}"}
WORDS = Prompts({purpose: purpose + PLACES.get(purpose, "") for purpose in PURPOSES})
CHECK_OPTIONS = CheckOptions(WORDS, limit=1.0, silence=0.02, start=1.0)
SHORT = CheckOptions(WORDS, limit=0.2, silence=0.02, start=1.0)
"""For agents that let us wait as long as we want to."""

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Plain:
    """One agent. Every message is handled by a task of its own, as in many agents."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.cancelled: dict[str, asyncio.Event] = {}
        """Session → whether its turn is."""
        self._asked: dict[str, asyncio.Future[Message]] = {}
        self._count = 0

    async def serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            while (frame := await self.transport.receive()) is not None:
                message = msgspec.json.decode(bytes(frame))  # type: ignore[arg-type]  # nothing here is over the limit
                if "method" not in message:
                    self._asked[message["id"]].set_result(message)
                elif message["method"] == "session/cancel":
                    self.cancelled[message["params"]["sessionId"]].set()
                elif "id" in message:
                    self._begin(message)
                    tasks.add(asyncio.create_task(self._answer(message)))
        finally:
            for task in tasks:
                task.cancel()
            await self.transport.close()

    def _begin(self, message: Message) -> None:
        """A cancellation is for a turn that was asked for before it."""
        if message["method"] == "session/prompt" and message["params"]["sessionId"] in self.cancelled:
            self.cancelled[message["params"]["sessionId"]].clear()

    async def _answer(self, message: Message) -> None:
        try:
            answer: Message = {"result": await self.do(message["method"], message.get("params") or {})}
        except Refusal as refusal:
            answer = {"error": {"code": refusal.code, "message": str(refusal)}}
        await self.send(id=message["id"], **answer)

    async def send(self, **message: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def ask(self, method: str, **params: Any) -> Message:
        """A question to the client, and its answer."""
        self._count += 1
        id = f"question-{self._count}"
        self._asked[id] = asyncio.get_running_loop().create_future()
        await self.send(id=id, method=method, params=params)
        return await self._asked[id]

    async def update(self, session: str, what: str, /, **fields: Any) -> None:
        await self.send(
            method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **fields}}
        )

    async def say(self, session: str, text: str) -> None:
        await self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    async def call(self, session: str, **fields: Any) -> Message:
        """A tool call begins."""
        self._count += 1
        call = {"toolCallId": f"call-{self._count}", "title": "Something", "kind": "edit", **fields}
        await self.update(session, "tool_call", status="pending", **call)
        return call

    async def may(self, session: str, call: Message) -> bool:
        """Whether the user allows it; the end of the call is sent."""
        answer = await self.ask("session/request_permission", sessionId=session, toolCall=call, options=OPTIONS)
        allowed: bool = answer.get("result", {}).get("outcome", {}).get("optionId") == "yes"
        status = "completed" if allowed else "failed"
        await self.update(session, "tool_call_update", toolCallId=call["toolCallId"], status=status)
        return allowed

    # What it does.

    async def do(self, method: str, params: Message) -> Any:
        match method:
            case "initialize":
                return {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": [], "agentInfo": self.info()}
            case "session/new":
                return self.new(params)
            case "session/prompt":
                return await self.prompt(params["sessionId"], params["prompt"])
            case _:
                raise Refusal(-32601, "method not found")

    def info(self) -> Message:
        return {"name": "plain", "version": "1"}

    def new(self, params: Message) -> Message:
        if not isinstance(params.get("cwd"), str) or not Path(params["cwd"]).is_absolute():
            raise Refusal(-32602, "there is no directory")
        session = f"session-{len(self.cancelled) + 1}"
        self.cancelled[session] = asyncio.Event()
        return {"sessionId": session}

    async def prompt(self, session: str, blocks: list[Message]) -> Message:
        if session not in self.cancelled:
            raise Refusal(-32002, "there is no such session")
        await self.turn(session, blocks[0]["text"].split(maxsplit=2))
        return {"stopReason": "cancelled" if self.cancelled[session].is_set() else "end_turn"}

    async def turn(self, session: str, words: list[str]) -> None:
        await self.say(session, "Well. ")
        if words[0].startswith("long"):
            await self.cancelled[session].wait()


class Plainly:
    """A place where agents of one kind come from."""

    is_process = False

    def __init__(self, kind: Callable[[Transport], Plain]) -> None:
        self._kind = kind
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> Transport:
        near, far = memory_pair()
        task = asyncio.create_task(self._kind(far).serve())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return near
