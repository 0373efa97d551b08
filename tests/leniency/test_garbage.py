"""One wrong field costs nothing else, and no bytes at all make a reader fail in a way that nothing expects."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import RemoteProtocolError, ResponseError
from antiphon.protocol.base import EXACT, ITEMS, OR_DEFAULT, Model, decoder, encode
from antiphon.protocol.methods import Call, DecodedPart
from antiphon.protocol.salvage import salvage
from antiphon.protocol.v1 import methods
from tests.protocol.parity import default_of, hints_of, marks_of, our_types, wire_names
from tests.protocol.strategies import messages, values
from tests.rows import each_row

Reader = Callable[[bytes], DecodedPart[Any]]

few = settings(max_examples=4, deadline=None, derandomize=True, database=None)
some = settings(max_examples=8, deadline=None, derandomize=True, database=None)

GARBAGE: tuple[Any, ...] = (None, True, 7, -7, 1.5, "garbage", [], ["garbage"], {}, {"type": 7})

READERS: dict[str, tuple[Reader, Any]] = {}
for method in methods.ALL:
    READERS[f"{type(method).__name__} {method.name} params"] = (method.read_params, method.params)
    if isinstance(method, Call):
        READERS[f"{type(method).__name__} {method.name} result"] = (method.read_result, method.result)


def lenient(kind: Any) -> list[str]:
    """Optional fields whose wrong value falls back to the default."""
    return [
        wire
        for wire, field in wire_names(kind).items()
        if not field.required and not marks_of(hints_of(kind)[field.name]) & {EXACT, ITEMS, OR_DEFAULT}
    ]


STRUCTS: list[Any] = sorted((kind for kind in our_types() if issubclass(kind, Model)), key=lambda kind: kind.__name__)


def test_every_type_has_a_lenient_field() -> None:
    assert all("_meta" in lenient(kind) for kind in STRUCTS)


@each_row("kind", STRUCTS, ids=lambda kind: kind.__name__)
@few
@given(data=st.data())
def test_a_wrong_optional_field_leaves_the_others_alone(kind: Any, data: st.DataObject) -> None:
    good = data.draw(messages(kind))
    wire, value = data.draw(st.sampled_from(lenient(kind))), data.draw(st.sampled_from(GARBAGE))
    spoilt = msgspec.json.encode({**msgspec.json.decode(encode(good)), wire: value})
    name = wire_names(kind)[wire].name
    read = salvage(spoilt, kind)
    assert encode(without(read, name)) == encode(without(good, name))


def without(value: Any, name: str) -> Any:
    field = next(field for field in msgspec.structs.fields(value) if field.name == name)
    return msgspec.structs.replace(value, **{name: default_of(field)})


# Readers and bytes.


def survives(read: Reader, raw: bytes) -> None:
    """Read, or refused as promised. What was read can be sent again."""
    try:
        reading = read(raw)
    except (ResponseError, RemoteProtocolError):
        return
    assert msgspec.json.decode(encode(reading.value), type=msgspec.Raw)


DEPTH = 100_000
HOSTILE = {
    "nothing": b"",
    "space": b" \t\r\n",
    "null": b" null ",
    "a list": b"[]",
    "a text": b'"x"',
    "a number": b"1e999",
    "not a number": b"NaN",
    "half a message": b'{"sessionId":"s',
    "two messages": b"{}{}",
    "half a surrogate pair": b'{"sessionId":"\\ud800","_meta":{"a":"\\udc00"}}',
    "half a surrogate pair as a key": b'{"\\udc00":1}',
    "not UTF-8": b'{"sessionId":"\xff\xfe"}',
    "not UTF-8 in a stranger's field": b'{"stranger":"\xc3("}',
    "UTF-16": '{"sessionId":"s"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "zero bytes": b"\x00" * 8,
    "a deep list": b"[" * DEPTH,
    "a deep list that ends": b"[" * DEPTH + b"]" * DEPTH,
    "a deep extension": b'{"_meta":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}",
    "a deep update": b'{"sessionId":"s","update":{"sessionUpdate":"x","a":' + b"[" * DEPTH + b"]" * DEPTH + b"}}",
    "a deep prompt": b'{"sessionId":"s","prompt":' + b"[" * DEPTH + b"]" * DEPTH + b"}",
    "a deep server": b'{"cwd":"/","mcpServers":[{"type":' + b"[" * DEPTH + b"]" * DEPTH + b"}]}",
    "a huge number": b'{"_meta":{"n":' + b"9" * 10_000 + b"}}",
    "a huge word": b'{"update":{"sessionUpdate":"' + b"x" * 100_000 + b'"}}',
}


@each_row("raw", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_read_or_refused(raw: bytes) -> None:
    for read, _ in READERS.values():
        survives(read, raw)


@each_row("name", READERS)
@few
@given(raw=st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_arbitrary_bytes_are_read_or_refused(name: str, raw: bytes) -> None:
    survives(READERS[name][0], raw)


SPLINTERS = st.sampled_from(
    [b"", b"null", b"{}", b"[", b"]", b"{", b"}", b'"', b",", b":", b"-", b"1e999", b"\\", b"\\ud800", b"\xff", b"\x00"]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, kind: Any) -> bytes:
    """A valid message with a few of its bytes cut out or replaced."""
    raw = encode(draw(values(kind)))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(start + 6, len(raw))))
        raw = raw[:start] + draw(SPLINTERS) + raw[end:]
    return raw


@each_row("name", READERS)
@some
@given(data=st.data())
def test_a_mutated_message_is_read_or_refused(name: str, data: st.DataObject) -> None:
    read, kind = READERS[name]
    survives(read, data.draw(mutated(kind)))


@st.composite
def transplanted(draw: st.DrawFn, kind: Any) -> bytes:
    """A valid message in which one part, at any depth, is of another type."""
    message = msgspec.json.decode(encode(draw(values(kind))))
    spot = message
    while isinstance(spot, dict | list) and spot:
        key: Any = draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else range(len(spot))))
        if not isinstance(spot[key], dict | list) or not spot[key] or draw(st.booleans()):
            spot[key] = draw(st.sampled_from(GARBAGE))
            break
        spot = spot[key]
    return msgspec.json.encode(message)


@each_row("name", READERS)
@some
@given(data=st.data())
def test_a_part_of_another_type_is_forgiven_or_refused(name: str, data: st.DataObject) -> None:
    read, kind = READERS[name]
    survives(read, data.draw(transplanted(kind)))


@each_row("kind", STRUCTS, ids=lambda kind: kind.__name__)
@few
@given(data=st.data())
def test_salvage_agrees_with_the_strict_decoder_on_good_messages(kind: Any, data: st.DataObject) -> None:
    good = encode(data.draw(messages(kind)))
    spoilt = msgspec.json.encode({**msgspec.json.decode(good, type=dict[str, msgspec.Raw]), "_meta": 7})
    assert encode(salvage(spoilt, kind)) == encode(msgspec.structs.replace(decoder(kind).decode(good), meta=None))
