"""Valid messages and wrong values, made from the facts of the schema: what a field may hold and how forgiving it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from antiphon.protocol.base import Choice, Model
from tests.protocol import names
from tests.protocol.parity import (
    Comparison,
    Facts,
    default_of,
    is_kind,
    members_of,
    split,
    tag_of,
    wire_names,
    words_of,
)

FACTS = Path(__file__).parents[2] / "src" / "antiphon" / "traffic" / "facts.json"
DEFINITIONS: Facts = json.loads(FACTS.read_text(encoding="utf-8"))["definitions"]

VALUES: dict[str, Any] = {
    "null": None, "bool": True, "int": 7, "negative": -7, "float": 1.5, "string": "x", "list": [], "object": {},
}  # fmt: skip
"""One value of every JSON type."""

FITS: dict[str, frozenset[str]] = {
    "string": frozenset({"string"}),
    "bool": frozenset({"bool"}),
    "int": frozenset({"int", "negative"}),
    "uint": frozenset({"int"}),
    "float": frozenset({"int", "negative", "float"}),
    "null": frozenset({"null"}),
    "any": frozenset(VALUES),
}


class Case(NamedTuple):
    """A field of one of our types, and what the schema says about it."""

    kind: Any
    wire: str
    spec: Facts

    @property
    def name(self) -> str:
        """The field as Python spells it."""
        return str(wire_names(self.kind)[self.wire].name)

    @property
    def default(self) -> Any:
        """What stands in for a wrong value; the only required fields that have something are lists."""
        field = wire_names(self.kind)[self.wire]
        return [] if field.required else default_of(field)

    @property
    def wrong(self) -> dict[str, Any]:
        """Values that do not fit, by what is wrong with them."""
        merged = self.spec.get("merged") and not self.spec.get("required")  # only some variants have the field
        return wrong_values(self.spec["type"] + ("|null" if merged else ""))

    def __str__(self) -> str:
        return f"{self.kind.__name__}.{self.wire}"


def _fields_by_type() -> dict[Any, Facts]:
    """Every struct that stands for a definition, or for one variant of a union → its fields."""
    comparison = Comparison(DEFINITIONS)
    found: dict[Any, Facts] = {}
    for name, spec in DEFINITIONS.items():
        ours = names.TYPES[name]
        if is_kind(ours, Model):
            found.setdefault(ours, comparison.effective(name))
        elif is_union(name):
            for variant in spec["variants"]:
                tag, ref = variant.get("tag"), variant.get("ref")
                members = [one for one in members_of(ours) if tag_of(one) == tag and (tag or one is names.TYPES[ref])]
                inherited = comparison.effective(ref) if ref else {}
                found.setdefault(members[0], {**spec["fields"], **inherited, **variant.get("fields", {})})
    return found


def is_union(name: str) -> bool:
    ours = names.TYPES[name]
    fixed = isinstance(ours, names.Reason | names.Merged) or get_origin(ours) is list
    return "variants" in DEFINITIONS[name] and not fixed and not is_kind(ours, Model)


FIELDS = _fields_by_type()
CASES = [Case(kind, wire, spec) for kind, fields in FIELDS.items() for wire, spec in fields.items()]


# Messages that are right.


def message(kind: Any, seed: int = 1) -> dict[str, Any]:
    """A valid message of a type, with every field that the schema has; another seed, another message."""
    return {**(tag_of(kind) or {}), **{wire: sample(spec["type"], seed) for wire, spec in FIELDS[kind].items()}}


def sample(expression: str, seed: int = 1) -> Any:
    """A valid value for a type expression of the facts."""
    part = next(part for part in split(expression) if part != "null")
    if part[0] == "#":
        return _sample_of(part[1:], seed)
    if part[0] in "[{":
        inner = sample(part[1:-1], seed)
        return [inner] if part[0] == "[" else {"key": inner}
    if part[0] == "'":
        return part.strip("'")
    values = {"string": f"text {seed}", "bool": True, "int": -seed, "uint": seed, "float": seed + 0.5, "any": [seed]}
    return values[part]


def _sample_of(name: str, seed: int) -> Any:
    ours, spec = names.TYPES[name], DEFINITIONS[name]
    if "words" in spec:
        words = words_of(ours)
        return words[seed % len(words)]
    if "type" in spec:
        return seed if ours is int else sample(spec["type"], seed)
    if get_origin(ours) is list:
        return [message(get_args(ours)[0].members()[-1], seed)]
    return message(members_of(ours)[0] if is_union(name) else ours, seed)


# Values that are wrong.


def wrong_values(expression: str) -> dict[str, Any]:
    """A value of every JSON type that does not fit, and what only looks as if it did."""
    parts = split(expression)
    fitting = frozenset[str]().union(*map(_fitting, parts))
    wrong = {sort: value for sort, value in VALUES.items() if sort not in fitting}
    for part in parts:
        wrong |= _almost(part)
    return wrong


def _fitting(part: str) -> frozenset[str]:
    if part in FITS:
        return FITS[part]
    if part[0] in "[{":
        return frozenset({"list" if part[0] == "[" else "object"})
    spec: Facts = DEFINITIONS[part[1:]] if part[0] == "#" else {"words": [part]}
    if "words" in spec:
        return frozenset({"string"})
    if "type" in spec:
        return frozenset[str]().union(*map(_fitting, split(spec["type"])), FITS["int"] if "'" in spec["type"] else ())
    return frozenset({"list" if get_origin(names.TYPES[part[1:]]) is list else "object"})


def _almost(part: str) -> dict[str, Any]:
    """Of the right JSON type, but wrong inside."""
    if part[0] in "[{":
        bad = wrong_values(part[1:-1])
        items = {f"{part[0]}{sort}": value for sort, value in bad.items()}
        return {sort: [value] if part[0] == "[" else {"key": value} for sort, value in items.items()}
    needs = part[0] == "#" and any(field.get("required") for field in _own_fields(part[1:]).values())
    return {"object without its fields": {}} if needs else {}


def _own_fields(name: str) -> Facts:
    kind = names.TYPES[name]
    return FIELDS[kind] if is_kind(kind, Model) else {}


# Unions.


def open_unions() -> Iterator[str]:
    """The unions in which an unknown member can be sent: every member has a tag, and no member takes what has none."""
    for name in filter(is_union, DEFINITIONS):
        ours = names.TYPES[name]
        if ours.tag is not None and ours.otherwise is None if is_kind(ours, Choice) else len(members_of(ours)) > 1:
            yield name


def tag_field(name: str) -> str:
    """The field that distinguishes the members of a union."""
    ours = names.TYPES[name]
    return str(ours.tag if is_kind(ours, Choice) else members_of(ours)[0].__struct_config__.tag_field)


def packed(fields: object) -> bytes:
    return msgspec.json.encode(fields)
