"""The answer of a model as the Messages API streams it: what Claude Code asks for."""

from functools import cache
from itertools import count
from typing import Any, Final

from benchmarks.bridges.words import event, wanted, words_of

_NUMBERS: Final = count(1)


def answer(asked: dict[str, Any]) -> bytes:
    """Say what the prompt asks for, all at once."""
    # Without tools it is the CLI that wants to know something for itself, a title say, and quotes the prompt.
    number = wanted(asked.get("messages")) if asked.get("tools") else 1
    message: dict[str, Any] = {
        "id": f"msg_{next(_NUMBERS):024d}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return b"".join(
        (
            event({"type": "message_start", "message": message}),
            event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            _middle(number),
            event({"type": "content_block_stop", "index": 0}),
            event({"type": "message_delta", "delta": end, "usage": {"output_tokens": number}}),
            event({"type": "message_stop"}),
        )
    )


@cache
def _middle(number: int) -> bytes:
    deltas = ({"type": "text_delta", "text": word} for word in words_of(number))
    return b"".join(event({"type": "content_block_delta", "index": 0, "delta": delta}) for delta in deltas)
