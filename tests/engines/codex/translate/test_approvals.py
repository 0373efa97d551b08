"""What questions show."""

from typing import Any

from antiphon.protocol import v1
from tests.engines.codex.translate.stage import CWD, Stage, update


def texts(patch: v1.ToolCallPatch) -> list[str]:
    content: Any = patch.content
    return [
        piece.content.text
        for piece in content
        if isinstance(piece, v1.ContentItem) and isinstance(piece.content, v1.TextBlock)
    ]


def test_a_question_about_a_command_shows_it_and_why() -> None:
    stage = Stage()
    stage.command("c", "rm x")
    patch = stage.asked(
        "item/commandExecution/requestApproval", itemId="c", command="/bin/bash -lc 'rm x'", reason="It is old."
    )
    assert (patch.tool_call_id, patch.title, patch.kind, patch.raw_input) == (
        "c",
        "rm x",
        "execute",
        {"command": "rm x", "cwd": CWD},
    )
    assert texts(patch) == ["It is old.", "```sh\nrm x\n```"]


def test_a_question_without_the_command_has_it_from_the_item() -> None:
    stage = Stage()
    stage.command("c", "rm x")
    patch = stage.asked("item/commandExecution/requestApproval", itemId="c")
    assert patch.title == "rm x" and texts(patch) == ["```sh\nrm x\n```"]


def test_a_question_about_the_network_says_where_to() -> None:
    stage = Stage()
    stage.command("c", "curl x")
    patch = stage.asked(
        "item/commandExecution/requestApproval",
        itemId="c",
        networkApprovalContext={"host": "x.org", "protocol": "https"},
    )
    assert patch.title == "Network access to https://x.org"


def test_a_question_about_a_change_has_the_diff_from_the_item() -> None:
    stage = Stage(read={f"{CWD}/a": "one\n"}.get)
    stage.changes("f", [update("a", "@@ -1 +1 @@\n-one\n+1\n")])
    patch = stage.asked("item/fileChange/requestApproval", itemId="f", grantRoot="/w")
    assert isinstance(patch.content, list) and patch.content[1:] == [
        v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n")
    ]
    assert texts(patch) == ["Codex wants to write anywhere in /w"]


def test_a_question_about_an_unknown_item_is_still_a_question() -> None:
    stage = Stage()
    assert stage.asked("item/fileChange/requestApproval", itemId="f").name == "Edit"
    assert stage.asked("item/commandExecution/requestApproval", itemId="c").name == "Bash"
    assert stage.asked("item/tool/requestUserInput", itemId="q", questions=[]).tool_call_id == "q"
    assert stage.asked("strange/request", thing=1).title


def test_a_question_about_permissions_shows_them() -> None:
    stage = Stage()
    patch = stage.asked(
        "item/permissions/requestApproval",
        itemId="p",
        reason="Why",
        cwd=CWD,
        permissions={"network": {"enabled": True}},
    )
    assert texts(patch)[0] == "Why" and '"enabled": true' in texts(patch)[1]


def test_questions_of_the_older_protocol_show_the_same() -> None:
    stage = Stage(read={f"{CWD}/a": "one\n"}.get)
    patch = stage.asked(
        "execCommandApproval",
        callId="c",
        command=["bash", "-lc", "ls"],
        cwd="/w",
        parsedCmd=[{"type": "list_files", "cmd": "ls"}],
    )
    assert (patch.tool_call_id, patch.title, patch.kind, patch.raw_input) == (
        "c",
        "ls",
        "read",
        {"command": "ls", "cwd": "/w"},
    )
    changes = {"a": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-one\n+1\n"}, "b": {"type": "add", "content": "x"}}
    patch = stage.asked("applyPatchApproval", callId="f", fileChanges=changes)
    assert patch.content == [
        v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n"),
        v1.Diff(path=f"{CWD}/b", new_text="x"),
    ]


def test_a_question_about_a_servers_tool_finds_the_call_with_the_same_arguments() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a", arguments={"n": 1})
    stage.started("mcpToolCall", "b", arguments={"n": 2})
    stage.started("mcpToolCall", "other", server="echo2", arguments={"n": 2})
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"n": 2}}
    assert stage.asked("mcpServer/elicitation/request", serverName="echo", message="?", _meta=meta).tool_call_id == "b"


def test_questions_about_the_same_call_twice_find_both_calls() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a")
    stage.started("mcpToolCall", "b")
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"text": "hey"}}
    asked = [
        stage.asked("mcpServer/elicitation/request", id=n, serverName="echo", message="?", _meta=meta).tool_call_id
        for n in (0, 1)
    ]
    assert asked == ["a", "b"]


def test_a_call_that_waited_runs_after_a_yes_and_only_then() -> None:
    stage = Stage(terminals=True)
    stage.command("c", "ls")
    stage.allowed("c")
    assert len(stage.news) == 1
    stage.asked("item/commandExecution/requestApproval", itemId="c", command="ls")
    stage.allowed("c")
    assert stage.tale[1:] == ["update c [in_progress] terminal(c)"]


def test_a_command_that_was_allowed_may_outlive_the_turn() -> None:
    stage = Stage()
    stage.begin()
    stage.command("c", "serve")
    stage.asked("item/commandExecution/requestApproval", itemId="c", command="serve")
    stage.allowed("c")
    stage.over()
    stage.command("c", "serve", "completed", exitCode=0)
    assert stage.tale[-2:] == ["end u1 end_turn", "update c [completed]"]
