"""Agents that are correct and unusual, made from a seed: no requirement that must hold may be held against any of them.

Each trait is something that the protocol leaves to the agent: how fast it answers and in which order, what it does with a second
prompt, whether it stays after something that no client may send, what it offers and what it sends beside its turns.
"""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.transports.base import Transport
from tests.conformance.plain import OPTIONS, Message, Plain, Refusal

__all__ = ["Traits", "Unusual"]

CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "pace": (0.0, 0.0, 0.004, 0.03),
    "leaves_after": ((), ("junk",), ("early",), ("params",), ("junk", "early", "params", "initialize", "method"), ("prompt",)),
    "leaves_in": (0.0, 0.0, 0.01, 0.08),
    "junk": ("silent", "refused"),
    "early": ("refused", "answered"),
    "second": ("refused", "waits", "replaces", "beside", "refused late"),
    "serial": (False, False, False, False, True),
    "cancels_in": (0.0, 0.0, 0.03),
    "talks_on": (False, True),
    "silent": (False, False, True),
    "ends": ("end_turn", "end_turn", "max_tokens", "refusal"),
    "offers": ("nothing", "little", "much"),
    "says_who": (True, True, False),
    "first_updates": ("none", "before", "after"),
    "later_updates": (False, True),
    "asks_first": (False, True),
    "announces_twice": (False, True),
    "refused_ends": ("end_turn", "refusal", "error"),
    "params_code": (-32602, -32602, -32603),
    "unknown_code": (-32002, -32602, -32603),
    "initialize_again": ("same", "refused"),
    "wants_login": (False, False, False, True),
    "heeds_requests": (False, True),
    "long_turn": ("endless", "endless", "short"),
    "number": ("count", "text", "uuid"),
}  # fmt: skip
"""Trait → what it may be; what is more common stands there more often."""


@dataclass(frozen=True)
class Traits:
    """What one agent is like."""

    pace: float
    leaves_after: tuple[str, ...]
    leaves_in: float
    junk: str
    early: str
    second: str
    serial: bool
    cancels_in: float
    talks_on: bool
    silent: bool
    ends: str
    offers: str
    says_who: bool
    first_updates: str
    later_updates: bool
    asks_first: bool
    announces_twice: bool
    refused_ends: str
    params_code: int
    unknown_code: int
    initialize_again: str
    wants_login: bool
    heeds_requests: bool
    long_turn: str
    number: str

    @classmethod
    def of(cls, seed: int) -> "Traits":
        chance = random.Random(seed)
        return cls(**{one.name: chance.choice(CHOICES[one.name]) for one in fields(cls)})


@dataclass
class Session:
    """One of the agent's."""

    cwd: str
    turns: list["asyncio.Task[Any] | None"]
    history: list[tuple[str, str]]
    cancelled: asyncio.Event
    turn: asyncio.Lock
    mode: str = "ask"


Store = dict[str, tuple[str, list[tuple[str, str]]]]
"""Sessions that are there for the next agent too: id → the directory and what was sent."""


class Wrong(Refusal):
    """A refusal of what no client may send."""


class Unusual(Plain):
    """An agent with such traits."""

    def __init__(self, transport: Transport, traits: Traits, seed: int, store: Store) -> None:
        super().__init__(transport)
        self.traits = traits
        self._store = store
        self._chance = random.Random(seed)
        self._greeted = False
        self._signed_in = not traits.wants_login
        self._sessions: dict[str, Session] = {}
        self._one_by_one = asyncio.Lock()
        self._leaving = False
        self._open: dict[bytes, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            while (frame := await self.transport.receive()) is not None:
                if self._leaving and self.traits.leaves_in == 0:
                    return
                task = asyncio.create_task(self._receive(bytes(frame)))  # type: ignore[arg-type]  # nothing here is over the limit
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                await asyncio.sleep(0)  # so that what arrives first is begun first; it is no clock
                if self._leaving and self.traits.leaves_in == 0:
                    await asyncio.wait({task})
                    return
        finally:
            for one in tuple(tasks):
                one.cancel()
            await self.transport.close()

    async def _receive(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            await self._object(line, -32700)
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or message.get("id", 0) is None:
            await self._object(line, -32600)
        elif "method" not in message:
            waiting = self._asked.pop(str(message.get("id")), None)
            if waiting is not None:
                waiting.set_result(message)
            elif "result" not in message and "error" not in message:
                await self._object(line, -32600)
        elif "id" not in message:
            self._notice(message["method"], message.get("params") or {})
        else:
            await self._request(message)

    async def _object(self, line: bytes, code: int) -> None:
        """To what is not a message."""
        if not line.strip():
            return
        if self.traits.junk == "refused":
            await self.send(id=None, error={"code": code, "message": "that is not a message"})
        await self._leave("junk")

    async def _leave(self, why: str) -> None:
        if why in self.traits.leaves_after and not self._leaving:
            self._leaving = True
            await asyncio.sleep(self.traits.leaves_in)
            if self.traits.leaves_in:
                await self.transport.close()

    def _notice(self, method: str, params: Message) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and session is not None and session.turns:
            session.cancelled.set()
        elif method == "$/cancel_request" and self.traits.heeds_requests:
            task = self._open.get(msgspec.json.encode(params.get("requestId")))
            if task is not None:
                task.cancel()

    async def _request(self, message: Message) -> None:
        key = msgspec.json.encode(message["id"])
        self._open[key] = asyncio.current_task()  # type: ignore[assignment]  # it is one
        why = ""
        try:
            answer: Message = {"result": await self._in_order(message["method"], message.get("params", {}))}
        except Refusal as refusal:
            answer = {"error": {"code": refusal.code, "message": str(refusal)}}
            why = self._wrong(message["method"], refusal)
        except asyncio.CancelledError:
            if not self.traits.heeds_requests:
                raise
            answer = {"error": {"code": -32800, "message": "cancelled"}}
        finally:
            self._open.pop(key, None)
        await self.send(id=message["id"], **answer)
        if why in self.traits.leaves_after:
            await self._leave(why)
            if not self.traits.leaves_in:
                await self.transport.close()

    def _wrong(self, method: str, refusal: Refusal) -> str:
        """What was wrong with a request that was refused, if anything was."""
        if not self._greeted:
            return "early"
        if refusal.code == -32601 and not method.startswith("_"):
            return "method"
        known = {"session/new": "params", "session/prompt": "prompt"}
        return known.get(method, "initialize") if isinstance(refusal, Wrong) else ""

    async def _in_order(self, method: str, params: Any) -> Any:
        if not isinstance(params, dict):
            raise Wrong(self.traits.params_code, "params are named")
        if self.traits.pace:
            await asyncio.sleep(self._chance.uniform(0, self.traits.pace))
        if self.traits.serial and not method.startswith("_") and method != "session/close":
            async with self._one_by_one:
                return await self.do(method, params)
        return await self.do(method, params)

    # What it does.

    async def do(self, method: str, params: Message) -> Any:
        if method == "initialize":
            return self._initialize(params)
        if not self._greeted and self.traits.early == "refused":
            raise Refusal(-32600, "who are you?")
        if method == "authenticate":
            if params.get("methodId") != "key":
                raise Wrong(self.traits.params_code, "there is no such way")
            self._signed_in = True
            return {}
        if method in ("session/new", "session/load", "session/resume") and not self._signed_in:
            raise Refusal(-32000, "sign in first")
        done = {
            "session/new": self._new,
            "session/prompt": self._prompt,
            **({"session/set_mode": self._set_mode} if self.traits.offers != "nothing" else {}),
            **({"session/load": self._load, "session/close": self._close} if self.traits.offers == "much" else {}),
            **({"session/list": self._list, "session/resume": self._resume} if self.traits.offers == "much" else {}),
        }.get(method)
        if done is None:
            raise Refusal(-32601, "method not found")
        return await done(params)

    def _initialize(self, params: Message) -> Message:
        version = params.get("protocolVersion")
        if not isinstance(version, int) or isinstance(version, bool):
            raise Wrong(self.traits.params_code, "a version is a number")
        if self._greeted and self.traits.initialize_again == "refused":
            raise Wrong(-32600, "we have met")
        self._greeted = True
        able: Message = {}
        if self.traits.offers == "much":
            able = {"loadSession": True, "sessionCapabilities": {"list": {}, "resume": {}, "close": {}}}
        found: Message = {"protocolVersion": 1}
        if self.traits.offers != "nothing" or self.traits.says_who:
            found["agentCapabilities"] = able
        if self.traits.says_who:
            found |= {"agentInfo": {"name": "unusual", "version": "1"}}
        if self.traits.wants_login or self.traits.says_who:
            found["authMethods"] = [{"id": "key", "name": "Key"}] if self.traits.wants_login else []
        return found

    def _offer(self, session: Session) -> Message:
        if self.traits.offers == "nothing":
            return {}
        modes = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
        return {"modes": {"currentModeId": session.mode, "availableModes": modes}}

    async def _new(self, params: Message) -> Message:
        cwd, servers = params.get("cwd"), params.get("mcpServers")
        if not isinstance(cwd, str) or not Path(cwd).is_absolute() or not isinstance(servers, list):
            raise Wrong(self.traits.params_code, "there is no such directory")
        self._count += 1
        number = {"count": f"{self._count}", "text": f"a session {self._count}", "uuid": f"{self._count:032x}"}
        id = f"{number[self.traits.number]}-{len(self._store)}"
        self._store[id] = cwd, []
        session = self._opened(id)
        updates = self.update(id, "available_commands_update", availableCommands=[])
        if self.traits.first_updates == "before":
            await updates
        elif self.traits.first_updates == "after":
            asyncio.get_running_loop().call_later(0.002, lambda: self._later(updates))
        else:
            updates.close()
        return {"sessionId": id, **self._offer(session)}

    def _opened(self, id: str) -> Session:
        """A session of the store, here."""
        if id not in self._store:
            raise Refusal(self.traits.unknown_code, "there is no such session")
        cwd, printed = self._store[id]
        return self._sessions.setdefault(id, Session(cwd, [], printed, asyncio.Event(), asyncio.Lock()))

    def _later(self, telling: Any) -> None:
        async def send_updates() -> None:
            with suppress(Exception):  # it may have left
                await telling

        self._sending = asyncio.ensure_future(send_updates())

    def _known(self, params: Message) -> Session:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            raise Refusal(self.traits.unknown_code, "there is no such session")
        return session

    async def _set_mode(self, params: Message) -> Message:
        session = self._known(params)
        if params.get("modeId") not in ("ask", "code"):
            raise Wrong(self.traits.params_code, "there is no such mode")
        session.mode = params["modeId"]
        return {}

    async def _list(self, params: Message) -> Message:
        wanted = params.get("cwd")
        return {
            "sessions": [{"sessionId": id, "cwd": cwd} for id, (cwd, _) in self._store.items() if wanted in (None, cwd)]
        }

    async def _load(self, params: Message) -> Message:
        session = self._opened(str(params.get("sessionId")))
        for kind, text in session.history:
            await self.update(params["sessionId"], kind, content={"type": "text", "text": text})
        return self._offer(session)

    async def _resume(self, params: Message) -> Message:
        return self._offer(self._opened(str(params.get("sessionId"))))

    async def _close(self, params: Message) -> Message:
        session = self._known(params)
        session.cancelled.set()
        while session.turns:
            await asyncio.wait([one for one in session.turns if one is not None])
        del self._sessions[params["sessionId"]]
        return {}

    # Turns.

    async def _prompt(self, params: Message) -> Message:
        blocks = params.get("prompt")
        session = self._known(params)
        if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
            raise Wrong(self.traits.params_code, "there is no prompt")
        if not blocks:
            raise Wrong(self.traits.params_code, "the prompt is empty")
        if session.turns:
            await self._beside(session)
        task = asyncio.current_task()
        session.turns.append(task)
        try:
            async with session.turn:
                return await self._turn(params["sessionId"], session, blocks)
        finally:
            session.turns.remove(task)
            if not session.turns:
                session.cancelled.clear()

    async def _beside(self, session: Session) -> None:
        """A second prompt comes while a turn runs."""
        if self.traits.second == "refused late":
            await asyncio.sleep(0.6)  # longer than it takes to cross
        if self.traits.second.startswith("refused"):
            raise Refusal(-32600, "one thing at a time")
        if self.traits.second == "replaces":
            session.cancelled.set()

    async def _turn(self, id: str, session: Session, blocks: list[Message]) -> Message:
        texts = [one["text"] for one in blocks if one.get("type") == "text"]
        words = (texts or ["say"])[0].split(maxsplit=2)
        session.history += [("user_message_chunk", text) for text in texts]
        if session.cancelled.is_set() and len(session.turns) > 1:
            return {"stopReason": "cancelled"}
        if not self.traits.silent or words[0].startswith("long"):
            await self._tell(id, session, "Well. ")
        if words[0] in ("ask", "write", "long_run") and not await self._may_go_on(id, words):
            if self.traits.refused_ends == "error" and not session.cancelled.is_set():
                raise Refusal(-32603, "so nothing was done")
            return {"stopReason": "cancelled" if session.cancelled.is_set() else self.traits.refused_ends}
        await self._work(id, session, words)
        if session.cancelled.is_set():
            await asyncio.sleep(self._chance.uniform(0, self.traits.cancels_in))
            if self.traits.talks_on:
                await self._tell(id, session, "Oh. ")
            return {"stopReason": "cancelled"}
        if self.traits.later_updates:
            await self.update(id, "usage_update", used=7, size=100)
        return {"stopReason": self.traits.ends}

    async def _work(self, id: str, session: Session, words: list[str]) -> None:
        if words[0] in ("ask", "write") and len(words) > 2:
            await asyncio.to_thread(Path(words[1]).write_text, words[2], encoding="utf-8")
        if words[0].startswith("long"):
            limit = None if self.traits.long_turn == "endless" else self._chance.uniform(0, 0.04)
            with suppress(TimeoutError):
                await asyncio.wait_for(session.cancelled.wait(), limit)
        if words[0] == "long_run":
            await self.update(id, "tool_call_update", toolCallId=f"call-{self._count}", status="failed")

    async def _tell(self, id: str, session: Session, text: str) -> None:
        session.history.append(("agent_message_chunk", text))
        await self.say(id, text)

    async def _may_go_on(self, id: str, words: list[str]) -> bool:
        """Ask for permission, before the call is sent or after it."""
        self._count += 1
        call = {"toolCallId": f"call-{self._count}", "title": " ".join(words), "kind": "edit"}
        if not self.traits.asks_first:
            await self.update(id, "tool_call", status="pending", **call)
            if self.traits.announces_twice:
                await self.update(id, "tool_call", status="pending", **{**call, "title": "Something else"})
        answer = await self.ask("session/request_permission", sessionId=id, toolCall=call, options=OPTIONS)
        result = answer.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        allowed = isinstance(outcome, dict) and outcome.get("optionId") == "yes"
        status = "failed" if not allowed else "in_progress" if words[0] == "long_run" else "completed"
        await self.update(id, "tool_call_update", toolCallId=call["toolCallId"], status=status)
        return allowed
