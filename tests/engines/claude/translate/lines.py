"""Lines as the CLI writes them, in as few words as a test needs; and what they come to, in one line each."""

import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import ClaudeEvent, ClaudeTurnEnded, CliStarted, EngineNotice
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1

__all__ = [
    "answer",
    "assistant_message",
    "call",
    "calling",
    "delta",
    "described",
    "ended",
    "event",
    "feed",
    "message_start",
    "result",
    "system",
    "text",
    "thought",
    "translated",
]  # fmt: skip

_ids = itertools.count(1)


def assistant_message(
    *blocks: dict[str, Any], id: str | None = "msg-1", parent: str | None = None, **more: Any
) -> dict[str, Any]:
    """A message of the model, or a block of one."""
    usage = {"input_tokens": 100, "output_tokens": 1}
    message = {"role": "assistant", "model": "m-1", "content": list(blocks), "usage": usage}
    if id is not None:
        message["id"] = id
    return {"type": "assistant", "uuid": f"line-{next(_ids)}", "parent_tool_use_id": parent, "message": message, **more}


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


def thought(words: str) -> dict[str, Any]:
    """A block of thinking."""
    return {"type": "thinking", "thinking": words}


def call(id: str, name: str, **input: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def answer(
    id: str, content: Any, structured: Any = None, *, failed: bool = False, parent: str | None = None
) -> dict[str, Any]:
    """What a tool came to."""
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}
    line = {"type": "user", "parent_tool_use_id": parent, "message": {"role": "user", "content": [block]}}
    return line if structured is None else {**line, "tool_use_result": structured}


def event(type: str, *, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event of the model's stream."""
    return {"type": "stream_event", "parent_tool_use_id": parent, "event": {"type": type, **fields}}


def message_start(id: str = "msg-1") -> dict[str, Any]:
    """A message begins."""
    return event("message_start", message={"id": id, "role": "assistant", "model": "m-1", "content": []})


def delta(words: str, index: int = 0) -> dict[str, Any]:
    """More of a text."""
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": words})


def calling(id: str, name: str, *pieces: str, index: int = 0, parent: str | None = None) -> list[dict[str, Any]]:
    """A call as it is written."""
    return [
        event("content_block_start", index=index, content_block=call(id, name), parent=parent),
        *(
            event(
                "content_block_delta",
                index=index,
                delta={"type": "input_json_delta", "partial_json": piece},
                parent=parent,
            )
            for piece in pieces
        ),
    ]


def system(subtype: str, **fields: Any) -> dict[str, Any]:
    """A line about the session itself."""
    return {"type": "system", "subtype": subtype, **fields}


def result(subtype: str = "success", **fields: Any) -> dict[str, Any]:
    """A turn is over."""
    return {"type": "result", "subtype": subtype, "is_error": False, "terminal_reason": "completed", **fields}


def feed(translator: ClaudeTranslator, *lines: dict[str, Any]) -> list[ClaudeEvent]:
    """All that lines come to."""
    return [each for line in lines for each in translator.feed(wire.decode(msgspec.json.encode(line)))]


def translated(*lines: dict[str, Any], **how: bool) -> list[ClaudeEvent]:
    """All that lines come to in a new session."""
    return feed(ClaudeTranslator("/song", **how), *lines)


def ended(received: Iterable[ClaudeEvent]) -> list[str]:
    """The calls that were sent to their end, and how."""
    over = (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)
    calls = [each for each in received if isinstance(each, v1.ToolCall | v1.ToolCallUpdate)]
    return [f"{each.tool_call_id} {each.status}" for each in calls if each.status in over]


def described(received: Iterable[ClaudeEvent]) -> list[str]:
    """Everything that was sent, one line each."""
    return [_line(each) for each in received]


_VERBS = {v1.AgentMessageChunk: "says", v1.AgentThoughtChunk: "thinks", v1.UserMessageChunk: "user"}


def _line(each: ClaudeEvent) -> str:
    match each:
        case v1.MessageChunk():
            return f"{_VERBS[type(each)]} {each.message_id}: {_block(each.content)}"
        case v1.ToolCall() | v1.ToolCallUpdate():
            return f"{'call' if isinstance(each, v1.ToolCall) else 'update'} {_call(each)}"
        case _:
            return _about_the_session(each)


def _about_the_session(each: ClaudeEvent) -> str:
    match each:
        case v1.Plan(entries=entries):
            return f"plan: {', '.join(f'{entry.content} ({entry.status})' for entry in entries)}"
        case v1.UsageUpdate():
            return f"usage: {each.used} of {each.size}{f', ${each.cost.amount:.4f}' if each.cost else ''}"
        case v1.CompactionUpdate():
            return f"compaction {each.status}{f': {each.error}' if isinstance(each.error, str) else ''}"
        case v1.CompactionSummaryChunk():
            return f"compaction summary: {_block(each.content)}"
        case ClaudeTurnEnded(end=end):
            how = f"with error {end.error.kind}" if end.error else f"{end.stop_reason}"
            ids = f" for {', '.join(each.user_message_uuids)}" if each.user_message_uuids else ""
            by = f", begun by {each.origin['kind']}" if each.origin else ""
            return f"turn ended {how}{ids}{by}"
        case CliStarted():
            return f"started {each.model} {each.mode}"
        case EngineNotice():
            return f"notice {each.severity}: {each.title}"
        case _:
            return (
                f"{type(each).__name__}{msgspec.structs.astuple(each)}"
                if isinstance(each, msgspec.Struct)
                else repr(each)
            )


def _call(each: v1.ToolCall | v1.ToolCallUpdate) -> str:
    parts = [each.tool_call_id]
    parts += [str(value) for value in (each.name, each.kind, each.status) if isinstance(value, str)]
    parts += [f"`{each.title}`"] if isinstance(each.title, str) else []
    places = each.locations if isinstance(each.locations, list) else []
    parts += [f"at {place.path}{f':{place.line}' if place.line else ''}" for place in places]
    parts += [f"shows {_shown(item)}" for item in (each.content if isinstance(each.content, list) else [])]
    parts += [
        name for name, value in (("+input", each.raw_input), ("+output", each.raw_output)) if value is not msgspec.UNSET
    ]
    meta = dict(each.meta or {})
    about = meta.pop("claudeCode", {})
    parts += [f"below {about['parentToolUseId']}"] if "parentToolUseId" in about else []
    return " ".join([*parts, *(f"{name}={meta[name]}" for name in meta)])


def _shown(item: v1.ToolContent) -> str:
    match item:
        case v1.Diff():
            return f"diff {item.path} {item.old_text!r} -> {item.new_text!r}"
        case v1.TerminalItem():
            return f"terminal {item.terminal_id}"
        case v1.ContentItem():
            return _block(item.content)
        case _:
            return repr(item)


def _block(block: v1.ContentBlock) -> str:
    return repr(block.text) if isinstance(block, v1.TextBlock) else f"<{type(block).__name__}>"
