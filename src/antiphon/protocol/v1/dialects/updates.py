"""Session updates of other dialects: their kind is in another field, or in none at all.

A message of the OpenCode dialect may hold several updates; ours holds one. The first in the order of `_PIECES` is
the update and the others are kept, as they came, under `REST` in the `_meta` of the message.

`session/update` is the stream, so these rules only see what the strict decoder refused. Extras in an update that it
accepts (such as `toolKind` beside a correct `sessionUpdate`) arrive as the legacy fields of the types.
"""

from collections.abc import Callable
from typing import Final

from antiphon.protocol.dialects import (
    Change,
    DialectRule,
    Fields,
    Raw,
    each,
    fields_of,
    inside,
    is_null,
    items_of,
    packed,
    renamed,
    text_of,
    with_meta,
)
from antiphon.protocol.v1.dialects import BANJO_WIRE, BRIDGE, GO_CLIENT, OPENCODE, PROTOCOL_PAGES
from antiphon.protocol.v1.dialects.tool_calls import with_new_text

__all__ = ["DESCRIPTION", "INDEX", "KINDS", "REST", "UPDATE_RULES"]

REST: Final = "antiphon/rest"
"""In the `_meta` of a `session/update`: the other updates of the message, as they came."""
INDEX: Final = "antiphon/index"
"""In the `_meta` of a message chunk: its position in the message."""
DESCRIPTION: Final = "antiphon/description"
"""In the `_meta` of a plan: what the plan as a whole is for."""

KINDS: Final = frozenset({
    "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
    "plan_update", "plan_removed", "available_commands_update", "current_mode_update", "config_option_update",
    "session_info_update", "usage_update", "notice", "compaction_update", "compaction_summary_chunk",
    "subagent_update", "session_message", "session_message_chunk", "current_model_update",
})  # fmt: skip
"""The kinds of update we have types for; other words under another name could be anything."""


# One message, several updates (OpenCode).


def _chunk(raw: Raw) -> Fields | None:
    """`{id, index, delta}`: text to append to the message `id`."""
    chunk = fields_of(raw)
    delta = None if chunk is None else text_of(chunk.get("delta"))
    if chunk is None or delta is None:
        return None
    update = {"sessionUpdate": packed("agent_message_chunk"), "content": packed({"type": "text", "text": delta})}
    if text_of(chunk.get("id")) is not None:
        update["messageId"] = chunk["id"]
    return with_meta(update, INDEX, chunk["index"]) if "index" in chunk else update


def _tool_call(raw: Raw) -> Fields | None:
    """A call with a title begins; one without has changed. Its diff joins its content."""
    call = fields_of(raw)
    if call is None or text_of(call.get("toolCallId")) is None:
        return None
    diff = fields_of(call.get("diff"))
    if diff is not None:
        item = {**with_new_text(diff), "type": packed("diff")}
        call = {**call, "content": packed([*(items_of(call.get("content")) or []), item])}
    begins = text_of(call.get("title")) is not None
    return {**call, "sessionUpdate": packed("tool_call" if begins else "tool_call_update")}


def _plan(raw: Raw | None) -> Fields | None:
    """`{description?, steps}`, where a step is a text or `{title, status}`."""
    plan = fields_of(raw)
    steps = None if plan is None else items_of(plan.get("steps"))
    if plan is None or steps is None:
        return None
    entries = [entry for entry in map(_entry, steps) if entry is not None]
    update = {"sessionUpdate": packed("plan"), "entries": packed(entries)}
    description = text_of(plan.get("description"))
    return update if description is None else with_meta(update, DESCRIPTION, description)


def _entry(raw: Raw) -> Fields | None:
    step = fields_of(raw) or {"title": raw}
    if text_of(step.get("title")) is None:
        return None
    rest = {key: value for key, value in step.items() if key != "title"}
    return {"status": packed("pending"), "priority": packed("medium"), **rest, "content": step["title"]}


def _mode(raw: Raw) -> Fields | None:
    return None if text_of(raw) is None else {"sessionUpdate": packed("current_mode_update"), "currentModeId": raw}


_PIECES: Final[dict[str, Callable[[Raw], Fields | None]]] = {
    "contentChunk": _chunk,
    "toolCall": _tool_call,
    "plan": _plan,
    "currentModeId": _mode,
}


def _piece(name: str) -> Change:
    make = _PIECES[name]

    def apply(fields: Fields) -> Fields | None:
        update = None if "update" in fields or name not in fields else make(fields[name])
        if update is None:
            return None
        message = {key: value for key, value in fields.items() if key not in _PIECES}
        message["update"] = packed(update)
        rest = {key: value for key, value in fields.items() if key in _PIECES and key != name}
        return with_meta(message, REST, rest) if rest else message

    return apply


# An update whose kind is in another field.


def _distinguished_by(key: str) -> Change:
    rename = renamed(key, "sessionUpdate")

    def apply(update: Fields) -> Fields | None:
        return rename(update) if text_of(update.get(key)) in KINDS else None

    return inside("update", apply)


def _plan_steps(update: Fields) -> Fields | None:
    """`{plan: {description, steps}}`, with or without a word on what it is."""
    if text_of(update.get("sessionUpdate")) not in (None, "plan") or "entries" in update:
        return None
    plan = _plan(update.get("plan"))
    if plan is None:
        return None
    rest = {key: value for key, value in update.items() if key not in ("plan", "sessionUpdate")}
    meta = {**(fields_of(plan.get("_meta")) or {}), **(fields_of(rest.get("_meta")) or {})}
    return {**rest, **plan, "_meta": packed(meta)} if meta else {**rest, **plan}


def _only(kind: str, change: Change) -> Change:
    """The change, in updates of one kind."""
    return inside("update", lambda update: change(update) if text_of(update.get("sessionUpdate")) == kind else None)


def _without_priority(entry: Fields) -> Fields | None:
    has_priority = not is_null(entry.get("priority"))
    return None if has_priority or "content" not in entry else {**entry, "priority": packed("medium")}


def _rule(name: str, source: str, change: Change) -> DialectRule:
    return DialectRule(name, source, "session/update", "params", change)


UPDATE_RULES: Final = (
    *(_rule(f"update by {name}", OPENCODE, _piece(name)) for name in _PIECES),
    _rule("update told apart by type", BRIDGE, _distinguished_by("type")),
    _rule("update told apart by kind", GO_CLIENT, _distinguished_by("kind")),
    _rule("plan of steps", GO_CLIENT, inside("update", _plan_steps)),
    _rule("plan entry without priority", BANJO_WIRE, _only("plan", each("entries", _without_priority))),
    _rule("modeId of a new mode", PROTOCOL_PAGES, _only("current_mode_update", renamed("modeId", "currentModeId"))),
    _rule("modelId of a new model", BANJO_WIRE, _only("current_model_update", renamed("modelId", "currentModelId"))),
)
