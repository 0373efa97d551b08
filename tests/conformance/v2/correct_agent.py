"""A small agent of version 2 over memory that is correct: it was written from the schema and shares no code with the check."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from antiphon.transports.base import Transport

Message = dict[str, Any]

CHOICES = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
INFO = {"name": "kitchen", "version": "2"}
LENGTHS = ("short", "long")
COMMANDS = [{"type": "command", "name": "sing", "description": "Sing"}]


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def write_file(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


class Kitchen:
    """One session: its messages, what waits, and what runs."""

    def __init__(self, agent: "CorrectAgent", id: str, cwd: str) -> None:
        self.agent, self.id, self.cwd = agent, id, cwd
        self.history: list[Message] = []
        self.waiting: list[tuple[Any, list[Message]]] = []
        self.length = "short"
        self.loud = False
        self.background: list[Message] | None = None
        self.cancelled = asyncio.Event()
        self.state = "idle"
        self.calls: dict[str, asyncio.Event] = {}
        self.worker: asyncio.Task[None] | None = None
        self.ends: list[asyncio.Task[None]] = []

    def options(self) -> list[Message]:
        values = [{"value": value, "name": value.title()} for value in LENGTHS]
        option = {"configId": "length", "name": "Length", "type": "select", "currentValue": self.length}
        return [
            {**option, "options": values},
            {"configId": "loud", "name": "Loud", "type": "boolean", "currentValue": self.loud},
        ]

    async def update(self, kind: str, /, **fields: Any) -> None:
        params = {"sessionId": self.id, "update": {"sessionUpdate": kind, **fields}}
        await self.agent.send(method="session/update", params=params)

    async def keep(self, kind: str, id: str, content: list[Message]) -> None:
        """A message of the history, sent whole."""
        self.history.append({"kind": kind, "messageId": id, "content": content})
        await self.update(kind, messageId=id, content=content)

    async def report(self, state: str, **more: Any) -> None:
        self.state = state
        listed = {} if self.background is None else {"background": list(self.background)}
        await self.update("state_update", state=state, **listed, **more)

    def cancel(self) -> list[Any]:
        """Cancel what runs; the prompts that waited."""
        left = [id for id, _ in self.waiting]
        self.waiting.clear()
        if self.state != "idle":
            self.cancelled.set()
        return left

    def prompt(self, id: Any, blocks: list[Message]) -> None:
        self.waiting.append((id, blocks))
        if self.worker is None or self.worker.done():
            self.worker = self.agent.begin(self.work())

    async def work(self) -> None:
        while self.waiting:
            id, blocks = self.waiting.pop(0)
            self.state = "running"
            message = self.agent.name("user")
            await self.keep("user_message", message, blocks)
            await self.agent.send(id=id, result={"messageId": message})
            await self.report("running")
            await self.do(str(blocks[0]["text"]).split(maxsplit=2))
            reason = "cancelled" if self.cancelled.is_set() else "end_turn"
            self.cancelled.clear()
            await self.report("idle", stopReason=reason)

    async def do(self, words: list[str]) -> None:
        match words[0]:
            case "long":
                await self.say("Well. ")
                await self.cancelled.wait()
            case "ask":
                await self.ask(words)
            case "write":
                await self.write(words)
            case "form":
                schema = {"type": "object", "properties": {"name": {"type": "string"}}}
                await self.question("elicitation/create", mode="form", message="Who?", requestedSchema=schema)
            case "long_run":
                await self.run()
            case _:
                pass
        if not self.cancelled.is_set():
            await self.say("Done. ")

    async def say(self, text: str) -> None:
        id = self.agent.name("agent")
        for piece in (text, "Yes."):
            await self.update("agent_message_chunk", messageId=id, content={"type": "text", "text": piece})
        self.history.append(
            {"kind": "agent_message", "messageId": id, "content": [{"type": "text", "text": text + "Yes."}]}
        )

    async def write(self, words: list[str]) -> None:
        call, path = self.agent.name("call"), words[1]
        await self.update("tool_call_update", toolCallId=call, title="Write", kind="edit", status="in_progress")
        write_file(path, words[2])
        patch = {"format": "git_patch", "text": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+{words[2]}\n"}
        diff = {"type": "diff", "changes": [{"operation": "add", "path": path}], "patch": patch}
        place = [{"path": path, "line": 1}]
        await self.update("tool_call_update", toolCallId=call, status="completed", content=[diff], locations=place)

    async def ask(self, words: list[str]) -> None:
        call = self.agent.name("call")
        about = {"type": "tool_call", "toolCall": {"toolCallId": call, "title": "Write", "status": "pending"}}
        answer = await self.question("session/request_permission", title="May I write?", subject=about, options=CHOICES)
        outcome = answer.get("result", {}).get("outcome", {})
        allowed = outcome == {"outcome": "selected", "optionId": "yes"}
        if allowed:
            write_file(words[1], words[2])
        status = "cancelled" if self.cancelled.is_set() else "completed" if allowed else "failed"
        await self.update("tool_call_update", toolCallId=call, status=status)

    async def question(self, method: str, **params: Any) -> Message:
        """The answer to a question, or nothing where the work is cancelled first."""
        await self.report("requires_action")
        id, asked = await self.agent.ask(method, sessionId=self.id, **params)
        stop = asyncio.ensure_future(self.cancelled.wait())
        await asyncio.wait((asked, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not asked.done():
            await self.agent.send(method="$/cancel_request", params={"requestId": id})
            return {}
        await self.report("running")
        return asked.result()

    async def run(self) -> None:
        """A command in the background, which can be cancelled by itself."""
        call, terminal = self.agent.name("call"), self.agent.name("terminal")
        self.calls[call] = asyncio.Event()
        await self.update("terminal_update", terminalId=terminal, command="sleep 60", cwd=self.cwd)
        can: Message = {"capabilities": {"cancel": {}}}
        content = [{"type": "terminal", "terminalId": terminal}]
        await self.update(
            "tool_call_update", toolCallId=call, title="Run", status="in_progress", content=content, **can
        )
        self.background = [{"type": "tool_call", "toolCallId": call}]

        async def end() -> None:
            await self.calls[call].wait()
            await self.update("terminal_update", terminalId=terminal, exitStatus={"signal": "TERM"})
            await self.update("tool_call_update", toolCallId=call, status="cancelled", capabilities=None)
            del self.calls[call]
            self.background = []
            await self.report(self.state)

        self.ends.append(self.agent.begin(end()))

    async def close(self) -> None:
        for id in self.cancel():
            await self.agent.send(id=id, error={"code": -32800, "message": "cancelled"})
        for stop in list(self.calls.values()):
            stop.set()
        await asyncio.gather(*self.ends)
        if self.worker is not None:
            await self.worker


class CorrectAgent:
    """One agent."""

    kitchen: type[Kitchen] = Kitchen
    """Its sessions."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.sessions: dict[str, Kitchen] = {}
        self.stored: dict[str, Kitchen] = {}
        self._asked: dict[Any, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._count = 0
        self._version: int | None = None

    def begin(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def name(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"

    async def send(self, **message: Any) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def ask(self, method: str, **params: Any) -> tuple[str, "asyncio.Future[Message]"]:
        id = self.name("question")
        self._asked[id] = asyncio.get_running_loop().create_future()
        await self.send(id=id, method=method, params=params)
        return id, self._asked[id]

    async def serve(self) -> None:
        try:
            while (frame := await self.transport.receive()) is not None:
                message = msgspec.json.decode(bytes(frame))  # type: ignore[arg-type]  # nothing here is over the limit
                if isinstance(message, list):
                    await self.send(id=None, error={"code": -32600, "message": "a batch"})
                elif "method" not in message:
                    waiting = self._asked.pop(message.get("id"), None)
                    if waiting is not None:
                        waiting.set_result(message)
                elif "id" not in message:
                    await self._notice(message)
                else:
                    _ = self.begin(self._answer(message))
        finally:
            for task in self._tasks:
                task.cancel()
            await self.transport.close()

    async def _notice(self, message: Message) -> None:
        if message["method"] == "session/cancel" and (one := self.sessions.get(message["params"]["sessionId"])):
            for id in one.cancel():
                await self.send(id=id, error={"code": -32800, "message": "cancelled"})

    async def _answer(self, message: Message) -> None:
        try:
            result = await self.do(message["method"], message.get("params") or {}, message["id"])
        except Refusal as refusal:
            data = {"data": refusal.data} if refusal.data else {}
            await self.send(id=message["id"], error={"code": refusal.code, "message": str(refusal), **data})
        else:
            if result is not None:
                await self.send(id=message["id"], result=result)

    async def do(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "initialize":
            return self._initialize(params)
        if self._version is None:
            raise Refusal(-32600, "not initialized")
        match method:
            case "auth/login" | "auth/logout":
                return {}
            case "session/new":
                return self._new(params)
            case "session/list":
                return {"sessions": [{"sessionId": one.id, "cwd": one.cwd} for one in self.stored.values()]}
            case "session/resume":
                return await self._resume(params)
            case "session/close":
                if (closed := self.sessions.get(params["sessionId"])) is not None:
                    await closed.close()
                    del self.sessions[closed.id]
                return {}
            case "session/prompt":
                self._session(params).prompt(id, _checked(params.get("prompt")))
                return None
            case _:
                return await self._do_inside(method, params)

    async def _do_inside(self, method: str, params: Message) -> Message:
        match method:
            case "session/set_config_option":
                return await self._set(self._session(params), params)
            case "tool_call/cancel":
                return await self._cancel_call(self._session(params), params)
            case "terminal/cancel":
                raise Refusal(-32602, "there is no such terminal")
            case _:
                raise Refusal(-32601, "method not found")

    def _initialize(self, params: Message) -> Message:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, int):
            raise Refusal(-32602, "protocolVersion is not a number")
        if wanted < 2:
            raise Refusal(-32022, "no such version", requested=wanted, supported=[2])
        if wanted == 2 and "info" not in params:
            raise Refusal(-32602, "info is missing")
        self._version = 2
        methods = [{"type": "agent", "methodId": "demo", "name": "Demo"}]
        can: Message = {"session": {"mcp": {"stdio": {}}, "prompt": {}}}
        return {"protocolVersion": 2, "info": INFO, "capabilities": can, "authMethods": methods}

    def _new(self, params: Message) -> Message:
        for server in params.get("mcpServers") or []:
            if server.get("type") != "stdio":
                raise Refusal(-32602, "no such server")
        session = self.kitchen(self, self.name("session"), params["cwd"])
        self.sessions[session.id] = self.stored[session.id] = session
        return {"sessionId": session.id, "configOptions": session.options(), "availableCommands": COMMANDS}

    def _session(self, params: Message) -> Kitchen:
        if params.get("sessionId") not in self.sessions:
            raise Refusal(-32002, "no such session", sessionId=params.get("sessionId"))
        return self.sessions[params["sessionId"]]

    async def _resume(self, params: Message) -> Message:
        session = self.stored.get(params["sessionId"])
        if session is None:
            raise Refusal(-32002, "no such session", sessionId=params["sessionId"])
        replay = params.get("replayFrom")
        if replay is not None and replay.get("type") != "start":
            raise Refusal(-32602, "no such cursor")
        self.sessions[session.id] = session
        for one in session.history if replay is not None else ():
            await session.update(one["kind"], messageId=one["messageId"], content=one["content"])
        await session.report(session.state)
        return {"configOptions": session.options(), "availableCommands": COMMANDS}

    async def _set(self, session: Kitchen, params: Message) -> Message:
        match params.get("configId"), params.get("type"), params.get("value"):
            case "length", "id", str(value) if value in LENGTHS:
                session.length = value
            case "loud", "boolean", bool(loud):
                session.loud = loud
            case _:
                raise Refusal(-32602, "no such option")
        await session.update("config_option_update", configOptions=session.options())
        return {"configOptions": session.options()}

    async def _cancel_call(self, session: Kitchen, params: Message) -> Message:
        stop = session.calls.get(params["toolCallId"])
        if stop is None:
            raise Refusal(-32602, "there is no such call")
        stop.set()
        return {}


def _checked(blocks: Any) -> list[Message]:
    if not isinstance(blocks, list) or not blocks:
        raise Refusal(-32602, "the prompt is empty")
    for one in blocks:
        if one.get("type") not in ("text", "resource_link") or (
            one["type"] == "text" and not isinstance(one.get("text"), str)
        ):
            raise Refusal(-32602, "no such content")
    return blocks
