"""Lines for the stand-in to say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.engines.claude.place import Place

__all__ = ["INIT", "RESULT", "assistant", "stand_in_plays", "stand_in_says", "tool_result"]

Line = dict[str, Any]

INIT: Final[Line] = {
    "type": "system",
    "subtype": "init",
    "session_id": "$SESSION",
    "model": "claude-stand-in",
    "permissionMode": "default",
    "tools": ["Bash"],
    "mcp_servers": [],
    "slash_commands": [],
}

RESULT: Final[Line] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done",
    "stop_reason": "end_turn",
    "terminal_reason": "completed",
    "session_id": "$SESSION",
    "num_turns": 1,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "total_cost_usd": 0.0,
    "user_message_uuid": "$UUID",
}


def assistant(*blocks: Line) -> Line:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-stand-in",
        "content": list(blocks),
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "$SESSION"}


def tool_result(id: str, text: str, structured: object) -> Line:
    content = [{"type": "tool_result", "tool_use_id": id, "content": text}]
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "tool_use_result": structured, "session_id": "$SESSION"}


def stand_in_says(at: Place, *lines: Line) -> None:
    """What it says to every prompt."""
    stand_in_plays(at, *[lines] * 5)


def stand_in_plays(at: Place, *turns: Sequence[Line]) -> None:
    """What it says to one prompt after the other."""
    texts = ["\n".join(json.dumps(line) for line in (INIT, *lines)) for lines in turns]
    file = Path(at.environment["TMPDIR"]) / "lines.jsonl"
    file.write_text("\n\n".join(texts), encoding="utf-8")
    at.environment["STAND_IN_LINES"] = str(file)
