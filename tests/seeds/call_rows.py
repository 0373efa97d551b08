"""What agents ask of a client, and what clients answer in the words of the seeds: permission, files, terminals; and errors of all codes."""

from typing import Any

from tests.seeds.agent_rows import NEW, ONE, prompt, update
from tests.seeds.table import ANY, HANG, AgentRow, Sent

__all__ = ["CALL_ROWS"]

Json = dict[str, Any]

EDIT = "/edit new.txt la la"
DONE = update("tool_call_update", toolCallId=str, status="completed")
DENIED = update("tool_call_update", toolCallId=str, status="failed")
WRITTEN = {"fs/write_text_file": None, "fs/read_text_file": {"content": ""}}
ASKED = {
    "method": "session/request_permission",
    "params": {
        "sessionId": str,
        "toolCall": {"toolCallId": str, "title": str, "kind": "edit"},
        "options": [
            {"optionId": str, "name": str, "kind": kind} for kind in ("allow_once", "allow_always", "reject_once", "reject_always")
        ],
    },
}  # fmt: skip


def answered(outcome: Any) -> dict[str, Any]:
    return {**WRITTEN, "session/request_permission": outcome}


PERMISSION = [
    *(
        AgentRow(
            f"permission is answered with {name}", seed, ["session/request_permission", shape], [NEW, prompt(EDIT, updates=[end])],
            answers=answered(outcome), asked=[ASKED],
        )
        for name, seed, shape, outcome, end in (
            ("an option that allows once", "notes", "outcome selected", {"outcome": {"outcome": "selected", "optionId": "allow_once"}}, DONE),
            ("an option that allows always", "guide", "allow_always", {"outcome": {"outcome": "selected", "optionId": "allow_always"}}, DONE),
            ("an option that rejects once", "bridge", "reject_once", {"outcome": {"outcome": "selected", "optionId": "reject_once"}}, DENIED),
            ("an option that rejects always", "notes", "reject_always", {"outcome": {"outcome": "selected", "optionId": "reject_always"}}, DENIED),
            ("a cancellation", "notes", "outcome cancelled", {"outcome": {"outcome": "cancelled", "optionId": None}}, DENIED),
            ("the decision once", "spec", "decision once", {"decision": "once"}, DONE),
            ("the decision always", "spec", "decision always", {"decision": "always"}, DONE),
            ("the decision reject", "spec", "decision reject", {"decision": "reject"}, DENIED),
            ("a decision that was cancelled", "spec", "decision cancelled", {"decision": "once", "cancelled": True}, DENIED),
            ("an outcome without an object around it", "guide", "flat outcome", {"outcome": "selected", "optionId": "allow_once"}, DONE),
        )
    ),
    AgentRow(
        "what was always allowed is not asked again", "wire", ["allow_always", "always persists"],
        [
            NEW, prompt(EDIT, updates=[DONE]), prompt(EDIT, updates=[DONE]),
            Sent("session/close", {"sessionId": "$SESSION"}, {}), Sent("session/load", {"sessionId": "$SESSION"}, ANY),
            prompt(EDIT, updates=[DONE]),
        ],
        answers=answered({"outcome": {"outcome": "selected", "optionId": "allow_always"}}), asked=[ASKED],
    ),
    AgentRow(
        "the whole flow of a call: pending, asked, in progress, completed, then more text", "guide",
        ["flow", "tool_call", "tool_call_update", "status pending", "status in_progress", "status completed"],
        [
            NEW,
            prompt(
                EDIT,
                updates=[
                    update("tool_call", toolCallId=str, title=str, kind="edit"),
                    update("tool_call_update", status="in_progress"), DONE,
                    update("agent_message_chunk", content={"type": "text", "text": str}),
                ],
            ),
            ONE,
        ],
        answers=answered({"outcome": {"outcome": "selected", "optionId": "allow_once"}}), asked=[ASKED],
    ),
]  # fmt: skip

FILES = [
    AgentRow(
        "a file is read through the client, some lines of it", "spec", ["fs/read_text_file"],
        [NEW, prompt("/read notes.txt 2 1", updates=[update("tool_call_update", status="completed"), update("tool_call_update", rawOutput=ANY)])],
        answers={"fs/read_text_file": {"content": "two\n"}},
        asked=[{"method": "fs/read_text_file", "params": {"sessionId": str, "path": str, "line": 2, "limit": 1}}],
    ),
    AgentRow(
        "a file is written through the client, which answers with null, and the change is shown as a diff", "spec",
        ["fs/write_text_file", "edit diff content", "locations.line"],
        [
            NEW,
            prompt(EDIT, updates=[
                DONE,
                update("tool_call_update", content=[{"type": "diff", "path": str, "newText": "la la\n"}]),
                update("tool_call_update", locations=[{"path": str, "line": int}]),
            ]),
        ],
        answers=answered({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
        asked=[{"method": "fs/write_text_file", "params": {"sessionId": str, "path": str, "content": "la la\n"}}],
    ),
    AgentRow(
        "a link is resolved through the client", "notes", ["fs/read_text_file", "resource_link resolved"],
        [NEW, prompt("look", {"type": "resource_link", "uri": "file://$FILE", "name": "notes.txt"})],
        answers={"fs/read_text_file": {"content": "one\n"}}, agent="joint",
    ),
]  # fmt: skip

RUN = [
    AgentRow(
        f"a command runs in the client's terminal, which answers {how}", seed,
        ["terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/release", "terminalId"],
        [
            NEW,
            prompt("/run echo la", updates=[update("tool_call_update", content=[{"type": "terminal", "terminalId": "term-1"}]), end]),
        ],
        answers={
            "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
            "terminal/create": {"terminalId": "term-1"}, "terminal/output": output, "terminal/wait_for_exit": exit,
            "terminal/release": nothing, "terminal/kill": nothing,
        },
        asked=[
            {"method": "terminal/create", "params": {"sessionId": str, "command": str}},
            {"method": "terminal/wait_for_exit", "params": {"terminalId": "term-1"}},
            {"method": "terminal/output", "params": {"terminalId": "term-1"}},
            {"method": "terminal/release", "params": {"terminalId": "term-1"}},
        ],
    )
    for how, seed, output, exit, nothing, end in (
        ("as the schema has it", "notes", {"output": "la\n", "truncated": False, "exitStatus": {"exitCode": 0}}, {"exitCode": 0}, {}, DONE),
        ("with a flat exit code", "spec", {"output": "la\n", "exitCode": 0}, {"exitCode": 0}, None, DONE),
        ("with a flat signal", "spec", {"output": "", "signal": "SIGTERM"}, {"signal": "SIGTERM"}, None, DENIED),
        ("with an exit code that says it failed", "spec", {"output": "", "exitCode": 2}, {"exitCode": 2}, None, DENIED),
    )
] + [
    AgentRow(
        "a command that takes too long is killed", "notes", ["terminal/kill"],
        [NEW, prompt("/limit 0.1 sleep 9", updates=[update("tool_call_update", status="failed")])],
        answers={
            "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
            "terminal/create": {"terminalId": "term-1"}, "terminal/output": {"output": "", "truncated": False},
            "terminal/wait_for_exit": HANG, "terminal/kill": {}, "terminal/release": {},
        },
        asked=[{"method": "terminal/kill", "params": {"terminalId": "term-1"}}],
    ),
]  # fmt: skip

UPDATES = [
    AgentRow(f"our agent tells {name}", seed, [kind], [NEW, prompt(text, updates=[update(kind, **fields)])])
    for name, seed, kind, text, fields in (
        ("text", "wire", "agent_message_chunk", "hello", {"content": {"type": "text", "text": str}}),
        ("what the user said", "wire", "user_message_chunk", "/echo la", {"content": {"type": "text", "text": "la"}}),
        ("thoughts", "wire", "agent_thought_chunk", "/think la", {"content": {"type": "text", "text": str}}),
        ("a plan", "wire", "plan", "/plan", {"entries": [{"content": str, "status": str, "priority": str}]}),
        ("a change of mode", "wire", "current_mode_update", "/mode plan", {"currentModeId": "plan"}),
    )
] + [
    AgentRow(
        f"our agent tells its commands: {agent}", "wire", ["available_commands_update"],
        [
            Sent(
                "session/new", {"cwd": "$CWD", "mcpServers": []}, {"sessionId": str},
                updates=[update("available_commands_update", availableCommands=[{"name": str, "description": str}])],
            ),
        ],
        agent=agent,
    )
    for agent in ("demo", "joint")
]  # fmt: skip

ERRORS = [
    AgentRow(
        f"{what} is answered with {code}, and the connection goes on", seed, [str(code)],
        [NEW, Sent(method, params, error=code), ONE],
    )
    for what, seed, code, method, params in (
        ("a method that nobody has", "spec", -32601, "session/dance", {}),
        ("params of the wrong kind", "spec", -32602, "session/prompt", {"sessionId": 7, "prompt": []}),
        ("a prompt to a session that is not open", "guide", -32002, "session/prompt", {"sessionId": "none", "prompt": []}),
        ("a fault inside", "guide", -32603, "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "/fail -32603"}]}),
        ("an expired session", "guide", -32003, "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "/fail -32003"}]}),
        ("a timeout", "guide", -32001, "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "/fail -32001"}]}),
        ("a code of the server's own", "spec", -32099, "session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "/fail -32099"}]}),
    )
]  # fmt: skip

CALL_ROWS = [*PERMISSION, *FILES, *RUN, *UPDATES, *ERRORS]
