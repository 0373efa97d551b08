"""Rows about session updates."""

from typing import Any

from antiphon.protocol.v1.dialects import BANJO_NOTES, BANJO_WIRE, BRIDGE, GO_CLIENT, OPENCODE, PROTOCOL_PAGES
from antiphon.protocol.v1.dialects.updates import DESCRIPTION, INDEX, REST
from tests.dialects.row import Row

__all__ = ["UPDATE_ROWS"]


def _row(
    name: str, source: str, sent: bytes, update: dict[str, Any], rules: tuple[str, ...] = (), *,
    meta: dict[str, Any] | None = None, meanings: dict[str, str] | None = None,
) -> Row:  # fmt: skip
    seen = {"sessionId": "s", "update": update, **({"_meta": meta} if meta else {})}
    return Row(name, source, "session/update", "params", sent, seen, rules, meanings or {})


TEXT = {"type": "text", "text": "Hel"}
CHUNK = {"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "part", "_meta": {INDEX: 0}}
ENTRIES = [
    {"content": "Look", "priority": "medium", "status": "completed"},
    {"content": "Leap", "priority": "medium", "status": "in_progress"},
]

UPDATE_ROWS = [
    _row(
        "a named update with the Go client's fields", GO_CLIENT,
        b'{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit","toolKind":"edit",'
        b'"input":{"path":"/a"},"output":[{"type":"diff","path":"/a","newContent":"b"}]}}',
        {
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "toolKind": "edit", "input": {"path": "/a"},
            "output": [{"type": "diff", "path": "/a", "newContent": "b"}],
        },
    ),
    # OpenCode: one message, several updates, none of them named.
    _row(
        "a chunk", OPENCODE, b'{"sessionId":"s","contentChunk":{"id":"part","index":0,"delta":"Hel"}}', CHUNK,
        ("update by contentChunk",),
    ),
    _row(
        "a chunk without id", OPENCODE, b'{"sessionId":"s","contentChunk":{"delta":"Hel"}}',
        {"sessionUpdate": "agent_message_chunk", "content": TEXT}, ("update by contentChunk",),
    ),
    _row(
        "a call that begins", OPENCODE,
        b'{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Edit a","kind":"edit","status":"in_progress",'
        b'"content":[{"type":"text","text":"Hel"}],"locations":[{"path":"/w/a","line":3}],'
        b'"diff":{"path":"/w/a","oldContent":"a","newContent":"b"}}}',
        {
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit a", "kind": "edit", "status": "in_progress",
            "content": [
                {"type": "content", "content": TEXT},
                {"type": "diff", "path": "/w/a", "newText": "b", "oldText": "a"},
            ],
            "locations": [{"path": "/w/a", "line": 3}],
        },
        ("update by toolCall", "bare block in tool content"),
    ),
    _row(
        "a call that changed", OPENCODE, b'{"sessionId":"s","toolCall":{"toolCallId":"t","status":"completed"}}',
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}, ("update by toolCall",),
    ),
    _row(
        "a call that made a file", OPENCODE,
        b'{"sessionId":"s","toolCall":{"toolCallId":"t","diff":{"path":"/w/a","newContent":"b"}}}',
        {
            "sessionUpdate": "tool_call_update", "toolCallId": "t",
            "content": [{"type": "diff", "path": "/w/a", "newText": "b"}],
        },
        ("update by toolCall",),
    ),
    _row(
        "a plan", OPENCODE,
        b'{"sessionId":"s","plan":{"steps":[{"title":"Look","status":"completed"},{"title":"Leap","status":"in_progress"}]}}',
        {"sessionUpdate": "plan", "entries": ENTRIES}, ("update by plan",),
    ),
    _row(
        "a mode", OPENCODE, b'{"sessionId":"s","currentModeId":"plan"}',
        {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}, ("update by currentModeId",),
    ),
    _row(
        "everything at once", OPENCODE,
        b'{"currentModeId":"plan","plan":{"steps":[]},"sessionId":"s","toolCall":{"toolCallId":"t"},'
        b'"contentChunk":{"id":"part","index":0,"delta":"Hel"},"_meta":{"k":1}}',
        CHUNK, ("update by contentChunk",),
        meta={"k": 1, REST: {"currentModeId": "plan", "plan": {"steps": []}, "toolCall": {"toolCallId": "t"}}},
    ),
    _row(
        "a plan and a mode", OPENCODE, b'{"sessionId":"s","plan":{"steps":[]},"currentModeId":"plan"}',
        {"sessionUpdate": "plan", "entries": []}, ("update by plan",), meta={REST: {"currentModeId": "plan"}},
    ),
    # Distinguished by another field.
    _row(
        "text told apart by type", BRIDGE,
        b'{"sessionId":"s","update":{"type":"agent_message_chunk","content":{"type":"text","text":"Hel"}}}',
        {"sessionUpdate": "agent_message_chunk", "content": TEXT}, ("update told apart by type",),
    ),
    _row(
        "a call told apart by type", BRIDGE,
        b'{"sessionId":"s","update":{"type":"tool_call","id":"t","name":"Bash","status":"in_progress","kind":"command",'
        b'"rawInput":{"command":"ls"}}}',
        {
            "sessionUpdate": "tool_call", "toolCallId": "t", "name": "Bash", "title": "Bash", "status": "in_progress",
            "kind": "command", "rawInput": {"command": "ls"},
        },
        ("update told apart by type", "tool call by id and name"), meanings={"command": "execute"},
    ),
    _row(
        "text told apart by kind", GO_CLIENT,
        b'{"sessionId":"s","update":{"kind":"agent_thought_chunk","content":{"type":"text","text":"Hel"}}}',
        {"sessionUpdate": "agent_thought_chunk", "content": TEXT}, ("update told apart by kind",),
    ),
    _row(
        "a call told apart by kind", GO_CLIENT,
        b'{"sessionId":"s","update":{"kind":"tool_call","toolCallId":"t","title":"Run ls","toolKind":"execute",'
        b'"status":"in_progress","input":{"command":"ls"}}}',
        {
            "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run ls", "kind": "execute",
            "status": "in_progress", "rawInput": {"command": "ls"},
        },
        ("update told apart by kind", "tool input and output"),
    ),
    _row(
        "a call cancelled, with its output", GO_CLIENT,
        b'{"sessionId":"s","update":{"kind":"tool_call_update","toolCallId":"t","status":"cancelled","output":['
        b'{"type":"content","content":{"type":"text","text":"Hel"}},{"type":"terminal","terminalId":"x"},'
        b'{"type":"diff","path":"/w/a","oldContent":"a","newContent":"b"}]}}',
        {
            "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "cancelled",
            "content": [
                {"type": "content", "content": TEXT},
                {"type": "terminal", "terminalId": "x"},
                {"type": "diff", "path": "/w/a", "newText": "b", "oldText": "a"},
            ],
        },
        ("update told apart by kind", "tool input and output", "diff of contents"), meanings={"cancelled": "failed"},
    ),
    _row(
        "an output that is only text", GO_CLIENT,
        b'{"sessionId":"s","update":{"kind":"tool_call_update","toolCallId":"t","output":"done"}}',
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawOutput": "done"},
        ("update told apart by kind", "tool input and output"),
    ),
    _row(
        "a call without title", GO_CLIENT,
        b'{"sessionId":"s","update":{"kind":"tool_call","toolCallId":"t","toolKind":"read","status":"in_progress"}}',
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "read", "kind": "read", "status": "in_progress"},
        ("update told apart by kind", "tool input and output", "tool call without title"),
    ),
    # Plans.
    _row(
        "steps of a plan that nothing names", GO_CLIENT,
        b'{"sessionId":"s","update":{"plan":{"description":"Tidy up","steps":["Look","Leap"]}}}',
        {
            "sessionUpdate": "plan", "_meta": {DESCRIPTION: "Tidy up"},
            "entries": [entry | {"status": "pending"} for entry in ENTRIES],
        },
        ("plan of steps",),
    ),
    _row(
        "steps of a plan that is named", GO_CLIENT,
        b'{"sessionId":"s","update":{"sessionUpdate":"plan","plan":{"description":"Tidy up","steps":["Look"]},"_meta":{"k":1}}}',
        {
            "sessionUpdate": "plan", "_meta": {DESCRIPTION: "Tidy up", "k": 1},
            "entries": [{"content": "Look", "priority": "medium", "status": "pending"}],
        },
        ("plan of steps",),
    ),
    _row(
        "entries with id and without priority", BANJO_WIRE,
        b'{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"id":"1","content":"Step description","status":"pending"}]}}',
        {
            "sessionUpdate": "plan",
            "entries": [{"content": "Step description", "priority": "medium", "status": "pending", "id": "1"}],
        },
        ("plan entry without priority",),
    ),
    # Modes, models, words.
    _row(
        "modeId of a new mode", PROTOCOL_PAGES,
        b'{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","modeId":"code"}}',
        {"sessionUpdate": "current_mode_update", "currentModeId": "code"}, ("modeId of a new mode",),
    ),
    _row(
        "a new model", BANJO_NOTES,
        b'{"sessionId":"s","update":{"sessionUpdate":"current_model_update","currentModelId":"opus"}}',
        {"sessionUpdate": "current_model_update", "currentModelId": "opus"},
    ),
    _row(
        "modelId of a new model", BANJO_WIRE,
        b'{"sessionId":"s","update":{"sessionUpdate":"current_model_update","modelId":"opus"}}',
        {"sessionUpdate": "current_model_update", "currentModelId": "opus"}, ("modelId of a new model",),
    ),
    _row(
        "the kind write", BANJO_WIRE,
        b'{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Write","kind":"write"}}',
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Write", "kind": "write"}, meanings={"write": "edit"},
    ),
    _row(
        "a date on an update", "qwen-code 0.24.4",
        b'{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hel"},"timestamp":1700000000000}}',
        {"sessionUpdate": "agent_message_chunk", "content": TEXT, "timestamp": 1700000000000},
    ),
    _row(
        "a date on a patch", "qwen-code 0.24.4",
        b'{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","timestamp":"2026-01-02T03:04:05Z"}}',
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "timestamp": "2026-01-02T03:04:05Z"},
    ),
]  # fmt: skip
