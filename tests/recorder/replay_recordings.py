"""Recordings for the tests of replay, made of words, and players that are fed by hand."""

from typing import Any

import msgspec

from antiphon.recorder.replay.agent import Player, StrictPlayer, TolerantPlayer
from antiphon.recorder.replay.client import ClientPlayer
from antiphon.recorder.replay.comparison import Ignored
from antiphon.recorder.replay.script import ReplayNames, Script, conversations
from antiphon.traffic.entries import Direction, Entry, entries_of

__all__ = [
    "INITIALIZE", "TURN", "answer", "ask", "asked", "client", "entries", "lines", "prompt", "raw", "say", "strict", "tell", "tolerant", "update",
]  # fmt: skip

Line = tuple[str, Any]


def ask(id: Any, method: str, **params: Any) -> Line:
    """A question of the client."""
    return "c2a", {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def tell(method: str, **params: Any) -> Line:
    """A notification of the client."""
    return "c2a", {"jsonrpc": "2.0", "method": method, "params": params}


def asked(id: Any, method: str, **params: Any) -> Line:
    """A question of the agent."""
    return "a2c", {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answer(id: Any, *, by: str = "a2c", **result: Any) -> Line:
    """A result."""
    return by, {"jsonrpc": "2.0", "id": id, "result": result}


def update(kind: str, session: str = "s1", **fields: Any) -> Line:
    """An update of a session."""
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return "a2c", {"jsonrpc": "2.0", "method": "session/update", "params": params}


def prompt(id: Any, text: str, session: str = "s1") -> Line:
    """A prompt of one text."""
    return ask(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


INITIALIZE = ask(0, "initialize", protocolVersion=1, clientInfo={"name": "editor", "version": "1"})
TURN: list[Line] = [
    INITIALIZE,
    answer(0, protocolVersion=1),
    ask(1, "session/new", cwd="/old/songs", mcpServers=[]),
    answer(1, sessionId="s1"),
    update("available_commands_update", availableCommands=[]),
    prompt(2, "fix the tests"),
    update("tool_call", toolCallId="c1", title="Read /old/songs/a.py", locations=[{"path": "/old/songs/a.py"}]),
    asked(0, "session/request_permission", sessionId="s1", toolCall={"toolCallId": "c1"}, options=[]),
    answer(0, by="c2a", outcome={"outcome": "selected", "optionId": "allow"}),
    update("agent_message_chunk", content={"type": "text", "text": "done"}),
    answer(2, stopReason="end_turn"),
]
"""A turn with a question of the agent in it; a second between two lines."""


def raw(line: Line | Any) -> bytes:
    """A message in bytes."""
    return msgspec.json.encode(line[1] if isinstance(line, tuple) else line)


def lines(recording: list[Line]) -> bytes:
    """The recording as its file."""
    return b"".join(
        msgspec.json.encode({"t": float(place), "dir": dir, "raw" if isinstance(msg, str) else "msg": msg}) + b"\n"
        for place, (dir, msg) in enumerate(recording)
    )


def entries(recording: list[Line]) -> list[Entry]:
    """The recording as it is read."""
    return list(entries_of(lines(recording).splitlines()))


def strict(recording: list[Line], *ignored: str, speed: float = 0.0, verbatim: bool = False) -> StrictPlayer:
    """The agent's part, strictly."""
    script = Script(conversations(entries(recording))[0], Direction.A2C)
    names = ReplayNames(script.lines, Direction.C2A, verbatim=verbatim)
    return StrictPlayer(script, names, speed=speed, ignored=Ignored(ignored))


def tolerant(recording: list[Line], speed: float = 0.0) -> TolerantPlayer:
    """The agent's part, tolerantly."""
    script = Script(conversations(entries(recording))[0], Direction.A2C)
    return TolerantPlayer(script, ReplayNames(script.lines, Direction.C2A, renew=True), speed=speed)


def client(recording: list[Line], *ignored: str, is_strict: bool = True) -> ClientPlayer:
    """The client's part."""
    script = Script(conversations(entries(recording))[0], Direction.C2A)
    names = ReplayNames(script.lines, Direction.A2C)
    return ClientPlayer(script, names, speed=0.0, strict=is_strict, ignored=Ignored(ignored))


def say(player: Player, *text: Line, now: float = 0.0) -> list[Any]:
    """Say this to a player, and receive what it says to it."""
    received = []
    for line in text:
        player.receive(raw(line), now)
        received += [msgspec.json.decode(sent) for sent in player.ready(now)]
    return received
