"""Opening envelopes: what is a message, what is malformed, what is noise."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from antiphon.errors import Code
from antiphon.rpc.envelope import (
    MAX_ID,
    NOISE_KEPT,
    ErrorObject,
    Malformed,
    Noise,
    Notification,
    Overlong,
    Request,
    RequestId,
    Response,
    decode,
    error_frame,
    head_of_answer,
)
from tests.rows import each_row

DEEP = b"[" * 10_000 + b"]" * 10_000


@each_row(
    "written",
    [b"0", b"1", b'"1"', b"1.5", b"1.0", b"1e2", b"-0.50", b"-7", b"null", b'""', b"123456789012345678901234567890"],
)
def test_an_id_goes_back_as_it_came(written: bytes) -> None:
    message = decode(b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % written)
    assert isinstance(message, Request)
    assert head_of_answer(message.id) == b'{"jsonrpc":"2.0","id":%b,"result":' % written


def test_params_are_carried_and_never_opened() -> None:
    message = decode(b'{"jsonrpc":"2.0","method":"_vendor/ping","params":{"n" : 1}}')
    assert isinstance(message, Notification)
    assert bytes(message.params) == b'{"n" : 1}'


def test_a_message_without_params_has_empty_ones() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"method":"logout"}')
    assert isinstance(message, Request) and bytes(message.params) == b"{}"


def test_a_message_without_a_version_is_taken() -> None:
    assert isinstance(decode(b'{"id":1,"method":"x"}'), Request)


def test_a_null_error_beside_a_result_is_a_result() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":5,"result":{},"error":null}')
    assert isinstance(message, Response) and message.error is None


@each_row(
    ("line", "code", "id"),
    [
        (b'{"jsonrpc":"2.0","id":6,"method":"x","par', Code.PARSE_ERROR, 6),
        (b"{not json", Code.PARSE_ERROR, UNSET),
        (b'{"id":4,"method":"x","params":{"a":"\xff"}}', Code.PARSE_ERROR, 4),
        (b'{"id":3,"method":"x","params":{"a":"\\ud83d"}}', Code.PARSE_ERROR, 3),
        (b'{"id":7,"method":"x","params":' + DEEP + b"}", Code.PARSE_ERROR, 7),
        (b'{"params":' + DEEP + b',"method":"x","id":"late"}', Code.PARSE_ERROR, "late"),
        (b"42", Code.INVALID_REQUEST, UNSET),
        (b"null", Code.INVALID_REQUEST, UNSET),
        (b'"text"', Code.INVALID_REQUEST, UNSET),
        (b"[]", Code.INVALID_REQUEST, UNSET),
        (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', Code.INVALID_REQUEST, UNSET),
        (b'{"jsonrpc":"2.0","id":1}', Code.INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0"}', Code.INVALID_REQUEST, UNSET),
        (b'{"jsonrpc":"2.0","id":5,"method":3}', Code.INVALID_REQUEST, 5),
        (b'{"jsonrpc":"1.0","id":5,"method":"x"}', Code.INVALID_REQUEST, 5),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', Code.INVALID_REQUEST, UNSET),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"x"}', Code.INVALID_REQUEST, UNSET),
        (b'{"jsonrpc":"2.0","id":["x"],"method":"x"}', Code.INVALID_REQUEST, UNSET),
        (b'{"id":"' + b"x" * (MAX_ID + 1) + b'","method":"x"}', Code.INVALID_REQUEST, UNSET),
    ],
)
def test_bad_input_is_named_and_its_id_found(line: bytes, code: int, id: RequestId) -> None:
    message = decode(line)
    assert isinstance(message, Malformed), message
    assert (message.error.code, message.id) == (code, id)
    assert isinstance(message.error.data, str) and message.error.data  # says what is wrong


@pytest.mark.parametrize(
    "line", [b"hello", b"[INFO] starting", b"2026-01-01 up", b'{"level":"info","msg":"up"}', b"\xff\xfe", b"true story"]
)
def test_a_line_that_is_not_protocol_is_noise(line: bytes) -> None:
    assert isinstance(decode(line), Noise)


PIECES = st.sampled_from(
    [b"[INFO] ", b"{", b'"level":"info"', b":", b",", b"}", b'"', b"\\ud800", b"\xff", b" ", b"1.5", b"null", b"[", b"]", b'"x":',
     b'{"deep":[1,{"a":"b"}]}', b'{"msg":"up"}', b"\xc3\xa9", b"true"]
)  # fmt: skip


@given(
    st.lists(PIECES, min_size=1, max_size=6), st.integers(0, 6), st.sampled_from([b"x", b" ", b"\xc3\xa9", b"[", b"9"])
)
def test_no_line_however_long_is_kept_longer_than_the_limit_of_noise(
    pieces: list[bytes], place: int, filler: bytes
) -> None:
    pieces.insert(place, filler * (3 * NOISE_KEPT))
    for line in (b"".join(pieces), b'{"level":"info","payload":"' + b"".join(pieces).replace(b'"', b"") + b'"}'):
        message = decode(line)
        assert not isinstance(message, Noise) or len(message.raw) <= NOISE_KEPT


def test_half_a_surrogate_pair_does_not_lose_a_notification() -> None:
    message = decode(b'{"method":"x","params":{"a":"\\ud83d b \\ud83d\\ude00 \\\\ud83d"}}')
    assert isinstance(message, Notification)
    assert msgspec.json.decode(message.params) == {"a": "� b 😀 \\ud83d"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"code":400,"message":"upstream"}', ErrorObject(400, "upstream")),
        (b'{"code":"E_X","message":"m"}', ErrorObject(Code.INTERNAL_ERROR, "m", {"code": "E_X", "message": "m"})),
        (b'{"code":"-32000","message":"m","data":1}', ErrorObject(-32000, "m", 1)),
        (b'{"code":1.0}', ErrorObject(1, "unnamed error", {"code": 1.0})),
        (b'"broken"', ErrorObject(Code.INTERNAL_ERROR, "broken", "broken")),
        (b"[1]", ErrorObject(Code.INTERNAL_ERROR, "unnamed error", [1])),
    ],
)
def test_an_error_of_any_shape_still_has_a_message(raw: bytes, expected: ErrorObject) -> None:
    message = decode(b'{"id":1,"error":%b}' % raw)
    assert isinstance(message, Response) and message.error == expected


def test_an_error_without_an_id_belongs_to_no_request() -> None:
    message = decode(b'{"error":{"code":-32601,"message":"what?"},"jsonrpc":"2.0"}')
    assert isinstance(message, Response) and message.id is None


@pytest.mark.parametrize(
    ("head", "tail", "id", "answerable"),
    [
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":"aaa', b'aaa"}', 3, True),
        (b'{"jsonrpc":"2.0","params":"aaa', b'aaa","method":"x","id":"late"}', "late", True),
        (b'{"jsonrpc":"2.0","method":"x","params":"aaa', b'aaa"}', UNSET, False),
        (b'{"jsonrpc":"2.0","id":3,"result":"aaa', b'aaa"}', 3, False),
    ],
)
def test_a_line_over_the_limit_is_an_error_with_the_id_of_its_request(
    head: bytes, tail: bytes, id: RequestId, answerable: bool
) -> None:
    message = decode(Overlong(head, tail, 9000, 5000))
    assert isinstance(message, Malformed)
    assert (message.id, message.answerable) == (id, answerable)
    assert "9000" in str(message.error.data) and "5000" in str(message.error.data)


def test_an_error_frame_for_an_unknown_id_has_null() -> None:
    assert error_frame(UNSET, ErrorObject(1, "m")) == b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}'


@given(st.binary(max_size=200))
def test_no_byte_string_crashes_the_decoder(line: bytes) -> None:
    decode(line)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).flatmap(
        lambda value: st.fixed_dictionaries(
            {},
            optional={
                name: st.just(value) | st.text() for name in ("jsonrpc", "id", "method", "params", "result", "error")
            },
        )
    )
)
def test_no_json_object_crashes_the_decoder(fields: dict[str, object]) -> None:
    decode(msgspec.json.encode(fields))
