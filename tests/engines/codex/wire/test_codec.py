"""Lines of the app server, read."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.codex import wire
from antiphon.engines.codex.wire.notifications import NOTIFICATIONS
from antiphon.engines.codex.wire.requests import REQUESTS
from antiphon.errors import RemoteProtocolError
from antiphon.protocol.base import Unknown
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def line(**fields: object) -> bytes:
    return msgspec.json.encode(fields)


def test_the_first_question_has_the_number_0() -> None:
    asked = wire.decode(line(method="item/fileChange/requestApproval", id=0, params={"threadId": "t", "itemId": "f"}))
    assert isinstance(asked, wire.ServerRequest) and asked.id == 0
    assert asked.params == wire.FileApproval(item_id="f", thread_id="t")


def test_an_id_may_be_a_string() -> None:
    assert wire.decode(line(id="a", result={"x": 1})) == wire.ServerResponse(id="a", result=msgspec.Raw(b'{"x":1}'))


def test_an_answer_that_is_null_is_an_answer() -> None:
    answer = wire.decode(line(id=0, result=None))
    assert isinstance(answer, wire.ServerResponse) and answer.error is None


def test_a_refusal_has_a_reason() -> None:
    answer = wire.decode(line(id=3, error={"code": -32600, "message": "thread not found: x"}))
    assert isinstance(answer, wire.ServerResponse)
    assert answer.error == wire.ServerError(code=-32600, message="thread not found: x")


def test_a_delta_knows_its_thread_and_its_item() -> None:
    shown = wire.decode(line(method="item/agentMessage/delta", params={"threadId": "t", "itemId": "m", "delta": "hi"}))
    assert isinstance(shown, wire.ServerNotification) and shown.thread_id == "t"
    assert shown.params == wire.Delta(thread_id="t", item_id="m", delta="hi")


def test_an_unknown_notification_is_kept_with_its_thread() -> None:
    shown = wire.decode(line(method="thread/dance", params={"threadId": "t", "steps": 3}))
    assert isinstance(shown, wire.ServerNotification) and shown.thread_id == "t"
    assert isinstance(shown.params, wire.UnreadParams) and shown.params.error is None


def test_an_unknown_item_is_kept_and_not_the_end_of_the_line() -> None:
    shown = wire.decode(line(method="item/completed", params={"item": {"type": "dance", "id": "d"}}))
    assert isinstance(shown, wire.ServerNotification) and isinstance(shown.params, wire.ItemNotification)
    assert isinstance(shown.params.item, Unknown) and shown.params.item.kind == "dance"


def test_a_wrong_optional_field_is_lost_and_nothing_else() -> None:
    item = {
        "type": "commandExecution",
        "id": "c",
        "command": "ls",
        "exitCode": "many",
        "commandActions": [7, {"type": "read"}],
    }
    shown = wire.decode(line(method="item/completed", params={"item": item}))
    assert isinstance(shown, wire.ServerNotification) and isinstance(shown.params, wire.ItemNotification)
    assert shown.params.item == wire.CommandExecution(
        id="c", command="ls", command_actions=[wire.CommandAction(type="read")]
    )


def test_a_question_that_does_not_fit_can_still_be_answered() -> None:
    asked = wire.decode(line(method="item/fileChange/requestApproval", id=4, params={"threadId": "t"}))
    assert isinstance(asked, wire.ServerRequest) and asked.id == 4 and asked.thread_id == "t"
    assert isinstance(asked.params, wire.UnreadParams) and asked.params.error


def test_a_request_of_the_older_protocol_names_a_thread() -> None:
    params = {"conversationId": "t", "callId": "c", "command": ["bash", "-lc", "ls"], "cwd": "/", "parsedCmd": []}
    asked = wire.decode(line(method="execCommandApproval", id=1, params=params))
    assert isinstance(asked, wire.ServerRequest) and asked.thread_id == "t"


@each_row(
    "bad",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"id":1}',
        b'{"method":5}',
        b'{"method":"item/started","params":{}}',
        b"[" * 9999,
    ],
)
def test_what_is_not_a_message_is_garbled(bad: bytes) -> None:
    read = wire.decode(bad)
    assert isinstance(read, wire.GarbledMessage) and read.error


def test_characters_that_were_cut_in_two_are_repaired() -> None:
    cut = b'{"method":"item/agentMessage/delta","params":{"itemId":"m","delta":"a\\ud83d b\xff"}}'
    shown = wire.decode(cut)
    assert isinstance(shown, wire.ServerNotification) and shown.params == wire.Delta(
        item_id="m", delta="a\ufffd b\ufffd"
    )


@given(st.binary(max_size=60))
def test_no_bytes_raise(noise: bytes) -> None:
    wire.decode(noise)


@given(
    st.sampled_from([*NOTIFICATIONS, *REQUESTS, "thread/dance"]), JSON, st.none() | st.integers() | st.text(max_size=3)
)
def test_no_parameters_raise(method: str, params: object, id: object) -> None:
    read = wire.decode(line(method=method, params=params, id=id))
    assert isinstance(read, wire.ServerNotification | wire.ServerRequest | wire.GarbledMessage)


def test_a_result_is_read_as_what_it_should_be() -> None:
    raw = msgspec.Raw(
        b'{"thread":{"id":"t","turns":[{"id":"u","items":[{"type":"agentMessage","id":"m","text":"hi"},{"type":"dance"}]}]}}'
    )
    opened = wire.read(raw, wire.ThreadOpened)
    assert opened.thread.turns[0].items[0] == wire.AgentMessage(id="m", text="hi")


def test_a_result_of_another_type_is_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match="ThreadOpened"):
        wire.read(msgspec.Raw(b"[1]"), wire.ThreadOpened)


def test_what_we_write_is_a_line_without_the_version_of_the_protocol() -> None:
    assert wire.request(1, "thread/start", {"cwd": "/w"}) == b'{"method":"thread/start","id":1,"params":{"cwd":"/w"}}\n'
    assert wire.notification("initialized") == b'{"method":"initialized"}\n'
    assert wire.answer(0, {"decision": "accept"}) == b'{"id":0,"result":{"decision":"accept"}}\n'
    assert wire.refusal("a", "no", -32601) == b'{"id":"a","error":{"code":-32601,"message":"no"}}\n'
