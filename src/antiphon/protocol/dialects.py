"""Rules that turn a dialect of ACP into the schema's words: what a rule is, what rules are made of, how a table of them is applied.

A rule looks at the top-level fields of one half of a method and returns them in the schema's words, or None if it sees
nothing of its dialect. Fields stay raw bytes until a rule needs to open one, so what it does not touch survives as it
came. Rules see whatever a peer cares to send: they test for the type of a value before they use it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from antiphon.protocol.base import BAD_INPUT, Json
from antiphon.protocol.methods import Half, Reply

__all__ = [
    "Answer",
    "Change",
    "DialectRule",
    "Fields",
    "Raw",
    "RuleTable",
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

T = TypeVar("T")
Fields = dict[str, Raw]
Change = Callable[[Fields], Fields | None]
"""The fields in other words, or None where there is nothing to change."""
Answer = Callable[[Fields, bytes], bytes]
"""The question as it was asked, our answer to it → the answer in the asker's words."""


class DialectRule(NamedTuple):
    """One rule of a dialect: a row of the table."""

    name: str
    source: str
    """The peers that use this form."""
    method: str
    half: Half
    apply: Change
    hints: tuple[bytes, ...] = ()
    """Byte strings that betray the dialect in messages which are legal to the strict decoder (see `Dialects.hints`)."""
    answer: Answer | None = None
    """How to answer a question that this rule understood, if the dialect wants other words."""
    null: bytes | None = None
    """What `null` stands for where an object should be."""


_fields = msgspec.json.Decoder(Fields)
_items = msgspec.json.Decoder(list[Raw])

# Many rules look into the same part, and it may be a picture of many megabytes: it is opened once per message. The part
# itself is kept beside what it holds, so its id belongs to no other object meanwhile.
_opened_parts: dict[int, tuple[Raw | bytes, Json]] = {}


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


def opened(raw: Raw | bytes | None) -> Json:
    """The plain value of a small part; None if it is absent."""
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


class RuleTable:
    """The rules of one version of the protocol. The order counts within a method."""

    def __init__(self, rules: "tuple[DialectRule, ...]") -> None:
        self._places: dict[tuple[str, Half], tuple[DialectRule, ...]] = {}
        for rule in rules:
            place = rule.method, rule.half
            self._places[place] = (*self._places.get(place, ()), rule)

    def repair(self, method: str, half: Half, raw: bytes) -> tuple[bytes, tuple[str, ...], Reply | None]:
        """Return the message in the schema's words, the names of the rules used, and how to respond in the dialect.

        Never raises: what no rule understands comes back as it was.
        """
        rules = self._places.get((method, half), ())
        try:
            question = _opened(raw.strip())
            if question is None:
                return _instead_of_null(rules, raw)
            fields, used = _applied(rules, question)
        finally:
            forget_parts()
        if not used:
            return raw, (), None
        answers = tuple(rule.answer for rule in used if rule.answer is not None)
        reply = partial(_reply, answers, question) if answers else None
        return msgspec.json.encode(fields), tuple(rule.name for rule in used), reply


def _instead_of_null(rules: tuple[DialectRule, ...], raw: bytes) -> tuple[bytes, tuple[str, ...], None]:
    for rule in rules:
        if rule.null is not None and is_null(raw.strip()):
            return rule.null, (rule.name,), None
    return raw, (), None


def _opened(raw: bytes) -> Fields | None:
    try:
        return fields_of(raw)
    except BAD_INPUT:
        return None


def _applied(rules: tuple[DialectRule, ...], fields: Fields) -> tuple[Fields, list[DialectRule]]:
    used: list[DialectRule] = []
    for rule in rules:
        try:
            changed = rule.apply(fields)
        except BAD_INPUT:  # a part that cannot be opened belongs to no dialect
            continue
        if changed is not None:
            fields = changed
            used.append(rule)
    return fields, used


def _reply(answers: tuple[Answer, ...], question: Fields, answer: bytes) -> bytes:
    try:
        for say in answers:
            answer = say(question, answer)
    finally:
        forget_parts()
    return answer
