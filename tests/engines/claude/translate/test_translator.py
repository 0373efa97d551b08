"""News of the session itself: the plan, the gauge, compaction, modes, titles, limits, and how turns end."""

from typing import Any

import pytest

from antiphon.engines.claude.translate.events import (
    ClaudeEvent,
    ClaudeTurnEnded,
    CliStarted,
    CommandsChanged,
    ConversationReset,
    EngineNotice,
    ModeChanged,
    ModelChanged,
    SignInNeeded,
    TitleChanged,
)
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1
from tests.engines.claude.translate.lines import (
    answer,
    assistant_message,
    call,
    described,
    event,
    feed,
    message_start,
    result,
    system,
    text,
    translated,
)

INIT = {
    "type": "system", "subtype": "init", "session_id": "s1", "cwd": "/project", "model": "m-1", "permissionMode": "plan",
    "claude_code_version": "2.1.325", "apiKeySource": "none", "slash_commands": ["compact"], "tools": ["Bash"],
    "mcp_servers": [{"name": "good", "status": "connected"}, {"name": "bad", "status": "failed"}],
}  # fmt: skip
USED = {
    "m-1[1m]": {"inputTokens": 1, "outputTokens": 1, "contextWindow": 1000, "costUSD": 0.5},
    "m-2": {"contextWindow": 200},
}


def test_the_start_of_a_turn_has_the_settings_and_names_a_failed_server_once() -> None:
    translator = ClaudeTranslator("/project")
    first, again = feed(translator, INIT), feed(translator, INIT)
    started = first[0]
    assert isinstance(started, CliStarted)
    assert (started.model, started.mode) == ("m-1", "plan")
    assert len(first) == 2 and isinstance(first[1], EngineNotice) and "bad" in first[1].title
    assert again == [started]


def test_another_id_at_the_start_of_a_turn_is_another_session() -> None:
    translator = ClaudeTranslator("/project")
    feed(translator, INIT)
    events = feed(
        translator, {"type": "conversation_reset", "new_conversation_id": "nowhere"}, {**INIT, "session_id": "s2"}
    )
    assert events[0] == ConversationReset("s2") and isinstance(events[1], CliStarted)


def test_a_cleared_session_has_no_plan_and_an_empty_window() -> None:
    translator = ClaudeTranslator("/project")
    plan = assistant_message(call("p", "TodoWrite", todos=[{"content": "A", "status": "pending"}]))
    feed(translator, plan, answer("p", "ok"), result(modelUsage=USED, total_cost_usd=0.5))
    received = described(feed(translator, {"type": "conversation_reset"}))
    assert received == ["plan: ", "usage: 0 of 1000, $0.5000"]


def test_todos_are_the_plan_and_no_call() -> None:
    todos = [
        {"content": "A", "status": "completed", "activeForm": "x"},
        {"content": "B", "status": "in_progress"},
        "odd",
    ]
    events = translated(
        assistant_message(call("p", "TodoWrite", todos=todos)), answer("p", "ok", {"oldTodos": [], "newTodos": todos})
    )
    assert described(events) == ["plan: A (completed), B (in_progress)"]


def test_todos_that_were_not_taken_change_nothing() -> None:
    assert (
        translated(assistant_message(call("p", "TodoWrite", todos=[{"content": "A"}])), answer("p", "no", failed=True))
        == []
    )


def test_tasks_are_kept_as_a_plan() -> None:
    events = translated(
        assistant_message(call("1", "TaskCreate", subject="A", description="…")), answer("1", "ok", {"task": {"id": "7", "subject": "A"}}),
        assistant_message(call("2", "TaskCreate", subject="B")), answer("2", "ok"),
        assistant_message(call("3", "TaskUpdate", taskId="7", status="completed")), answer("3", "ok"),
        assistant_message(call("4", "TaskUpdate", taskId="9", status="completed")), answer("4", "ok"),
        assistant_message(call("5", "TaskUpdate", taskId="9", subject="C", status="in_progress")), answer("5", "ok"),
        assistant_message(call("6", "TaskUpdate", taskId="7", status="deleted")), answer("6", "ok"),
        assistant_message(call("7", "TaskList")), answer("7", "…", {"tasks": [{"id": "2", "subject": "B", "status": "completed"}]}),
    )  # fmt: skip
    assert described(events) == [
        "plan: A (pending)",
        "plan: A (pending), B (pending)",
        "plan: A (completed), B (pending)",
        "plan: A (completed), B (pending), C (in_progress)",
        "plan: B (pending), C (in_progress)",
        "plan: B (completed)",
    ]


def usage(**fields: int) -> dict[str, Any]:
    return event("message_delta", delta={"stop_reason": "end_turn"}, usage=fields)


def test_the_gauge_is_shown_as_messages_are_written_once_the_window_is_known() -> None:
    start = message_start()
    start["event"]["message"]["usage"] = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 1}
    translator = ClaudeTranslator("/project")
    assert feed(translator, start, usage(output_tokens=30)) == []
    assert described(feed(translator, result(modelUsage=USED, total_cost_usd=0.5)))[0] == "usage: 150 of 1000, $0.5000"
    assert described(feed(translator, start, usage(output_tokens=40))) == ["usage: 160 of 1000, $0.5000"]
    assert described(feed(translator, usage(input_tokens=1, output_tokens=1))) == ["usage: 2 of 1000, $0.5000"]
    assert feed(translator, usage(input_tokens=1, output_tokens=1)) == []


def test_messages_of_sub_agents_and_of_the_cli_do_not_move_the_gauge() -> None:
    translator = ClaudeTranslator("/project")
    feed(translator, assistant_message(text("x")), result(modelUsage=USED))
    made_up = assistant_message(text("x"), id="s")
    made_up["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 9, "output_tokens": 9}}
    delta = event("message_delta", usage={"input_tokens": 900, "output_tokens": 1}, parent="a")
    assert not [
        each for each in feed(translator, made_up, delta, result(modelUsage=USED)) if isinstance(each, v1.UsageUpdate)
    ]


def test_compaction_is_shown_from_its_beginning_to_its_summary() -> None:
    events = translated(
        result(modelUsage=USED),
        system("status", status="compacting", uuid="c1"),
        system("status", status=None, compact_result="success"),
        system("compact_boundary", compact_metadata={"trigger": "manual", "pre_tokens": 9, "post_tokens": 5}),
        {"type": "user", "isSynthetic": True, "message": {"content": "In short."}},
        {"type": "user", "isSynthetic": True, "message": {"content": "Another note."}},
    )
    assert described(events)[2:] == [
        "compaction in_progress",
        "compaction completed",
        "usage: 5 of 1000",
        "compaction summary: 'In short.'",
    ]
    ids = {each.compaction_id for each in events if isinstance(each, v1.CompactionUpdate | v1.CompactionSummaryChunk)}
    assert ids == {"c1"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([system("compact_boundary")], ["compaction completed"]),
        (
            [system("status", status="compacting"), system("status", compact_result="failed", compact_error="no")],
            ["compaction in_progress", "compaction failed: no"],
        ),
        ([system("status", status="compacting"), system("status", status="compacting")], ["compaction in_progress"]),
        (
            [system("status", status="compacting"), result()],
            ["compaction in_progress", "compaction cancelled", "turn ended end_turn"],
        ),
    ],
)
def test_compaction_is_shown_however_it_goes(lines: list[dict[str, Any]], expected: list[str]) -> None:
    assert described(translated(*lines)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (system("status", status=None, permissionMode="acceptEdits"), ModeChanged("acceptEdits")),
        (system("session_title_changed", title="A name"), TitleChanged("A name")),
    ],
)
def test_changes_by_the_cli_itself_are_shown(line: dict[str, Any], expected: ClaudeEvent) -> None:
    assert translated(line) == [expected]


def test_new_commands_are_shown() -> None:
    (events,) = translated(
        system("commands_changed", commands=[{"name": "fix", "description": "Fix it", "argumentHint": "<file>"}])
    )
    assert isinstance(events, CommandsChanged)
    assert [(each.name, each.argument_hint) for each in events.commands] == [("fix", "<file>")]


def test_a_model_that_answers_instead_is_shown_unless_it_did_so_for_a_sub_agent() -> None:
    fell = system("model_refusal_fallback", original_model="m-1", fallback_model="m-2", direction="retry")
    assert ModelChanged("m-2") in translated(fell)
    assert ModelChanged("m-2") not in translated({**fell, "scope": "local"})


def test_a_limit_is_shown_once_and_ends_up_in_the_turns_error() -> None:
    limit = {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": 1900000000},
    }
    failed = assistant_message(text("Limit reached"), id="e", error="rate_limit", is_api_error_message=True)
    events = translated(
        limit, limit, failed, result(is_error=True, terminal_reason="api_error", result="Limit reached")
    )
    end = events[-1]
    assert [type(each) for each in events] == [EngineNotice, ClaudeTurnEnded]
    assert isinstance(end, ClaudeTurnEnded) and end.end.error is not None and end.end.error.resets_at == 1900000000


def test_an_old_cli_without_a_login_reports_it() -> None:
    assert translated(system("auth_required", content="Please sign in")) == [SignInNeeded("Please sign in")]


def test_an_old_hook_is_a_notice() -> None:
    hook = system("hook_response", hook_name="Start", stdout="", stderr="it broke", exit_code=1)
    (events,) = translated(hook)
    assert isinstance(events, EngineNotice) and events.description == "it broke"


def test_a_turn_names_its_prompts() -> None:
    ours = translated(result(user_message_uuids=["u1", "u2"]))[-1]
    older = translated(result(user_message_uuid="u1"))[-1]
    its_own = translated(result(origin={"kind": "task-notification"}))[-1]
    assert (
        isinstance(ours, ClaudeTurnEnded)
        and isinstance(older, ClaudeTurnEnded)
        and isinstance(its_own, ClaudeTurnEnded)
    )
    assert ours.user_message_uuids == ("u1", "u2")
    assert older.user_message_uuids == ("u1",)
    assert its_own.user_message_uuids == () and its_own.origin == {"kind": "task-notification"}


def test_lines_for_others_are_not_shown() -> None:
    quiet = [
        {"type": "keep_alive"}, {"type": "command_lifecycle", "command_uuid": "u", "state": "queued"},
        {"type": "control_cancel_request", "request_id": "1"}, system("session_state_changed", state="idle"),
        system("background_tasks_changed", tasks=[]), {"type": "tool_progress", "tool_use_id": "t"},
        system("task_progress", task_id="x"), system("task_updated", task_id="x"), system("elicitation_complete"),
    ]  # fmt: skip
    translator = ClaudeTranslator("/project")
    assert feed(translator, *quiet) == [] and not translator.unknown
