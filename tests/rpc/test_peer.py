"""Both directions of a session, without a loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.errors import Code, LocalProtocolError
from antiphon.rpc.envelope import ErrorObject, Noise, Overlong
from antiphon.rpc.peer import (
    MAX_CANCELLED,
    ErrorReceived,
    NotificationReceived,
    Peer,
    Rejected,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Stray,
)


def test_a_question_and_its_answer_meet() -> None:
    near, far = Peer(), Peer()
    id, question = near.new_request("session/new", {"cwd": "/w"})
    asked = far.receive(bytes(question))
    assert isinstance(asked, RequestReceived) and asked.request.method == "session/new"
    answered = near.receive(bytes(far.answer(asked.request.id, Raw(b'{"sessionId":"s"}'))))
    assert isinstance(answered, ResultReceived)
    assert (answered.id, bytes(answered.result)) == (id, b'{"sessionId":"s"}')


def test_both_sides_may_ask_at_once_under_the_same_number() -> None:
    near, far = Peer(), Peer()
    _, from_near = near.new_request("a", {})
    _, from_far = far.new_request("b", {})
    at_far, at_near = far.receive(bytes(from_near)), near.receive(bytes(from_far))
    assert isinstance(at_far, RequestReceived) and isinstance(at_near, RequestReceived)
    assert isinstance(near.receive(bytes(far.answer(at_far.request.id, {}))), ResultReceived)
    assert isinstance(far.receive(bytes(near.answer(at_near.request.id, {}))), ResultReceived)


def test_a_question_is_answered_once() -> None:
    peer = Peer()
    peer.receive(b'{"jsonrpc":"2.0","id":7,"method":"x"}')
    peer.answer(7, Raw(b"{}"))
    with pytest.raises(LocalProtocolError):
        peer.answer(7, Raw(b"{}"))
    with pytest.raises(LocalProtocolError):
        peer.refuse(7, ErrorObject(1, "m"))


def test_zero_one_and_the_text_one_are_three_questions() -> None:
    peer = Peer()
    for written in (b"0", b"1", b'"1"', b"1.0"):
        assert isinstance(peer.receive(b'{"id":%b,"method":"x"}' % written), RequestReceived)
    assert peer.open_requests == 4
    assert bytes(peer.answer("1", None)) == b'{"jsonrpc":"2.0","id":"1","result":null}'
    assert bytes(peer.answer(1, None)) == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert bytes(peer.answer(1.0, None)) == b'{"jsonrpc":"2.0","id":1.0,"result":null}'
    assert bytes(peer.answer(0, None)) == b'{"jsonrpc":"2.0","id":0,"result":null}'


def test_an_id_in_use_does_not_settle_the_first_question() -> None:
    peer = Peer()
    peer.receive(b'{"id":1,"method":"x"}')
    again = peer.receive(b'{"id":1,"method":"y"}')
    assert isinstance(again, Rejected) and again.reply is None
    peer.answer(1, {})


@pytest.mark.parametrize(
    "line", [b'{"id":9,"result":{}}', b'{"id":"1","result":{}}', b'{"id":1.0,"result":{}}', b'{"id":null,"result":{}}']
)
def test_a_response_to_no_request_is_a_stray(line: bytes) -> None:
    peer = Peer()
    peer.new_request("x", {})
    assert isinstance(peer.receive(line), Stray)


def test_the_second_answer_to_one_question_is_a_stray() -> None:
    peer = Peer()
    id, _ = peer.new_request("x", {})
    assert isinstance(peer.receive(b'{"id":%d,"result":1}' % id), ResultReceived)
    assert peer.receive(b'{"id":%d,"result":2}' % id) == Stray(id)


def test_a_cancelled_request_expects_a_late_response() -> None:
    peer = Peer()
    id, _ = peer.new_request("x", {})
    frame = peer.cancel(id)
    assert frame is not None and b'"$/cancel_request"' in frame
    assert peer.cancel(id) is None
    assert peer.receive(b'{"id":%d,"result":1}' % id) == Stray(id, late=True)
    assert peer.forget() == []


def test_a_peer_that_never_answers_cancelled_requests_costs_no_memory() -> None:
    peer = Peer()
    id = 0
    for _ in range(3 * MAX_CANCELLED):
        id, _frame = peer.new_request("x", {})
        peer.cancel(id)
    assert len(peer._asked) <= MAX_CANCELLED
    assert peer.receive(b'{"id":1,"result":1}') == Stray(1)
    assert peer.receive(b'{"id":%d,"result":1}' % id) == Stray(id, late=True)


def test_a_withdrawal_reaches_the_open_question() -> None:
    near, far = Peer(), Peer()
    id, question = near.new_request("x", {})
    far.receive(bytes(question))
    frame = near.cancel(id)
    assert frame is not None
    assert far.receive(bytes(frame)) == RequestCancelled(id)
    answer = near.receive(far.refuse(id, ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled")))
    assert answer == Stray(id, late=True, error=ErrorObject(Code.REQUEST_CANCELLED, "Request cancelled"))


def test_a_withdrawal_of_what_was_answered_is_ignored() -> None:
    peer = Peer()
    peer.receive(b'{"id":1,"method":"x"}')
    peer.answer(1, {})
    assert peer.receive(b'{"method":"$/cancel_request","params":{"requestId":1}}') == Stray(1, late=True)


def test_a_broken_cancellation_is_only_a_notification() -> None:
    assert isinstance(Peer().receive(b'{"method":"$/cancel_request","params":[]}'), NotificationReceived)


@pytest.mark.parametrize(
    "line",
    [b'{"jsonrpc":"1.0","method":"x"}', b'{"method":"x","params":[]}', b'{"method":"nobody/knows","params":{}}'],
)
def test_a_notification_is_never_answered(line: bytes) -> None:
    event = Peer().receive(line)
    assert isinstance(event, NotificationReceived) or (isinstance(event, Rejected) and event.reply is None)


def test_an_answer_that_cannot_be_read_still_ends_the_wait() -> None:
    peer = Peer()
    id, _ = peer.new_request("x", {})
    event = peer.receive(Overlong(b'{"jsonrpc":"2.0","id":%d,"result":"aaa' % id, b'aaa"}', 9000, 5000))
    assert isinstance(event, ErrorReceived) and event.id == id


def test_an_empty_answer_ends_the_wait_too() -> None:
    peer = Peer()
    id, _ = peer.new_request("x", {})
    assert isinstance(peer.receive(b'{"jsonrpc":"2.0","id":%d}' % id), ErrorReceived)


def test_an_error_is_never_answered_with_an_error() -> None:
    near, far = Peer(), Peer()
    rejected = near.receive(b"{broken")
    assert isinstance(rejected, Rejected) and rejected.reply is not None
    assert isinstance(far.receive(rejected.reply), Stray)


def test_a_client_skips_log_lines_and_an_agent_answers_them() -> None:
    assert isinstance(Peer(tolerant=True).receive(b"[INFO] up"), Noise)
    rejected = Peer().receive(b"[INFO] up")
    assert isinstance(rejected, Rejected) and rejected.reply is not None and b"-32700" in rejected.reply


def test_a_result_with_no_json_form_leaves_the_question_open() -> None:
    peer = Peer()
    peer.receive(b'{"id":1,"method":"x"}')
    with pytest.raises(TypeError):
        peer.answer(1, object())
    peer.answer(1, {})


def test_the_end_names_every_question_left_open() -> None:
    peer = Peer()
    first, _ = peer.new_request("a", {})
    second, _ = peer.new_request("b", {})
    peer.cancel(first)
    assert peer.forget() == [second]


@given(
    st.lists(st.binary(max_size=80) | st.sampled_from([b'{"id":1,"method":"x"}', b'{"id":1,"result":0}']), max_size=20)
)
def test_no_input_crashes_a_peer(lines: list[bytes]) -> None:
    peer = Peer()
    for line in lines:
        peer.receive(line)
    peer.new_request("x", {})


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"id":7,"title":"\xff"}}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"id":7,"deep":' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"jsonrpc":"2.0","method":"x","params":{"id":7},"cut',
    ],
    ids=["bad text", "deep", "cut short"],
)
def test_an_id_inside_the_params_is_not_the_messages_own(line: bytes) -> None:
    peer = Peer()
    for _ in range(7):
        peer.new_request("x", {})
    event = peer.receive(line)
    assert isinstance(event, Rejected) and (event.reply is None or b'"id":null' in event.reply)
    assert isinstance(peer.receive(b'{"id":7,"result":1}'), ResultReceived)


def test_a_second_question_without_an_id_waits_for_the_first() -> None:
    peer = Peer()
    assert isinstance(peer.receive(b'{"id":null,"method":"x"}'), RequestReceived)
    assert isinstance(peer.receive(b'{"id":null,"method":"x"}'), Rejected)
    peer.answer(None, {})
    assert isinstance(peer.receive(b'{"id":null,"method":"x"}'), RequestReceived)


def test_a_question_that_cannot_be_written_takes_no_id() -> None:
    peer = Peer()
    with pytest.raises(TypeError):
        peer.new_request("x", object())
    assert peer.forget() == []
