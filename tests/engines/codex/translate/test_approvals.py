"""What questions show."""

from typing import Any

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import CWD, TranslatedThread, update
from tests.rows import each_row

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
    thread = TranslatedThread()
    thread.command("c", "rm x")
    patch = thread.asked(
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
    thread = TranslatedThread()
    thread.command("c", "rm x")
    patch = thread.asked("item/commandExecution/requestApproval", itemId="c")
    assert patch is not None and patch.title == "rm x" and texts(patch) == ["```sh\nrm x\n```"]


def test_a_question_about_the_network_names_the_host() -> None:
    thread = TranslatedThread()
    thread.command("c", "curl x")
    patch = thread.asked(
        "item/commandExecution/requestApproval",
        itemId="c",
        networkApprovalContext={"host": "x.org", "protocol": "https"},
    )
    assert patch is not None and patch.title == "Network access to https://x.org"


def test_a_question_about_a_change_has_the_diff_from_the_item() -> None:
    thread = TranslatedThread(read={f"{CWD}/a": "one\n"}.get)
    thread.changes("f", [update("a", "@@ -1 +1 @@\n-one\n+1\n")])
    patch = thread.asked("item/fileChange/requestApproval", itemId="f", reason="It is old.")
    assert patch is not None and isinstance(patch.content, list)
    assert patch.content[1:] == [v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n")]
    assert texts(patch) == ["It is old."]


def test_a_request_about_an_unknown_command_shows_its_own_fields() -> None:
    patch = TranslatedThread().asked("item/commandExecution/requestApproval", itemId="c", command="ls")
    assert patch is not None and (patch.name, patch.title) == ("Bash", "ls")


def test_a_question_about_no_call_that_is_known_is_about_none() -> None:
    thread = TranslatedThread()
    assert thread.asked("item/fileChange/requestApproval", itemId="f") is None
    assert thread.asked("item/permissions/requestApproval", itemId="p", permissions={"network": None}) is None
    assert thread.asked("item/tool/requestUserInput", itemId="q", questions=[]) is None
    assert thread.asked("strange/request", thing=1) is None


def test_questions_of_the_older_protocol_show_the_same() -> None:
    thread = TranslatedThread(read={f"{CWD}/a": "one\n"}.get)
    patch = thread.asked(
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
    patch = thread.asked("applyPatchApproval", callId="f", fileChanges=changes)
    assert patch is not None and patch.content == [
        v1.Diff(path=f"{CWD}/a", old_text="one\n", new_text="1\n"),
        v1.Diff(path=f"{CWD}/b", new_text="x"),
    ]


def about(thread: TranslatedThread, tool: str, arguments: Any, server: str = "echo", **more: Any) -> str | None:
    """The id of the call that is shown when Codex asks whether a tool may run."""
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": arguments}
    message = f'Allow the {server} MCP server to run tool "{tool}"?'
    patch = thread.asked(SERVER, **{"serverName": server, "message": message, "_meta": meta, **more})
    if patch is None:
        return None
    assert patch.name == f"mcp__{server}__{tool}"
    return patch.tool_call_id


def test_a_question_about_a_servers_tool_finds_the_call_with_the_same_arguments() -> None:
    thread = TranslatedThread()
    thread.started("mcpToolCall", "a", arguments={"n": 1})
    thread.started("mcpToolCall", "b", arguments={"n": 2})
    thread.started("mcpToolCall", "other", server="echo2", arguments={"n": 2})
    assert about(thread, "say", {"n": 2}) == "b"


def test_questions_about_the_same_call_twice_find_both_calls() -> None:
    thread = TranslatedThread()
    thread.started("mcpToolCall", "a")
    thread.started("mcpToolCall", "b")
    assert about(thread, "say", {"text": "hey"}) == "a"
    thread.allowed("a")
    assert about(thread, "say", {"text": "hey"}) == "b"


def test_questions_about_two_tools_find_each_its_own_in_whatever_order() -> None:
    for order in (("look", "destroy"), ("destroy", "look")):
        thread = TranslatedThread()
        thread.started("mcpToolCall", "look", tool="look", arguments={"path": "a"})
        thread.started("mcpToolCall", "destroy", tool="destroy", arguments={"path": "a"})
        assert [about(thread, tool, {"path": "a"}) for tool in order] == list(order)


@each_row(
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
    thread = TranslatedThread()
    thread.started("mcpToolCall", "a", tool="look", arguments={"path": "a"})
    assert about(thread, tool, arguments, **more) is None
    thread.allowed("a")
    assert len(thread.events) == 1  # it never waited


def test_two_servers_whose_tools_have_the_same_name_together_are_not_taken_for_each_other() -> None:
    thread = TranslatedThread()
    thread.started("mcpToolCall", "a", server="echo", tool="two__say")
    thread.started("mcpToolCall", "b", server="echo__two", tool="say")
    assert about(thread, "say", {"text": "hey"}, server="echo__two") is None


def test_a_call_that_waited_runs_after_a_yes_and_only_then() -> None:
    thread = TranslatedThread(terminals=True)
    thread.command("c", "ls")
    thread.allowed("c")
    assert len(thread.events) == 1
    thread.asked("item/commandExecution/requestApproval", itemId="c", command="ls")
    thread.allowed("c")
    assert thread.outline[1:] == ["update c [in_progress] terminal(c)"]


def test_a_command_that_was_allowed_may_outlive_the_turn() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.command("c", "serve")
    thread.asked("item/commandExecution/requestApproval", itemId="c", command="serve")
    thread.allowed("c")
    thread.over()
    thread.command("c", "serve", "completed", exitCode=0)
    assert thread.outline[-2:] == ["end u1 end_turn", "update c [completed]"]
