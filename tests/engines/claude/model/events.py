"""An answer as the stream of events that the Messages API makes of it. Pure: knows neither sockets nor gates."""

import json
from collections.abc import Iterator
from uuid import uuid4

from tests.engines.claude.model.steps import Answer, Call, Cut, Json, Stop, Text, Think, Used, Wait
from tests.engines.model.server import Hold, Part
from tests.engines.model.steps import pieces

__all__ = ["events_of", "message_of", "named"]


def named(answer: Answer) -> Answer:
    """The same, with an id for every call."""
    return tuple(
        Call(step.name, step.input, f"toolu_{uuid4().hex[:24]}", step.size)
        if isinstance(step, Call) and not step.id
        else step
        for step in answer
    )


def events_of(answer: Answer, model: str) -> Iterator[Part]:
    """All events of an answer, with the holds where they belong."""
    used = _used(answer)
    usage = {
        "input_tokens": used.input,
        "output_tokens": 1,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation_input_tokens": used.cache_made,
    }
    message = _message(model, [], None, usage)
    yield {"type": "message_start", "message": message}
    index = 0
    for step in answer:
        match step:
            case Text() | Think() | Call():
                yield from _block(index, step)
                index += 1
            case Wait():
                yield Hold(step)
            case Cut():
                yield Hold(None)
                return
            case _:
                pass
    delta = {"stop_reason": _reason(answer), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": used.output}}
    yield {"type": "message_stop"}


def message_of(answer: Answer, model: str) -> Json:
    """The answer in one piece, for who does not want a stream."""
    used = _used(answer)
    content: list[Json] = []
    for step in answer:
        match step:
            case Text(text=text):
                content.append({"type": "text", "text": text})
            case Call():
                content.append({"type": "tool_use", "id": step.id, "name": step.name, "input": step.input})
            case _:
                pass
    return _message(model, content, _reason(answer), {"input_tokens": used.input, "output_tokens": used.output})


def _message(model: str, content: list[Json], reason: str | None, usage: Json) -> Json:
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _block(index: int, step: Text | Think | Call) -> Iterator[Json]:
    start, deltas = _parts(step)
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _parts(step: Text | Think | Call) -> tuple[Json, list[Json]]:
    """How a block begins, and what comes after."""
    if isinstance(step, Text):
        return {"type": "text", "text": ""}, [
            {"type": "text_delta", "text": each} for each in pieces(step.text, step.size)
        ]
    if isinstance(step, Think):
        thought: list[Json] = [{"type": "thinking_delta", "thinking": each} for each in pieces(step.text, step.size)]
        signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*thought, signed]
    written = ("", *pieces(json.dumps(step.input), step.size))
    start = {"type": "tool_use", "id": step.id, "name": step.name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": piece} for piece in written]


def _used(answer: Answer) -> Used:
    return next((step for step in answer if isinstance(step, Used)), Used())


def _reason(answer: Answer) -> str:
    for step in answer:
        if isinstance(step, Stop):
            return step.reason
    return "tool_use" if any(isinstance(step, Call) for step in answer) else "end_turn"
