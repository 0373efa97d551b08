"""A small agent written in raw JSON lines, with only the standard library, so that it starts fast and can misbehave as it likes.

`Agent` behaves; `tests.client.deviations` and `tests.client.troubles` have the subclasses that do not. A log file gets a line for everything it receives.
"""

import itertools
import json
import sys
from collections import deque
from pathlib import Path
from typing import Any, ClassVar

Message = dict[str, Any]
END = {"stopReason": "end_turn"}
CANCELLED = {"stopReason": "cancelled"}


class Refusal(Exception):
    """Answer with an error."""

    def __init__(self, code: int, message: str = "no", data: object = None) -> None:
        super().__init__(code, message, data)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Agent:
    """Opens sessions and repeats each prompt."""

    version: int = 1
    capabilities: ClassVar[Message] = {}
    auth_methods: ClassVar[list[Message]] = []
    offer: ClassVar[Message] = {}

    def __init__(self, log: str) -> None:
        self._log = Path(log)
        self._ids = itertools.count(1000)
        self._sessions = itertools.count(1)
        self._queue: deque[Message] = deque()
        self.starts = self.times("started") + 1
        self.note("started")

    # The wire.

    def note(self, line: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(line + "\n")

    def times(self, line: str) -> int:
        """How often something was noted, in this life and in earlier ones."""
        return self._log.read_text(encoding="utf-8").splitlines().count(line) if self._log.exists() else 0

    def write(self, line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def say(self, message: Message) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}))

    def read(self) -> Message:
        line = sys.stdin.readline()
        if not line:
            self.end_of_input()
        message: Message = json.loads(line)
        return message

    def end_of_input(self) -> None:
        sys.exit(0)

    def update(self, session: str, kind: str, /, **fields: object) -> None:
        self.say(
            {"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}}
        )

    def text(self, session: str, text: str) -> None:
        self.update(session, "agent_message_chunk", content={"type": "text", "text": text})

    def ask(self, method: str, params: object) -> Message:
        """Ask the client and wait for its answer; what else comes meanwhile waits."""
        id = next(self._ids)
        self.say({"id": id, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == id and "method" not in message:
                return message
            self._queue.append(message)

    def wait_for(self, method: str) -> Message:
        """The next message of this kind; what else comes meanwhile waits."""
        while True:
            for message in self._queue:
                if message.get("method") == method:
                    self._queue.remove(message)
                    self.note(method)
                    return message
            self._queue.append(self.read())

    def permission(self, session: str, options: list[tuple[str, str]], **call: object) -> Message:
        """Ask for permission; the outcome."""
        listed = [{"optionId": id, "name": id, "kind": kind} for id, kind in options]
        params = {"sessionId": session, "toolCall": {"toolCallId": "t1", **call}, "options": listed}
        answer = self.ask("session/request_permission", params)
        outcome: Message = answer["result"]["outcome"]
        return outcome

    def chosen(self, session: str, options: list[tuple[str, str]], **call: object) -> str:
        """Ask for permission; the id of the option, or the word for what happened instead."""
        outcome = self.permission(session, options, **call)
        return str(outcome.get("optionId", outcome["outcome"]))

    # The methods.

    def serve(self) -> None:
        while True:
            message = self._queue.popleft() if self._queue else self.read()
            method = message.get("method")
            if method is None:
                continue
            self.note(method)
            try:
                result = self.handle(method, message.get("params") or {})
            except Refusal as refusal:
                if "id" in message:
                    self.say({"id": message["id"], "error": refusal.error})
            else:
                if "id" in message:
                    self.say({"id": message["id"], "result": result})
                    self.after(method)

    def handle(self, method: str, params: Message) -> object:
        handler = getattr(self, method.rpartition("/")[2], None)
        if handler is None:
            raise Refusal(-32601, "Method not found")
        return handler(params)

    def after(self, method: str) -> None:
        """An answer has left."""

    def initialize(self, params: Message) -> object:
        return {
            "protocolVersion": self.version,
            "agentCapabilities": self.capabilities,
            "authMethods": self.auth_methods,
            "agentInfo": {"name": type(self).__name__, "version": "1"},
        }

    def new(self, params: Message) -> object:
        return {"sessionId": f"s{self.starts}.{next(self._sessions)}", **self.offer}

    def cancel(self, params: Message) -> None:
        pass

    def prompt(self, params: Message) -> object:
        said = "".join(block.get("text", "") for block in params["prompt"])
        self.text(params["sessionId"], said)
        return END
