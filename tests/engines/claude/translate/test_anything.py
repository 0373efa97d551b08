"""Whatever the CLI says, in whatever order, the translator does not raise and leaves no call open."""

from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.engines.claude import wire
from antiphon.engines.claude.grants import grants
from antiphon.engines.claude.translate.events import ClaudeTurnEnded, EngineNotice
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.engines.claude.wire.codec import Line
from antiphon.engines.events import TurnFailure
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from tests.engines.anything import anything
from tests.engines.claude.translate.lines import (
    answer,
    assistant_message,
    call,
    calling,
    event,
    feed,
    result,
    system,
    text,
    thought,
)
from tests.engines.object_count import object_count

LINES = get_args(Line)
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
    st.builds(lambda blocks, parent: assistant_message(*blocks, parent=parent), st.lists(BLOCK, max_size=3), PARENTS),
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
    translator = ClaudeTranslator("/project", terminals=terminals, mirror=mirror, replay=replay)
    received = [*feed(translator, *lines), *translator.close_open(background=True)]
    begun, over = [], []
    for each in received:
        if isinstance(each, v1.UpdateModel | v1.ToolCallPatch):
            encode(each)
        if isinstance(each, v1.ToolCall | v1.ToolCallUpdate):
            assert each.raw_output is v1.UNSET or isinstance(each.raw_output, dict)  # older clients drop anything else
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
    encode(ClaudeTranslator("/project").patch_of(wire.CanUseTool(tool_name=name, input=input, tool_use_id="t")))


@pytest.mark.slow
def test_a_result_of_20_megabytes_is_shown() -> None:
    output = "line\n" * 4_000_000
    events = feed(
        ClaudeTranslator("/project"),
        assistant_message(call("t", "Bash", command="x")),
        answer("t", output, {"stdout": output, "stderr": ""}),
    )
    assert isinstance(events[-1], v1.ToolCallUpdate) and events[-1].status == v1.ToolStatus.COMPLETED


@pytest.mark.slow
def test_an_input_that_comes_in_many_pieces_costs_no_more_than_its_length() -> None:
    translator = ClaudeTranslator("/project")
    feed(translator, event("content_block_start", index=0, content_block=call("t", "Write")))
    pieces = ['{"content": "', *("word " for _ in range(50_000))]
    for piece in pieces:
        delta = wire.InputDelta(partial_json=piece)
        assert translator.feed(wire.StreamEvent(event=wire.BlockDelta(delta=delta))) == ()


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("kind", LINES, ids=[kind.__name__ for kind in LINES])
@settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_lines_with_any_values_are_taken(kind: type, data: st.DataObject, terminals: bool, replay: bool) -> None:
    translator = ClaudeTranslator("/project", terminals=terminals, mirror=not terminals, replay=replay)
    received: list[Any] = []
    for each in (wire.Assistant, kind, wire.User, kind, wire.ResultLine):
        line = data.draw(anything(each))
        received += translator.feed(line)
        if isinstance(line, wire.ControlRequest) and isinstance(line.request, wire.CanUseTool):
            _ = translator.patch_of(line.request), grants(line.request, ["/project"])
    received += translator.close_open(background=True)
    for each in received:
        if isinstance(each, v1.UpdateModel):
            encode(each)
        if isinstance(each, ClaudeTurnEnded) and each.end.error is not None:
            _ = each.end.error.refusal()
        if isinstance(each, v1.UsageUpdate):
            assert 0 <= each.used < 2**53 and (each.cost is None or 0 <= each.cost.amount < 2**53)
        if isinstance(each, v1.ToolCall | v1.ToolCallUpdate):
            lines = [place.line for place in (each.locations if isinstance(each.locations, list) else [])]
            assert all(line is None or 1 <= line < 2**32 for line in lines)


HOSTILE = (9e17, 253_402_300_800_000, -1, 1e308, float("nan"), float("inf"))


@pytest.mark.parametrize("seconds", HOSTILE)
def test_a_limit_that_ends_at_no_moment_is_shown_without_one(seconds: float) -> None:
    translator = ClaudeTranslator("/project")
    info = wire.RateLimitInfo(status="rejected", resets_at=seconds, rate_limit_type="five_hour")
    [notice] = translator.feed(wire.RateLimit(rate_limit_info=info))
    assert isinstance(notice, EngineNotice) and notice.description is None
    ended = translator.feed(wire.ResultLine(subtype="success", is_error=True, result="You've hit your limit"))[-1]
    assert isinstance(ended, ClaudeTurnEnded) and ended.end.error is not None
    assert ended.end.error.resets_at is None and ended.end.error.refusal().data == {
        "kind": "usage_limit",
        "hint": ended.end.error.hint,
    }


@pytest.mark.parametrize("seconds", HOSTILE)
def test_an_error_with_an_odd_moment_can_still_be_answered(seconds: float) -> None:
    data = TurnFailure(kind="x", code=1, message="m", resets_at=seconds).refusal().data
    assert data == {"kind": "x"} or (seconds == -1 and data == {"kind": "x", "resetsAt": "1969-12-31T23:59:59+00:00"})


def test_ten_thousand_turns_leave_nothing_behind_that_grows() -> None:
    translator = ClaudeTranslator("/project", terminals=True)
    for turn in range(5_000):
        _play_a_turn(translator, turn)
    before = object_count(translator)
    for turn in range(5_000, 10_000):
        _play_a_turn(translator, turn)
    assert object_count(translator) <= before + 10
    assert len(translator.unknown) <= 101


def _play_a_turn(translator: ClaudeTranslator, turn: int) -> None:
    agent, inner, todo, task = (f"toolu_{turn:020d}{each}" for each in "ABCD")
    sub = wire.ClaudeMessage(
        id=f"sub_{turn}", model="m", content=[wire.ToolUseBlock(id=inner, name="Bash", input={"command": "ls"})]
    )
    main = [
        wire.ToolUseBlock(id=agent, name="Task", input={"description": "d", "prompt": "p"}),
        wire.ToolUseBlock(id=todo, name="TodoWrite", input={"todos": []}),
    ]
    for line in (
        wire.StreamEvent(event=wire.MessageStart(message=wire.ClaudeMessage(id=f"msg_{turn}"))),
        wire.StreamEvent(event=wire.BlockDelta(delta=wire.TextDelta(text="words"))),
        wire.Assistant(uuid=f"a{turn}", message=wire.ClaudeMessage(id=f"msg_{turn}", model="m", content=[*main])),
        wire.TaskStarted(task_id=task, tool_use_id=f"{agent}-elsewhere"),
        wire.StreamEvent(event=wire.MessageStart(message=sub), parent_tool_use_id=agent),
        wire.StreamEvent(event=wire.MessageStart(message=sub), parent_tool_use_id=f"{agent}-unknown"),
        wire.Assistant(uuid=f"b{turn}", message=sub, parent_tool_use_id=agent),
        _result(inner, {"stdout": "", "backgroundTaskId": task}, agent),
        _result(agent, {"status": "completed", "content": []}, None),
        wire.RateLimit(rate_limit_info=wire.RateLimitInfo(status="allowed_warning", utilization=turn % 50 / 100)),
        wire.UnknownLine(type="telepathy", subtype=str(turn)),
        wire.ResultLine(subtype="success", result="ok"),
    ):  # fmt: skip
        translator.feed(line)


def _result(id: str, structured: Any, parent: str | None) -> wire.User:
    block = wire.ToolResultBlock(tool_use_id=id, content="x")
    return wire.User(
        message=wire.ClaudeMessage(content=[block]),
        tool_use_result=structured,
        parent_tool_use_id=parent,
    )
