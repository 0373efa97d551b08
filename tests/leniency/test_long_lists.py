"""What a wrong message costs is bounded, however long its lists are, whatever is wrong in them and wherever they stand.

Work is counted, not timed: calls of functions, in Python and in C, while a message is read. The limits are lowered, so that some hundred
items are many; what holds for them holds for the limits of the product.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.errors import RemoteProtocolError, RequestError, ResponseError
from antiphon.protocol import salvage
from antiphon.protocol.base import encode
from antiphon.protocol.v1 import methods
from antiphon.protocol.v1.updates import Plan
from tests.leniency.test_garbage import READERS
from tests.protocol.parity import wire_names
from tests.protocol.strategies import messages
from tests.rows import each_row

VALUES: Final = 500
READS: Final = 50

CALLS: Final = 80 * VALUES
"""Calls that one message may cost: some for each value that is looked into."""

CALLS_FOR_A_RIGHT_ITEM: Final = 8
"""Calls for each item that is right, before one is found that is wrong: unions without a tag are distinguished in Python."""

Path = tuple[str | int, ...]

several = settings(
    max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a message where something stands."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def replaced(tree: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    key, *rest = path
    if isinstance(tree, list):
        return [replaced(child, tuple(rest), new) if i == key else child for i, child in enumerate(tree)]
    return {**tree, key: replaced(tree.get(key), tuple(rest), new)}


def at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key] if isinstance(key, int) or key in tree else None
    return tree


def first_item(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


WRONG: Final[dict[str, Callable[[Any, int], Any]]] = {
    "numbers": lambda old, n: [7] * n,
    "nulls": lambda old, n: [None] * n,
    "empty objects": lambda old, n: [{}] * n,
    "empty lists": lambda old, n: [[]] * n,
    "texts": lambda old, n: ["a,b\\\",c"] * n,
    "wrong tags": lambda old, n: [{"type": 7, "sessionUpdate": 7}] * n,
    "unknown kinds": lambda old, n: [{"type": f"x{i}", "sessionUpdate": f"x{i}"} for i in range(n)],
    "lists in lists": lambda old, n: [[7] * 50] * (n // 50),
    "objects in objects": lambda old, n: [{"a": {"b": {"content": {"type": "x"}}}}] * n,
    "deep": lambda old, n: json.loads("[" * 400 + "7" + "]" * 400),
    "many keys": lambda old, n: {f"k{i}": 7 for i in range(n)},
    "many keys with objects": lambda old, n: {f"k{i}": {"type": 7} for i in range(n)},
    "right ones and a wrong one": lambda old, n: [first_item(old)] * (n - 1) + [7],
    "right and wrong ones by turns": lambda old, n: [first_item(old), 7] * (n // 2),
    "a wrong field in each": lambda old, n: [
        {**first_item(old), "_meta": 7} if isinstance(first_item(old), dict) else 7
    ] * n,
}  # fmt: skip


def calls_of(read: Callable[[], object]) -> int:
    """Count the calls that reading makes."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        read()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(autouse=True)
def lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvage, "MAX_VALUES", VALUES)
    monkeypatch.setattr(salvage, "MAX_READS", READS)


@each_row("name", READERS)
@several
@given(data=st.data())
def test_a_long_list_of_wrong_items_costs_no_more_than_the_limits(name: str, data: st.DataObject) -> None:
    reader, kind = READERS[name]
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    tree = json.loads(encode(data.draw(messages(kind))))
    fields = [(wire,) for wire in wire_names(kind)]
    path = data.draw(st.sampled_from([*fields, *places(tree)]))
    how = data.draw(st.sampled_from(list(WRONG)))
    size = data.draw(st.sampled_from([VALUES // 3, 10 * VALUES]))
    wire = json.dumps(replaced(tree, path, WRONG[how](at(tree, path), size))).encode()
    rules: tuple[str, ...] = ()

    def read() -> None:
        nonlocal rules
        with suppress(ResponseError, RemoteProtocolError):
            rules = reader(wire).rules

    assert calls_of(read) <= CALLS + CALLS_FOR_A_RIGHT_ITEM * size, (path, how)
    assert len(rules) <= salvage.MAX_NOTES + 10


def test_one_note_covers_all_wrong_items() -> None:
    wire = b'{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[%b7]}}' % (b"7," * (VALUES // 2))
    assert methods.SESSION_UPDATE.read_params(wire).rules == (
        f"{VALUES // 2 + 1} invalid items dropped at $.update.entries, the first at [0]",
    )


def test_right_items_of_a_long_list_are_kept_where_few_are_wrong() -> None:
    entry = {"content": "c", "priority": "high", "status": "pending"}
    entries = [7 if i % 10 == 3 else entry for i in range(VALUES * 3 // 10)]
    wire = json.dumps({"sessionId": "s", "update": {"sessionUpdate": "plan", "entries": entries}}).encode()
    update = methods.SESSION_UPDATE.read_params(wire).value.update
    assert isinstance(update, Plan) and len(update.entries) == VALUES * 27 // 100


def test_a_message_with_too_many_values_is_refused_by_its_first_fault() -> None:
    wire = b'{"sessionId":"s","prompt":[%b7]}' % (b"7," * 2 * VALUES)
    with pytest.raises(RequestError, match=rf"\$\.prompt\[0\].*{VALUES} values"):
        methods.PROMPT.read_params(wire)


@given(st.binary(max_size=200) | st.text(alphabet='",\\ a[]{}:1', max_size=60).map(str.encode))
def test_counting_values_reads_any_bytes_once(data: bytes) -> None:
    assert not salvage.is_crowded(data)
    assert salvage.is_crowded(b"[" + b"1," * VALUES + data)
    assert not salvage.is_crowded(b'"' + b"," * 2 * VALUES + b'"')
