"""Lines for the stand-in to say."""

import json
from typing import Any

from tests.engines.codex.place import Place

__all__ = ["asked", "message", "notification", "responses_received", "stand_in_says"]

Line = dict[str, Any]


def notification(method: str, **params: Any) -> Line:
    """A notification about the thread."""
    return {"method": method, "params": {"threadId": "$THREAD", "turnId": "$TURN", **params}}


def asked(id: int | str, method: str, **params: Any) -> Line:
    """A request about it."""
    return {"id": id, **notification(method, **params)}


def message(id: str, text: str) -> Line:
    """What the model says."""
    return notification("item/completed", item={"type": "agentMessage", "id": id, "text": text})


def stand_in_says(at: Place, *lines: Line) -> None:
    """What it says to every prompt."""
    text = "\n".join(json.dumps(line) for line in lines)
    file = at.temporary / "lines.jsonl"
    file.write_text("\n\n".join([text] * 5), encoding="utf-8")
    at.environment |= {"STAND_IN_LINES": str(file), "STAND_IN_ANSWERS": str(at.temporary / "answers.jsonl")}


def responses_received(at: Place) -> list[Any]:
    """The results of what it asked for, in their order."""
    lines = (at.temporary / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line).get("result") for line in lines]
