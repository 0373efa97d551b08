"""What Claude Code and Codex say in the words of the seeds, and what our agents over them must send a client."""

from typing import Any

from tests.seeds.agent_rows import NEW, prompt, update
from tests.seeds.table import ANY, AgentRow, Sent

__all__ = ["ENGINE_ROWS"]

Json = dict[str, Any]

MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
RESULT: Json = {"type": "result", "subtype": "success", "result": "done", "duration_ms": 12, "session_id": "$SESSION"}
BASH: Json = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "echo la"}}


def message_of(role: str, *blocks: Json) -> Json:
    return {"type": role, "message": {"role": role, "content": list(blocks)}, "session_id": "$SESSION"}


def claude(name: str, shows: list[str], lines: list[Json], updates: list[Json], stop: str = "end_turn") -> AgentRow:
    """A turn of Claude Code that says these lines."""
    asked = Sent(
        "session/prompt",
        {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "sing"}]},
        {"stopReason": stop},
        updates=updates,
    )
    return AgentRow(name, "wire", shows, [NEW, asked], agent="claude", says=lines)


def text(printed: str) -> Json:
    return update("agent_message_chunk", content={"type": "text", "text": printed})


CLAUDE_ROWS = [
    claude("what an assistant says", ["claude assistant"], [message_of("assistant", {"type": "text", "text": "Hello!"}), RESULT], [text("Hello!")]),
    claude(
        "pieces of text and thought as they come", ["claude stream_event"],
        [
            {"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": []}}},
            {"type": "stream_event", "event": {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}},
            {"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}}},
            {"type": "stream_event", "event": {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}},
            {"type": "stream_event", "event": {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hello"}}},
            {"type": "stream_event", "event": {"type": "message_stop"}},
            RESULT,
        ],
        [text("Hello"), update("agent_thought_chunk", content={"type": "text", "text": "Hm"})],
    ),
    claude(
        "pieces of text without anything around them", ["claude stream_event"],
        [
            {"type": "stream_event", "event": {"type": "message_start"}},
            {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hello"}}},
            {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}}},
            {"type": "stream_event", "event": {"type": "message_stop"}},
            RESULT,
        ],
        [text("Hello")],
    ),
    *(
        claude(
            f"the result of a call in a line of the {role}", [f"claude tool_result of {role}"],
            [message_of("assistant", BASH), message_of(role, {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": failed}), RESULT],
            [update("tool_call", toolCallId="t1"), update("tool_call_update", toolCallId="t1", status=status)],
        )
        for role, content, failed, status in (
            ("assistant", [{"type": "text", "text": "la"}], False, "completed"), ("user", "no voice", True, "failed"),
        )
    ),
    claude(
        "a hook's response that failed", ["claude hook_response"],
        [
            {"type": "system", "subtype": "hook_response", "hook_name": "SessionStart:startup", "stdout": "", "stderr": "out of breath", "exit_code": 1},
            RESULT,
        ],
        [],
    ),
    AgentRow(
        "a sign-in that is needed", "wire", ["claude auth_required", "-32000"],
        [NEW, Sent("session/prompt", {"sessionId": "$SESSION", "prompt": [{"type": "text", "text": "sing"}]}, error=-32000)],
        agent="claude", says=[{"type": "system", "subtype": "auth_required", "content": "Please run /login to authenticate"}],
    ),
    *(
        claude(f"a result of the subtype {subtype}", [f"claude result {subtype}", f"stop {stop}"], [{**RESULT, "subtype": subtype}], [], stop)
        for subtype, stop in (
            ("success", "end_turn"), ("cancelled", "cancelled"), ("max_tokens", "max_tokens"), ("error_max_turns", "max_turn_requests"),
            ("error_max_budget_usd", "max_turn_requests"),
        )
    ),
    AgentRow(
        "the ways to sign in have an older name, which works", "wire", ["authMethods", "claude-login"],
        [Sent("authenticate", {"methodId": "claude-login"}, {}), NEW], agent="claude", says=[RESULT],
    ),
    *(
        AgentRow(
            f"the mode {mode} by {field}", seed, ["session/set_mode", f"mode {mode}"],
            [
                NEW, Sent("session/set_mode", {"sessionId": "$SESSION", field: mode}, {}),
                prompt("sing"),
            ],
            agent="claude", says=[RESULT],
        )
        for mode in MODES
        for seed, field in (("notes", "modeId"), ("notes", "mode"))
    ),
]  # fmt: skip


def notification(method: str, **params: Any) -> Json:
    return {"method": method, "params": {"threadId": "$THREAD", "turnId": "$TURN", **params}}


LS: Json = {
    "type": "commandExecution", "id": "item_2", "command": "/bin/zsh -lc ls", "cwd": "/w", "processId": None, "status": "inProgress",
    "commandActions": [], "aggregatedOutput": None, "exitCode": None, "durationMs": None,
}  # fmt: skip


def codex(name: str, shows: list[str], lines: list[Json], updates: list[Json], **more: Any) -> AgentRow:
    """A turn of Codex that says these lines."""
    return AgentRow(name, "wire", shows, [NEW, prompt("sing", updates=updates)], agent="codex", says=lines, **more)


def approval(method: str, answer: str, decision: Any, **params: Any) -> AgentRow:
    """A request of Codex for approval, and what it is answered."""
    word = decision if isinstance(decision, str) else next(iter(decision))
    asked = {"id": 9, **notification(method, itemId="item_2", **params)}
    option = {
        "accept": "allow",
        "acceptWithExecpolicyAmendment": "allow_always_prefix",
        "acceptForSession": "allow_session",
        "decline": "reject",
        "cancel": "reject_and_stop",
    }[answer]
    return AgentRow(
        f"{method} is answered with {word}", "wire", [f"codex {method}", f"codex {word}"],
        [NEW, Sent("session/set_mode", {"sessionId": "$SESSION", "modeId": "default"}, {}), prompt("sing")],
        agent="codex", says=[asked], received=[{"decision": decision}],
        answers={"session/request_permission": {"outcome": {"outcome": "selected", "optionId": option}}},
        asked=[{"method": "session/request_permission", "params": {"options": [{"optionId": option}]}}],
    )  # fmt: skip


CODEX_ROWS = [
    codex(
        "what an agent says, piece by piece", ["codex item/agentMessage/delta"],
        [notification("item/agentMessage/delta", itemId="item_1", delta="Hello")], [text("Hello")],
    ),
    codex(
        "a command that begins and ends", ["codex item/started", "codex item/completed"],
        [
            notification("item/started", item=LS),
            notification("item/completed", item={**LS, "status": "completed", "aggregatedOutput": "a\nb\n", "exitCode": 0, "durationMs": 12}),
        ],
        [
            update("tool_call", toolCallId="item_2", kind="execute"),
            update("tool_call_update", toolCallId="item_2", status="completed"), update("tool_call_update", toolCallId="item_2", rawOutput=dict),
        ],
    ),
    *(
        approval("item/commandExecution/requestApproval", answer, answer, command="ls", cwd="/w", reason="why")
        for answer in ("accept", "acceptForSession", "decline", "cancel")
    ),
    approval(
        "item/commandExecution/requestApproval", "acceptWithExecpolicyAmendment", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["npm", "test"]}},
        command="npm test", cwd="/w", proposedExecpolicyAmendment=["npm", "test"],
    ),
    *(
        approval("item/fileChange/requestApproval", answer, answer, reason="why", grantRoot=None)
        for answer in ("accept", "decline")
    ),
    *(
        approval("execCommandApproval", answer, decision, conversationId="$THREAD", callId="item_2", command=["ls"], cwd="/w", parsedCmd=[])
        for answer, decision in (("accept", "approved"), ("acceptForSession", "approved_for_session"), ("decline", {"denied": ANY}), ("cancel", "abort"))
    ),
    approval("applyPatchApproval", "accept", "approved", conversationId="$THREAD", callId="item_2", fileChanges={"/w/a": {"type": "add", "content": "la\n"}}),
]  # fmt: skip

ENGINE_ROWS = [*CLAUDE_ROWS, *CODEX_ROWS]
