"""Little sessions, written down in as few words as they have."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from antiphon.traffic.checker import TrafficChecker
from antiphon.traffic.entries import Direction, parse

Json = dict[str, Any]


class Line(NamedTuple):
    """A line of one side, and how long it took to come."""

    by: Direction
    raw: bytes
    after: float = 0.0


class Side:
    """Says things for one side."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction

    def sends(self, message: Any, after: float = 0.0) -> Line:
        return Line(self.direction, message if isinstance(message, bytes) else msgspec.json.encode(message), after)

    def asks(self, id: Any, method: str, **params: Any) -> Line:
        return self.sends({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def notifies(self, method: str, **params: Any) -> Line:
        return self.sends({"jsonrpc": "2.0", "method": method, "params": params})

    def gives(self, id: Any, after: float = 0.0, **result: Any) -> Line:
        return self.sends({"jsonrpc": "2.0", "id": id, "result": result}, after)

    def fails(self, id: Any, code: Any = -32603, message: Any = "It went wrong", after: float = 0.0) -> Line:
        return self.sends({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}, after)


client, agent = Side(Direction.C2A), Side(Direction.A2C)


def hello(can: Json | None = None, offers: Json | None = None, **more: Any) -> list[Line]:
    """The handshake, with what the client can and what the agent offers."""
    return [
        client.asks(0, "initialize", protocolVersion=1, clientCapabilities=can or {}),
        agent.gives(0, protocolVersion=1, agentCapabilities=offers or {}, **more),
    ]


def new(id: int = 1, session: str = "s", **more: Any) -> list[Line]:
    """A new session."""
    return [client.asks(id, "session/new", cwd="/w", mcpServers=[]), agent.gives(id, sessionId=session, **more)]


def prompt(id: int = 2, session: str = "s", *blocks: Json) -> Line:
    return client.asks(id, "session/prompt", sessionId=session, prompt=list(blocks) or [text("Hello")])


def done(id: int = 2, reason: str = "end_turn", after: float = 0.0) -> Line:
    return agent.gives(id, after, stopReason=reason)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def update(kind: str, session: str = "s", /, **fields: Any) -> Line:
    return agent.notifies("session/update", sessionId=session, update={"sessionUpdate": kind, **fields})


def message_chunk(words: str = "Hi", session: str = "s", kind: str = "agent_message_chunk") -> Line:
    return update(kind, session, content=text(words))


def call(id: str = "c", **fields: Any) -> Line:
    return update("tool_call", toolCallId=id, title="Look", **fields)


def call_update(id: str = "c", **fields: Any) -> Line:
    return update("tool_call_update", toolCallId=id, **fields)


def may_i(id: int = 50, call: str = "c", options: Iterable[str] = ("yes", "no")) -> Line:
    offered = [{"optionId": one, "name": one, "kind": "allow_once"} for one in options]
    return agent.asks(id, "session/request_permission", sessionId="s", toolCall={"toolCallId": call}, options=offered)


def chosen(id: int = 50, option: str = "yes") -> Line:
    return client.gives(id, outcome={"outcome": "selected", "optionId": option})


def dismissed(id: int = 50) -> Line:
    return client.gives(id, outcome={"outcome": "cancelled"})


def turn(*lines: Line, id: int = 2) -> list[Line]:
    """A whole turn with these lines in it."""
    return [prompt(id), *(lines or [message_chunk()]), done(id)]


def judged(talk: Iterable[Line]) -> TrafficChecker:
    checker, now = TrafficChecker(), 0.0
    for number, line in enumerate(talk, 1):
        now += line.after
        checker.check(parse(number, now, line.by, line.raw))
    return checker
