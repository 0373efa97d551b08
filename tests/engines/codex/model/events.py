"""An answer as the stream of events that the Responses API makes of it. Pure: knows neither sockets nor gates."""

import json
from collections.abc import Iterator
from uuid import uuid4

from tests.engines.codex.model.steps import Answer, Broken, Call, Patch, Search
from tests.engines.model.server import Hold, Part
from tests.engines.model.steps import Cut, Json, Stop, Text, Think, Used, Wait, pieces

__all__ = ["events_of"]

Spoken = Text | Think | Call | Patch | Search


def events_of(answer: Answer, model: str) -> Iterator[Part]:
    """All events of an answer, with the holds where they belong."""
    response: Json = {"id": _id("resp"), "object": "response", "status": "in_progress", "model": model, "output": []}
    yield {"type": "response.created", "response": response}
    done: list[Json] = []
    for step in answer:
        match step:
            case Text() | Think() | Call() | Patch() | Search():
                events = list(_item(len(done), step))
                done.append(events[-1]["item"])
                yield from events
            case Wait():
                yield Hold(step)
            case Cut():
                yield Hold(None)
                return
            case _:
                pass
    yield _end(answer, {**response, "output": done, "usage": _usage(answer)})


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


def _item(index: int, step: Spoken) -> Iterator[Json]:
    begun, deltas, done = _parts(step)
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    for delta in deltas:
        yield {"output_index": index, "item_id": begun["id"], **delta}
    yield {"type": "response.output_item.done", "output_index": index, "item": {**begun, **done}}


def _parts(step: Spoken) -> tuple[Json, list[Json], Json]:
    """How an item begins, what comes of it bit by bit, and what it is in the end."""
    match step:
        case Text():
            begun: Json = {"type": "message", "id": _id("msg"), "role": "assistant", "content": []}
            deltas = _deltas("response.output_text.delta", step.text, step.size, content_index=0)
            return begun, deltas, {"content": [{"type": "output_text", "text": step.text, "annotations": []}]}
        case Think():
            return _thought(step)
        case Call():
            return _call(step)
        case Patch():
            begun = {"type": "custom_tool_call", "id": _id("ctc"), "call_id": _id("call"), "name": step.name}
            deltas = _deltas("response.custom_tool_call_input.delta", step.text, 40, call_id=begun["call_id"])
            return {**begun, "input": ""}, deltas, {"input": step.text, "status": "completed"}
        case Search():
            begun = {"type": "web_search_call", "id": _id("ws"), "status": "in_progress"}
            return begun, [], {"status": "completed", "action": {"type": "search", "query": step.query}}


def _thought(step: Think) -> tuple[Json, list[Json], Json]:
    begun: Json = {"type": "reasoning", "id": _id("rs"), "summary": [], "encrypted_content": None}
    part = {"type": "summary_text", "text": ""}
    deltas = [
        {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": part},
        *_deltas("response.reasoning_summary_text.delta", step.text, step.size, summary_index=0),
    ]
    return begun, deltas, {"summary": [{**part, "text": step.text}], "encrypted_content": "c2VhbGVk"}


def _call(step: Call) -> tuple[Json, list[Json], Json]:
    begun: Json = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "name": step.name, "arguments": ""}
    if step.namespace:
        begun["namespace"] = step.namespace
    written = json.dumps(step.input)
    deltas = _deltas("response.function_call_arguments.delta", written, step.size)
    return begun, deltas, {"arguments": written, "status": "completed"}


def _deltas(kind: str, text: str, size: int, **more: object) -> list[Json]:
    return [{"type": kind, "delta": piece, **more} for piece in pieces(text, size)]


def _usage(answer: Answer) -> Json:
    used = next((step for step in answer if isinstance(step, Used)), Used())
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cache_read},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.input + used.output,
    }


def _end(answer: Answer, response: Json) -> Json:
    for step in answer:
        match step:
            case Stop(reason=reason):
                ended = {**response, "status": "incomplete", "incomplete_details": {"reason": reason}}
                return {"type": "response.incomplete", "response": ended}
            case Broken(code=code, message=message):
                ended = {**response, "status": "failed", "error": {"code": code, "message": message}}
                return {"type": "response.failed", "response": ended}
            case _:
                pass
    return {"type": "response.completed", "response": {**response, "status": "completed"}}
