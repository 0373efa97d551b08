"""Scenarios about commands, changes to files and tools."""

from tests.engines.codex.translate.harness import CWD, TranslatedThread, add, update
from tests.engines.codex.translate.scenario import ADDED, DONE, HUNK, MADE, TOUCH, ask_command, done, scenario


@scenario("approval-errorresp", TOUCH, "update c [failed] 'It failed.'", *DONE)
def _(thread: TranslatedThread) -> None:
    ask_command(thread, "error")
    thread.command("c", "touch made.txt", "failed")
    done(thread)


@scenario("cmd-approval-accept", TOUCH, "update c [in_progress]", "update c [completed]", *DONE)
@scenario("cmd-approval-acceptForSession", TOUCH, "update c [in_progress]", "update c [completed]", *DONE)
def _(thread: TranslatedThread) -> None:
    ask_command(thread, "accept")
    thread.command("c", "touch made.txt", "completed", exitCode=0, processId="7", source="unifiedExecStartup")
    done(thread)


@scenario("cmd-approval-cancel", TOUCH, "update c [failed] 'Not run, because it was declined.'", "end u1 cancelled")
def _(thread: TranslatedThread) -> None:
    ask_command(thread, "cancel")
    thread.command("c", "touch made.txt", "declined")
    thread.over("interrupted")


@scenario("cmd-approval-decline", TOUCH, "update c [failed] 'Not run, because it was declined.'", *DONE)
def _(thread: TranslatedThread) -> None:
    ask_command(thread, "decline")
    thread.command("c", "touch made.txt", "declined")
    done(thread)


@scenario(
    "cmd-network-denied",
    "call c execute Bash: curl x [in_progress]",
    "update c [completed] '```\\nrc=7\\n```'",
    *DONE,
)
@scenario("never-danger", "call c execute Bash: curl x [in_progress]", "update c [completed] '```\\nrc=7\\n```'", *DONE)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.command("c", "curl x", processId="1")
    thread.command("c", "curl x", "completed", processId="1", aggregatedOutput="rc=7\n", exitCode=0)
    done(thread)


@scenario("cmd-readonly-denied", *DONE)
@scenario("file-never-read-only-accept", *DONE)
def _(thread: TranslatedThread) -> None:
    """What the sandbox refuses is no item at all."""
    thread.begin()
    done(thread)


@scenario(
    "cmd-sandboxed",
    "call c read Bash: cat a.txt [in_progress]",
    "update c [completed] '```\\none\\n```'",
    *DONE,
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    actions = [{"type": "read", "command": "cat a.txt", "name": "a.txt", "path": "a.txt"}]
    thread.command("c", "cat a.txt", commandActions=actions, processId="1")
    thread.command("c", "cat a.txt", "completed", commandActions=actions, aggregatedOutput="one\n", exitCode=0)
    done(thread)


@scenario(
    "cmd-untrusted", "call c read Bash: ls [in_progress]", "update c [in_progress]", "update c [completed]", *DONE
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    actions = [{"type": "listFiles", "command": "ls", "path": None}]
    thread.command("c", "ls", commandActions=actions)
    thread.asked(
        "item/commandExecution/requestApproval", itemId="c", command="/bin/bash -lc ls", commandActions=actions
    )
    thread.allowed("c")
    thread.command("c", "ls", "completed", commandActions=actions, exitCode=0)
    done(thread)


@scenario(
    "codemode",
    "call x execute Bash: echo js [in_progress]",
    "update x [in_progress]",
    "update x [completed] '```\\njs\\n```'",
    ADDED,
    "update f [in_progress]",
    MADE,
    *DONE,
)
def _(thread: TranslatedThread) -> None:
    """The model writes JavaScript, and the same items come of it."""
    thread.begin()
    thread.command("x", "echo js")
    thread.asked("item/commandExecution/requestApproval", itemId="x", command="/bin/bash -lc 'echo js'")
    thread.allowed("x")
    thread.command("x", "echo js", "completed", aggregatedOutput="js\n", exitCode=0)
    change_asked(thread, "accept")
    done(thread)


def change_asked(thread: TranslatedThread, answer: str) -> None:
    """A change that the user is asked about; which one stands in the item alone."""
    thread.changes("f", [add(f"{CWD}/new.txt", "hello\n")])
    patch = thread.asked("item/fileChange/requestApproval", itemId="f", reason=None, grantRoot=None)
    assert patch is not None and patch.content and patch.name == "Write"
    if answer == "accept":
        thread.allowed("f")
        thread.changes("f", [add(f"{CWD}/new.txt", "hello\n")], "completed")
    for _ in range(2):
        thread.notify("turn/diff/updated", diff="diff --git a/new.txt b/new.txt\n")


@scenario("file-on-request-read-only-accept", ADDED, "update f [in_progress]", MADE, *DONE)
@scenario("file-on-request-read-only-acceptForSession", ADDED, "update f [in_progress]", MADE, *DONE)
@scenario("file-untrusted-workspace-write-accept", ADDED, "update f [in_progress]", MADE, *DONE)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    change_asked(thread, "accept")
    done(thread)


@scenario("file-on-request-read-only-cancel", ADDED, "update f [failed]", "end u1 cancelled")
def _(thread: TranslatedThread) -> None:
    """The item is never completed."""
    thread.begin()
    change_asked(thread, "cancel")
    thread.over("interrupted")


@scenario(
    "file-on-request-read-only-decline",
    ADDED,
    f"update f [failed] 'Not changed, because it was declined.' diff({CWD}/new.txt: None -> 'hello\\n')",
    *DONE,
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    change_asked(thread, "decline")
    thread.changes("f", [add(f"{CWD}/new.txt", "hello\n")], "declined")
    done(thread)


@scenario(
    "file-on-request-workspace-write-accept",
    f"call f edit Edit: Edit a.txt [in_progress] diff({CWD}/a.txt: 'one\\ntwo\\nthree\\n' -> 'one\\nTWO\\nthree\\n')",
    f"update f [completed] diff({CWD}/a.txt: 'one\\ntwo\\nthree\\n' -> 'one\\nTWO\\nthree\\n')",
    *DONE,
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.changes("f", [update(f"{CWD}/a.txt", HUNK)])
    thread.changes("f", [update(f"{CWD}/a.txt", HUNK)], "completed")
    done(thread)


@scenario(
    "interrupt-clean",
    "call c execute Bash: sleep 9 [in_progress]",
    "update c [failed]",
    "end u1 cancelled",
    "update c [failed] '```\\nstarted\\n```\\nIt was stopped.'",
)
def _(thread: TranslatedThread) -> None:
    """The command is closed with the turn; what it printed comes when it is killed."""
    thread.begin()
    thread.command("c", "sleep 9", processId="1")
    thread.over("interrupted")
    thread.command("c", "sleep 9", "failed", processId="1", aggregatedOutput="started\n", exitCode=-1)


@scenario(
    "interrupt-tool", "call c execute Bash: sleep 9 [in_progress]", "update c [failed]", "end u1 cancelled", "say m 'next'", "end u2 end_turn"
)  # fmt: skip
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.command("c", "sleep 9", processId="1")
    thread.over("interrupted")
    thread.begin()
    thread.says("m", "next")
    thread.over()


MCP = "call c other mcp__echo__say: echo: say [in_progress]"


def tool_asked(thread: TranslatedThread) -> None:
    """A server's tool that the user is asked about; the question does not name the call."""
    thread.begin()
    thread.started("mcpToolCall", "c")
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_description": "Says it", "tool_params": {"text": "hey"}}
    patch = thread.asked(
        "mcpServer/elicitation/request", serverName="echo", mode="form", message='Run tool "say"?', _meta=meta
    )
    assert patch is not None and patch.tool_call_id == "c"


@scenario("mcp-cancel", MCP, "update c [failed] 'user cancelled MCP tool call'", *DONE)
@scenario("mcp-decline", MCP, "update c [failed] 'user cancelled MCP tool call'", *DONE)
def _(thread: TranslatedThread) -> None:
    tool_asked(thread)
    thread.completed("mcpToolCall", "c", status="failed", error={"message": "user cancelled MCP tool call"})
    done(thread)


@scenario(
    "mcp", "notice warning: The MCP server broken did not start | no such file", MCP, "update c [in_progress]",
    "update c [completed] 'said: hey'", *DONE,
)  # fmt: skip
def _(thread: TranslatedThread) -> None:
    for name, status, error in (
        ("echo", "starting", None),
        ("broken", "failed", "no such file"),
        ("echo", "ready", None),
    ):
        thread.notify("mcpServer/startupStatus/updated", name=name, status=status, error=error, failureReason=None)
    tool_asked(thread)
    thread.allowed("c")
    result = {"content": [{"type": "text", "text": "said: hey"}], "structuredContent": None, "_meta": None}
    thread.completed("mcpToolCall", "c", status="completed", result=result)
    done(thread)


@scenario(
    "output-delta",
    "call c execute Bash: count [in_progress]",
    "update c '```\\nline 2\\n```'",
    "update c '```\\nline 2\\nline 3\\n```'",
    "update c [failed] '```\\nline 1\\nline 2\\nline 3\\n```\\nIt ended with exit code 3.'",
    "call d execute Bash: later [in_progress]",
    "end u1 end_turn",
    "update d '```\\nend\\n```'",
    "update d [completed] '```\\nstart\\nend\\n```'",
)
def _(thread: TranslatedThread) -> None:
    """The first piece of the output is sent at the end alone. One command outlives the turn."""
    thread.begin()
    thread.command("c", "count", processId="1")
    for line in ("line 2\n", "line 3\n"):
        thread.notify("item/commandExecution/outputDelta", itemId="c", delta=line)
    thread.command("c", "count", "failed", aggregatedOutput="line 1\nline 2\nline 3\n", exitCode=3)
    thread.command("d", "later", processId="2")
    thread.over()
    thread.notify("item/commandExecution/outputDelta", itemId="d", delta="end\n")
    thread.command("d", "later", "completed", aggregatedOutput="start\nend\n", exitCode=0)
