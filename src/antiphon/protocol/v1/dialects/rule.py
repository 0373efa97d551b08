"""What a dialect rule is, and the few tools that rules are made of.

A rule looks at the top-level fields of one half of a method and returns them in the schema's words, or None if it sees
nothing of its dialect. Fields stay raw bytes until a rule needs to open one, so what it does not touch survives as it
came. Rules see whatever a peer cares to send: they test for the type of a value before they use it.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from antiphon.protocol.v1.dialects.hints import Half

__all__ = [
    "BANJO_NOTES",
    "BANJO_WIRE",
    "BRIDGE",
    "GO_CLIENT",
    "OPENCODE",
    "PROTOCOL_PAGES",
    "Answer",
    "Change",
    "Fields",
    "Raw",
    "Rule",
    "each",
    "fields_of",
    "forget_parts",
    "in_turn",
    "inside",
    "is_null",
    "items_of",
    "named_values",
    "opened",
    "packed",
    "renamed",
    "text_of",
    "with_meta",
]

# The documents that the rules come from. Real peers are named in the rules themselves, with their versions.

BANJO_NOTES: Final = "Banjo ACP notes"
BANJO_WIRE: Final = "Banjo wire formats"
OPENCODE: Final = "OpenCode-derived ACP spec"
GO_CLIENT: Final = "Go client reference"
BRIDGE: Final = "bridge reference"
PROTOCOL_PAGES: Final = "examples on the protocol's own pages"


T = TypeVar("T")
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

# Many rules look into the same part, and it may be a picture of many megabytes: it is opened once per message. The part
# itself is kept beside what it holds, so its id belongs to nobody else meanwhile.
_opened_parts: dict[int, tuple[Raw | bytes, Any]] = {}


def forget_parts() -> None:
    """The message is done with."""
    _opened_parts.clear()


def fields_of(raw: Raw | bytes | None) -> Fields | None:
    """The fields of an object, which are not to be changed in place; None for anything else."""
    return None if raw is None or _first(raw) != b"{" else _open_once(raw, _fields)


def items_of(raw: Raw | bytes | None) -> list[Raw] | None:
    """The items of a list, which is not to be changed in place; None for anything else."""
    return None if raw is None or _first(raw) != b"[" else _open_once(raw, _items)


def _open_once(raw: Raw | bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    known = _opened_parts.get(id(raw))
    if known is None or known[0] is not raw:
        known = _opened_parts[id(raw)] = (raw, decoder.decode(raw))
    value: T = known[1]
    return value


def _first(raw: Raw | bytes) -> bytes:
    """The first byte. A part of a message has no space around it, and may be too big to copy for a look."""
    return bytes(memoryview(raw)[:1])


def text_of(raw: Raw | bytes | None) -> str | None:
    """A string; None for anything else."""
    value = None if raw is None or _first(raw) != b'"' else opened(raw)
    return value if isinstance(value, str) else None


def is_null(raw: Raw | bytes | None) -> bool:
    """Whether a field is absent or `null`."""
    return raw is None or bytes(raw) == b"null"


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
    """The same fields with one more entry in their `_meta`, the place for what the schema has no place for."""
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
