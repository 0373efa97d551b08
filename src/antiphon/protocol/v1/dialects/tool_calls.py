"""Tool calls, permission requests and terminals in other words."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from antiphon.protocol.dialects import (
    Change,
    DialectRule,
    Fields,
    each,
    fields_of,
    in_turn,
    inside,
    is_null,
    items_of,
    named_values,
    opened,
    packed,
    renamed,
    text_of,
    with_meta,
)
from antiphon.protocol.v1.dialects import BANJO_WIRE, BRIDGE, GO_CLIENT, OPENCODE
from antiphon.protocol.v1.dialects.content import BLOCK_TYPES

__all__ = ["PERMISSION_ID", "PERMISSION_RULES", "TERMINAL_RULES", "TOOL_CALL_RULES", "with_new_text"]

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
    """`{toolKind, input, output}`; an output that is not a list of items is the raw one."""
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
    """An item whose fields are those of a terminal or a diff, while its `type` is another."""
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
    # In a permission request these are legal extras.
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


def _rules() -> Iterator[DialectRule]:
    for method, place in _PLACES.items():
        for rule in _CALL_RULES:
            hints = rule.permission_hints if place is _in_permission else ()
            yield DialectRule(rule.name, rule.source, method, "params", place(rule.change), hints)
    # A permission request needs no title; a call that begins does.
    yield DialectRule("tool call without title", GO_CLIENT, "session/update", "params", _in_update(_without_title))


TOOL_CALL_RULES: Final = tuple(_rules())


# Permission requests without options, and responses with a decision.
# A decision that answers a question of ours arrives as the choice of an option named like a kind of option: `allow_once`,
# `allow_always` or `reject_once`. A reader of the response alone does not know the options that were offered, so the
# caller who does know them looks first for the option with that id and then for one of that kind.

PERMISSION_ID: Final = "antiphon/permissionId"
"""In the `_meta` of a permission request: the id it was given besides that of the call."""

_KINDS: Final = {"once": "allow_once", "always": "allow_always", "reject": "reject_once"}
"""The three decisions → the kinds of option they amount to."""
_DECISIONS: Final = {kind: decision for decision, kind in _KINDS.items()}

_OPTIONS: Final = [
    {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]


def _without_options(fields: Fields) -> Fields | None:
    """`{permissionId, title, kind, toolCallId?, content?}`: the call's own fields stand beside the question's."""
    if "toolCall" in fields or text_of(fields.get("permissionId")) is None:
        return None
    own = ("title", "kind", "content")
    known = text_of(fields.get("toolCallId")) is not None
    call = {"toolCallId": fields["toolCallId" if known else "permissionId"]}
    call |= {key: fields[key] for key in own if key in fields}
    question = {key: value for key, value in fields.items() if key not in (*own, "toolCallId", "permissionId")}
    question = {"options": packed(_OPTIONS), **question, "toolCall": packed(call)}
    return with_meta(question, PERMISSION_ID, fields["permissionId"]) if known else question


def _as_decision(question: Fields, answer: bytes) -> bytes:
    """Our outcome as `{decision, cancelled}`. What is not one of the three is a rejection, never an approval."""
    outcome = fields_of((fields_of(answer) or {}).get("outcome")) or {}
    chosen = text_of(outcome.get("optionId"))
    if text_of(outcome.get("outcome")) == "cancelled":
        return b'{"decision":"reject","cancelled":true}'
    for option in map(fields_of, items_of(question.get("options")) or ()):
        if option is not None and text_of(option.get("optionId")) == chosen:  # the question had options of its own
            chosen = _DECISIONS.get(text_of(option.get("kind")) or "")
            break
    return bytes(packed({"decision": chosen if chosen in _KINDS else "reject"}))


def _decision(fields: Fields) -> Fields | None:
    if "outcome" in fields:
        return None
    rest = {key: value for key, value in fields.items() if key not in ("decision", "cancelled")}
    if not is_null(fields.get("cancelled")) and opened(fields["cancelled"]) is True:
        return {**rest, "outcome": packed({"outcome": "cancelled"})}
    kind = _KINDS.get(text_of(fields.get("decision")) or "")
    return None if kind is None else {**rest, "outcome": packed({"outcome": "selected", "optionId": kind})}


def _flat_outcome(fields: Fields) -> Fields | None:
    """`{outcome: "selected", optionId}`, without the object around the two."""
    if text_of(fields.get("outcome")) is None:
        return None
    own = {key: fields[key] for key in ("outcome", "optionId") if key in fields}
    rest = {key: value for key, value in fields.items() if key not in own}
    return {**rest, "outcome": packed(own)}


_METHOD: Final = "session/request_permission"

PERMISSION_RULES: Final = (
    DialectRule("permission without options", OPENCODE, _METHOD, "params", _without_options, answer=_as_decision),
    DialectRule("permission by decision", OPENCODE, _METHOD, "result", _decision),
    DialectRule("flat outcome", GO_CLIENT, _METHOD, "result", _flat_outcome),
)


# Terminals in other words.


def _variables(fields: Fields) -> Fields | None:
    listed = named_values(fields.get("env"))
    return None if listed is None else {**fields, "env": listed}


def _flat_exit(fields: Fields) -> Fields | None:
    """`{output, exitCode?, signal?}`: the end stands beside the output, and whether output was cut off is not reported."""
    if "truncated" in fields or "output" not in fields:
        return None
    rest = {key: value for key, value in fields.items() if key not in ("exitCode", "signal")}
    status = {key: fields[key] for key in ("exitCode", "signal") if not is_null(fields.get(key))}
    if status and "exitStatus" not in fields:
        rest["exitStatus"] = packed(status)
    return {**rest, "truncated": packed(False)}


TERMINAL_RULES: Final = (
    DialectRule("variables as a map", OPENCODE, "terminal/create", "params", _variables),
    DialectRule(
        "outputBytesLimit", OPENCODE, "terminal/create", "params", renamed("outputBytesLimit", "outputByteLimit"),
        hints=(b'"outputBytesLimit"',),
    ),
    DialectRule("flat exit status", OPENCODE, "terminal/output", "result", _flat_exit),
)  # fmt: skip
