"""What a dialect rule is, and the few tools that rules are made of.

A rule looks at the top-level fields of one half of a method and returns them in the schema's words, or None if it sees
nothing of its dialect. Fields stay raw bytes until a rule needs to open one, so everything it does not touch survives as
it came. Rules see whatever a peer cares to send: they test for the type of a value before they use it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from antiphon.protocol.dialects.hints import Half

__all__ = [
    "Answer", "Change", "Fields", "Raw", "Rule", "each", "fields_of", "in_turn", "inside", "is_null", "items_of", "named_values",
    "opened", "packed", "renamed", "text_of", "with_meta",
]  # fmt: skip

Fields = dict[str, Raw]
Change = Callable[[Fields], Fields | None]
"""The fields in other words, or None where there is nothing to change."""
Answer = Callable[[Fields, bytes], bytes]
"""The question as it was asked, our answer to it → the answer in the asker's words."""


class Rule(NamedTuple):
    """One row of the table."""

    name: str
    source: str
    """Who says it this way."""
    method: str
    half: Half
    apply: Change
    hints: tuple[bytes, ...] = ()
    """Byte strings that betray the dialect in messages which are legal to the strict decoder (see `hints`)."""
    answer: Answer | None = None
    """How to answer a question that this rule understood, if the dialect wants other words."""
    null: bytes | None = None
    """What `null` stands for where an object should be."""


_fields = msgspec.json.Decoder(Fields)
_items = msgspec.json.Decoder(list[Raw])


def fields_of(raw: Raw | bytes | None) -> Fields | None:
    """The fields of an object; None for anything else."""
    if raw is None or not bytes(raw).lstrip().startswith(b"{"):
        return None
    return _fields.decode(raw)


def items_of(raw: Raw | bytes | None) -> list[Raw] | None:
    """The items of a list; None for anything else."""
    if raw is None or not bytes(raw).lstrip().startswith(b"["):
        return None
    return _items.decode(raw)


def text_of(raw: Raw | bytes | None) -> str | None:
    """A string; None for anything else."""
    value = opened(raw) if raw is not None and bytes(raw).lstrip().startswith(b'"') else None
    return value if isinstance(value, str) else None


def is_null(raw: Raw | bytes | None) -> bool:
    """Whether a field is absent or `null`."""
    return raw is None or bytes(raw).strip() == b"null"


def opened(raw: Raw | bytes | None) -> Any:
    """The plain value of a small part; None where there is none."""
    return None if raw is None else msgspec.json.decode(raw)


def packed(value: object) -> Raw:
    """A value as raw JSON again."""
    return Raw(msgspec.json.encode(value))


# Changes made of changes.


def inside(key: str, change: Change) -> Change:
    """The same change one level down, in the object under `key`."""

    def apply(fields: Fields) -> Fields | None:
        inner = fields_of(fields.get(key))
        changed = None if inner is None else change(inner)
        return None if changed is None else {**fields, key: packed(changed)}

    return apply


def each(key: str, change: Change) -> Change:
    """The same change in every object of the list under `key`."""

    def apply(fields: Fields) -> Fields | None:
        items = items_of(fields.get(key))
        if items is None:
            return None
        opened_items = [fields_of(item) for item in items]
        changed = [None if item is None else change(item) for item in opened_items]
        if all(new is None for new in changed):
            return None
        return {**fields, key: packed([old if new is None else new for old, new in zip(items, changed, strict=True)])}

    return apply


def in_turn(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def apply(fields: Fields) -> Fields | None:
        result = None
        for change in changes:
            changed = change(fields)
            if changed is not None:
                fields = result = changed
        return result

    return apply


def renamed(old: str, new: str) -> Change:
    """The field `old` under the name `new`, unless that is there already."""

    def apply(fields: Fields) -> Fields | None:
        if old not in fields or new in fields:
            return None
        return {new if key == old else key: value for key, value in fields.items()}

    return apply


def with_meta(fields: Fields, key: str, value: object) -> Fields:
    """The same fields with one more entry in their `_meta`, which is where things go that the schema has no place for."""
    meta = fields_of(fields.get("_meta")) or {}
    return {**fields, "_meta": packed({**meta, key: value})}


def named_values(raw: Raw | None) -> Raw | None:
    """`{"A": "1"}` as `[{"name": "A", "value": "1"}]`; None for anything but an object."""
    pairs = fields_of(raw)
    if pairs is None:
        return None
    values = {name: _as_text(value) for name, value in pairs.items()}
    return packed([{"name": name, "value": value} for name, value in values.items() if value is not None])


def _as_text(raw: Raw) -> str | None:
    """A string as it is, a number or a truth value as it is written; nothing else goes into a variable."""
    value = opened(raw)
    if isinstance(value, str):
        return value
    return bytes(raw).strip().decode() if isinstance(value, (bool, int, float)) else None
