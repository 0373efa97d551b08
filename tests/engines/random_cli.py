"""Claude Code and Codex in memory, for schedules: they send the least that is a turn, pause where a seed says so, and die on request."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

from antiphon.errors import ConnectionClosed
from tests.schedules import World

__all__ = ["ClaudeCli", "Cli", "CodexCli"]

_pids = itertools.count(100_001)


class Cli:
    """What `antiphon.engines.process` needs of a child process, and the program in it."""

    command = "a program in memory"
    stderr = ""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loop = asyncio.get_running_loop()
        self.pid = next(_pids)
        self.lost: ConnectionClosed | None = None
        self.out = bytearray()
        self.working: set[asyncio.Task[None]] = set()
        self._sink: Any = None
        self._said = bytearray()
        self._paused = False
        self._flushing = False

    # As a transport.

    def attach(self, sink: Any) -> None:
        self._sink = sink
        self._deliver()
        if self.lost is not None:
            sink.connection_lost(self.lost)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._deliver()

    def flush(self) -> None:
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)

    async def close(self) -> None:
        await self.world.pause()
        self.die()
        await asyncio.gather(*self.working, return_exceptions=True)

    # As a program.

    def die(self) -> None:
        """End it, in whatever it is doing. What it sent before is still received."""
        if self.lost is None:
            self.lost = ConnectionClosed("it was killed")
            for task in self.working:
                task.cancel()
            if self._sink is not None:
                self._paused = False
                self._deliver()
                self._sink.connection_lost(self.lost)

    def say(self, **message: Any) -> None:
        """One line of it."""
        if self.lost is None:
            self._said += json.dumps(message).encode() + b"\n"
            self.loop.call_soon(self._deliver)

    def do(self, work: Any) -> None:
        """Something that takes its time."""
        task = self.loop.create_task(work)
        self.working.add(task)
        task.add_done_callback(self.working.discard)

    def receive(self, message: dict[str, Any]) -> None:
        """One line that it is sent."""
        raise NotImplementedError

    def _deliver(self) -> None:
        if self._said and self._sink is not None and not self._paused:
            printed, self._said = self._said, bytearray()
            self._sink.block_received(printed)

    def _flush(self) -> None:
        self._flushing = False
        lines, self.out[:] = bytes(self.out).splitlines(), b""
        for line in lines:
            if self.lost is None:
                self.receive(json.loads(line))


class ClaudeCli(Cli):
    """`claude` with stream-json."""

    _numbers = itertools.count(1)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._turn: asyncio.Task[None] | None = None
        self._uuid = ""

    def receive(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "control_request":
                self.do(self._control(message))
            case "control_response":
                answer = self._answers.pop(message["response"]["request_id"], None)
                if answer is not None and not answer.done():
                    answer.set_result(message["response"])
            case "user":
                self._uuid = message.get("uuid", "")
                self.do(self._play(self._uuid))
            case _:
                pass

    async def _control(self, message: dict[str, Any]) -> None:
        await self.world.pause()
        found = {"commands": [], "models": [], "account": {"apiKeySource": "ANTHROPIC_API_KEY"}, "mode": "default"}
        response = {"subtype": "success", "request_id": message["request_id"], "response": found}
        self.say(type="control_response", response=response)
        if message["request"]["subtype"] == "interrupt" and self._uuid:
            for answer in self._answers.values():
                answer.cancel()
            if self._turn is not None:
                self._turn.cancel()

    async def _play(self, uuid: str) -> None:
        self._turn = asyncio.current_task()
        try:
            await self._steps()
        except asyncio.CancelledError:
            if self.lost is not None:
                raise
        self._uuid = ""
        self.say(type="result", subtype="success", is_error=False, result="", usage={}, user_message_uuids=[uuid])

    async def _steps(self) -> None:
        self.say(
            type="system",
            subtype="init",
            session_id="s",
            capabilities=["msg_lifecycle_v1", "interrupt_cancel_queued_v1"],
        )
        for _ in range(self.world.random.randint(1, 4)):
            await self.world.pause()
            number = next(self._numbers)
            if self.world.random.random() < 0.5:
                block = {"type": "text", "text": f"<{number}>"}
                self.say(type="assistant", message={"id": f"m{number}", "role": "assistant", "content": [block]})
            else:
                await self._call(f"call-{number}")

    async def _call(self, id: str) -> None:
        use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}
        self.say(type="assistant", message={"id": id, "role": "assistant", "content": [use]})
        answer = self._answers[id] = self.loop.create_future()
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": id}
        self.say(type="control_request", request_id=id, request=asked)
        await answer
        result = {"type": "tool_result", "tool_use_id": id, "content": "done"}
        self.say(type="user", message={"role": "user", "content": [result]})


class CodexCli(Cli):
    """`codex app-server`."""

    _numbers = itertools.count(1)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._results: dict[str, Callable[[dict[str, Any]], Any]] = {
            "initialize": lambda _: {"userAgent": "in memory"},
            "account/read": lambda _: {"account": None, "requiresOpenaiAuth": False},
            "model/list": lambda _: {"data": [], "nextCursor": None},
            "thread/start": self._thread,
            "thread/resume": self._thread,
            "turn/start": self._begin,
            "turn/interrupt": self._interrupt,
        }

    def receive(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message:
                self.do(self._answer(message))
        elif (answer := self._answers.pop(message.get("id"), None)) is not None and not answer.done():
            answer.set_result(message)

    async def _answer(self, message: dict[str, Any]) -> None:
        await self.world.pause()
        find = self._results.get(message["method"])
        self.say(id=message["id"], result={} if find is None else find(message.get("params") or {}))

    def _thread(self, params: dict[str, Any]) -> dict[str, Any]:
        id = params.get("threadId") or f"thread-{next(self._numbers)}"
        opened: dict[str, Any] = {"id": id, "cwd": "/", "preview": "", "turns": [], "createdAt": 1, "updatedAt": 1}
        return {"thread": opened, "model": "m", "approvalPolicy": "on-request", "sandbox": {"type": "readOnly"}}

    def _begin(self, params: dict[str, Any]) -> dict[str, Any]:
        turn = {"id": f"turn-{next(self._numbers)}", "status": "inProgress", "items": []}
        self.do(self._play(params["threadId"], turn))
        return {"turn": turn}

    def _interrupt(self, params: dict[str, Any]) -> dict[str, Any]:
        if (turn := self._turns.get(params["turnId"])) is not None:
            turn.cancel()
        return {}

    async def _play(self, thread: str, turn: dict[str, Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._turns[turn["id"]] = task
        status = "completed"
        try:
            self.tell("turn/started", thread, turn=turn)
            for _ in range(self.world.random.randint(1, 4)):
                await self.world.pause()
                await self._step(thread, turn["id"])
        except asyncio.CancelledError:
            if self.lost is not None:
                raise
            status = "interrupted"
        self.tell("turn/completed", thread, turn={**turn, "status": status})

    def tell(self, method: str, thread: str, **params: Any) -> None:
        """A notification about a thread."""
        self.say(method=method, params={"threadId": thread, **params})

    async def _step(self, thread: str, turn: str) -> None:
        number = next(self._numbers)
        if self.world.random.random() < 0.5:
            item = {"type": "agentMessage", "id": f"m{number}", "text": f"<{number}>"}
            self.tell("item/completed", thread, turnId=turn, item=item)
            return
        item = {"type": "commandExecution", "id": f"call-{number}", "command": "ls", "cwd": "/", "status": "inProgress"}
        self.tell("item/started", thread, turnId=turn, item=item)
        answer = self._answers[number] = self.loop.create_future()
        asked = {"threadId": thread, "turnId": turn, "itemId": item["id"], "command": "ls", "cwd": "/"}
        self.say(id=number, method="item/commandExecution/requestApproval", params=asked)
        await answer
        self.tell("item/completed", thread, turnId=turn, item={**item, "status": "completed", "exitCode": 0})
