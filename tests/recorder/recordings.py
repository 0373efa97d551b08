"""Recordings for tests, written line by line as a tap would write them."""

from typing import Any

import msgspec

from antiphon.recorder.analysis import Analysis, RecordedMessage
from antiphon.recorder.analysis_builder import analyse

Json = Any


class Tape:
    """A recording that is being written. `t` is the time of the next line."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.t = 0.0

    def line(self, **keys: Json) -> "Tape":
        self.lines.append(msgspec.json.encode(keys) + b"\n")
        return self

    def message(self, dir: str, **keys: Json) -> "Tape":
        return self.line(t=self.t, dir=dir, msg={"jsonrpc": "2.0", **keys})

    def ask(self, id: Json, method: str, params: Json, dir: str = "c2a") -> "Tape":
        return self.message(dir, id=id, method=method, params=params)

    def answer(self, id: Json, result: Json, dir: str = "a2c") -> "Tape":
        return self.message(dir, id=id, result=result)

    def refuse(self, id: Json, code: int, message: str, dir: str = "a2c") -> "Tape":
        return self.message(dir, id=id, error={"code": code, "message": message})

    def update(self, update: str, /, session: str = "s", **keys: Json) -> "Tape":
        params = {"sessionId": session, "update": {"sessionUpdate": update, **keys}}
        return self.message("a2c", method="session/update", params=params)

    def say(self, text: str) -> "Tape":
        return self.update("agent_message_chunk", content={"type": "text", "text": text})

    def later(self, seconds: float) -> "Tape":
        self.t = round(self.t + seconds, 6)
        return self

    def meet(self, version: int = 1, session: str = "s") -> "Tape":
        """A handshake and a session."""
        client, agent = {"name": "editor", "version": "1"}, {"name": "singer", "version": "2"}
        if version == 1:
            self.ask(0, "initialize", {"protocolVersion": 1, "clientInfo": client})
            self.answer(0, {"protocolVersion": 1, "agentInfo": agent, "agentCapabilities": {}, "authMethods": []})
        else:
            self.ask(0, "initialize", {"protocolVersion": version, "info": client, "capabilities": {}})
            self.answer(0, {"protocolVersion": version, "info": agent, "capabilities": {"session": {}}})
        return self.ask(1, "session/new", {"cwd": "/w", "mcpServers": []}).answer(1, {"sessionId": session})

    def prompt(self, id: Json, text: str = "sing", session: str = "s") -> "Tape":
        return self.ask(id, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def permission(self, id: Json, call: Json) -> "Tape":
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]  # fmt: skip
        params = {"sessionId": "s", "toolCall": call, "options": options}
        return self.ask(id, "session/request_permission", params, "a2c")

    def choose(self, id: Json, option: str) -> "Tape":
        return self.answer(id, {"outcome": {"outcome": "selected", "optionId": option}}, "c2a")

    def read_back(self) -> tuple[Analysis, list[RecordedMessage]]:
        return analyse(self.lines)

    def analysis(self) -> Analysis:
        return self.read_back()[0]
