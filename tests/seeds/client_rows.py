"""What agents say in the words of the seeds, and what our clients must make of it: updates, permission, files, terminals."""

from typing import Any

from tests.seeds.table import ClientRow

__all__ = ["ASKING_ROWS", "UPDATE_ROWS"]

Json = dict[str, Any]


def update(named: str, /, **fields: Any) -> Json:
    return {"sessionId": "$SESSION", "update": {"sessionUpdate": named, **fields}}


def text(printed: str) -> Json:
    return {"type": "text", "text": printed}


def call(id: str, **fields: Any) -> Json:
    return update("tool_call", toolCallId=id, **{"title": f"Call {id}", "kind": "other", "status": "pending", **fields})


KINDS = ("read", "edit", "write", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
STATUSES = ("pending", "in_progress", "completed", "failed")

UPDATE_ROWS = [
    ClientRow(
        "text of the agent", "wire", ["agent_message_chunk"], plays=[update("agent_message_chunk", content=text("Hello!"))],
        events=[{"type": "message", "text": "Hello!"}], updates=[{"sessionUpdate": "agent_message_chunk", "content": text("Hello!")}],
    ),
    ClientRow(
        "text of the user", "wire", ["user_message_chunk"], plays=[update("user_message_chunk", content=text("Hm."))],
        updates=[{"sessionUpdate": "user_message_chunk", "content": text("Hm.")}],
    ),
    ClientRow(
        "a thought", "wire", ["agent_thought_chunk"], plays=[update("agent_thought_chunk", content=text("Well"))],
        events=[{"type": "thought", "text": "Well"}], updates=[{"sessionUpdate": "agent_thought_chunk", "content": text("Well")}],
    ),
    *(
        ClientRow(
            f"a call of the kind {kind}", "wire", ["tool_call", f"kind {kind}"],
            plays=[call(f"k-{kind}", kind=kind, rawInput={"file_path": "/a"})],
            events=[{"type": "tool_call", "id": f"k-{kind}", "kind": kind, "status": "pending", "input": {"file_path": "/a"}}],
            updates=[{"sessionUpdate": "tool_call", "toolCallId": f"k-{kind}"}],
        )
        for kind in KINDS
    ),
    *(
        ClientRow(
            f"a call that is {status}", "wire", ["tool_call_update", f"status {status}"],
            plays=[
                call(f"s-{status}"),
                update("tool_call_update", toolCallId=f"s-{status}", status=status, title="Read", content=[{"type": "content", "content": text("contents")}]),
            ],
            events=[{"type": "tool_call", "id": f"s-{status}", "status": status}],
            updates=[{"sessionUpdate": "tool_call_update", "toolCallId": f"s-{status}", "title": "Read"}],
        )
        for status in STATUSES
    ),
    ClientRow(
        "content of a call by its fields: a terminal and a change", "wire", ["terminalId", "edit diff content"],
        plays=[
            call("c-fields"),
            update("tool_call_update", toolCallId="c-fields", status="completed", rawOutput={"ok": True}, locations=[{"path": "/a", "line": 3}], content=[
                {"type": "content", "terminalId": "term"}, {"type": "diff", "path": "/a", "oldText": "a", "newText": "b"},
            ]),
        ],
        events=[{
            "type": "tool_call", "id": "c-fields", "status": "completed", "output": {"ok": True}, "paths": ["/a"],
            "content": [{"type": "terminal", "terminalId": "term"}, {"type": "diff", "path": "/a", "oldText": "a", "newText": "b"}],
        }],
        updates=[{"sessionUpdate": "tool_call_update", "locations": [{"path": "/a", "line": 3}]}],
    ),
    ClientRow(
        "a plan with ids and no priorities", "notes", ["plan"],
        plays=[update("plan", entries=[{"id": "1", "content": "Look", "status": "pending"}])],
        events=[{"type": "plan", "steps": [{"content": "Look", "status": "pending"}]}],
        updates=[{"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "pending"}]}],
    ),
    ClientRow(
        "commands", "wire", ["available_commands_update"],
        plays=[update("available_commands_update", availableCommands=[{"name": "commit", "description": "Commit changes"}])],
        events=[{"type": "update", "update": {"availableCommands": [{"name": "commit"}]}}],
        updates=[{"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "commit"}]}],
    ),
    ClientRow(
        "another mode", "wire", ["current_mode_update"], plays=[update("current_mode_update", currentModeId="plan")],
        events=[{"type": "update", "update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}}],
        updates=[{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}],
    ),
    ClientRow(
        "another model", "wire", ["current_model_update"], plays=[update("current_model_update", currentModelId="opus")],
        events=[{"type": "update", "update": {"sessionUpdate": "current_model_update", "currentModelId": "opus"}}],
        updates=[{"sessionUpdate": "current_model_update", "currentModelId": "opus"}],
    ),
    # The spec: one message for all kinds, distinguished by the name of a field.
    ClientRow(
        "a chunk by the name of its field", "spec", ["contentChunk"],
        plays=[{"sessionId": "$SESSION", "contentChunk": {"id": "part-1", "index": 0, "delta": "Hel"}}],
        events=[{"type": "message", "text": "Hel", "messageId": "part-1"}],
        updates=[{"sessionUpdate": "agent_message_chunk", "content": text("Hel"), "messageId": "part-1"}],
    ),
    ClientRow(
        "a call by the name of its field, with a change", "spec", ["toolCall", "diff of contents"],
        plays=[
            {"sessionId": "$SESSION", "toolCall": {"toolCallId": "c-spec", "title": "Edit a", "kind": "edit", "status": "in_progress"}},
            {"sessionId": "$SESSION", "toolCall": {
                "toolCallId": "c-spec", "status": "completed", "content": [text("done")], "locations": [{"path": "/a"}],
                "diff": {"path": "/a", "oldContent": "a", "newContent": "b"},
            }},
        ],
        events=[{"type": "tool_call", "id": "c-spec", "title": "Edit a", "kind": "edit", "status": "completed", "content": [{"type": "diff", "path": "/a", "newText": "b"}]}],
        updates=[{"sessionUpdate": "tool_call", "toolCallId": "c-spec"}, {"sessionUpdate": "tool_call_update", "toolCallId": "c-spec"}],
    ),
    ClientRow(
        "a plan by the name of its field", "spec", ["plan of steps"],
        plays=[{"sessionId": "$SESSION", "plan": {"steps": [{"title": "Leap", "status": "in_progress"}]}}],
        events=[{"type": "plan", "steps": [{"content": "Leap", "status": "in_progress"}]}],
        updates=[{"sessionUpdate": "plan", "entries": [{"content": "Leap"}]}],
    ),
    ClientRow(
        "a mode by the name of its field", "spec", ["currentModeId"], plays=[{"sessionId": "$SESSION", "currentModeId": "code"}],
        events=[{"type": "update", "update": {"sessionUpdate": "current_mode_update", "currentModeId": "code"}}],
        updates=[{"sessionUpdate": "current_mode_update", "currentModeId": "code"}],
    ),
    # The guide: calls have other names for their fields.
    *(
        ClientRow(
            f"a call told apart by {field}, with input and output", "guide", ["tool_call", "toolKind", "status cancelled"],
            plays=[
                {"sessionId": "$SESSION", "update": {field: "tool_call", "toolCallId": f"c-{field}", "title": "ls", "toolKind": "execute", "status": "pending", "input": {"command": "ls"}}},
                {"sessionId": "$SESSION", "update": {field: "tool_call_update", "toolCallId": f"c-{field}", "status": "completed", "output": [
                    {"type": "content", "content": text("a")}, {"type": "diff", "path": "/a", "oldContent": "x", "newContent": "y"},
                ]}},
            ],
            events=[
                {"type": "tool_call", "id": f"c-{field}", "kind": "execute", "input": {"command": "ls"}},
                {"type": "tool_call", "id": f"c-{field}", "status": "completed", "content": [{"type": "diff", "path": "/a", "newText": "y"}]},
            ],
            updates=[{"sessionUpdate": "tool_call", "toolCallId": f"c-{field}"}],
        )
        for field in ("kind", "sessionUpdate")
    ),
    ClientRow(
        "a call that was cancelled", "guide", ["status cancelled"],
        plays=[call("c-cancelled"), update("tool_call_update", toolCallId="c-cancelled", status="cancelled")],
        events=[{"type": "tool_call", "id": "c-cancelled", "status": "cancelled"}], updates=[{"toolCallId": "c-cancelled"}],
    ),
    ClientRow(
        "a plan with a description and steps of words", "guide", ["plan of words"],
        plays=[{"sessionId": "$SESSION", "update": {"plan": {"description": "How", "steps": ["Think", "Sing"]}}}],
        events=[{"type": "plan", "steps": [{"content": "Think"}, {"content": "Sing"}]}],
        updates=[{"sessionUpdate": "plan", "entries": [{"content": "Think"}, {"content": "Sing"}]}],
    ),
    # The bridge.
    ClientRow(
        "an update told apart by type, as the bridge did it wrong", "bridge", ["sessionUpdate discriminator"],
        plays=[{"sessionId": "$SESSION", "update": {"type": "agent_message_chunk", "content": text("typed")}}],
        events=[{"type": "message", "text": "typed"}], updates=[{"sessionUpdate": "agent_message_chunk", "content": text("typed")}],
    ),
    *(
        ClientRow(
            f"a call by id and name of the kind {kind}", "bridge", ["tool_call", f"kind {kind}"],
            plays=[update("tool_call", id=f"b-{kind}", name=name, status="completed", kind=kind, rawInput={"a": 1}, rawOutput={"b": 2}, locations=[{"path": "/a", "line": 1}])],
            events=[{"type": "tool_call", "id": f"b-{kind}", "title": name, "name": name, "status": "completed", "input": {"a": 1}, "output": {"b": 2}}],
            updates=[{"sessionUpdate": "tool_call", "toolCallId": f"b-{kind}", "name": name}],
        )
        for kind, name in (("file", "Read"), ("command", "Bash"), ("search", "Grep"), ("other", "Dance"))
    ),
]  # fmt: skip

OPTIONS = [
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
]
LS = {"toolCallId": "t1", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}
CHOSEN = {"outcome": {"outcome": "selected", "optionId": "allow"}}
REJECTED = {"outcome": {"outcome": "selected", "optionId": "reject"}}


def ask(method: str, params: Json, id: Any = "perm_123") -> Json:
    return {"id": id, "method": method, "params": {"sessionId": "$SESSION", **params}}


PERMISSION = "session/request_permission"
ASKING_ROWS = [
    *(
        ClientRow(
            f"permission for {what} is {said}", seed, [PERMISSION, shape], plays=[ask(PERMISSION, {"toolCall": tool, "options": OPTIONS}, id)],
            answers=[CHOSEN if said == "given" else REJECTED], words=words, status=0 if said == "given" else 5,
        )
        for what, said, seed, shape, tool, id, words in (
            ("a command, by a request with a word for its id,", "given", "bridge", "flow", LS, "perm_123", ["--allow", "Bash(ls)"]),
            ("a command that nobody allowed", "not given", "notes", "PermissionOption", LS, 7, []),
            ("git, by a pattern,", "given", "guide", "Bash(git *)", {**LS, "rawInput": {"command": "git status"}}, 7, ["--allow", "Bash(git *)"]),
            ("what the pattern does not cover", "not given", "guide", "Bash(git *)", {**LS, "rawInput": {"command": "rm -rf x"}}, 7, ["--allow", "Bash(git *)"]),
            ("npm test, by a pattern,", "given", "guide", "Bash(npm test)", {**LS, "rawInput": {"command": "npm test"}}, 7, ["--allow", "Bash(npm test)"]),
            ("another npm command", "not given", "guide", "Bash(npm test)", {**LS, "rawInput": {"command": "npm install x"}}, 7, ["--allow", "Bash(npm test)"]),
            ("a read, by a pattern,", "given", "guide", "Read", {"toolCallId": "t1", "title": "Read", "name": "Read", "kind": "read", "rawInput": {"file_path": "/etc/hosts"}, "locations": [{"path": "/etc/hosts"}]}, 7, ["--allow", "Read"]),
            ("a search, by a pattern,", "given", "guide", "Grep", {"toolCallId": "t1", "title": "Grep", "name": "Grep", "kind": "search", "rawInput": {"pattern": "x", "path": "/etc"}}, 7, ["--allow", "Grep"]),
            ("a call by id and name", "given", "bridge", "tool_call", {"id": "t1", "name": "Bash", "status": "pending", "kind": "command", "rawInput": {"command": "ls"}}, "perm_123", ["--allow", "Bash(ls)"]),
        )
    ),
    *(
        ClientRow(
            f"a request without options about {kind} is answered with the decision {decision}", "spec", [PERMISSION, f"decision {decision}"],
            plays=[ask(PERMISSION, {"permissionId": "p1", "title": "ls", "kind": kind, "toolCallId": "t1", "content": [text("why")]})],
            answers=[{"decision": decision}], words=words, status=status,
        )
        for decision, kind, words, status in (
            ("reject", "execute", [], 5), ("reject", "delete", [], 5), ("once", "other", ["--permission-mode", "bypassPermissions"], 0),
            ("once", "edit", ["--permission-mode", "bypassPermissions"], 0),
        )
    ),
    *(
        ClientRow(
            f"the mode {mode} of this client answers an edit with {given} and a command with {run}", "guide", [f"mode {mode}"],
            plays=[
                ask(PERMISSION, {"toolCall": {"toolCallId": "t1", "title": "Edit a", "kind": "edit", "locations": [{"path": "$CWD/a"}], "rawInput": {"file_path": "$CWD/a"}}, "options": OPTIONS}, 1),
                ask(PERMISSION, {"toolCall": LS, "options": OPTIONS}, 2),
            ],
            answers=[{"outcome": {"optionId": given}}, {"outcome": {"optionId": run}}], words=["--permission-mode", mode], status=status,
        )
        for mode, given, run, status in (
            ("default", "reject", "reject", 5), ("acceptEdits", "allow", "reject", 5), ("bypassPermissions", "allow", "allow", 0),
            ("plan", "reject", "reject", 0), ("dontAsk", "reject", "reject", 0),
        )
    ),
    ClientRow(
        "a file is read, some lines of it", "spec", ["fs/read_text_file"],
        plays=[ask("fs/read_text_file", {"path": "$CWD/notes.txt", "line": 2, "limit": 1}, 1)], answers=[{"content": "two\n"}],
    ),
    ClientRow(
        "a file is written", "spec", ["fs/write_text_file"],
        plays=[
            ask("fs/write_text_file", {"path": "$CWD/new.txt", "content": "la\n"}, 1), ask("fs/read_text_file", {"path": "$CWD/new.txt"}, 2),
        ],
        answers=[{}, {"content": "la\n"}], words=["--permission-mode", "acceptEdits"],
    ),
    ClientRow(
        "a command runs in a terminal, with variables as an object and a limit by its older name", "spec",
        ["terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/release", "outputBytesLimit"],
        plays=[
            ask("terminal/create", {"command": "sh", "args": ["-c", "printf %s $WORD"], "env": {"WORD": "lala"}, "cwd": "$CWD", "outputBytesLimit": 100}, 1),
            ask("terminal/wait_for_exit", {"terminalId": "$TERMINAL"}, 2), ask("terminal/output", {"terminalId": "$TERMINAL"}, 3),
            ask("terminal/release", {"terminalId": "$TERMINAL"}, 4),
        ],
        answers=[{"terminalId": str}, {"exitCode": 0}, {"output": "lala", "exitStatus": {"exitCode": 0}}, {}],
        words=["--permission-mode", "bypassPermissions"],
    ),
    ClientRow(
        "a command is killed in its terminal", "notes", ["terminal/kill"],
        plays=[
            ask("terminal/create", {"command": "sleep", "args": ["60"]}, 1), ask("terminal/kill", {"terminalId": "$TERMINAL"}, 2),
            ask("terminal/wait_for_exit", {"terminalId": "$TERMINAL"}, 3), ask("terminal/release", {"terminalId": "$TERMINAL"}, 4),
        ],
        answers=[{"terminalId": str}, {}, {"signal": str}, {}], words=["--permission-mode", "bypassPermissions"],
    ),
]  # fmt: skip
