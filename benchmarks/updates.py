"""The stream of updates every contestant sends or receives: which one is the i-th. Knows no process and no SDK."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Final

_DATA: Final = json.loads(Path(__file__).with_name("updates.json").read_text(encoding="utf-8"))

TEXTS: Final[tuple[str, ...]] = tuple(_DATA["texts"])
TOOL_EVERY: Final[int] = _DATA["tool_every"]
TOOL_TITLE: Final[str] = _DATA["tool_title"]
TOOL_KIND: Final = "read"

BLOCK: Final = 1200
"""Updates after which the pattern repeats: a multiple of the texts, of two tool turns, and of 100 sessions."""


@dataclass(frozen=True, slots=True)
class Text:
    """An `agent_message_chunk`."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A `tool_call`."""

    call: str


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A `tool_call_update`."""

    call: str
    text: str


Step = Text | ToolStart | ToolEnd


def step(index: int) -> Step:
    """Say what the update at `index` is; one in twenty belongs to a tool call."""
    text = TEXTS[index % len(TEXTS)]
    turn, place = divmod(index, TOOL_EVERY)
    if place != TOOL_EVERY - 1:
        return Text(text)
    call = f"call_{turn // 2 % 1000:04d}"
    return ToolEnd(call, text) if turn % 2 else ToolStart(call)


# Made beforehand: what an agent wants to say is not what saying it costs.
_STEPS: Final = tuple(step(index) for index in range(BLOCK))


def steps(count: int) -> Iterator[Step]:
    """Iterate over `count` updates."""
    return islice(cycle(_STEPS), count)


def _wire(what: Step) -> dict[str, object]:
    match what:
        case Text(text):
            return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        case ToolStart(call):
            return {
                "sessionUpdate": "tool_call",
                "toolCallId": call,
                "title": TOOL_TITLE,
                "kind": TOOL_KIND,
                "status": "pending",
            }
        case ToolEnd(call, text):
            content = [{"type": "content", "content": {"type": "text", "text": text}}]
            return {
                "sessionUpdate": "tool_call_update",
                "toolCallId": call,
                "status": "completed",
                "content": content,
            }


def encode(message: object) -> bytes:
    """Encode one JSON-RPC message as a compact line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def update_line(session: str, what: Step) -> bytes:
    """Encode one `session/update`."""
    params = {"sessionId": session, "update": _wire(what)}
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": params})


def lines(sessions: Sequence[str], count: int) -> list[bytes]:
    """Encode up to one block of updates, dealt to the sessions in turn."""
    return [update_line(sessions[i % len(sessions)], what) for i, what in enumerate(steps(min(count, BLOCK)))]
