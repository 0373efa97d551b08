"""Calls that Codex has no item for are made into items, from the model's own words for them."""

import json
from typing import Any

import pytest

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.unreported_calls import ResponseItem, UnreportedCalls

PATCH = "\n".join(
    (
        "*** Begin Patch",
        "*** Add File: new.txt",
        "+do",
        "+re",
        "*** Update File: old.txt",
        "*** Move to: moved.txt",
        "@@",
        "-mi",
        "+fa",
        "*** Delete File: gone.txt",
        "*** End Patch",
    )
)
REFUSED = "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 1\nOriginal token count: 3\nOutput:\nRead-only file system\n"


def call(id: str, command: str, **more: Any) -> ResponseItem:
    return ResponseItem(
        type="function_call", call_id=id, name="exec_command", arguments=json.dumps({"cmd": command, **more})
    )


def result(id: str, output: Any) -> ResponseItem:
    return ResponseItem(type="function_call_output", call_id=id, output=output)


def test_a_command_without_an_item_becomes_one_that_failed() -> None:
    refused = UnreportedCalls()
    assert refused.feed(call("c1", "touch x", workdir="/w")) is None
    assert refused.feed(result("c1", REFUSED)) == wire.CommandExecution(
        id="c1", command="touch x", cwd="/w", status="failed", aggregated_output="Read-only file system\n", exit_code=1
    )


def test_what_has_an_item_is_left_alone_and_nothing_is_shown_twice() -> None:
    refused = UnreportedCalls()
    refused.feed(call("c1", "ls"))
    refused.seen("c1")
    assert refused.feed(result("c1", REFUSED)) is None
    refused.feed(call("c2", "touch x"))
    assert refused.feed(result("c2", REFUSED)) is not None
    refused.feed(call("c2", "touch x"))
    assert refused.feed(result("c2", REFUSED)) is None


def test_a_command_that_was_never_run_has_a_reason() -> None:
    refused = UnreportedCalls()
    refused.feed(call("c1", "touch x"))
    item = refused.feed(result("c1", "rejected by a rule"))
    assert isinstance(item, wire.CommandExecution)
    assert (item.status, item.exit_code, item.aggregated_output) == ("failed", None, "rejected by a rule")


def test_a_patch_without_an_item_becomes_one_with_its_changes() -> None:
    refused = UnreportedCalls()
    refused.feed(ResponseItem(type="custom_tool_call", call_id="p1", name="apply_patch", input=PATCH))
    item = refused.feed(ResponseItem(type="custom_tool_call_output", call_id="p1", output="patch rejected"))
    assert isinstance(item, wire.FileChange) and item.status == "failed"
    add, update, delete = item.changes
    assert (add.path, add.kind.type, add.diff) == ("new.txt", "add", "do\nre\n")
    assert (update.path, update.kind.type, update.kind.move_path) == ("old.txt", "update", "moved.txt")
    assert "-mi\n+fa" in update.diff and (delete.path, delete.kind.type) == ("gone.txt", "delete")


def test_a_script_is_shown_if_nothing_that_it_did_was() -> None:
    refused = UnreportedCalls()
    script = ResponseItem(
        type="custom_tool_call", call_id="s1", name="exec", input="await tools.exec_command({cmd: 'touch x'})"
    )
    output = [{"type": "input_text", "text": "Read-only file system"}]
    refused.feed(script)
    item = refused.feed(ResponseItem(type="custom_tool_call_output", call_id="s1", output=output))
    assert isinstance(item, wire.FunctionCallOutput) and isinstance(item.output, str)
    assert "touch x" in item.output and "Read-only" in item.output
    refused.turn_ended()
    refused.feed(script)
    refused.seen("exec-1")
    assert refused.feed(ResponseItem(type="custom_tool_call_output", call_id="s1", output=output)) is None


def test_other_words_and_broken_ones_are_nothing() -> None:
    refused = UnreportedCalls()
    for update in (
        ResponseItem(),
        ResponseItem(type="message"),
        result("nobody", "x"),
        ResponseItem(type="function_call", call_id="c1", name="update_plan", arguments="{}"),
        result("c1", "Plan updated"),
        ResponseItem(type="function_call", call_id="c2", name="exec_command", arguments="no json"),
        result("c2", None),
        ResponseItem(type="custom_tool_call", call_id="p1", name="apply_patch", input="no patch"),
        ResponseItem(type="custom_tool_call_output", call_id="p1", output="rejected"),
    ):
        assert refused.feed(update) is None


@pytest.mark.parametrize(
    ("script", "output", "failed"),
    [
        ("text('hello')", "Script completed\nWall time 0.0 seconds\nOutput:\nhello", False),
        ("throw new Error('boom')", "Script failed\nOutput:\nScript error:\nError: boom", True),
        ("await tools.exec_command({cmd: 'x'})", "Script failed\nOutput:\nScript error:\nreject command", True),
        ("try { await tools.exec_command({cmd: 'x'}) } catch (e) {}", "Script completed\nOutput:\n", True),
        ("try { await tools['apply_patch']('x') } catch (e) {}", "Script completed\nOutput:\n", True),
        ("text('x')", "", True),
        ("text('x')", "Script running with cell ID 1", True),
    ],
)
def test_a_script_of_which_nothing_was_shown_is_completed_only_if_it_tried_nothing(
    script: str, output: str, failed: bool
) -> None:
    refused = UnreportedCalls()
    refused.feed(ResponseItem(type="custom_tool_call", call_id="s", name="exec", input=script))
    item = refused.feed(ResponseItem(type="custom_tool_call_output", call_id="s", output=output))
    assert isinstance(item, wire.FunctionCallOutput) and item.failed is failed
