"""Write down what the official schema says, without its prose, so that tests can hold our types against it.

    python tools/schema_facts.py [folder with schema.json and schema.unstable.json]

The folder comes with the npm package `@agentclientprotocol/sdk`. Types are written as short expressions: `string`,
`int`, `uint`, `float`, `bool`, `null`, `any`, `'word'`, `[item]`, `{value}`, `#Definition`, joined by `|`.
"""

import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path("node_modules/@agentclientprotocol/sdk/schema/v1")
PLACES = (Path("tests/interop") / PACKAGE, PACKAGE)
TARGET = Path("src/antiphon/traffic/facts.json")

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


def one_line(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main(arguments: list[str]) -> int:
    """Write the facts file of this project."""
    places = [Path(argument) for argument in arguments] or list(PLACES)
    folder = next((place for place in places if (place / "schema.unstable.json").is_file()), None)
    if folder is None:
        print(f"no schema.unstable.json in {' or '.join(map(str, places))}", file=sys.stderr)
        return 2
    facts = facts_in(folder)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(as_text(facts), encoding="utf-8")
    print(f"{len(facts['definitions'])} definitions and {len(facts['methods'])} methods → {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
