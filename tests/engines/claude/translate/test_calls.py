"""Tool calls: sent from the first token of their input to their result, and never left open."""

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.events import Mirror
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1
from tests.engines.claude.translate.lines import (
    answer,
    assistant_message,
    call,
    calling,
    described,
    ended,
    feed,
    message_start,
    result,
    translated,
)

BASH = call("t", "Bash", command="ls -l")
PRINTED = {"stdout": "a\nb", "stderr": "", "interrupted": False}


def test_a_call_is_shown_at_its_first_token_and_named_as_soon_as_that_is_known() -> None:
    pieces = calling("t", "Read", '{"file_pa', 'th": "/song/a', '.py", "lim', 'it": 3}')
    events = translated(message_start(), *pieces, assistant_message(call("t", "Read", file_path="/song/a.py", limit=3)))
    first, early, whole = [each for each in events if isinstance(each, v1.ToolCall | v1.ToolCallUpdate)]
    assert isinstance(first, v1.ToolCall) and (first.status, first.name) == (v1.ToolStatus.PENDING, "Read")
    assert isinstance(early.title, str) and "a.py" in early.title
    assert (whole.status, whole.raw_input) == (v1.ToolStatus.IN_PROGRESS, {"file_path": "/song/a.py", "limit": 3})


def test_a_call_that_was_not_streamed_is_shown_whole() -> None:
    (events,) = translated(assistant_message(call("t", "Read", file_path="/song/a.py")))
    assert isinstance(events, v1.ToolCall) and events.status == v1.ToolStatus.IN_PROGRESS
    assert events.locations == [v1.ToolLocation(path="/song/a.py")] and events.meta == {
        "claudeCode": {"toolName": "Read"}
    }


def test_a_result_ends_its_call_once() -> None:
    events = translated(
        assistant_message(BASH), answer("t", "a\nb", PRINTED), answer("t", "a\nb", PRINTED), assistant_message(BASH)
    )
    assert ended(events) == ["t completed"]
    update = events[-1]
    assert isinstance(update, v1.ToolCallUpdate) and update.raw_output == PRINTED


def test_a_call_that_comes_twice_begins_once() -> None:
    assert [type(each) for each in translated(assistant_message(BASH), assistant_message(BASH))] == [v1.ToolCall]


def test_a_result_in_a_message_of_the_model_ends_its_call_as_in_older_clis() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}], "is_error": False}
    assert ended(translated(assistant_message(BASH), assistant_message(block))) == ["t completed"]


def test_a_failed_result_fails_its_call() -> None:
    assert ended(translated(assistant_message(BASH), answer("t", "no", "Error: no", failed=True))) == ["t failed"]


def test_a_result_of_an_unknown_call_is_shown() -> None:
    (events,) = translated(answer("t", "x"))
    assert isinstance(events, v1.ToolCall) and events.status == v1.ToolStatus.COMPLETED


def test_an_edit_shows_the_whole_file_before_and_after() -> None:
    hunk = {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" a", "-b", "+B", " c"]}
    structured = {
        "filePath": "/song/f",
        "originalFile": "a\nb\nc\n",
        "structuredPatch": [hunk],
        "oldString": "b",
        "newString": "B",
    }
    edit = assistant_message(call("t", "Edit", file_path="/song/f", old_string="b", new_string="B"))
    update = translated(edit, answer("t", "Done.", structured))[-1]
    assert isinstance(update, v1.ToolCallUpdate)
    assert update.content == [v1.Diff(path="/song/f", old_text="a\nb\nc\n", new_text="a\nB\nc\n")]
    assert update.locations == [v1.ToolLocation(path="/song/f", line=2)]


def test_a_call_that_gets_no_result_fails_before_the_turn_ends() -> None:
    events = translated(
        assistant_message(BASH), result("error_during_execution", is_error=True, terminal_reason="aborted_tools")
    )
    assert described(events)[1:] == ["update t failed", "turn ended cancelled"]


def test_calls_are_closed_on_demand_and_once() -> None:
    translator = ClaudeTranslator("/song")
    feed(translator, assistant_message(BASH), assistant_message(call("u", "Read", file_path="x")))
    assert ended(translator.close_open()) == ["u failed", "t failed"]
    assert translator.close_open() == ()


def test_a_question_shows_what_the_call_would_do_and_the_answer_lets_it_run() -> None:
    translator = ClaudeTranslator("/song")
    feed(translator, assistant_message(call("t", "Write", file_path="/song/n", content="new")))
    patch = translator.patch_of(
        wire.CanUseTool(tool_name="Write", input={"file_path": "/song/n", "content": "new"}, tool_use_id="t")
    )
    assert (patch.tool_call_id, patch.status, patch.name) == ("t", v1.ToolStatus.PENDING, "Write")
    assert patch.content == [v1.Diff(path="/song/n", new_text="new")]
    assert described(translator.allowed("t")) == ["update t in_progress"]
    assert translator.allowed("t") == ()
    assert translator.allowed("nobody") == ()


def test_a_request_about_an_unknown_call_has_an_id() -> None:
    assert ClaudeTranslator("/song").patch_of(wire.CanUseTool(tool_name="Bash", input={})).tool_call_id


def test_a_terminal_of_the_client_gets_the_output_and_the_exit() -> None:
    start, output, end = translated(assistant_message(BASH), answer("t", "a\nb", PRINTED), terminals=True)
    terminal = [v1.TerminalItem(terminal_id="t")]
    assert isinstance(start, v1.ToolCall) and start.content == terminal
    assert start.meta is not None and start.meta["terminal_info"] == {"terminal_id": "t", "cwd": "/song"}
    assert isinstance(output, v1.ToolCallUpdate) and isinstance(end, v1.ToolCallUpdate)
    assert output.meta is not None and output.meta["terminal_output"]["terminal_id"] == "t"
    assert "a" in output.meta["terminal_output"]["data"]
    assert end.content == terminal and end.status == v1.ToolStatus.COMPLETED
    assert end.meta is not None and end.meta["terminal_exit"].keys() == {"terminal_id", "exit_code", "signal"}


def test_a_terminal_ends_with_a_call_that_gets_no_result() -> None:
    translator = ClaudeTranslator("/song", terminals=True)
    feed(translator, assistant_message(BASH))
    (end,) = translator.close_open()
    assert isinstance(end, v1.ToolCallUpdate) and end.meta is not None
    assert end.meta["terminal_exit"] == {"terminal_id": "t", "exit_code": None, "signal": None}


def test_a_mirror_gets_the_output_instead_of_text() -> None:
    _, mirrored, end = translated(assistant_message(BASH), answer("t", "a\nb", PRINTED), mirror=True)
    assert isinstance(mirrored, Mirror) and (mirrored.call_id, mirrored.command) == ("t", "ls -l")
    assert mirrored.output.startswith("a\nb")
    assert isinstance(end, v1.ToolCallUpdate) and not isinstance(end.content, list)


def test_a_command_in_the_background_keeps_its_terminal_until_it_ends() -> None:
    structured = {"stdout": "", "stderr": "", "backgroundTaskId": "b1"}
    translator = ClaudeTranslator("/song", terminals=True)
    events = feed(translator, assistant_message(BASH), answer("t", "It runs.", structured), result())
    assert ended(events) == ["t completed"] and "terminal_exit" not in str(described(events))
    over = {"type": "system", "subtype": "task_notification", "task_id": "b1", "tool_use_id": "t"}
    (end,) = feed(translator, {**over, "status": "completed", "summary": "It ran (exit code 3)"})
    assert isinstance(end, v1.ToolCallUpdate) and end.meta is not None and end.meta["terminal_exit"]["exit_code"] == 3
    assert feed(translator, over) == []


def test_a_tool_at_the_models_side_is_shown_too() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": [{"type": "web_search_result", "url": "http://x"}],
    }
    assert ended(translated(assistant_message(use), assistant_message(found))) == ["s completed"]
    wrong = {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"type": "web_search_tool_result_error"}}
    assert ended(translated(assistant_message(use), assistant_message(wrong))) == ["s failed"]
