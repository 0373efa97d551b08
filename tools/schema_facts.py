"""Write down what the official schema says, without its prose, so that tests can hold our types against it.

    python tools/schema_facts.py [folder]            # write the facts of both versions
    python tools/schema_facts.py --compare [folder]  # print what moved since ours were written; ends with 1 if anything did
    python tools/schema_facts.py --compare folder --against older  # that, and the sentences with MUST or SHOULD that have moved

A folder has `v1` and `v2`, each with `schema.json` and `schema.unstable.json`: `schema` of the npm package
`@agentclientprotocol/sdk`. Types are written as short expressions: `string`,
`int`, `uint`, `float`, `bool`, `null`, `any`, `'word'`, `[item]`, `{value}`, `#Definition`, joined by `|`.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path("node_modules/@agentclientprotocol/sdk/schema")
PLACES = (Path("tests/interop") / PACKAGE, PACKAGE)
TARGETS = {"v1": Path("src/antiphon/traffic/facts.json"), "v2": Path("src/antiphon/traffic/facts_v2.json")}
"""The versions, and the file with the facts of each."""

Json = dict[str, Any]
SCALARS = {"string": "string", "boolean": "bool", "number": "float", "null": "null"}
MARKS = {
    "x-deserialize-default-on-error": "E",
    "x-deserialize-skip-invalid-items": "S",
    "x-deserialize-default-on-null": "N",
}


def facts_in(folder: Path) -> Json:
    """The facts of both schemas in a folder: those of the unstable one, with a note on what the stable one lacks."""
    stable, unstable = (
        definitions(json.loads((folder / name).read_text(encoding="utf-8")))
        for name in ("schema.json", "schema.unstable.json")
    )
    if lost := stable.keys() - unstable.keys():
        raise ValueError(f"only in the stable schema: {sorted(lost)}")
    for name, facts in unstable.items():
        if name in stable:
            note_unstable_parts(name, facts, stable[name])
        else:
            facts["unstable"] = True
    return {"definitions": dict(sorted(unstable.items())), "methods": methods(unstable)}


def definitions(schema: Json) -> dict[str, Json]:
    """What each definition of a schema is: words, fields, variants or another name for a type."""
    return {name: definition(node) for name, node in schema["$defs"].items()}


def definition(node: Json) -> Json:
    """The facts of one definition."""
    facts: Json = {key: node[f"x-{key}"] for key in ("side", "method") if f"x-{key}" in node}
    members = node.get("oneOf") or node.get("anyOf") or []
    consts = [member["const"] for member in members if "const" in member]
    if consts and all(isinstance(const, str) for const in consts):
        facts["words"] = consts
        if len(consts) < len(members):
            facts["open"] = True
    elif node.get("type") == "object" or any(is_object(member) for member in members):
        facts["fields"] = fields(node)
        if members:
            facts["variants"] = [variant(member) for member in members if "not" not in member]
        if others := [member for member in members if "not" in member]:
            facts["open"] = True
            facts["other"] = {**variant(others[0]), **nested(others[0])}
    elif "allOf" in node and "type" not in node:
        facts["same_as"] = type_of(node)[1:]
    else:
        facts["type"] = type_of(node)
        facts |= limits(node)
    return facts


def limits(node: Json) -> Json:
    """The limits that go beyond a type; a minimum of 0 is the type `uint`."""
    return {key: node[key] for key in ("minLength", "maximum") if key in node}


def is_object(member: Json) -> bool:
    """Whether a member of a union is a JSON object; a reference is one, since named scalars are never members."""
    return "$ref" in member or "allOf" in member or member.get("type") == "object"


def variant(member: Json) -> Json:
    """One member of a union: the words that mark it, the definition it has, the fields it adds."""
    facts: Json = {}
    own = fields(member)
    tags = {name: field["type"][1:-1] for name, field in own.items() if field["type"].startswith("'")}
    rest = {name: field for name, field in own.items() if name not in tags}
    if tags:
        facts["tag"] = tags
    if "$ref" in member or "allOf" in member:
        facts["ref"] = type_of(member)[1:]
    if rest:
        facts["fields"] = rest
    return facts


def nested(member: Json) -> Json:
    """The variants that a member of a union has itself."""
    return {"variants": [variant(one) for one in member["anyOf"]]} if "anyOf" in member else {}


def fields(node: Json) -> dict[str, Json]:
    """The fields of an object: type, whether required, leniency marks, default."""
    return {name: field(spec, name in node.get("required", [])) for name, spec in node.get("properties", {}).items()}


def field(spec: Any, required: bool) -> Json:
    """The facts of one field."""
    facts: Json = {"type": type_of(spec)}
    if required:
        facts["required"] = True
    if isinstance(spec, dict):
        if marks := "".join(letter for key, letter in MARKS.items() if spec.get(key)):
            facts["marks"] = marks
        if "default" in spec:
            facts["default"] = spec["default"]
        facts |= limits(spec)
    return facts


def type_of(spec: Any) -> str:
    """A type as a short expression."""
    if not isinstance(spec, dict):
        return "any"
    if "$ref" in spec:
        return "#" + str(spec["$ref"]).rsplit("/", 1)[1]
    if "const" in spec:
        return f"'{spec['const']}'"
    if len(spec.get("allOf", ())) == 1:
        return type_of(spec["allOf"][0])
    if members := spec.get("anyOf") or spec.get("oneOf"):
        return "|".join(dict.fromkeys(type_of(member) for member in members))
    names = spec.get("type", [])
    return "|".join(plain_type(name, spec) for name in ([names] if isinstance(names, str) else names)) or "any"


def plain_type(name: str, spec: Json) -> str:
    """A type that is neither a union nor a reference."""
    if name == "integer":
        return "uint" if spec.get("minimum") == 0 or str(spec.get("format")).startswith("u") else "int"
    if name == "array":
        return f"[{type_of(spec.get('items'))}]"
    if name == "object":
        return f"{{{type_of(spec.get('additionalProperties'))}}}"
    return SCALARS[name]


def note_unstable_parts(name: str, facts: Json, stable: Json) -> None:
    """Mark the fields, variants and words that the stable schema lacks; anything else that differs is a surprise."""
    for wire, one in facts.get("fields", {}).items():
        other = stable["fields"].get(wire)
        if other is None:
            one["unstable"] = True
        elif {**one, "default": 0} != {**other, "default": 0} and not is_envelope(facts):
            raise ValueError(f"{name}.{wire} is not the same in both schemas")
    for one in facts.get("variants", []):
        if one not in stable["variants"]:
            one["unstable"] = True
    if stable.get("words") != facts.get("words"):
        raise ValueError(f"{name} has not the same words in both schemas")


def is_envelope(facts: Json) -> bool:
    """Whether a definition is a whole JSON-RPC message: its params list all methods, so they differ."""
    return {"method", "params"} <= facts["fields"].keys() and "side" not in facts


def methods(all_facts: dict[str, Json]) -> list[Json]:
    """Each method once: who answers it, what it takes, what it gives (notifications give nothing)."""
    found: list[Json] = []
    for name, facts in all_facts.items():
        if "method" not in facts or name.endswith("Response"):
            continue
        entry: Json = {"name": facts["method"], "params": name, "side": facts["side"]}
        if name.endswith("Request"):
            entry["result"] = name.removesuffix("Request") + "Response"
        if facts.get("unstable"):
            entry["unstable"] = True
        found.append(entry)
    return sorted(found, key=lambda entry: (entry["name"], entry["params"]))


def as_text(facts: Json) -> str:
    """One definition or method a line: compact, and a diff shows what moved."""
    lines = [f" {json.dumps(name)}: {one_line(value)}" for name, value in facts["definitions"].items()]
    calls = [f" {one_line(value)}" for value in facts["methods"]]
    return '{"definitions": {\n' + ",\n".join(lines) + '\n},\n"methods": [\n' + ",\n".join(calls) + "\n]}\n"


def one_line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# --- what moved between two schemas, in words

MARK_WORDS = {
    "E": "a value that cannot be read is dropped",
    "S": "items that cannot be read are skipped",
    "N": "null counts as missing",
}
"""What the marks of a field mean, in words."""

OBLIGES = re.compile(r"\b(?:MUST|SHOULD|MAY|REQUIRED|RECOMMENDED)\b")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\n+")
PARTS = {"words": "word", "variants": "variant"}


def moved(ours: Json, theirs: Json) -> Iterator[str]:
    """What another schema has otherwise, one line each."""
    yield from _moved_types(ours["definitions"], theirs["definitions"])
    before, after = ({(one["name"], one["params"]): one for one in facts["methods"]} for facts in (ours, theirs))
    yield from (f"new method {_method(after[key])}" for key in sorted(after.keys() - before.keys()))
    yield from (f"the method {_method(before[key])} is gone" for key in sorted(before.keys() - after.keys()))
    for key in sorted(before.keys() & after.keys()):
        if before[key] != after[key]:
            yield f"method {key[0]}: {', '.join(_moved_values(before[key], after[key]))}"


def _method(facts: Json) -> str:
    kind = f"→ {facts['result']}" if "result" in facts else "a notification"
    return f"{facts['name']} ({facts['params']}, {kind}, for the {facts['side']}){_draft(facts)}"


def _draft(facts: Json) -> str:
    return ", a draft" if facts.get("unstable") else ""


def _moved_types(before: Json, after: Json) -> Iterator[str]:
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    renamed = {
        old: name for old in sorted(gone) for name in sorted(new) if before[old] == after[name] and _is_own(after[name])
    }
    for old, name in renamed.items():
        yield f"the type {old} is now called {name}"
    for name in sorted(new - set(renamed.values())):
        yield f"new type {name}{_draft(after[name])}"
    for name in sorted(gone - renamed.keys()):
        yield f"the type {name} is gone"
    for name in sorted(before.keys() & after.keys()):
        yield from (f"{name}: {change}" for change in _moved_type(before[name], after[name]))


def _is_own(facts: Json) -> bool:
    """Whether facts are telling enough to know a type again: many have a single field, or are plain texts."""
    return len(facts.get("fields", {})) > 2 or bool(facts.get("words") or facts.get("variants"))


def _moved_type(before: Json, after: Json) -> Iterator[str]:
    yield from _moved_fields(before.get("fields", {}), after.get("fields", {}))
    for part, name in PARTS.items():
        old, new = ({_shown(one): one for one in facts.get(part, ())} for facts in (before, after))
        yield from (f"new {name} {one}{_draft_of(new[one])}" for one in sorted(new.keys() - old.keys()))
        yield from (f"the {name} {one} is gone" for one in sorted(old.keys() - new.keys()))
        for one in sorted(old.keys() & new.keys()):
            if isinstance(old[one], dict):
                yield from (f"{name} {one}: {change}" for change in _moved_type(old[one], new[one]))
    keys = {"fields", "words", "variants"}
    rest = [{key: value for key, value in facts.items() if key not in keys} for facts in (before, after)]
    yield from _moved_values(*rest)


def _moved_fields(before: Json, after: Json) -> Iterator[str]:
    for name in sorted(after.keys() - before.keys()):
        how = ", required" if after[name].get("required") else ""
        yield f"new field {name}: {after[name]['type']}{how}{_draft(after[name])}"
    yield from (f"the field {name} is gone" for name in sorted(before.keys() - after.keys()))
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield f"the field {name}: {', '.join(_moved_values(before[name], after[name]))}"


def _moved_values(before: Json, after: Json) -> Iterator[str]:
    """The plain facts of a type, a field or a method that are not what they were."""
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key == "required":
            yield "is required now" if new else "is optional now"
        elif key == "unstable":
            yield "is a draft now" if new else "is no draft any more"
        elif key == "open":
            yield "takes unknown values now" if new else "takes no unknown values any more"
        elif key == "marks":
            yield from (
                f"now {words}" for mark, words in MARK_WORDS.items() if mark in (new or "") and mark not in (old or "")
            )
            yield from (
                f"no longer: {words}"
                for mark, words in MARK_WORDS.items()
                if mark in (old or "") and mark not in (new or "")
            )
        elif old is None or new is None:
            yield f"{key} is {_plain(new)} now" if old is None else f"{key} was {_plain(old)}, and is gone"
        else:
            yield f"{key} was {_plain(old)}, and is {_plain(new)} now"


def _shown(one: Any) -> str:
    """A word, or a variant by the words that mark it and the type that it has."""
    if not isinstance(one, dict):
        return str(one)
    tags = [f"{name}={value}" for name, value in one.get("tag", {}).items()]
    return " ".join([*tags, *([one["ref"]] if "ref" in one else [])]) or _plain(one)


def _draft_of(one: Any) -> str:
    return _draft(one) if isinstance(one, dict) else ""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- sentences


def moved_sentences(ours: Path, theirs: Path) -> Iterator[str]:
    """The sentences with a MUST, a SHOULD or a MAY that only one of two schemas has, by the type that they stand at."""
    before, after = (_sentences(json.loads(path.read_text(encoding="utf-8"))) for path in (ours, theirs))
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        yield from (f"{name} said: {one}" for one in old if one not in new)
        yield from (f"{name} says now: {one}" for one in new if one not in old)


def _sentences(schema: Json) -> dict[str, dict[str, None]]:
    return {name: dict.fromkeys(_obliging(node)) for name, node in schema["$defs"].items()}


def _obliging(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        text = node.get("description")
        if isinstance(text, str):
            yield from (" ".join(one.split()) for one in SENTENCE.split(text) if OBLIGES.search(one))
        for key, value in node.items():
            if key != "description":
                yield from _obliging(value)
    elif isinstance(node, list):
        for one in node:
            yield from _obliging(one)


def main(arguments: list[str]) -> int:
    """Write the facts files of this project, or compare them with a folder."""
    options = argparse.ArgumentParser(description="Write down or compare what the official schema says.")
    options.add_argument("folder", nargs="*", type=Path, default=list(PLACES), help="`schema` of the npm package")
    options.add_argument("--compare", action="store_true", help="print what moved since ours were written")
    options.add_argument(
        "--against", type=Path, metavar="OLDER", help="the folder that ours came from, for its sentences"
    )
    chosen = options.parse_args(arguments)
    folder = next((place for place in chosen.folder if (place / "v1" / "schema.unstable.json").is_file()), None)
    if folder is None:
        print(f"no v1/schema.unstable.json in {' or '.join(map(str, chosen.folder))}", file=sys.stderr)
        return 2
    if chosen.compare:
        return _compare(folder, chosen.against)
    for version, target in TARGETS.items():
        facts = facts_in(folder / version)
        target.write_text(as_text(facts), encoding="utf-8")
        print(f"{len(facts['definitions'])} definitions and {len(facts['methods'])} methods → {target}")
    return 0


def _compare(folder: Path, older: Path | None) -> int:
    """Print what moved in each version, and how much of it; 1 if anything did."""
    found = 0
    for version, target in TARGETS.items():
        lines = list(moved(json.loads(target.read_text(encoding="utf-8")), facts_in(folder / version)))
        if older is not None:
            lines += moved_sentences(*(place / version / "schema.unstable.json" for place in (older, folder)))
        found += len(lines)
        print("".join(f"{version} {line}\n" for line in lines) + f"{version}: {len(lines) or 'nothing'} moved")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
