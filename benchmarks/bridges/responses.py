"""The answer of a model as the Responses API streams it: what Codex asks for."""

from functools import cache
from itertools import count
from typing import Any, Final

from benchmarks.bridges.words import event, wanted, words_of

_NUMBERS: Final = count(1)
_ID: Final = b"msg_of_the_moment"


def answer(asked: dict[str, Any]) -> bytes:
    """Say what the prompt asks for, all at once."""
    number, turn = wanted(asked.get("input")), next(_NUMBERS)
    id = f"msg_{turn:024d}"
    begun: dict[str, Any] = {"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []}
    text = {"type": "output_text", "text": "".join(words_of(number)), "annotations": []}
    done = {**begun, "status": "completed", "content": [text]}
    response: dict[str, Any] = {
        "id": f"resp_{turn:024d}",
        "object": "response",
        "model": asked.get("model"),
        "output": [],
    }
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": number,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10 + number,
    }
    ended = {**response, "status": "completed", "output": [done], "usage": usage}
    return b"".join(
        (
            event({"type": "response.created", "response": {**response, "status": "in_progress"}}),
            event({"type": "response.output_item.added", "output_index": 0, "item": begun}),
            _middle(number).replace(_ID, id.encode()),
            event({"type": "response.output_item.done", "output_index": 0, "item": done}),
            event({"type": "response.completed", "response": ended}),
        )
    )


@cache
def _middle(number: int) -> bytes:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": _ID.decode()}
    return b"".join(event({**delta, "delta": word}) for word in words_of(number))
