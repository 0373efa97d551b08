"""Whether a value matches the official schema, decided by the schema's facts and by nothing else.

`look` walks a value once and finds four things: faults (the schema forbids it), drafts (only the draft of the schema knows it),
unknown fields (the schema lets them pass, the specification wants them in `_meta`) and invented words (the schema lets them pass, and
those of one's own begin with an underscore). The facts of each version of the protocol are in a file of their own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final, NamedTuple, TypeVar

import msgspec

from antiphon.traffic.entries import JsonObject, shown

__all__ = ["FACTS", "Checks", "Fault", "Look", "SchemaMethod", "definitions", "look", "methods"]

FACTS: Final = {1: "facts.json", 2: "facts_v2.json"}
"""The versions of the protocol whose schema is known, and the file with the facts of each."""

# --- the definitions of the schema as functions, made once from the facts and called for every message
# A recording holds hundreds of thousands of messages, so nothing is looked up twice: each definition becomes one function, and a
# definition with variants becomes one shape for each way of being it, with all the fields of that way in one table.

Facts = JsonObject


class Fault(NamedTuple):
    """Something wrong at a place in a value: `params.update.content`, and a sentence about it."""

    path: str
    text: str


@dataclass(slots=True)
class Look:
    """What one walk over a value found."""

    faults: list[Fault] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    unknown_fields: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    """Words that the schema does not know, in places that are open for more, and that are not marked as a peer's own."""

    def add(self, other: "Look") -> None:
        self.faults += other.faults
        self.drafts += other.drafts
        self.unknown_fields += other.unknown_fields
        self.invented += other.invented

    def wrong(self, path: str, text: str) -> None:
        self.faults.append(Fault(path, text))


Check = Callable[[object, str, Look], None]
V = TypeVar("V")


class _Field(NamedTuple):
    """A field of a shape; `checks` are more than one where two parts of a definition both have a rule for it."""

    checks: tuple[Check, ...]
    draft: bool


@dataclass(slots=True)
class _Shape:
    """One form in which an object can match a definition."""

    tags: dict[str, str] = field(default_factory=dict)
    fields: dict[str, _Field] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    excluded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tags that this shape must not have: it stands for tags that the schema does not know."""

    def means(self, value: Facts) -> bool:
        """Whether an object claims to be of this shape."""
        return all(value.get(name) == word for name, word in self.tags.items()) and not any(
            value.get(name) in words for name, words in self.excluded.items()
        )

    def joined(self, more: "_Shape") -> "_Shape":
        fields = dict(self.fields)
        for name, one in more.fields.items():
            mine = fields.get(name)
            fields[name] = one if mine is None else _Field((*mine.checks, *one.checks), mine.draft or one.draft)
        required = tuple(dict.fromkeys((*self.required, *more.required)))
        tags, drafts = self.tags | more.tags, (*self.drafts, *more.drafts)
        return _Shape(tags, fields, required, drafts, self.excluded | more.excluded)

    def look(self, value: Facts, path: str, found: Look) -> None:
        is_own = False  # a peer with a word of its own decides what else belongs to it
        for name in self.excluded:
            _note_invented(value.get(name), _at(path, name), found)
            is_own = is_own or isinstance(value.get(name), str)
        for name in self.required:
            if name not in value:
                found.faults.append(Fault(_at(path, name), "is missing"))
        fields = self.fields
        for name, one in value.items():
            if name not in fields:
                if name not in self.tags and not is_own:
                    found.unknown_fields.append(_at(path, name))
                continue
            checks, draft = fields[name]
            where = f"{path}.{name}" if path else name
            if draft:
                found.drafts.append(where)
            for check in checks:
                check(one, where, found)
        if self.drafts:
            found.drafts += [_at(path, draft) for draft in self.drafts]


class Checks:
    """The functions of a schema, each made when it is first asked for."""

    def __init__(self, definitions: Facts) -> None:
        self._definitions = definitions
        self._made: dict[str, Check] = {}
        self._expressions: dict[str, Check] = {}

    def of(self, name: str) -> Check:
        """The function for a definition."""
        if name not in self._made:
            self._made[name] = self._definition(self._definitions[name])
        return self._made[name]

    def _definition(self, facts: Facts) -> Check:
        if "same_as" in facts:
            return self.of(facts["same_as"])
        if "words" in facts:
            return partial(_look_at_word, tuple(facts["words"]), bool(facts.get("open")))
        if {} in facts.get("variants", ()):  # one of the ways of being it is anything
            return _look_at_anything
        if "fields" in facts:
            return _object(self._shapes(facts))
        return _limited(self._type(facts["type"]), facts)

    def _shapes(self, facts: Facts) -> list[_Shape]:
        """All shapes of a definition; variants of variants are shapes of their own."""
        base = self._fields(facts)
        ways = [way for variant in facts.get("variants", ()) for way in self._variant(variant)]
        if "other" in facts:
            words: dict[str, tuple[str, ...]] = {}
            for name, word in (pair for variant in facts["variants"] for pair in variant.get("tag", {}).items()):
                words[name] = (*words.get(name, ()), word)
            ways += [_Shape(excluded=words).joined(way) for way in self._variant(facts["other"])]
        return [base.joined(way) for way in ways] if ways else [base]

    def _variant(self, variant: Facts) -> list[_Shape]:
        tags = variant.get("tag", {})
        drafts = tuple(f"{name}={word}" for name, word in tags.items()) if variant.get("unstable") else ()
        own = self._shapes({"fields": {}, **variant})
        inner = self._shapes(self._definitions[variant["ref"]]) if "ref" in variant else [_Shape()]
        return [_Shape(tags, drafts=drafts).joined(one).joined(way) for one in own for way in inner]

    def _fields(self, facts: Facts) -> _Shape:
        fields = {
            name: _Field((_limited(self._type(spec["type"]), spec),), bool(spec.get("unstable")))
            for name, spec in facts["fields"].items()
        }
        return _Shape(
            fields=fields, required=tuple(name for name, spec in facts["fields"].items() if spec.get("required"))
        )

    def _type(self, expression: str) -> Check:
        """The function for a type expression: any of its members will do."""
        if expression not in self._expressions:
            members = _members(expression)
            if "any" in members:
                members = ("any",)
            rest = [member for member in members if member != "null"]
            checks = [self._member(member) for member in rest or ["null"]]
            check = checks[0] if len(checks) == 1 else partial(_look_at_union, checks, members)
            self._expressions[expression] = (
                partial(_look_unless_null, check) if rest and len(rest) < len(members) else check
            )
        return self._expressions[expression]

    def _member(self, member: str) -> Check:
        if member == "any":
            return _look_at_anything
        if member in SCALARS:
            return partial(_look_at_scalar, _SCALAR_TESTS[member], SCALARS[member])
        if member.startswith("#"):
            return self.of(member[1:])
        if member.startswith("'"):
            return partial(_look_at_word, (member[1:-1],), False)
        inside = self._type(member[1:-1])
        return partial(_look_at_list if member.startswith("[") else _look_at_map, inside)


# Objects.


def _object(shapes: list[_Shape]) -> Check:
    if len(shapes) == 1 and not shapes[0].tags:
        return partial(_look_at_plain_object, shapes[0].look)
    tag = next((name for shape in shapes for name in shape.tags), "")
    by_word: dict[str, list[_Shape]] = {}
    for shape in shapes:
        if tag in shape.tags:
            by_word.setdefault(shape.tags[tag], []).append(shape)
    return partial(_look_at_variants, tag, by_word, [shape for shape in shapes if tag not in shape.tags])


def _look_at_plain_object(check: Callable[[Facts, str, Look], None], value: object, path: str, found: Look) -> None:
    if isinstance(value, dict):
        check(value, path, found)
    else:
        found.wrong(path, f"is {shown(value)}, not an object")


def _look_at_variants(
    tag: str, by_word: dict[str, list[_Shape]], rest: list[_Shape], value: object, path: str, found: Look
) -> None:
    """Check the value as the first shape that it fits; else report what is wrong with it as the shape it claims to be."""
    if not isinstance(value, dict):
        found.wrong(path, f"is {shown(value)}, not an object")
        return
    word = value.get(tag)
    only = by_word.get(word, ()) if not rest and isinstance(word, str) else ()
    if len(only) == 1 and len(only[0].tags) == 1:  # nearly always
        only[0].look(value, path, found)
        return
    meant = [shape for shape in by_word.get(word, ()) if shape.means(value)] if isinstance(word, str) else []
    others = [shape for shape in rest if shape.means(value)]
    if len(meant) + len(others) == 1:
        (meant or others)[0].look(value, path, found)
    elif meant or others:
        found.add(_closest([shape.look for shape in meant], [shape.look for shape in others], value, path))
    elif tag not in value:
        found.wrong(_at(path, tag), "is missing")
    else:
        found.wrong(_at(path, tag), f"is {shown(word)}, which is not one of {_listed(by_word)}")


def _closest(
    meant: "list[Callable[[V, str, Look], None]]", others: "list[Callable[[V, str, Look], None]]", value: V, path: str
) -> Look:
    """What the first check without a fault found. Without such a check, the one with the fewest faults, of those that were meant."""
    seen: list[Look] = []
    for check in (*meant, *others):
        found = Look()
        check(value, path, found)
        if not found.faults:
            return found
        seen.append(found)
    return min(seen[: len(meant)] or seen, key=lambda one: len(one.faults))


# Everything else.


def _look_at_anything(value: object, path: str, found: Look) -> None:
    """Whatever it is, it is allowed."""


def _look_unless_null(check: Check, value: object, path: str, found: Look) -> None:
    if value is not None:
        check(value, path, found)


def _look_at_word(words: tuple[str, ...], is_open: bool, value: object, path: str, found: Look) -> None:
    if not isinstance(value, str):
        found.wrong(path, f"is {shown(value)}, not one of {_listed(words)}")
    elif value not in words and not is_open:
        found.wrong(path, f"is {shown(value)}, which is not one of {_listed(words)}")
    elif value not in words:
        _note_invented(value, path, found)


def _note_invented(word: object, path: str, found: Look) -> None:
    if isinstance(word, str) and not word.startswith("_"):
        found.invented.append(f"{path}={word[:60]}")


def _look_at_scalar(test: Callable[[object], bool], name: str, value: object, path: str, found: Look) -> None:
    if not test(value):
        found.wrong(path, f"is {shown(value)}, not {name}")


def _look_at_list(inside: Check, value: object, path: str, found: Look) -> None:
    if isinstance(value, list):
        for at, one in enumerate(value):
            inside(one, f"{path}[{at}]", found)
    else:
        found.wrong(path, f"is {shown(value)}, not a list")


def _look_at_map(inside: Check, value: object, path: str, found: Look) -> None:
    if not isinstance(value, dict):
        found.wrong(path, f"is {shown(value)}, not an object")
    elif inside is not _look_at_anything:
        for name, one in value.items():
            inside(one, _at(path, name), found)


def _look_at_union(checks: list[Check], members: tuple[str, ...], value: object, path: str, found: Look) -> None:
    seen = _closest([], checks, value, path)
    if seen.faults and seen.faults[0].path == path:
        found.wrong(path, f"is {shown(value)}, not {_listed(dict.fromkeys(map(_named, members)))}")
    else:
        found.add(seen)


def _limited(check: Check, facts: Facts) -> Check:
    """The check, and the one limit that the schema sets beside the type."""
    least, most = facts.get("minLength"), facts.get("maximum")
    if least is None and most is None:
        return check

    def look(value: object, path: str, found: Look) -> None:
        if least is not None and isinstance(value, str) and len(value) < least:
            found.wrong(path, "is empty" if not value else f"is shorter than {least}")
        elif most is not None and isinstance(value, int | float) and value > most:
            found.wrong(path, f"is {shown(value)}, which is more than {most}")
        else:
            check(value, path, found)

    return look


def _is_whole(value: object) -> bool:
    """1.0 is an integer in JSON Schema, and true is not."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


SCALARS: Final = {"string": "a string", "bool": "true or false", "int": "an integer", "uint": "an integer of 0 or more",
                  "float": "a number", "null": "null"}  # fmt: skip
_SCALAR_TESTS: Final[dict[str, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": _is_whole,
    "uint": lambda value: _is_whole(value) and isinstance(value, int | float) and value >= 0,
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


def _named(member: str) -> str:
    """A member of a union in words."""
    return SCALARS.get(member) or {"[": "a list", "{": "an object", "#": f"a {member[1:]}"}.get(member[0], member)


def _members(expression: str) -> tuple[str, ...]:
    """`[a|b]|null` → `[a|b]`, `null`."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(expression):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and not depth:
            found.append(expression[start:at])
            start = at + 1
    return (*found, expression[start:])


def _at(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _listed(words: Iterable[str]) -> str:
    quoted = [word if " " in word or word in SCALARS.values() else f'"{word}"' for word in words]
    if len(quoted) > 10:
        quoted = [*quoted[:6], f"{len(quoted) - 6} more"]
    return ", ".join(quoted[:-1]) + (" or " if len(quoted) > 1 else "") + quoted[-1] if quoted else "nothing"


class SchemaMethod(NamedTuple):
    """A method of the protocol. `side` is the side that answers it: agent, client, or protocol for both."""

    name: str
    side: str
    params: str
    result: str | None
    draft: bool


@cache
def _facts(version: int) -> Facts:
    from importlib.resources import files

    found: Facts = msgspec.json.decode((files("antiphon.traffic") / FACTS[version]).read_bytes())
    return found


@cache
def _checks(version: int) -> Checks:
    return Checks(definitions(version))


def definitions(version: int = 1) -> Facts:
    """The definitions of the schema by name."""
    found: Facts = _facts(version)["definitions"]
    return found


@cache
def methods(version: int = 1) -> dict[tuple[str, bool], SchemaMethod]:
    """Methods by name and by whether they are requests: one name may be both."""
    return {
        (one["name"], "result" in one): SchemaMethod(
            one["name"], one["side"], one["params"], one.get("result"), one.get("unstable", False)
        )
        for one in _facts(version)["methods"]
    }


def look(definition: str, value: object, path: str = "", *, version: int = 1) -> Look:
    """Hold a value against a definition of the schema. `path` is where the value stands, for what is found in it."""
    found = Look()
    _checks(version).of(definition)(value, path, found)
    return found
