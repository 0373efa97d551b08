"""Tool calls in other words, in updates and in questions for permission."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from antiphon.protocol.dialects.content import BLOCK_TYPES
from antiphon.protocol.dialects.rule import (
    Change,
    Fields,
    Rule,
    each,
    in_turn,
    inside,
    is_null,
    items_of,
    packed,
    renamed,
    text_of,
)
from antiphon.protocol.dialects.sources import BANJO_WIRE, BRIDGE, GO_CLIENT, OPENCODE

__all__ = ["TOOL_CALL_RULES", "with_new_text"]

_FILE_TOOLS: Final = {"Read": "read", "Edit": "edit", "Write": "edit"}
"""What the bridge's kind `file` means, by the tool's name. Other names leave it as it is (it reads as `other`)."""


def _id_and_name(call: Fields) -> Fields | None:
    """`{id, name, kind: file|command}`: the name is all there is to show."""
    if "toolCallId" in call or text_of(call.get("id")) is None:
        return None
    call = renamed("id", "toolCallId")(call) or call
    name = text_of(call.get("name"))
    if name is not None and is_null(call.get("title")):
        call = {**call, "title": packed(name)}
    if text_of(call.get("kind")) == "file" and name in _FILE_TOOLS:
        call = {**call, "kind": packed(_FILE_TOOLS[name])}
    return call


def _input_and_output(call: Fields) -> Fields | None:
    """`{toolKind, input, output}`; an output that is no list of items is the raw one."""
    output = "rawOutput" if items_of(call.get("output")) is None else "content"
    return in_turn(renamed("toolKind", "kind"), renamed("input", "rawInput"), renamed("output", output))(call)


def _without_title(call: Fields) -> Fields | None:
    """A call that begins must show something: its name, else its kind, else its id."""
    if text_of(call.get("sessionUpdate")) != "tool_call" or not is_null(call.get("title")):
        return None
    shown = next((text for key in ("name", "kind", "toolCallId") if (text := text_of(call.get(key)))), None)
    return None if shown is None else {**call, "title": packed(shown)}


# What a call produced.


def _bare_block(item: Fields) -> Fields | None:
    """A content block where an item should be."""
    kind = text_of(item.get("type"))
    is_block = kind in BLOCK_TYPES or ("type" not in item and text_of(item.get("text")) is not None)
    return {"type": packed("content"), "content": packed(item)} if is_block else None


def _by_its_fields(item: Fields) -> Fields | None:
    """An item whose `type` does not say that it is a terminal or a diff, while its fields do."""
    if text_of(item.get("type")) not in (None, "content") or not is_null(item.get("content")):
        return None
    if text_of(item.get("terminalId")) is not None:
        return {**item, "type": packed("terminal")}
    if text_of(item.get("path")) is not None and text_of(item.get("newText")) is not None:
        return {**item, "type": packed("diff")}
    return None


def with_new_text(diff: Fields) -> Fields:
    """`oldContent` and `newContent` as the schema names them; a file that became empty has no `newContent` at all."""
    diff = in_turn(renamed("oldContent", "oldText"), renamed("newContent", "newText"))(diff) or diff
    return {**diff, "newText": packed("")} if is_null(diff.get("newText")) else diff


def _diff_of_contents(item: Fields) -> Fields | None:
    if text_of(item.get("type")) != "diff" or "newText" in item or "path" not in item:
        return None
    return with_new_text(item)


class _CallRule(NamedTuple):
    name: str
    source: str
    change: Change
    permission_hints: tuple[bytes, ...] = ()


# In this order: `output` becomes the content whose items the later rules look at.
_CALL_RULES: Final = (
    _CallRule("tool call by id and name", BRIDGE, _id_and_name),
    # In a question for permission these are legal extras.
    _CallRule("tool input and output", GO_CLIENT, _input_and_output, (b'"toolKind"',)),
    _CallRule("bare block in tool content", OPENCODE, each("content", _bare_block)),
    _CallRule("tool content by its fields", BANJO_WIRE, each("content", _by_its_fields)),
    _CallRule("diff of contents", GO_CLIENT, each("content", _diff_of_contents)),
)


def _in_update(change: Change) -> Change:
    def apply(update: Fields) -> Fields | None:
        is_call = text_of(update.get("sessionUpdate")) in ("tool_call", "tool_call_update")
        return change(update) if is_call else None

    return inside("update", apply)


def _in_permission(change: Change) -> Change:
    return inside("toolCall", change)


_PLACES: Final[dict[str, Callable[[Change], Change]]] = {
    "session/update": _in_update,
    "session/request_permission": _in_permission,
}


def _rules() -> Iterator[Rule]:
    for method, place in _PLACES.items():
        for rule in _CALL_RULES:
            hints = rule.permission_hints if place is _in_permission else ()
            yield Rule(rule.name, rule.source, method, "params", place(rule.change), hints)
    # A question for permission needs no title; a call that begins does.
    yield Rule("tool call without title", GO_CLIENT, "session/update", "params", _in_update(_without_title))


TOOL_CALL_RULES: Final = tuple(_rules())
