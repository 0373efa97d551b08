"""Rows about tool calls, in updates and in questions for permission; and about permission itself."""

from collections.abc import Iterator
from typing import Any

from antiphon.protocol.v1.dialects import BANJO_NOTES, BANJO_WIRE, BRIDGE, GO_CLIENT, OPENCODE
from antiphon.protocol.v1.dialects.tool_calls import PERMISSION_ID
from tests.dialects.row import Row, wire

__all__ = ["CALLS", "TOOL_ROWS"]

Call = dict[str, Any]

ID = {"toolCallId": "t"}
OPTIONS = [
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]
TEXT = {"type": "text", "text": "hi"}
ITEM = {"type": "content", "content": TEXT}
DIFF = {"type": "diff", "path": "/w/a", "newText": "b", "oldText": "a"}

CALLS: list[tuple[str, str, tuple[str, ...], Call, Call, dict[str, str]]] = [
    (
        "Read by id and name", BRIDGE, ("tool call by id and name",),
        {"id": "t", "name": "Read", "status": "pending", "kind": "file"},
        ID | {"name": "Read", "title": "Read", "status": "pending", "kind": "read"}, {},
    ),
    (
        "Write by id and name", BRIDGE, ("tool call by id and name",),
        {"id": "t", "name": "Write", "status": "pending", "kind": "file"},
        ID | {"name": "Write", "title": "Write", "status": "pending", "kind": "edit"}, {},
    ),
    (
        "Edit by id, name and title", BRIDGE, ("tool call by id and name",),
        {"id": "t", "name": "Edit", "title": "Edit a.py", "status": "pending", "kind": "file"},
        ID | {"name": "Edit", "title": "Edit a.py", "status": "pending", "kind": "edit"}, {},
    ),
    (
        "another file tool by id and name", BRIDGE, ("tool call by id and name",),
        {"id": "t", "name": "Stat", "status": "pending", "kind": "file"},
        ID | {"name": "Stat", "title": "Stat", "status": "pending", "kind": "file"}, {"file": "other"},
    ),
    (
        "Bash by id and name", BRIDGE, ("tool call by id and name",),
        {"id": "t", "name": "Bash", "status": "completed", "kind": "command", "rawInput": {"command": "ls"}},
        ID | {"name": "Bash", "title": "Bash", "status": "completed", "kind": "command", "rawInput": {"command": "ls"}},
        {"command": "execute"},
    ),
    (
        "bare blocks", OPENCODE, ("bare block in tool content",),
        ID | {"title": "T", "status": "completed", "content": [TEXT, ITEM]},
        ID | {"title": "T", "status": "completed", "content": [ITEM, ITEM]}, {},
    ),
    (
        "a bare block of another name", OPENCODE, ("bare block in tool content", "embedded_resource"),
        ID | {"title": "T", "status": "completed", "content": [{"type": "embedded_resource", "uri": "a:b", "text": ""}]},
        ID | {
            "title": "T", "status": "completed",
            "content": [{"type": "content", "content": {"type": "resource", "resource": {"uri": "a:b", "text": ""}}}],
        }, {},
    ),
    (
        "items by their fields", BANJO_WIRE, ("tool content by its fields",),
        ID | {
            "title": "T", "status": "completed",
            "content": [{"type": "content", "terminalId": "x"}, {"path": "/w/a", "oldText": "a", "newText": "b"}],
        },
        ID | {"title": "T", "status": "completed", "content": [{"type": "terminal", "terminalId": "x"}, DIFF]}, {},
    ),
    (
        "a diff of contents", GO_CLIENT, ("diff of contents",),
        ID | {
            "title": "T", "status": "cancelled",
            "content": [{"type": "diff", "path": "/w/a", "oldContent": "a", "newContent": "b"}],
        },
        ID | {"title": "T", "status": "cancelled", "content": [DIFF]}, {"cancelled": "failed"},
    ),
    (
        "a file emptied", GO_CLIENT, ("diff of contents",),
        ID | {"title": "T", "status": "completed", "content": [{"type": "diff", "path": "/w/a", "oldContent": "a"}]},
        ID | {"title": "T", "status": "completed", "content": [DIFF | {"newText": ""}]}, {},
    ),
]  # fmt: skip


def _rows() -> Iterator[Row]:
    for name, source, rules, sent, seen, meanings in CALLS:
        for kind in ("tool_call", "tool_call_update"):
            tag = {"sessionUpdate": kind}
            shown = (
                seen
                if kind == "tool_call_update"
                else {k: v for k, v in seen.items() if (k, v) != ("status", "pending")}
            )
            update = {"sessionId": "s", "update": tag | sent}
            expected: Call = {"sessionId": "s", "update": tag | shown}
            yield Row(f"{name} in {kind}", source, "session/update", "params", wire(update), expected, rules, meanings)
        question: Call = {"sessionId": "s", "toolCall": sent, "options": OPTIONS}
        expected = {"sessionId": "s", "toolCall": seen, "options": OPTIONS}
        yield Row(
            f"{name} in a question", source, "session/request_permission", "params", wire(question), expected, rules, meanings,
            says={"outcome": {"outcome": "selected", "optionId": "allow"}},
        )  # fmt: skip


DECISIONS = [
    {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]
ASK = "session/request_permission"
WITHOUT_OPTIONS = ("permission without options",)
BARE_QUESTION = b'{"sessionId":"s","permissionId":"p1","title":"Run ls","kind":"execute"}'
BARE_SEEN = {
    "sessionId": "s",
    "toolCall": {"toolCallId": "p1", "title": "Run ls", "kind": "execute"},
    "options": DECISIONS,
}


def _chosen(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


OWN_OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]

PERMISSION_ROWS = [
    *(
        Row(
            f"a question with options of its own, answered {option}", OPENCODE, ASK, "params",
            wire({"sessionId": "s", "permissionId": "p1", "title": "Run ls", "kind": "execute", "options": OWN_OPTIONS}),
            {**BARE_SEEN, "options": OWN_OPTIONS}, WITHOUT_OPTIONS, says=_chosen(option), received={"decision": decision},
        )
        for option, decision in (("yes", "once"), ("no", "reject"), ("maybe", "reject"))
    ),
    Row(
        "a question with all its fields", OPENCODE, ASK, "params",
        b'{"sessionId":"s","permissionId":"p1","title":"Edit a","kind":"edit","toolCallId":"t1","content":[{"type":"text","text":"why"}]}',
        {
            "sessionId": "s",
            "toolCall": {
                "toolCallId": "t1", "title": "Edit a", "kind": "edit",
                "content": [{"type": "content", "content": {"type": "text", "text": "why"}}],
            },
            "options": DECISIONS,
            "_meta": {PERMISSION_ID: "p1"},
        },
        ("permission without options", "bare block in tool content"),
        says=_chosen("once"), received={"decision": "once"},
    ),
    *(
        Row(
            f"a question without options, {name}", OPENCODE, ASK, "params", BARE_QUESTION, BARE_SEEN, WITHOUT_OPTIONS,
            says=says, received=received,
        )
        for name, says, received in (
            ("allowed", _chosen("once"), {"decision": "once"}),
            ("allowed for good", _chosen("always"), {"decision": "always"}),
            ("rejected", _chosen("reject"), {"decision": "reject"}),
            ("answered with a foreign option", _chosen("allow-all"), {"decision": "reject"}),
            ("cancelled", {"outcome": {"outcome": "cancelled"}}, {"decision": "reject", "cancelled": True}),
        )
    ),
    *(
        Row(f"decision {word}", OPENCODE, ASK, "result", wire({"decision": word}), _chosen(kind), ("permission by decision",))
        for word, kind in (("once", "allow_once"), ("always", "allow_always"), ("reject", "reject_once"))
    ),
    Row(
        "decision, cancelled", OPENCODE, ASK, "result", b'{"decision":"once","cancelled":true}',
        {"outcome": {"outcome": "cancelled"}}, ("permission by decision",),
    ),
    Row(
        "decision, not cancelled", OPENCODE, ASK, "result", b'{"decision":"once","cancelled":false}',
        _chosen("allow_once"), ("permission by decision",),
    ),
    Row(
        "an outcome with its option beside it", GO_CLIENT, ASK, "result",
        b'{"outcome":"selected","optionId":"allow_once"}', _chosen("allow_once"), ("flat outcome",),
    ),
    Row(
        "a cancelled outcome alone", GO_CLIENT, ASK, "result", b'{"outcome":"cancelled"}',
        {"outcome": {"outcome": "cancelled"}}, ("flat outcome",),
    ),
    Row(
        "a cancelled outcome with a null beside it", BANJO_NOTES, ASK, "result",
        b'{"outcome":{"outcome":"cancelled","optionId":null}}', {"outcome": {"outcome": "cancelled"}},
    ),
    Row(
        "tool kind, input and output in a question", GO_CLIENT, ASK, "params",
        b'{"sessionId":"s","toolCall":{"toolCallId":"t","title":"ls","toolKind":"execute","input":{"command":"ls"}},"options":[]}',
        {
            "sessionId": "s",
            "toolCall": {"toolCallId": "t", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}},
            "options": [],
        },
        ("tool input and output",),
    ),
    Row(
        "a call by its id alone", "mistral-vibe 3.0.2", ASK, "params",
        b'{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}',
        {"sessionId": "s", "toolCall": ID, "options": [{"optionId": "a", "name": "A", "kind": "allow_once"}]},
    ),
]  # fmt: skip

TOOL_ROWS = [*_rows(), *PERMISSION_ROWS]
