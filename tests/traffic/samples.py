"""Valid values of every definition, made from the facts of the schema, and many values that differ from one in a single place."""

from collections.abc import Iterator
from typing import Any

from antiphon.traffic.schema import definitions

Json = Any

STRANGE: tuple[Json, ...] = (
    None,
    True,
    -1,
    0,
    7,
    1.0,
    1.5,
    70_000,
    "",
    "no such word",
    [],
    [None],
    ["x"],
    {},
    {"x": 1},
)
"""What is put where something else should be."""


def samples(definition: str, whole: bool) -> list[Json]:
    """Valid values, one for each variant; whole ones have every field that there is, others only what they must have."""
    facts = definitions()[definition]
    if "same_as" in facts:
        return samples(facts["same_as"], whole)
    if "words" in facts:
        return list(facts["words"])
    return _objects(facts, whole) if "fields" in facts else [_of_type(facts["type"], whole)]


def _objects(facts: Json, whole: bool) -> list[Json]:
    fields = {
        name: _of_type(spec["type"], whole) for name, spec in facts["fields"].items() if spec.get("required") or whole
    }
    if "variants" not in facts:
        return [fields]
    return [{**fields, **variant} for one in facts["variants"] for variant in _variants(one, whole)]


def _variants(variant: Json, whole: bool) -> list[Json]:
    own = _objects({"fields": variant.get("fields", {})}, whole)[0]
    inner = samples(variant["ref"], whole) if "ref" in variant else [{}]
    return [{**one, **own, **variant.get("tag", {})} for one in inner]


def _of_type(expression: str, whole: bool) -> Json:
    first = expression.removesuffix("|null").partition("|")[0]
    if first[0] == "#":
        return samples(first[1:], whole)[0]
    if first[0] in "[{":
        inside = expression.removesuffix("|null").split("|[")[0][1:-1]
        found = samples(inside[1:], whole) if inside[0] == "#" else [_of_type(inside, whole)]
        return found if first[0] == "[" else {f"key{at}": one for at, one in enumerate(found)}
    if first[0] == "'":
        return first.strip("'")
    return {"string": "text", "bool": True, "int": -3, "uint": 3, "float": 1.5, "any": {"x": 1}, "null": None}[first]


def changed(value: Json) -> Iterator[Json]:
    """Every value that differs from a valid one in one place: a field is gone, something is another thing, a word is unknown."""
    yield from STRANGE
    if isinstance(value, dict):
        for name, one in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in changed(one))
    elif isinstance(value, list):
        for at, one in enumerate(value[:4]):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in changed(one))
