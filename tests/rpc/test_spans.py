"""A value is put into a message, and every other byte stays."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.rpc.spans import may_hold_id, with_value

PATH = ("params", "_meta", "antiphon", "number")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"params":{"a":1.50}}', b'{"params":{"a":1.50,"_meta":{"antiphon":{"number":7}}}}'),
        (b'{"params":{ }}', b'{"params":{ "_meta":{"antiphon":{"number":7}}}}'),
        (
            b'{ "params" : {"_meta":null,"b":"\\u0062"} }',
            b'{ "params" : {"_meta":{"antiphon":{"number":7}},"b":"\\u0062"} }',
        ),
        (
            b'{"params":{"_meta":{"antiphon":{"number":1}}},"x":2}',
            b'{"params":{"_meta":{"antiphon":{"number":7}}},"x":2}',
        ),
        (b'{"params":{"_meta":{"x":"}"}}}', b'{"params":{"_meta":{"x":"}","antiphon":{"number":7}}}}'),
        (b'{"method":"m"}', b'{"method":"m","params":{"_meta":{"antiphon":{"number":7}}}}'),
        (b'{"params":[1]}', b'{"params":{"_meta":{"antiphon":{"number":7}}}}'),
    ],
)
def test_a_value_is_put_at_its_path_and_every_other_byte_stays(line: bytes, expected: bytes) -> None:
    assert with_value(line, PATH, b"7") == expected
    assert msgspec.json.decode(expected)["params"]["_meta"]["antiphon"]["number"] == 7


PIECES = st.sampled_from(
    [b'"id"', b'requestId"', b"re", b"quest", b"q", b'Id"', b"\\", b"\\u00", b"u00", b'"', b"id", b"text"]
)


@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_an_id_is_seen_wherever_its_key_is(lines: bytes) -> None:
    found = any(word in lines for word in (b'"id"', b'requestId"', b"\\u00"))
    assert may_hold_id(lines) == may_hold_id(bytearray(lines)) == found
