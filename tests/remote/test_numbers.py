"""A client that did not ask for the numbers of events gets none, in the bytes of the agent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.gateway.events import NUMBER, numbered
from antiphon.remote.numbers import with_own_numbers, without_numbers
from antiphon.rpc.spans import with_value

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "antiphon", '"_meta":{', "é"]))
KEYS = st.sampled_from(["a", "number", "_meta", "antiphon", "sessionId"])
VALUES = st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2))
META = st.dictionaries(st.sampled_from(["a", "traceparent"]), VALUES, min_size=1, max_size=2)


@given(st.dictionaries(st.sampled_from(["a", "update"]), VALUES), st.none() | META, st.booleans(), st.booleans())
def test_a_number_that_was_added_is_taken_out_again_and_nothing_else(
    members: dict[str, object], meta: dict[str, object] | None, first: bool, spaces: bool
) -> None:
    about = {} if meta is None else {"_meta": meta}
    params = {**about, **members} if first else {**members, **about}
    for name in ("params", "result"):
        text = json.dumps({"jsonrpc": "2.0", name: params, "top": 1}, separators=None if spaces else (",", ":"))
        line = text.encode()
        assert without_numbers(line) == line
        with_number = numbered(line, 7, (name, "_meta", "antiphon", "number"))
        assert without_numbers(with_number) == line
        assert without_numbers(with_value(with_number, (name, "_meta", "antiphon", "request"), b'"r"')) == line


@given(
    st.dictionaries(st.sampled_from(["a", "update", "params"]), VALUES) | VALUES,
    st.none() | VALUES,
    st.sampled_from([(None, ""), ((",", ":"), ""), ((",", ":"), "a")]),
)
def test_an_update_that_ends_with_its_params_gets_the_same_bytes_as_any_other(
    params: object, behind: object, written: tuple[tuple[str, str] | None, str]
) -> None:
    separators, escaped = written
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    if behind is not None:
        message["top"] = behind
    line = json.dumps(message, separators=separators).encode()
    if escaped:
        line = line.replace(b'"a"', b'"\\u005fmeta"')
    found = numbered(line, 7, at=1.5)
    assert found == with_value(line, NUMBER, b'7,"time":1.500')
    if b"meta" not in line and isinstance(params, dict):
        assert without_numbers(found) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b'{"params":{"_meta":{"antiphon":{"number":1}},"a":1}}', b'{"params":{"a":1}}'),
        (b'{"params":{"_meta":{"antiphon":{"number":1}}}}', b'{"params":{}}'),
        (b'{"params":{"_meta":{"antiphon":{"number":1,"of the agent":2}}}}', None),
        (b'{"params":{"update":{"_meta":{"antiphon":{"number":1}}}}}', None),
        (b'{"params":{"a":1,"_meta":{"antiphon":{"number":1,"time":2.5}}}}', b'{"params":{"a":1}}'),
        (b'{"result":{"a":1,"_meta":{"antiphon":{"number":1}}}}', b'{"result":{"a":1}}'),
        (b'{"params":{},"other":{"a":1,"_meta":{"antiphon":{"number":1}}}}', None),
        (b'{"params":{"a":1,"b":{"c":1,"_meta":{"antiphon":{"number":1}}}}}', None),
        (b'{"params":{"_meta":{"antiphon":{', None),
    ],
)
def test_what_is_not_a_number_of_the_gateway_stays(line: bytes, shown: bytes | None) -> None:
    assert without_numbers(line) == (line if shown is None else shown)


def test_a_client_learns_whether_it_has_numbers_itself() -> None:
    outcome = b'"result":{"a":1,"_meta":{"antiphon":{"numbers":true,"extension":1}}}'
    assert with_own_numbers(outcome, True) == outcome
    assert with_own_numbers(outcome, False) == outcome.replace(b"true", b"false")
    assert with_own_numbers(b'"error":{"code":1}', False) == b'"error":{"code":1}'
