"""No message, however odd, makes a rule raise; and none that needs no rule is touched by one."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.protocol.base import BAD_INPUT, encode
from antiphon.protocol.methods import Half, read
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.dialects import HINTS
from antiphon.protocol.v1.dialects.table import repair
from tests.dialects.rows import ROWS, Row
from tests.protocol.strategies import values
from tests.rows import each_row

PLACES: list[tuple[str, Half]] = [
    *((method.name, "params") for method in m.BY_NAME.values()),
    *((name, "result") for name in m.CALLS_BY_NAME),
]
ANSWERS = [
    b"{}",
    b"null",
    b"[]",
    b'{"outcome":7}',
    b'{"modes":{}}',
    b'{"modes":[]}',
    b'{"authMethods":[7,{"id":1}]}',
    b'{"outcome":{"outcome":7}}',
]


def parts_of(value: Any) -> tuple[set[str], list[Any]]:
    """Every key and every leaf of a JSON value: the words that rules look for."""
    if isinstance(value, dict):
        found = [parts_of(inner) for inner in value.values()]
        return set(value).union(*(keys for keys, _ in found)), [leaf for _, leaves in found for leaf in leaves]
    if isinstance(value, list):
        found = [parts_of(inner) for inner in value]
        return set().union(*(keys for keys, _ in found)), [leaf for _, leaves in found for leaf in leaves]
    return set(), [value]


KEYS, LEAVES = parts_of([msgspec.json.decode(row.wire) for row in ROWS])
leaves = st.sampled_from(LEAVES) | st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3)
keys = st.sampled_from(sorted(KEYS)) | st.text(max_size=3)
json_values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[Row, bytes]:
    """A row with one part of it replaced by something else, or gone."""
    row = draw(st.sampled_from(ROWS))
    value = msgspec.json.decode(row.wire)
    spot = value
    while isinstance(spot, (dict, list)) and spot:
        key: Any = draw(st.sampled_from(list(spot) if isinstance(spot, dict) else range(len(spot))))
        if draw(st.booleans()) or not spot[key]:
            if draw(st.booleans()):
                spot[key] = draw(json_values)
            else:
                del spot[key]
            break
        spot = spot[key]
    return row, msgspec.json.encode(value)


def strict(method: str, half: Half) -> Any:
    """The strict decoder of a half."""
    return m.BY_NAME[method].params_decoder if half == "params" else m.CALLS_BY_NAME[method].result_decoder


def check(method: str, half: Half, raw: bytes) -> None:
    """The message comes back with or without changes; what it was read as, unhinted, is what the strict decoder says."""
    mended, rules, reply = repair(method, half, raw)
    assert rules or mended == raw
    msgspec.json.decode(mended)
    for answer in ANSWERS if reply else ():
        assert reply is not None
        msgspec.json.decode(reply(answer))
    decoder = strict(method, half)
    try:
        plain = decoder.decode(raw)
    except BAD_INPUT:
        return
    if not any(hint in raw for hint in HINTS.get((method, half), ())):
        reading = read(decoder, method, half, raw)
        assert (reading.value, reading.rules, reading.reply) == (plain, (), None)


@given(st.sampled_from(PLACES), json_values)
@settings(max_examples=600)
def test_no_json_makes_a_rule_raise(place: tuple[str, Half], value: Any) -> None:
    check(*place, msgspec.json.encode(value))


@given(spoiled())
@settings(max_examples=1000)
def test_no_spoiled_dialect_makes_a_rule_raise(found: tuple[Row, bytes]) -> None:
    row, raw = found
    check(row.method, row.half, raw)


@given(st.data())
@settings(max_examples=600)
def test_no_rule_touches_a_message_of_the_schema(data: st.DataObject) -> None:
    method, half = data.draw(st.sampled_from(PLACES))
    raw = encode(data.draw(values(strict(method, half).type)))
    words = (*HINTS.get((method, half), ()), b'"toolKind"', b'"input"', b'"output"')  # legacy fields, not the schema's
    if not any(word in raw for word in words):
        assert repair(method, half, raw) == (raw, (), None)


DEEP = b"[" * 5000 + b"]" * 5000
LONE_SURROGATE = rb'"\ud800"'
BROKEN = [
    b"",
    b"{",
    b"nul",
    b'{"a":}',
    b'{"sessionId"',
    b"\xff\xfe",
    b'{"a":1}x',
    DEEP,
    LONE_SURROGATE,
    b'"text"',
    b"7",
    b"[]",
    b" null ",
]


@each_row("raw", BROKEN, ids=range(len(BROKEN)))
def test_broken_text_makes_no_rule_raise(raw: bytes) -> None:
    for place in PLACES:
        repair(*place, raw)


UNOPENED = [DEEP, LONE_SURROGATE, b"1e999", b'{"type":"\\ud800"}', b'{"\\ud800":1}', b"[[]]", b'[{"type":7}]']
AROUND = [b"%s", b'{"update":%s}', b'{"toolCall":%s}', b'{"prompt":[%s]}', b'{"mcpServers":[%s]}']


@each_row("part", UNOPENED, ids=range(len(UNOPENED)))
@each_row("outer", AROUND, ids=bytes.decode)
def test_a_part_that_cannot_be_opened_makes_no_rule_raise(outer: bytes, part: bytes) -> None:
    for key in sorted(KEYS):
        for place in PLACES:
            repair(*place, outer % (b"{" + msgspec.json.encode(key) + b":" + part + b"}"))
