"""Lines of the CLI become structs, whatever they hold; and what is written back has the form that it expects."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.claude import wire
from antiphon.engines.claude.wire.codec import HEAD
from antiphon.engines.claude.wire.lines import SUBTYPES
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
TYPES = (
    "assistant", "auth_status", "command_lifecycle", "control_cancel_request", "control_request", "control_response",
    "conversation_reset", "keep_alive", "rate_limit_event", "result", "stream_event", "system", "tool_progress", "user", "news",
)  # fmt: skip


def read(line: Any) -> wire.Line:
    return wire.decode(json.dumps(line).encode())


def test_a_line_of_the_model_is_read() -> None:
    line = read(
        {
            "type": "assistant",
            "message": {
                "id": "msg-1",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
            },
            "parent_tool_use_id": "agent",
            "tomorrow": 1,
        }
    )
    assert isinstance(line, wire.Assistant)
    assert (line.message.id, line.parent_tool_use_id) == ("msg-1", "agent")
    assert line.message.blocks == [wire.ToolUseBlock(id="t", name="Bash", input={"command": "ls"})]


def test_content_that_is_bare_text_reads_as_a_block() -> None:
    line = read({"type": "user", "message": {"role": "user", "content": "hi"}})
    assert isinstance(line, wire.User) and line.message.blocks == [wire.ClaudeTextBlock(text="hi")]


def test_an_unknown_sort_of_line_is_named() -> None:
    assert read({"type": "telepathy", "subtype": "deep"}) == wire.UnknownLine(type="telepathy", subtype="deep")
    assert read({"type": "system", "subtype": "dream"}) == wire.UnknownLine(type="system", subtype="dream")
    assert read({"type": "system"}) == wire.UnknownLine(type="system")
    assert read({"type": "telepathy", "subtype": 7}) == wire.UnknownLine(type="telepathy")


@each_row("line", [b"", b"no", b"[]", b"{}", b'{"type":3}', b'{"type":"result"}', b"[" * 100_000, b"\xff\xfe"])
def test_what_cannot_be_read_is_garbled_and_not_raised(line: bytes) -> None:
    garbled = wire.decode(line)
    assert isinstance(garbled, wire.GarbledLine) and len(garbled.text_head) <= HEAD and garbled.error


def test_an_unknown_block_is_kept_beside_the_ones_that_are_known() -> None:
    content = [{"type": "hologram", "x": 1}, {"type": "text", "text": "hi"}, 7]
    line = read({"type": "assistant", "message": {"id": "m", "content": content}})
    assert isinstance(line, wire.Assistant)
    assert [getattr(block, "kind", None) or getattr(block, "text", None) for block in line.message.blocks] == [
        "hologram",
        "hi",
    ]


def test_a_wrong_optional_field_is_lost_and_not_the_line() -> None:
    line = read({"type": "user", "isSynthetic": "perhaps", "message": {"content": "hi"}})
    assert (
        isinstance(line, wire.User)
        and line.message.blocks == [wire.ClaudeTextBlock(text="hi")]
        and not line.is_synthetic
    )
    result = read({"type": "result", "subtype": "success", "usage": 3, "total_cost_usd": 0.5})
    assert isinstance(result, wire.ResultLine) and (result.usage, result.total_cost_usd) == (None, 0.5)


def test_an_unknown_event_of_the_stream_is_kept() -> None:
    line = read({"type": "stream_event", "event": {"type": "hiccup"}})
    assert isinstance(line, wire.StreamEvent) and getattr(line.event, "kind", None) == "hiccup"


def test_characters_that_were_cut_in_two_are_repaired() -> None:
    cut = rb'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"a\ud83d b\\ud83d \ud83d\ude00"}]}}'
    line = wire.decode(cut)
    assert isinstance(line, wire.User)
    assert line.message.blocks == [wire.ToolResultBlock(tool_use_id="t", content="a� b\\ud83d 😀")]
    assert isinstance(wire.decode(b'{"type":"user","message":{"content":"\xff"}}'), wire.User)


def test_an_old_stream_without_numbers_and_ids_is_read() -> None:
    start = read({"type": "stream_event", "event": {"type": "message_start"}})
    delta = read(
        {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}}
    )
    assert start == wire.StreamEvent(event=wire.MessageStart())
    assert delta == wire.StreamEvent(event=wire.BlockDelta(delta=wire.TextDelta(text="x")))


def test_a_question_about_a_tool_is_read() -> None:
    asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t"}
    line = read({"type": "control_request", "request_id": "1", "request": asked})
    question = wire.CanUseTool(tool_name="Bash", input={"command": "rm x"}, tool_use_id="t")
    assert line == wire.ControlRequest(request_id="1", request=question)


def test_an_unknown_request_can_still_be_refused() -> None:
    line = read({"type": "control_request", "request_id": "1", "request": {"subtype": "sing", "song": "x"}})
    fields = {"subtype": "sing", "song": "x"}
    assert line == wire.ControlRequest(request_id="1", request=wire.OtherControl(subtype="sing", fields=fields))
    ill = read({"type": "control_request", "request_id": "2", "request": {"subtype": "can_use_tool"}})
    assert ill == wire.ControlRequest(request_id="2", request=wire.OtherControl(subtype=""))


def test_answers_are_taken_out_of_their_wrapping() -> None:
    good = read(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": "1", "response": {"mode": "plan"}},
        }
    )
    assert good == wire.ControlResponse(request_id="1", ok=True, response={"mode": "plan"})
    bare = read({"type": "control_response", "response": {"subtype": "success", "request_id": "1"}})
    assert bare == wire.ControlResponse(request_id="1", ok=True)
    bad = read(
        {
            "type": "control_response",
            "response": {"subtype": "error", "request_id": "1", "error": "no", "error_code": "c"},
        }
    )
    assert bad == wire.ControlResponse(request_id="1", ok=False, error="no", error_code="c")


@each_row("subtype", SUBTYPES)
def test_every_known_subtype_is_read_even_with_few_fields(subtype: str) -> None:
    line = read({"type": "system", "subtype": subtype, "task_id": "t"})
    assert type(line) is SUBTYPES[subtype]


def test_a_line_of_20_megabytes_is_read() -> None:
    output = "x" * 20_000_000
    block = {"type": "tool_result", "tool_use_id": "t", "content": output}
    line = read({"type": "user", "message": {"content": [block]}, "tool_use_result": {"stdout": output}})
    assert isinstance(line, wire.User)
    (result,) = line.message.blocks
    assert isinstance(result, wire.ToolResultBlock) and result.content == output


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(line: bytes) -> None:
    assert isinstance(wire.decode(line), msgspec.Struct)


@given(
    st.sampled_from(TYPES),
    st.sampled_from([*SUBTYPES, "", "success"]),
    st.dictionaries(st.text(max_size=10), JSON, max_size=4),
)
def test_no_fields_make_it_raise(type_: str, subtype: str, fields: dict[str, Any]) -> None:
    assert isinstance(read({**fields, "type": type_, "subtype": subtype}), msgspec.Struct)


@given(JSON, JSON)
def test_no_message_makes_it_raise(message: Any, content: Any) -> None:
    for type_ in ("assistant", "user"):
        assert isinstance(read({"type": type_, "message": message}), msgspec.Struct)
        assert isinstance(
            read({"type": type_, "message": {"content": [content, {"type": "text", "text": "x"}]}}), msgspec.Struct
        )


def test_what_is_written_ends_in_one_line_end_and_holds_no_other() -> None:
    written = wire.user_message("two\nlines", "id-1")
    assert written.count(b"\n") == 1 and written.endswith(b"\n")
    assert json.loads(written) == {"type": "user", "uuid": "id-1", "message": {"role": "user", "content": "two\nlines"}}


def test_control_lines_have_their_forms() -> None:
    asked = json.loads(wire.control_request("1", "set_model", {"model": "m"}))
    assert asked == {"type": "control_request", "request_id": "1", "request": {"model": "m", "subtype": "set_model"}}
    answered = json.loads(wire.control_answer("1", {"behavior": "allow"}))
    body = {"subtype": "success", "request_id": "1", "response": {"behavior": "allow"}}
    assert answered == {"type": "control_response", "response": body}
    refused = json.loads(wire.control_refusal("1", "no"))
    assert refused == {"type": "control_response", "response": {"subtype": "error", "request_id": "1", "error": "no"}}


ASKED = {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t", "input": {"command": "git push"}}


def asked(**fields: Any) -> Any:
    line = {"type": "control_request", "request_id": "1", "request": {**ASKED, **fields}}
    found = wire.decode(msgspec.json.encode(line))
    assert isinstance(found, wire.ControlRequest) and found.request_id == "1"
    return found.request


@pytest.mark.parametrize("input", ["ls", None, 7, ["ls"]])
def test_a_question_about_an_input_that_cannot_be_read_can_only_be_refused(input: Any) -> None:
    assert isinstance(asked(input=input), wire.OtherControl)


def test_a_request_without_an_input_or_with_an_unreadable_number_can_only_be_refused() -> None:
    missing = b'{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Bash"}}'
    huge = missing.replace(b'"Bash"', b'"Bash","input":{"command":"ls","n":1e400}')
    for line in (missing, huge):
        found = wire.decode(line)
        assert isinstance(found, wire.ControlRequest) and isinstance(found.request, wire.OtherControl)


@pytest.mark.parametrize("odd", [
    {"suppress_always_allow_rule": "true"}, {"requires_user_interaction": 1}, {"decision_reason_type": {"kind": "rule"}},
    {"matched_ask_rule": "Bash(git push:*)"}, {"permission_suggestions": "none"}, {"permission_suggestions": [7]}, {"default_to_no": "yes"},
])  # fmt: skip
def test_a_question_that_is_read_only_in_part_is_marked(odd: dict[str, Any]) -> None:
    assert asked(**odd).repaired and asked(**odd).input == {"command": "git push"}


def test_a_question_with_a_character_that_was_cut_in_two_is_marked() -> None:
    line = b'{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"\\ud83d"}}}'
    found = wire.decode(line)
    assert (
        isinstance(found, wire.ControlRequest) and isinstance(found.request, wire.CanUseTool) and found.request.repaired
    )


def test_a_question_that_is_as_it_should_be_is_not_repaired() -> None:
    rule = {"source": "userSettings", "tool_name": "Bash"}
    found = asked(matched_ask_rule=rule, server_policy_ask_only=True)
    assert not found.repaired and found.matched_ask_rule == rule
