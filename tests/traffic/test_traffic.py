"""Traffic as it is: every shape is understood, arrives as its type and loses nothing on the way out again."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from antiphon.protocol.base import UNSET, Model, Unknown, encode
from antiphon.protocol.methods import Call, DecodedPart, Method
from antiphon.protocol.v1 import methods
from antiphon.protocol.v1.session import SessionUpdate
from antiphon.protocol.v1.tools import ToolCallUpdate
from antiphon.rpc.envelope import Notification, Request, Response, decode
from tests.protocol.parity import tag_of, wire_names
from tests.rows import each_row
from tests.traffic.shapes import ANSWERED, ASKED, EXTENSIONS, FAILED, NOTIFICATIONS, STRAY, Answer, Failed, Message

Json = Any


def name_of(shape: Message | Answer) -> str:
    what = shape.to if isinstance(shape, Answer) else f"{shape.by} {method_of(shape.line)}"
    return f"{what} {shape.type.__name__}"


def method_of(line: bytes) -> str:
    return str(msgspec.json.decode(line)["method"])


def lost(value: Any, sent: Json, path: str = "$") -> Iterator[str]:
    """What was sent and is not in the typed value, field by field."""
    if isinstance(value, Model) and isinstance(sent, dict):
        fields, tag = wire_names(type(value)), tag_of(value) or {}
        for wire, part in sent.items():
            if wire in fields:
                yield from lost(getattr(value, fields[wire].name), part, f"{path}.{wire}")
            elif tag.get(wire) != part:
                yield f"{path}.{wire}"
    elif isinstance(value, list) and isinstance(sent, list) and len(value) == len(sent):
        for i, (item, part) in enumerate(zip(value, sent, strict=True)):
            yield from lost(item, part, f"{path}[{i}]")
    elif isinstance(value, dict) and isinstance(sent, dict) and value.keys() == sent.keys():
        for key, part in sent.items():
            yield from lost(value[key], part, f"{path}.{key}")
    elif value is UNSET or msgspec.json.decode(encode(value)) != sent:
        yield path


def test_a_loss_would_be_noticed() -> None:
    sent = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "title": None, "content": [1], "stranger": 1}
    assert list(lost(ToolCallUpdate(tool_call_id="c2", content=[]), sent)) == [
        "$.toolCallId",
        "$.title",
        "$.content",
        "$.stranger",
    ]


def check(shape: Message | Answer, reading: DecodedPart[Any], again: DecodedPart[Any], sent: Json) -> None:
    value = reading.value
    assert reading.rules == shape.rules
    assert type(value.update if isinstance(value, SessionUpdate) else value) is shape.type
    if sent is not None:
        assert list(lost(value, sent)) == []
    assert again.value == value
    assert encode(again.value) == encode(value)
    assert again.rules == tuple(rule for rule in shape.rules if "unknown" in rule)  # we repeat what we do not know


@each_row("shape", [*ASKED, *NOTIFICATIONS], ids=name_of)
def test_every_message_is_understood_and_loses_nothing(shape: Message) -> None:
    message = decode(shape.line)
    assert isinstance(message, Request if shape in ASKED else Notification)
    table: Any = methods.CALLS_BY_NAME if shape in ASKED else methods.NOTICES_BY_NAME
    method: Method[Any] = table[message.method]
    assert method.side == ("client" if shape.by == "agent" else "agent")
    reading = method.read_params(message.params)
    check(shape, reading, method.read_params(encode(reading.value)), msgspec.json.decode(message.params))


@each_row("shape", ANSWERED, ids=name_of)
def test_an_answer_is_understood_and_loses_nothing(shape: Answer) -> None:
    message = decode(shape.line)
    assert isinstance(message, Response)
    assert message.result is not None
    method: Call[Any, Any] = methods.CALLS_BY_NAME[shape.to]
    reading = method.read_result(message.result)
    check(shape, reading, method.read_result(encode(reading.value)), msgspec.json.decode(message.result))


@each_row("shape", FAILED, ids=lambda shape: f"{shape.code} {shape.data.__name__}")
def test_an_error_keeps_its_code_and_its_data(shape: Failed) -> None:
    message = decode(shape.line)
    assert isinstance(message, Response)
    assert message.error is not None
    assert (message.error.code, type(message.error.data)) == (shape.code, shape.data)
    sent = msgspec.json.decode(shape.line)["error"]
    assert msgspec.to_builtins(message.error) == {key: value for key, value in sent.items() if value is not None}


@pytest.mark.parametrize("line", EXTENSIONS, ids=method_of)
def test_an_extension_method_is_carried_unopened(line: bytes) -> None:
    message = decode(line)
    assert isinstance(message, Request | Notification)
    assert message.method not in methods.BY_NAME
    assert b'"params":%b}' % bytes(message.params) in line


@pytest.mark.parametrize(("line", "kind"), STRAY)
def test_a_line_that_is_not_a_message_is_recognized(line: bytes, kind: str) -> None:
    assert type(decode(line)).__name__ == kind


# The table is whole.


def parts_of(value: Any) -> Iterator[Any]:
    """A typed value and everything inside it."""
    yield value
    inside = msgspec.structs.astuple(value) if isinstance(value, Model) else value if isinstance(value, list) else ()
    for part in inside:
        yield from parts_of(part)


def everything() -> list[Any]:
    texts = [
        methods.BY_NAME[method_of(shape.line)].decode_params(params_of(shape.line))
        for shape in (*ASKED, *NOTIFICATIONS)
    ]
    given = [methods.CALLS_BY_NAME[shape.to].decode_result(params_of(shape.line)) for shape in ANSWERED]
    return [part for value in (*texts, *given) for part in parts_of(value)]


def params_of(line: bytes) -> bytes:
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return bytes(fields.get("params", fields.get("result", msgspec.Raw())))


def test_the_table_has_every_shape_that_was_seen() -> None:
    parts = everything()
    kinds = {type(part).__name__ for part in parts}
    carriers = {type(part).__name__ for part in parts if isinstance(part, Model) and part.meta}
    assert {"TextBlock", "ImageBlock", "EmbeddedResource", "ResourceLink"} <= kinds
    assert {"ContentItem", "Diff", "TerminalItem", Unknown.__name__, "AgentAuth", "TerminalAuth"} <= kinds
    assert {"PermissionOption", "Selected", "Cancelled", "SelectConfig", "ModelState", "ModeState", "Cost"} <= kinds
    assert carriers >= {
        "InitializeResult", "AgentCapabilities", "AgentAuth", "TerminalAuth", "NewSessionResult", "LoadSessionResult",
        "PromptResult", "SessionUpdate", "ToolCall", "ToolCallUpdate", "Diff", "ToolLocation", "Plan", "UsageUpdate",
        "SessionInfoUpdate", "PermissionOption", "Dismissed",
    }  # fmt: skip
