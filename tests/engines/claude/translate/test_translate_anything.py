"""Whatever the CLI says, in whatever order, the translator does not raise and leaves no call open."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.claude import wire
from antiphon.engines.claude.translate.translator import Translator
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from tests.engines.claude.translate.saying import (
    answer,
    call,
    calling,
    event,
    feed,
    result,
    said,
    system,
    text,
    thought,
)

IDS = st.sampled_from(["t", "u", "a"])
PARENTS = st.none() | IDS
NAMES = st.sampled_from(
    ["Bash", "Read", "Edit", "Write", "MultiEdit", "Agent", "TodoWrite", "TaskCreate", "TaskUpdate", "mcp__s__t", ""]
)
FIELDS = st.sampled_from([
    "command", "content", "file", "filePath", "file_path", "originalFile", "status", "stdout", "structuredPatch", "task", "tasks",
    "taskId", "text", "todos", "type", "oldStart", "lines", "newString", "oldString", "isAsync", "backgroundTaskId", "usage",
])  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=8,
)
INPUT = st.dictionaries(FIELDS, JSON, max_size=4)
BLOCK = st.one_of(
    st.builds(text, st.text(max_size=8)),
    st.builds(thought, st.text(max_size=8)),
    st.builds(lambda id, name, input: {**call(id, name), "input": input}, IDS, NAMES, INPUT),
    st.builds(lambda id, content: {"type": "tool_result", "tool_use_id": id, "content": content}, IDS, JSON),
    st.builds(lambda id, content: {"type": "web_search_tool_result", "tool_use_id": id, "content": content}, IDS, JSON),
)
LINE: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda blocks, parent: said(*blocks, parent=parent), st.lists(BLOCK, max_size=3), PARENTS),
    st.builds(answer, IDS, JSON, JSON, failed=st.booleans(), parent=PARENTS),
    st.builds(lambda id, name, piece, parent: calling(id, name, piece, parent=parent)[0], IDS, NAMES, st.text(max_size=8), PARENTS),
    st.builds(lambda piece: calling("t", "Read", piece)[1], st.text(max_size=8)),
    st.builds(lambda kind, fields: {"type": "stream_event", "event": {**fields, "type": kind}},
              st.sampled_from(["message_start", "content_block_delta", "message_delta", "message_stop", "x"]), INPUT),
    st.builds(lambda subtype, id, fields: system(subtype, **{**fields, "task_id": id, "tool_use_id": id}),
              st.sampled_from(["init", "status", "compact_boundary", "task_started", "task_notification", "hook_response", "api_retry"]),
              IDS, INPUT),
    st.builds(lambda subtype, fields: {**fields, **result(subtype)}, st.sampled_from(["success", "error_x"]), INPUT),
    st.builds(lambda fields: {"type": "rate_limit_event", "rate_limit_info": fields}, INPUT),
    st.builds(lambda value: {"type": "telepathy", "value": value}, JSON),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(LINE, max_size=12), st.booleans(), st.booleans(), st.booleans())
def test_any_lines_in_any_order_are_taken(
    lines: list[dict[str, Any]], terminals: bool, mirror: bool, replay: bool
) -> None:
    translator = Translator("/work", terminals=terminals, mirror=mirror, replay=replay)
    heard = [*feed(translator, *lines), *translator.close_open(background=True)]
    begun, over = [], []
    for each in heard:
        if isinstance(each, v1.UpdateModel | v1.ToolCallPatch):
            encode(each)
        if isinstance(each, v1.ToolCall):
            begun.append(each.tool_call_id)
        if isinstance(each, v1.ToolCall | v1.ToolCallUpdate) and each.status in (
            v1.ToolStatus.COMPLETED,
            v1.ToolStatus.FAILED,
        ):
            over.append(each.tool_call_id)
    assert sorted(begun) == sorted(set(begun)) == sorted(over)


@given(NAMES, INPUT)
def test_any_question_can_be_shown(name: str, input: dict[str, Any]) -> None:
    encode(Translator("/work").patch_of(wire.CanUseTool(tool_name=name, input=input, tool_use_id="t")))


@pytest.mark.slow
def test_a_result_of_20_megabytes_is_told() -> None:
    output = "line\n" * 4_000_000
    heard = feed(
        Translator("/work"), said(call("t", "Bash", command="x")), answer("t", output, {"stdout": output, "stderr": ""})
    )
    assert isinstance(heard[-1], v1.ToolCallUpdate) and heard[-1].status == v1.ToolStatus.COMPLETED


@pytest.mark.slow
def test_an_input_that_comes_in_many_pieces_costs_no_more_than_its_length() -> None:
    translator = Translator("/work")
    feed(translator, event("content_block_start", index=0, content_block=call("t", "Write")))
    pieces = ['{"content": "', *("word " for _ in range(50_000))]
    for piece in pieces:
        delta = wire.InputDelta(partial_json=piece)
        assert translator.feed(wire.StreamEvent(event=wire.BlockDelta(delta=delta))) == ()
