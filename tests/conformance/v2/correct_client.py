"""A small client of version 2 over memory that is correct: it was written from the schema and shares no code with the check."""

import asyncio
from collections.abc import Collection, Coroutine
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from antiphon.conformance.client_process import CLIENT_PURPOSES_V2
from antiphon.errors import AcpError
from antiphon.transports.base import Transport
from tests.conformance.client_memory import Broken

Message = dict[str, Any]

INFO = {"name": "table", "version": "2"}
EARLIER = "stand-in-earlier"
ALLOWS, REJECTS = ("allow_once", "allow_always"), ("reject_once", "reject_always")
TEXT = [{"type": "text", "text": "hello"}]


class Failure(AcpError):
    """What ends the client with a status that is not 0."""


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Table:
    """One session: its state, and in their order the messages that were inserted and the times that it was idle."""

    def __init__(self) -> None:
        self.state = "idle"
        self.events: list[tuple[str, str]] = []
        self.calls: dict[str, Message] = {}
        self.changed = asyncio.Event()

    def note(self, kind: str, id: str) -> None:
        self.events.append((kind, id))
        self.changed.set()

    def update(self, update: Message) -> None:
        kind = update.get("sessionUpdate")
        if kind == "state_update":
            self.state = str(update.get("state"))
            if self.state == "idle":
                reason, error = update.get("stopReason"), update.get("error") or {}
                self.note("idle", f"error: {error.get('message')}" if reason == "error" else "")
        elif kind in ("user_message", "user_message_chunk"):
            self.note("inserted", str(update.get("messageId")))
        elif kind == "tool_call_update":
            self.calls.setdefault(str(update.get("toolCallId")), {}).update(update)
        self.changed.set()

    def end_of(self, id: str) -> str | None:
        """How the work on a message ended; None while it goes on."""
        at = self.events.index(("inserted", id))
        return next((reason for kind, reason in self.events[at:] if kind == "idle"), None)

    async def until(self, id: str) -> None:
        """Wait for the end of the work on a message."""
        while (reason := self.end_of(id)) is None:
            self.changed.clear()
            await self.changed.wait()
        if reason:
            raise Failure(reason)


class CorrectClient:
    """One client with one connection, made to do one thing."""

    purposes: ClassVar[Collection[str]] = CLIENT_PURPOSES_V2

    def __init__(self, transport: Transport, cwd: Path, broken: Broken) -> None:
        self.transport = transport
        self.cwd = str(cwd)
        self.able = broken.able
        self.purpose = ""
        self.sessions: dict[str, Table] = {}
        self.open_permissions: dict[Any, asyncio.Future[Message]] = {}
        self.cancelled: set[Any] = set()
        """Requests that the agent has cancelled."""
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._hello: Message = {}

    async def use(self, purpose: str) -> None:
        """Do what a purpose names."""
        self.purpose = purpose
        reader = self._begin(self._read())
        try:
            await self._introduce()
            await self._do(purpose)
        finally:
            reader.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self.transport.close()

    async def _introduce(self) -> None:
        can: Message = {"elicitation": {"form": {}, "url": {}}} if self.able else {}
        self._hello = await self.request("initialize", protocolVersion=2, info=INFO, capabilities=can)
        if self._hello.get("protocolVersion") != 2:
            raise Failure("the agent speaks another version")
        if not isinstance(self._hello.get("capabilities", {}).get("session"), dict):
            raise Failure("the agent has no sessions")

    async def _do(self, purpose: str) -> None:
        match purpose:
            case "list":
                page = await self.request("session/list")
                while page.get("nextCursor") is not None:
                    page = await self.request("session/list", cursor=page["nextCursor"])
            case "delete":
                await self.request("session/delete", sessionId=EARLIER)
            case _:
                await self._converse(purpose)

    async def _converse(self, purpose: str) -> None:
        session = await self._open(purpose)
        if purpose == "set_option":
            params = {"configId": "length", "type": "id", "value": "long"}
            await self.request("session/set_config_option", sessionId=session, **params)
        if purpose == "two_at_once":
            await asyncio.gather(self._prompt(session), self._second(session))
            return
        if purpose in ("cancel", "cancel_call"):
            _ = self._begin(self._interrupt(session, purpose))
        await self._prompt(session)
        if purpose == "two_prompts":
            await self._prompt(session)
        if purpose == "close":
            try:
                await self.request("session/close", sessionId=session)
            except Failure as failure:
                if "-32002" not in str(failure):
                    raise

    async def _open(self, purpose: str) -> str:
        if purpose in ("load", "resume"):
            self.table(EARLIER)
            replay = {"replayFrom": {"type": "start"}} if purpose == "load" else {}
            await self.request("session/resume", sessionId=EARLIER, cwd=self.cwd, **replay)
            return EARLIER
        try:
            made = await self.request("session/new", cwd=self.cwd)
        except Failure as failure:
            methods = self._hello.get("authMethods")
            offered = [one for one in methods if one["type"] == "agent"] if isinstance(methods, list) else []
            if "-32000" not in str(failure) or not offered:
                raise
            await self.request("auth/login", methodId=offered[0]["methodId"])
            made = await self.request("session/new", cwd=self.cwd)
        return str(made["sessionId"])

    def table(self, session: str) -> Table:
        return self.sessions.setdefault(session, Table())

    async def _prompt(self, session: str) -> None:
        table = self.table(session)
        answer = await self.request("session/prompt", sessionId=session, prompt=TEXT)
        id = answer["messageId"]
        if ("inserted", id) not in table.events:
            table.note("inserted", id)
        await table.until(id)

    async def _second(self, session: str) -> None:
        """A prompt beside the first, once the agent works on that."""
        table = self.table(session)
        while table.state != "running":
            table.changed.clear()
            await table.changed.wait()
        await self._prompt(session)

    async def _interrupt(self, session: str, purpose: str) -> None:
        """What the user does when there is something to be seen."""
        table = self.table(session)
        while True:
            loose = [
                id
                for id, call in table.calls.items()
                if isinstance((call.get("capabilities") or {}).get("cancel"), dict)
            ]
            if purpose == "cancel_call" and loose:
                await self.request("tool_call/cancel", sessionId=session, toolCallId=loose[0])
                return
            if purpose == "cancel" and table.state == "running" and self.seen_text:
                await self.send(method="session/cancel", params={"sessionId": session})
                for waiting in self.open_permissions.values():
                    waiting.set_result({"outcome": {"outcome": "cancelled"}})
                self.open_permissions.clear()
                return
            table.changed.clear()
            await table.changed.wait()

    # The connection.

    seen_text = False
    """Whether the agent has sent something."""

    def _begin(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def send(self, **message: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def request(self, method: str, **params: Any) -> Message:
        id = len(self._asked) + 1
        self._asked[id] = asyncio.get_running_loop().create_future()
        await self.send(id=id, method=method, params=params)
        answer = await self._asked[id]
        if "error" in answer:
            raise Failure(f"{method} failed with {answer['error'].get('code')}")
        return answer["result"] if isinstance(answer.get("result"), dict) else {}

    async def _read(self) -> None:
        try:
            while (frame := await self.transport.receive()) is not None:
                try:
                    message = msgspec.json.decode(bytes(frame))  # type: ignore[arg-type]  # nothing here is over the limit
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                await self._take(message)
        finally:
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_result({"error": {"code": 0, "message": "the agent left"}})
            for session in self.sessions.values():
                session.note("idle", "the agent left")

    async def _take(self, message: Any) -> None:
        if isinstance(message, list):
            await self.send(id=None, error={"code": -32600, "message": "a batch"})
        elif not isinstance(message, dict):
            return
        elif "method" not in message:
            waiting = self._asked.get(message.get("id", 0)) if isinstance(message.get("id"), int) else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif "id" in message:
            _ = self._begin(self._answer(message))
        else:
            self._notice(message)

    def _notice(self, message: Message) -> None:
        params = message.get("params") or {}
        if message["method"] == "session/update":
            update = params["update"]
            self.seen_text = self.seen_text or update.get("sessionUpdate") == "agent_message_chunk"
            self.table(params["sessionId"]).update(update)
        elif message["method"] == "$/cancel_request":
            self.cancelled.add(params.get("requestId"))
            waiting = self.open_permissions.pop(params.get("requestId"), None)
            if waiting is not None:
                waiting.set_result({"outcome": {"outcome": "cancelled"}})

    async def _answer(self, message: Message) -> None:
        try:
            result = await self._result(message["method"], message.get("params") or {}, message["id"])
        except Refusal as refusal:
            await self.send(id=message["id"], error={"code": refusal.code, "message": str(refusal)})
        else:
            await self.send(id=message["id"], result=result)

    async def _result(self, method: str, params: Message, id: Any) -> Message:
        if method == "session/request_permission":
            return await self._permission(params, id)
        if method == "elicitation/create" and self.able:
            if params.get("mode") not in ("form", "url"):
                raise Refusal(-32602, "no such mode")
            return {"action": "decline"}
        raise Refusal(-32601, "method not found")

    async def _permission(self, params: Message, id: Any) -> Message:
        options, subject = params.get("options"), params.get("subject") or {}
        if not isinstance(params.get("sessionId"), str) or not isinstance(options, list) or "title" not in params:
            raise Refusal(-32602, "no permission request")
        if subject.get("type") == "tool_call":
            if "toolCall" not in subject:
                raise Refusal(-32602, "no tool call")
            self.table(params["sessionId"]).update({"sessionUpdate": "tool_call_update", **subject["toolCall"]})
        if id in self.cancelled:
            return {"outcome": {"outcome": "cancelled"}}
        if self.purpose == "cancel":
            self.open_permissions[id] = asyncio.get_running_loop().create_future()
            return await self.open_permissions[id]
        wanted = REJECTS if self.purpose == "refuse" else ALLOWS
        chosen = next((one["optionId"] for one in options if one["kind"] in wanted), None)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}
