"""Rows about content blocks, in every place where blocks stand."""

from collections.abc import Iterator
from typing import Any

from antiphon.protocol.v1.dialects import BANJO_NOTES, BRIDGE, GO_CLIENT, OPENCODE
from tests.dialects.row import Row, wire

__all__ = ["BLOCKS", "CONTENT_ROWS", "block_in"]

Block = dict[str, Any]

LINK = {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py"}
TEXT_RESOURCE = {"type": "resource", "resource": {"uri": "file:///w/a.py", "text": "x = 1"}}
BLOB_RESOURCE = {
    "type": "resource",
    "resource": {"uri": "file:///w/a.bin", "blob": "AA==", "mimeType": "application/x"},
}

BLOCKS: list[tuple[str, str, tuple[str, ...], Block, Block]] = [
    ("text", GO_CLIENT, ("text without type",), {"text": "hi"}, {"type": "text", "text": "hi"}),
    (
        "link", GO_CLIENT, ("resourceLink",),
        {"type": "resourceLink", "uri": "file:///w/a.py", "name": "a.py", "size": 5}, LINK | {"size": 5},
    ),
    (
        "embedded text", OPENCODE, ("embedded_resource",),
        {"type": "embedded_resource", "uri": "file:///w/a.py", "text": "x = 1"}, TEXT_RESOURCE,
    ),
    (
        "embedded bytes", OPENCODE, ("embedded_resource",),
        {"type": "embedded_resource", "uri": "file:///w/a.bin", "blob": "AA==", "mimeType": "application/x"},
        BLOB_RESOURCE,
    ),
    (
        "embedded resource", BRIDGE, ("embedded_resource",),
        {"type": "embedded_resource", "resource": {"uri": "file:///w/a.py", "text": "x = 1"}}, TEXT_RESOURCE,
    ),
    (
        "embedded nothing", OPENCODE, ("embedded_resource", "link without name"),
        {"type": "embedded_resource", "uri": "file:///w/a.py"}, LINK,
    ),
    (
        "flat text", GO_CLIENT, ("flat resource",),
        {"type": "resource", "uri": "file:///w/a.py", "text": "x = 1"}, TEXT_RESOURCE,
    ),
    (
        "flat bytes", GO_CLIENT, ("flat resource",),
        {"type": "resource", "uri": "file:///w/a.bin", "blob": "AA==", "mimeType": "application/x"}, BLOB_RESOURCE,
    ),
    (
        "null text", BANJO_NOTES, ("null beside contents",),
        {"type": "resource", "resource": {"uri": "file:///w/a.bin", "text": None, "blob": "AA==", "mimeType": "application/x"}},
        BLOB_RESOURCE,
    ),
    (
        "null bytes", BANJO_NOTES, ("flat resource", "null beside contents"),
        {"type": "resource", "uri": "file:///w/a.py", "text": "x = 1", "blob": None}, TEXT_RESOURCE,
    ),
    (
        "nameless link", BRIDGE, ("link without name",),
        {"type": "resource_link", "uri": "file:///w/a.py#L4:5"}, LINK | {"uri": "file:///w/a.py#L4:5"},
    ),
    (
        "annotations", OPENCODE, ("list of annotations",),
        {
            "type": "text", "text": "hi",
            "annotations": [{"audience": ["user"], "priority": 0.5}, {"audience": ["assistant"], "priority": 1}],
        },
        {"type": "text", "text": "hi", "annotations": {"audience": ["user", "assistant"], "priority": 1.0}},
    ),
    ("no annotations", OPENCODE, ("list of annotations",), {"type": "text", "text": "hi", "annotations": []}, {"type": "text", "text": "hi"}),
]  # fmt: skip


def block_in(method: str, block: Block) -> Block:
    """Params of a method with a block in them."""
    opening = {"cwd": "/w", "systemPrompt": {"mode": "append", "content": [block]}}
    chunk = {"sessionUpdate": "agent_message_chunk", "content": block}
    call = {"toolCallId": "t", "content": [{"type": "content", "content": block}]}
    places: dict[str, Block] = {
        "session/prompt": {"sessionId": "s", "prompt": [{"type": "text", "text": "see"}, block]},
        "session/update": {"sessionId": "s", "update": chunk},
        "session/request_permission": {"sessionId": "s", "toolCall": call, "options": []},
        "session/new": {**opening, "mcpServers": []},
        "session/load": {"sessionId": "s", **opening, "mcpServers": []},
        "session/resume": {"sessionId": "s", **opening},
        "session/fork": {"sessionId": "s", **opening},
    }
    return places[method]


def _rows() -> Iterator[Row]:
    for method in (
        "session/prompt", "session/update", "session/request_permission", "session/new", "session/load",
        "session/resume", "session/fork",
    ):  # fmt: skip
        for name, source, rules, sent, seen in BLOCKS:
            params, expected = block_in(method, sent), block_in(method, seen)
            yield Row(f"{name} in {method}", source, method, "params", wire(params), expected, rules)


CONTENT_ROWS = list(_rows())
