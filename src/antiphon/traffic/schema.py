"""Whether a value is what the official schema says, told from the schema's facts and from nothing else.

`look` walks a value once and finds three things: faults (the schema forbids it), drafts (only the draft of the schema knows it) and
strangers (fields that no schema knows; the schema lets them pass, the specification wants them in `_meta`).
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

__all__ = ["Fault", "Look", "Method", "definitions", "look", "methods"]

Facts = dict[str, Any]


class Fault(NamedTuple):
    """Something wrong at a place in a value: `params.update.content`, and a sentence about it."""

    path: str
    text: str


class Method(NamedTuple):
    """A method of the protocol. `side` is who answers it: agent, client, or protocol for both."""

    name: str
    side: str
    params: str
    result: str | None
    draft: bool


@dataclass(slots=True)
class Look:
    """What one walk over a value found."""

    faults: list[Fault] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def add(self, other: "Look") -> None:
        self.faults += other.faults
        self.drafts += other.drafts
        self.strangers += other.strangers


@cache
def _facts() -> Facts:
    from importlib.resources import files

    found: Facts = msgspec.json.decode((files("antiphon.traffic") / "facts.json").read_bytes())
    return found


def definitions() -> Facts:
    """The definitions of the schema by name."""
    found: Facts = _facts()["definitions"]
    return found


@cache
def methods() -> dict[tuple[str, bool], Method]:
    """By name and by whether it is a request: one name may be both."""
    return {
        (one["name"], "result" in one): Method(
            one["name"], one["side"], one["params"], one.get("result"), one.get("unstable", False)
        )
        for one in _facts()["methods"]
    }


def look(definition: str, value: object, path: str = "") -> Look:
    """Hold a value against a definition of the schema. `path` is where the value stands, for what is found in it."""
    facts = definitions()[definition]
    if "same_as" in facts:
        return look(facts["same_as"], value, path)
    if "words" in facts:
        return _look_at_word(facts, value, path)
    if "fields" in facts:
        return _look_at_object(facts, value, path)
    return _look_at_type(facts["type"], value, path)


def _look_at_word(facts: Facts, value: object, path: str) -> Look:
    if not isinstance(value, str):
        return _wrong(path, f"is {_shown(value)}, not one of {_listed(facts['words'])}")
    if value in facts["words"] or facts.get("open"):
        return Look()
    return _wrong(path, f"is {_shown(value)}, which is none of {_listed(facts['words'])}")


def _look_at_object(facts: Facts, value: object, path: str) -> Look:
    if not isinstance(value, dict):
        return _wrong(path, f"is {_shown(value)}, not an object")
    found = _look_at_fields(facts["fields"], value, path)
    known = set(facts["fields"])
    if "variants" in facts:
        seen, more = _look_at_variants(facts, value, path)
        found.add(seen)
        known |= more
    found.strangers += [_at(path, name) for name in value if name not in known]
    return found


def _look_at_fields(fields: Facts, value: Facts, path: str) -> Look:
    found = Look()
    for name, spec in fields.items():
        if name not in value:
            if spec.get("required"):
                found.faults.append(Fault(_at(path, name), "is missing"))
            continue
        if spec.get("unstable"):
            found.drafts.append(_at(path, name))
        if name != "_meta":
            found.add(_look_at_type(spec["type"], value[name], _at(path, name)))
        elif not isinstance(value[name], dict | None):
            found.faults.append(Fault(_at(path, name), f"is {_shown(value[name])}, not an object"))
    return found


def _look_at_variants(facts: Facts, value: Facts, path: str) -> tuple[Look, set[str]]:
    """As the first variant that the value fits; else what is wrong with it as the one it means to be."""
    closest: tuple[int, Look, set[str]] | None = None
    for variant in facts["variants"]:
        seen, known = _look_at_variant(variant, value, path)
        tagged = all(value.get(name) == word for name, word in variant.get("tag", {}).items())
        if not seen.faults and tagged:
            return seen, known
        # A variant whose tag it bears is what it means to be; then come those without a tag, then the ones that miss least.
        distance = len(seen.faults) + (0 if tagged and "tag" in variant else 100 if tagged else 10_000)
        if closest is None or distance < closest[0]:
            closest = distance, seen, known
    if closest is None or closest[0] >= 10_000:
        return _unknown_variant(facts, value, path)
    return closest[1], closest[2]


def _look_at_variant(variant: Facts, value: Facts, path: str) -> tuple[Look, set[str]]:
    own = variant.get("fields", {})
    known = set(own) | set(variant.get("tag", {}))
    seen = _look_at_fields(own, value, path)
    if "ref" in variant:
        inner = look(variant["ref"], value, path)
        known |= set(value) - {name.rsplit(".", 1)[-1] for name in inner.strangers if name.rpartition(".")[0] == path}
        inner.strangers = [name for name in inner.strangers if name.rpartition(".")[0] != path]
        seen.add(inner)
    if variant.get("unstable"):
        tag = next(iter(variant.get("tag", {}).items()), None)
        seen.drafts.append(f"{_at(path, tag[0])}={tag[1]}" if tag else path)
    return seen, known


def _unknown_variant(facts: Facts, value: Facts, path: str) -> tuple[Look, set[str]]:
    tags: dict[str, list[str]] = {}
    for variant in facts["variants"]:
        for name, word in variant.get("tag", {}).items():
            tags.setdefault(name, []).append(word)
    if facts.get("open"):
        return Look(), set(value)
    name, words = next(iter(tags.items()), ("", []))
    if name not in value:
        return Look([Fault(_at(path, name), "is missing")]), set(value)
    return _wrong(_at(path, name), f"is {_shown(value[name])}, which is none of {_listed(words)}"), set(value)


def _look_at_type(expression: str, value: object, path: str) -> Look:
    """A value against a type expression: any of its members will do."""
    closest: Look | None = None
    members = _members(expression)
    for member in members:
        seen = _look_at_member(member, value, path)
        if not seen.faults:
            return seen
        if member != "null" and (closest is None or len(seen.faults) < len(closest.faults)):
            closest = seen
    if closest is None or (len([one for one in members if one != "null"]) > 1 and closest.faults[0].path == path):
        return _wrong(path, f"is {_shown(value)}, not {_listed(list(members), quoted=False)}")
    return closest


SCALARS: Final = {"string": "a string", "bool": "true or false", "int": "an integer", "uint": "an integer of 0 or more",
                  "float": "a number", "null": "null"}  # fmt: skip


def _look_at_member(member: str, value: object, path: str) -> Look:
    if member == "any":
        return Look()
    if member in SCALARS:
        return Look() if _is_scalar(member, value) else _wrong(path, f"is {_shown(value)}, not {SCALARS[member]}")
    if member.startswith("#"):
        return look(member[1:], value, path)
    if member.startswith("'"):
        return Look() if value == member[1:-1] else _wrong(path, f"is {_shown(value)}, not {member}")
    kind, name = (list, "a list") if member.startswith("[") else (dict, "an object")
    if not isinstance(value, kind):
        return _wrong(path, f"is {_shown(value)}, not {name}")
    found = Look()
    for key, one in enumerate(value) if isinstance(value, list) else value.items():
        found.add(_look_at_type(member[1:-1], one, f"{path}[{key}]" if isinstance(value, list) else _at(path, key)))
    return found


def _is_scalar(name: str, value: object) -> bool:
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return name == "bool"
    if name == "string":
        return isinstance(value, str)
    if name == "float":
        return isinstance(value, int | float)
    whole = isinstance(value, int) or (
        isinstance(value, float) and value.is_integer()
    )  # 1.0 is an integer in JSON Schema
    return whole and (name == "int" or (name == "uint" and value >= 0))  # type: ignore[operator]  # a number, by `whole`


@cache
def _members(expression: str) -> tuple[str, ...]:
    """`[a|b]|null` → `[a|b]`, `null`."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(expression):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and not depth:
            found.append(expression[start:at])
            start = at + 1
    return (*found, expression[start:])


def _wrong(path: str, text: str) -> Look:
    return Look([Fault(path, text)])


def _at(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _shown(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            text = msgspec.json.encode(value).decode()
            return text if len(text) <= 60 else f"{text[:57]}…"


def _listed(words: list[str], *, quoted: bool = True) -> str:
    shown = [f'"{word}"' if quoted else SCALARS.get(word, word) for word in words]
    if len(shown) > 12:
        shown = [*shown[:10], f"{len(shown) - 10} more"]
    return ", ".join(shown[:-1]) + (" or " if len(shown) > 1 else "") + shown[-1] if shown else "nothing"
