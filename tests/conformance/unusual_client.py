"""Clients that are correct and unusual, made from a seed: no requirement that must hold may be held against any of them."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.conformance.shim_socket import AgentStart, OnAgentStart
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair

__all__ = ["ClientTraits", "Unusually"]

Message = dict[str, Any]

CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "pace": (0.0, 0.0, 0.004, 0.03),
    "one_by_one": (False, True),
    "leaves_after": ((), (), ("junk",), ("params",), ("junk", "params", "unknown")),
    "leaves_in": (0.0, 0.02),
    "answers_permission": ("selected", "selected", "cancelled"),
    "offers": ("nothing", "files"),
    "says_who": (True, True, False),
    "ids": ("numbers", "texts"),
    "lists_first": (False, True),
    "closes": (False, True),
    "own_notifications": (False, True),
    "params_code": (-32602, -32603),
    "heeds_requests": (False, True),
}


@dataclass(frozen=True)
class ClientTraits:
    """What one client is like."""

    pace: float
    one_by_one: bool
    leaves_after: tuple[str, ...]
    leaves_in: float
    answers_permission: str
    offers: str
    says_who: bool
    ids: str
    lists_first: bool
    closes: bool
    own_notifications: bool
    params_code: int
    heeds_requests: bool
    knows: Callable[[str], bool] = lambda method: True
    """Whether it answers a method that it does not know, which every client has to."""

    @classmethod
    def of(cls, seed: int) -> "ClientTraits":
        chance = random.Random(seed)
        return cls(**{one.name: chance.choice(CHOICES[one.name]) for one in fields(cls) if one.name in CHOICES})


class Refused(Exception):
    """An answer that is an error; `why` says what was wrong with the request, where it was."""

    def __init__(self, code: int, message: str, why: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.why = why


class UnusualConnection:
    """One connection."""

    def __init__(self, transport: Transport, traits: ClientTraits, seed: int) -> None:
        self.transport = transport
        self.traits = traits
        self.chance = random.Random(seed)
        self.asked: dict[object, asyncio.Future[Message]] = {}
        self.turn = asyncio.Lock()
        self.tasks: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Event()
        self.cancelled = False
        self.session = ""

    async def listen(self) -> None:
        with suppress(Exception):  # the other side may be gone
            while (frame := await self.transport.receive()) is not None:
                task = asyncio.create_task(self._receive(bytes(frame)))  # type: ignore[arg-type]  # none is over the limit
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        for waiting in self.asked.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the agent has left"))

    async def _receive(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            await self._leave("junk")
            return
        if not isinstance(message, dict) or ("method" not in message and "id" not in message):
            await self._leave("junk")
        elif "method" not in message:
            waiting = self.asked.pop(message["id"], None) if isinstance(message["id"], str | int) else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif "id" in message and (message["method"] in KNOWN or self.traits.knows(message["method"])):
            with suppress(Exception):
                await self._respond(message)
        elif message["method"] == "session/update":
            self.arrived.set()

    async def _respond(self, message: Message) -> None:
        if self.traits.pace:
            await asyncio.sleep(self.chance.uniform(0, self.traits.pace))
        why = ""
        try:
            if self.traits.one_by_one:
                async with self.turn:
                    answer: Message = {"result": self.do(message["method"], message.get("params") or {})}
            else:
                answer = {"result": self.do(message["method"], message.get("params") or {})}
        except Refused as refused:
            answer, why = {"error": {"code": refused.code, "message": str(refused)}}, refused.why
        await self.send(id=message["id"], **answer)
        await self._leave(why)

    async def _leave(self, why: str) -> None:
        if why in self.traits.leaves_after:
            await asyncio.sleep(self.traits.leaves_in)
            await self.transport.close()

    def do(self, method: str, params: Message) -> Message:
        if method == "session/request_permission":
            options = params.get("options")
            if not isinstance(options, list) or not isinstance(params.get("sessionId"), str):
                raise Refused(self.traits.params_code, "that is not a question", "params")
            if self.traits.answers_permission == "cancelled" or self.cancelled:
                return {"outcome": {"outcome": "cancelled"}}
            wanted = [one for one in options if one["kind"] in ("allow_once", "reject_once")]
            return {"outcome": {"outcome": "selected", "optionId": wanted[-1]["optionId"]}}
        if method == "fs/read_text_file" and self.traits.offers == "files":
            path = Path(params["path"])
            if not path.is_file():
                raise Refused(-32002, "there is no such file")
            lines = path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)
            start = max((params.get("line") or 1) - 1, 0)
            limit = params.get("limit")
            return {"content": "".join(lines[start : None if limit is None else start + limit])}
        raise Refused(-32601, "method not found", "" if method.startswith("_") else "unknown")

    async def send(self, **message: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def ask(self, method: str, **params: Any) -> Message:
        id: object = len(self.asked) + self.chance.randrange(10**6)
        id = f"ask-{id}" if self.traits.ids == "texts" else id
        self.asked[id] = asyncio.get_running_loop().create_future()
        await self.send(id=id, method=method, params=params)
        answer = await self.asked[id]
        if "error" in answer:
            raise ConnectionError(str(answer["error"]))
        return answer["result"] if isinstance(answer["result"], dict) else {}

    async def use(self, purpose: str, cwd: Path) -> None:
        able = {"fs": {"readTextFile": True, "writeTextFile": False}} if self.traits.offers == "files" else {}
        who = {"clientInfo": {"name": "unusual", "version": "1"}} if self.traits.says_who else {}
        hello = await self.ask("initialize", protocolVersion=1, clientCapabilities=able, **who)
        if hello.get("protocolVersion") != 1:
            raise ConnectionError("another version")
        offered = hello.get("agentCapabilities") or {}
        listed = "list" in (offered.get("sessionCapabilities") or {})
        if self.traits.lists_first and listed:
            await self.ask("session/list")
        self.session = (await self.ask("session/new", cwd=str(cwd), mcpServers=[]))["sessionId"]
        if self.traits.own_notifications:
            await self.send(method="_unusual/news", params={"a": 1})
        turn = asyncio.ensure_future(
            self.ask("session/prompt", sessionId=self.session, prompt=[{"type": "text", "text": "hello"}])
        )
        if purpose == "cancel":
            await self.arrived.wait()
            self.cancelled = True
            await self.send(method="session/cancel", params={"sessionId": self.session})
        await turn
        if self.traits.closes and "close" in (offered.get("sessionCapabilities") or {}):
            await self.ask("session/close", sessionId=self.session)


KNOWN: Final = ("session/request_permission", "fs/read_text_file", "fs/write_text_file", "terminal/create")


class Client:
    """A client that runs."""

    def __init__(self, talk: UnusualConnection, purpose: str, cwd: Path) -> None:
        self.ended = asyncio.Event()
        self.status: int | None = None
        self.output = ""
        self._task = asyncio.create_task(self._run(talk, purpose, cwd))

    async def _run(self, talk: UnusualConnection, purpose: str, cwd: Path) -> None:
        listening = asyncio.create_task(talk.listen())
        status = 0
        try:
            await talk.use(purpose, cwd)
        except Exception as error:
            self.output, status = str(error), 1
        await talk.transport.close()
        for one in (listening, *talk.tasks):
            one.cancel()
        self.status = status
        self.ended.set()

    def end_input(self) -> None:
        """There is none."""

    def interrupt(self) -> bool:
        return False

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Unusually:
    """A place where clients of one kind come from."""

    is_process = False

    def __init__(self, traits: ClientTraits, seed: int) -> None:
        self._traits = traits
        self._seed = seed

    def has(self, purpose: str) -> bool:
        return purpose in ("prompt", "cancel")

    async def start(self, purpose: str, cwd: Path, on_start: OnAgentStart) -> Client:
        near, far = memory_pair()
        on_start(AgentStart(near))
        return Client(UnusualConnection(far, self._traits, self._seed), purpose, cwd)
