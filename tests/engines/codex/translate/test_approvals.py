"""What questions show."""

from typing import Any

import pytest

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, Stage, update

SERVER = "mcpServer/elicitation/request"


def texts(patch: v1.ToolCallPatch | None) -> list[str]:
    assert patch is not None
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
    assert patch is not None
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
    assert patch is not None and patch.title == "rm x" and texts(patch) == ["```sh\nrm x\n```"]


def test_a_question_about_the_network_says_where_to() -> None:
    stage = Stage()
    stage.command("c", "curl x")
    patch = stage.asked(
        "item/commandExecution/requestApproval",
        itemId="c",
        networkApprovalContext={"host": "x.org", "protocol": "https"},
    )
    assert patch is not None and patch.title == "Network access to https://x.org"


def test_a_question_about_a_change_has_the_diff_from_the_item() -> None:
    stage = Stage(read={f"{CWD}/a": "one\n"}.get)
    stage.changes("f", [update("a", "@@ -1 +1 @@\n-one\n+1\n")])
    patch = stage.asked("item/fileChange/requestApproval", itemId="f", reason="It is old.")
    assert patch is not None and isinstance(patch.content, list)
    assert patch.content[1:] == [v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n")]
    assert texts(patch) == ["It is old."]


def test_a_question_about_a_command_that_nobody_has_told_of_shows_what_it_says_itself() -> None:
    patch = Stage().asked("item/commandExecution/requestApproval", itemId="c", command="ls")
    assert patch is not None and (patch.name, patch.title) == ("Bash", "ls")


def test_a_question_about_no_call_that_is_known_is_about_none() -> None:
    stage = Stage()
    assert stage.asked("item/fileChange/requestApproval", itemId="f") is None
    assert stage.asked("item/permissions/requestApproval", itemId="p", permissions={"network": None}) is None
    assert stage.asked("item/tool/requestUserInput", itemId="q", questions=[]) is None
    assert stage.asked("strange/request", thing=1) is None


def test_questions_of_the_older_protocol_show_the_same() -> None:
    stage = Stage(read={f"{CWD}/a": "one\n"}.get)
    patch = stage.asked(
        "execCommandApproval",
        callId="c",
        command=["bash", "-lc", "ls"],
        cwd="/w",
        parsedCmd=[{"type": "list_files", "cmd": "ls"}],
    )
    assert patch is not None
    assert (patch.tool_call_id, patch.title, patch.kind, patch.raw_input) == (
        "c",
        "ls",
        "read",
        {"command": "ls", "cwd": "/w"},
    )
    changes = {"a": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-one\n+1\n"}, "b": {"type": "add", "content": "x"}}
    patch = stage.asked("applyPatchApproval", callId="f", fileChanges=changes)
    assert patch is not None and patch.content == [
        v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n"),
        v1.Diff(path=f"{CWD}/b", new_text="x"),
    ]


def about(stage: Stage, tool: str, arguments: Any, server: str = "echo", **more: Any) -> str | None:
    """The id of the call that is shown when Codex asks whether a tool may run."""
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": arguments}
    message = f'Allow the {server} MCP server to run tool "{tool}"?'
    patch = stage.asked(SERVER, **{"serverName": server, "message": message, "_meta": meta, **more})
    if patch is None:
        return None
    assert patch.name == f"mcp__{server}__{tool}"
    return patch.tool_call_id


def test_a_question_about_a_servers_tool_finds_the_call_with_the_same_arguments() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a", arguments={"n": 1})
    stage.started("mcpToolCall", "b", arguments={"n": 2})
    stage.started("mcpToolCall", "other", server="echo2", arguments={"n": 2})
    assert about(stage, "say", {"n": 2}) == "b"


def test_questions_about_the_same_call_twice_find_both_calls() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a")
    stage.started("mcpToolCall", "b")
    assert about(stage, "say", {"text": "hey"}) == "a"
    stage.allowed("a")
    assert about(stage, "say", {"text": "hey"}) == "b"


def test_questions_about_two_tools_find_each_its_own_in_whatever_order() -> None:
    for order in (("look", "destroy"), ("destroy", "look")):
        stage = Stage()
        stage.started("mcpToolCall", "look", tool="look", arguments={"path": "a"})
        stage.started("mcpToolCall", "destroy", tool="destroy", arguments={"path": "a"})
        assert [about(stage, tool, {"path": "a"}) for tool in order] == list(order)


@pytest.mark.parametrize(
    ("tool", "arguments", "more"),
    [
        ("destroy", {"path": "a"}, {}),
        ("look", {"path": "b"}, {}),
        ("look", {}, {}),
        ("look", None, {}),
        ("look", {"path": "a"}, {"server": "echo2"}),
        ("look", {"path": "a"}, {"message": "May it look?"}),
        ("look", {"path": "a"}, {"message": 'May "look" and "destroy" run?'}),
        ("look", {"path": "a"}, {"message": 'May it "look"?', "_meta": None}),
        ("look", {"path": "a"}, {"requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}),
    ],
)
def test_a_question_is_never_shown_as_one_about_another_call(tool: str, arguments: Any, more: dict[str, Any]) -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a", tool="look", arguments={"path": "a"})
    assert about(stage, tool, arguments, **more) is None
    stage.allowed("a")
    assert len(stage.news) == 1  # it never waited


def test_two_servers_whose_tools_have_the_same_name_together_are_not_taken_for_each_other() -> None:
    stage = Stage()
    stage.started("mcpToolCall", "a", server="echo", tool="two__say")
    stage.started("mcpToolCall", "b", server="echo__two", tool="say")
    assert about(stage, "say", {"text": "hey"}, server="echo__two") is None


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
