"""Holds our types against the facts of the schema and names every difference, one sentence each."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from antiphon.protocol.base import EXACT, ITEMS, LEGACY, OR_DEFAULT, SKIP, UNSTABLE, Choice, Model
from antiphon.protocol.methods import Call, Method
from antiphon.protocol.words import Word
from tests.protocol import names as names_v1

Facts = dict[str, Any]
Shape = frozenset[Any]

SCALARS: dict[Any, str] = {str: "string", int: "int", float: "float", bool: "bool", NoneType: "null", Any: "any"}
LENIENCY = {"": EXACT, "E": None, "ES": ITEMS, "S": SKIP, "N": OR_DEFAULT}
"""The schema's marks on an optional field → ours."""


def problems(facts: Facts, names: ModuleType = names_v1) -> list[str]:
    """Every difference between the schema and our types, in both directions."""
    definitions: Facts = facts["definitions"]
    found = [f"{name}: no type and no reason" for name in definitions if name not in names.TYPES]
    found += [f"{name}: not in the schema" for name in names.TYPES if name not in definitions]
    for name in definitions:
        if name in names.TYPES and not isinstance(names.TYPES[name], names_v1.Reason):
            found += Comparison(definitions, names).definition(name)
    found += [f"{kind.__name__}: stands for no definition" for kind in our_types(names) - reached(names)]
    return [*found, *method_problems(facts["methods"], names)]


class Comparison:
    """Compares definition by definition."""

    def __init__(self, definitions: Facts, names: ModuleType = names_v1) -> None:
        self.definitions = definitions
        self.names = names

    def definition(self, name: str) -> Iterator[str]:
        """The differences of one definition."""
        spec, ours = self.definitions[name], self.names.TYPES[name]
        unstable = bool(spec.get("unstable"))
        if isinstance(ours, names_v1.Merged):
            yield from self.merged(name, ours)
        elif is_kind(ours, Word) or get_origin(ours) is Literal:
            if sorted(words_of(ours)) != sorted(spec.get("words", ())):
                yield f"{name}: its words are {spec.get('words')}, ours {words_of(ours)}"
        elif is_kind(ours, Model):
            yield from self.fields(name, self.effective(name), ours, in_unstable=unstable)
            yield from self.listed_words(name, ours)
        elif "variants" in spec:
            yield from self.union(name, members_of(ours))
        elif self.shape(spec.get("type", "?")) != shape_of(ours):
            yield f"{name}: its type is {spec.get('type')}, ours {ours}"
        if isinstance(ours, type) and issubclass(ours, Model | Word) and is_unstable(ours) != unstable:
            yield f"{name}: {'unstable' if unstable else 'stable'} in the schema, and not here"

    def merged(self, name: str, ours: names_v1.Merged) -> Iterator[str]:
        """Fields that stand in a bigger type; the union that joins them is compared field by field elsewhere."""
        for kind in ours.types:
            for wire in self.effective(name).keys() - wire_names(kind).keys():
                yield f"{name}.{wire}: missing in {kind.__name__}"

    def union(self, name: str, ours: tuple[Any, ...]) -> Iterator[str]:
        """Member by member, found by tag or by definition."""
        spec, left = self.definitions[name], list(ours)
        for variant in spec["variants"]:
            tag, ref = variant.get("tag"), variant.get("ref")
            kind = next((one for one in left if tag_of(one) == tag and (tag or one is self.names.TYPES.get(ref))), None)
            if kind is None:
                yield f"{name}: no member for {tag or ref}"
                continue
            left.remove(kind)
            unstable = bool(spec.get("unstable") or variant.get("unstable"))
            fields = {**spec["fields"], **(self.effective(ref) if ref else {}), **variant.get("fields", {})}
            yield from self.fields(name, fields, kind, in_unstable=unstable)
            if is_unstable(kind) != unstable:
                yield f"{name}: {kind.__name__} has the wrong stability"
        yield from (f"{name}: {kind.__name__} is no member" for kind in left if kind not in self.names.LEGACY_TYPES)

    def effective(self, name: str) -> Facts:
        """The fields of a definition with those of its variants, which are optional unless every variant has them."""
        spec = self.definitions[name]
        if "same_as" in spec:
            return self.effective(spec["same_as"])
        parts = [self.variant_fields(variant) for variant in spec.get("variants", ())]
        fields: Facts = {}
        for wire in dict.fromkeys(wire for part in parts for wire in part):
            have = [part[wire] for part in parts if wire in part]
            required = len(have) == len(parts) and all(field.get("required") for field in have)
            types = "|".join(dict.fromkeys(field["type"] for field in have))
            fields[wire] = {**have[0], "type": types, "required": required, "merged": True}
        return {**fields, **spec.get("fields", {})}

    def variant_fields(self, variant: Facts) -> Facts:
        tags = {wire: {"type": f"'{word}'", "required": True} for wire, word in variant.get("tag", {}).items()}
        return {**tags, **(self.effective(variant["ref"]) if "ref" in variant else {}), **variant.get("fields", {})}

    def listed_words(self, name: str, kind: type) -> Iterator[str]:
        """Words that a definition lists as variants of one field."""
        for (owner, wire), ours in self.names.OURS.items():
            words = [one for one in get_args(ours) if is_kind(one, Word)]
            if owner is kind and words:
                listed = [v["tag"][wire] for v in self.definitions[name]["variants"] if wire in v.get("tag", {})]
                if sorted(listed) != sorted(words_of(words[0])):
                    yield f"{name}.{wire}: its words are {listed}, ours {words_of(words[0])}"

    def fields(self, name: str, expected: Facts, kind: type, *, in_unstable: bool) -> Iterator[str]:
        """The differences between the fields of a definition and those of a struct."""
        ours, legacy = wire_names(kind), legacy_fields(kind, self.names)
        extra = ours.keys() - expected.keys() - legacy
        if kind in self.names.WITHOUT_META:
            extra -= {"_meta"}
        yield from (f"{name}.{wire}: missing in {kind.__name__}" for wire in expected.keys() - ours.keys())
        yield from (f"{name}.{wire}: only in {kind.__name__}" for wire in extra)
        yield from (f"{name}.{wire}: listed as legacy, but in the schema" for wire in legacy & expected.keys())
        hints = hints_of(kind)
        for wire in expected.keys() & ours.keys():
            where, field, hint = f"{name}.{wire}", ours[wire], hints[ours[wire].name]
            yield from self.field(where, expected[wire], field, hint, (kind, wire))
            wants_mark = bool(expected[wire].get("unstable")) and not in_unstable
            if (UNSTABLE in marks_of(hint)) != wants_mark:
                yield f"{where}: has the wrong stability"

    def field(self, where: str, spec: Facts, field: Any, hint: Any, key: tuple[type, str]) -> Iterator[str]:
        """The differences of one field: requiredness, type, leniency, default."""
        required = bool(spec.get("required"))
        if required != field.required:
            yield f"{where}: {'required' if required else 'optional'} in the schema, and not here"
        expected = shape_of(self.names.OURS[key]) if key in self.names.OURS else self.shape(spec["type"])
        if spec.get("merged") and not required and "any" not in expected:
            expected |= {"null"}
        if expected != shape_of(hint):
            yield f"{where}: its type is {spec['type']}, ours {hint}"
        leniency = None if required and not spec.get("marks") else LENIENCY[spec.get("marks", "")]
        if marks_of(hint) & {EXACT, ITEMS, SKIP, OR_DEFAULT} != {leniency} - {None}:
            yield f"{where}: should be marked {leniency}, is {marks_of(hint)}"
        if not field.required and not required:
            default, allowed = default_of(field), allowed_defaults(spec, expected, hint, key, self.names)
            if not any(default is one or (type(default) is type(one) and default == one) for one in allowed):
                yield f"{where}: its default is one of {allowed}, ours {default!r}"

    def shape(self, expression: str) -> Shape:
        """What a type expression of the facts file stands for, in our types."""
        atoms: set[Any] = set()
        for part in split(expression):
            if part.startswith("#"):
                atoms |= shape_of(self.names.TYPES.get(part[1:], str))
            elif part[0] in "[{":
                atoms.add(("list" if part[0] == "[" else "map", self.shape(part[1:-1])))
            else:
                atoms.add("int" if re.fullmatch(r"'-?\d+'", part) else part)
        return joined(atoms)


def split(expression: str) -> list[str]:
    """The alternatives of a type expression, which may hold `|` inside brackets."""
    parts, depth = [""], 0
    for letter in expression:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@cache
def shape_of(hint: Any) -> Shape:
    """What one of our annotations stands for; `UNSET` and marks are left out."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, *marks = arguments
        unsigned = inner is int and any(isinstance(mark, msgspec.Meta) and mark.ge == 0 for mark in marks)
        return frozenset({"uint"}) if unsigned else shape_of(inner)
    if origin in (Union, UnionType):
        return joined(atom for one in arguments if one is not UnsetType for atom in shape_of(one))
    if origin is list:
        return frozenset({("list", shape_of(arguments[0]))})
    if origin is dict:
        return frozenset({("map", shape_of(arguments[1]))})
    if origin is Literal:
        return frozenset(f"'{word}'" for word in arguments)
    if is_kind(hint, Choice):
        return frozenset(hint.members())
    return frozenset({SCALARS.get(hint, hint)})


def joined(atoms: Any) -> Shape:
    """A list of A or a list of B is to us a list of both."""
    kept = set(atoms)
    lists = [atom for atom in kept if isinstance(atom, tuple) and atom[0] == "list"]
    if len(lists) > 1:
        kept -= set(lists)
        kept.add(("list", frozenset().union(*(items for _, items in lists))))
    return frozenset({"any"}) if "any" in kept else frozenset(kept)


def is_kind(value: Any, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def is_unstable(kind: type) -> bool:
    """Marked itself; a mark on a base does not count."""
    return bool(kind.__dict__.get("__unstable__"))


def words_of(ours: Any) -> list[str]:
    return [word.value for word in ours] if is_kind(ours, Word) else list(get_args(ours))


def members_of(ours: Any) -> tuple[Any, ...]:
    return tuple(ours.members()) if is_kind(ours, Choice) else get_args(ours)


def tag_of(kind: Any) -> dict[str, str] | None:
    tag_field, tag = kind.__struct_config__.tag_field, kind.__struct_config__.tag
    return {tag_field: tag} if tag_field else None


@cache
def hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def wire_names(kind: Any) -> dict[str, Any]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def marks_of(hint: Any) -> set[str]:
    """The marks on a field, also where they stand inside `… | None`."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return {mark for mark in marks if isinstance(mark, str)} | marks_of(inner)
    return set().union(*map(marks_of, get_args(hint))) if get_origin(hint) in (Union, UnionType) else set()


def legacy_fields(kind: type, names: ModuleType = names_v1) -> set[str]:
    """The legacy fields of a type and of its bases, as names.py lists them."""
    return {wire for base in kind.__mro__ for wire in names.LEGACY_FIELDS.get(base, ())}


def marked_legacy(kind: type) -> set[str]:
    """The fields of a type that carry the legacy mark."""
    return {wire for wire, field in wire_names(kind).items() if LEGACY in marks_of(hints_of(kind)[field.name])}


def default_of(field: Any) -> Any:
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default


def allowed_defaults(
    spec: Facts, shape: Shape, hint: Any, key: tuple[type, str], names: ModuleType = names_v1
) -> list[Any]:
    """What a field may hold when it is absent."""
    if "default" in spec:
        return [msgspec.convert(spec["default"], hint)]
    if key in names.DEFAULTS:
        return [names.DEFAULTS[key]]
    if "any" in shape:
        return [UNSET]
    if "null" in shape:
        return [UNSET] if key[0] in names.PATCHES and key[1] != "_meta" else [None, UNSET]
    return [[], {}]


@cache
def our_types(names: ModuleType = names_v1) -> frozenset[type]:
    """Every message part, list of words and untagged union that the package of a version defines."""
    package = names.PACKAGE
    found = pkgutil.iter_modules(package.__path__)
    modules = [importlib.import_module(f"{package.__name__}.{each.name}") for each in found]
    return frozenset(
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Model | Word | Choice) and kind.__module__.startswith(package.__name__)
    )


def reached(names: ModuleType) -> set[Any]:
    """The types of ours that stand for something."""
    found: set[Any] = {*names.BASES, *names.LEGACY_TYPES}
    for ours in [*names.TYPES.values(), *names.OURS.values()]:
        kinds = ours.types if isinstance(ours, names_v1.Merged) else (ours, *members_of(ours), *get_args(ours))
        found |= {kind for kind in kinds if isinstance(kind, type)}
    return found


def method_problems(listed: list[Facts], names: ModuleType) -> Iterator[str]:
    """The differences between the schema's methods and ours."""
    ours: dict[tuple[str, bool], Method[Any]] = {
        (each.name, isinstance(each, Call)): each for each in names.METHODS.ALL
    }
    for spec in listed:
        name, method = spec["name"], ours.pop((spec["name"], "result" in spec), None)
        if method is None:
            yield f"{name}: no such {'call' if 'result' in spec else 'notice'} here"
            continue
        side = names.SIDES.get(name) or names.SIDES.get(spec["side"])
        if method.side != side:
            yield f"{name}: handled by the {side}, not by {method.side}"
        if method.params != names.TYPES.get(spec["params"]):
            yield f"{name}: takes {spec['params']}, ours {method.params}"
        if isinstance(method, Call) and method.result != names.TYPES.get(spec["result"]):
            yield f"{name}: gives {spec['result']}, ours {method.result}"
        if method.stability != ("unstable" if spec.get("unstable") else "stable"):
            yield f"{name}: has the wrong stability"
    yield from (f"{name}: not in the schema" for name, _ in ours if name not in names.LEGACY_METHODS)
