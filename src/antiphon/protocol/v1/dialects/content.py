"""Content blocks in other words, wherever blocks stand: prompts, messages, what tools produced, system prompts."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

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
    text_of,
)
from antiphon.protocol.v1.dialects import BANJO_NOTES, BRIDGE, GO_CLIENT, OPENCODE

__all__ = ["BLOCK_TYPES", "CONTENT_RULES"]

BLOCK_TYPES: Final = frozenset(
    {"text", "image", "audio", "resource", "resource_link", "resourceLink", "embedded_resource"}
)
"""Every name that any document has for a kind of block."""

_RESOURCE_FIELDS: Final = ("uri", "text", "blob", "mimeType")


def _is(block: Fields, *kinds: str) -> bool:
    return text_of(block.get("type")) in kinds


def _without_type(block: Fields) -> Fields | None:
    """`{text}` alone is a text."""
    if "type" in block or "uri" in block or text_of(block.get("text")) is None:
        return None
    return {"type": packed("text"), **block}


def _camel_link(block: Fields) -> Fields | None:
    return {**block, "type": packed("resource_link")} if _is(block, "resourceLink") else None


def _embedded(block: Fields) -> Fields | None:
    """`embedded_resource`, whose contents are optional: without them it is only a link."""
    if not _is(block, "embedded_resource"):
        return None
    if "resource" in block:
        return {**block, "type": packed("resource")}
    has_contents = any(text_of(block.get(key)) is not None for key in ("text", "blob"))
    return _nested(block) if has_contents else {**block, "type": packed("resource_link")}


def _flat_resource(block: Fields) -> Fields | None:
    return _nested(block) if _is(block, "resource") and "resource" not in block and "uri" in block else None


def _nested(block: Fields) -> Fields:
    """The contents of a resource in an object of their own."""
    contents = {key: block[key] for key in _RESOURCE_FIELDS if key in block}
    rest = {key: value for key, value in block.items() if key not in contents}
    return {**rest, "type": packed("resource"), "resource": packed(contents)}


def _null_contents(resource: Fields) -> Fields | None:
    """Both `text` and `blob` are there and one is null: text and bytes are distinguished by which of them is present."""
    if "text" not in resource or "blob" not in resource:
        return None
    empty = [key for key in ("text", "blob") if is_null(resource[key])]
    return {key: value for key, value in resource.items() if key != empty[0]} if len(empty) == 1 else None


def _nameless_link(block: Fields) -> Fields | None:
    uri = text_of(block.get("uri"))
    if not _is(block, "resource_link") or uri is None or not is_null(block.get("name")):
        return None
    return {**block, "name": packed(_last_part(uri))}


def _last_part(uri: str) -> str:
    return re.split(r"[?#]", uri, maxsplit=1)[0].rstrip("/").rpartition("/")[2] or uri


def _listed_annotations(block: Fields) -> Fields | None:
    """A list of annotations as one: audiences add up, of the rest the last word counts."""
    found = items_of(block.get("annotations"))
    if found is None:
        return None
    merged: Fields = {}
    audience: list[Raw] = []
    for annotation in filter(None, map(fields_of, found)):
        audience += items_of(annotation.get("audience")) or []
        merged |= annotation
    if audience:
        merged["audience"] = packed(audience)
    rest = {key: value for key, value in block.items() if key != "annotations"}
    return {**rest, "annotations": packed(merged)} if merged else rest


class _BlockRule(NamedTuple):
    name: str
    source: str
    change: Change


# In this order: a block may need several, and a link must be called a link before it is given a name.
_BLOCK_RULES: Final = (
    _BlockRule("text without type", GO_CLIENT, _without_type),
    _BlockRule("resourceLink", GO_CLIENT, _camel_link),
    _BlockRule("embedded_resource", OPENCODE, _embedded),
    _BlockRule("flat resource", GO_CLIENT, _flat_resource),
    _BlockRule("null beside contents", BANJO_NOTES, inside("resource", _null_contents)),
    _BlockRule("link without name", BRIDGE, _nameless_link),
    _BlockRule("list of annotations", OPENCODE, _listed_annotations),
)


# Where blocks stand.


def _in_tool_call(change: Change) -> Change:
    return each("content", inside("content", change))


def _in_update(change: Change) -> Change:
    one, many, in_tool_call = inside("content", change), each("content", change), _in_tool_call(change)
    places: dict[str | None, Change] = {
        **dict.fromkeys(("agent_message_chunk", "user_message_chunk", "agent_thought_chunk"), one),
        **dict.fromkeys(("compaction_summary_chunk", "session_message_chunk"), one),
        **dict.fromkeys(("tool_call", "tool_call_update"), in_tool_call),
        "session_message": many,
        "compaction_update": each("summary", change),
    }

    def apply(update: Fields) -> Fields | None:
        place = places.get(text_of(update.get("sessionUpdate")))
        return None if place is None else place(update)

    return inside("update", apply)


def _in_system_prompt(change: Change) -> Change:
    return inside("systemPrompt", each("content", change))


_PLACES: Final[dict[str, Callable[[Change], Change]]] = {
    "session/prompt": lambda change: each("prompt", change),
    "session/update": _in_update,
    "session/request_permission": lambda change: inside("toolCall", _in_tool_call(change)),
    "session/new": _in_system_prompt,
    "session/load": _in_system_prompt,
    "session/resume": _in_system_prompt,
    "session/fork": _in_system_prompt,
}


def _rules() -> Iterator[DialectRule]:
    for method, place in _PLACES.items():
        for name, source, change in _BLOCK_RULES:
            yield DialectRule(name, source, method, "params", place(change))


CONTENT_RULES: Final = tuple(_rules())
