"""Our types say what the schema says: every definition, field, word and method, in both directions."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.protocol import names
from tests.protocol.parity import (
    Facts,
    legacy_fields,
    marked_legacy,
    our_types,
    problems,
    wire_names,
)
from tests.rows import each_row
from tools.schema_facts import PACKAGE, as_text, facts_in

HERE = Path(__file__).parent
FACTS_FILE = HERE.parents[1] / "src" / "antiphon" / "traffic" / "facts.json"
TEXT = FACTS_FILE.read_text(encoding="utf-8")
FACTS: Facts = json.loads(TEXT)
INSTALLED = HERE.parent / "interop" / PACKAGE / "v1"

Change = Callable[[Facts], None]


def problems_after(change: Change) -> list[str]:
    facts = copy.deepcopy(FACTS)
    change(facts)
    return problems(facts)


def compared_fields() -> list[tuple[str, str]]:
    """Every field of a definition that has a type of its own here."""
    return [
        (name, wire)
        for name, spec in FACTS["definitions"].items()
        if not isinstance(names.TYPES[name], names.Reason | names.Merged)
        for wire in spec.get("fields", ())
    ]


def change_every_field(alter: Callable[[Facts], None]) -> Change:
    def change(facts: Facts) -> None:
        for spec in facts["definitions"].values():
            for field in spec.get("fields", {}).values():
                alter(field)

    return change


def test_our_types_match_the_schema() -> None:
    assert problems(FACTS) == []


def test_every_definition_has_a_type_or_a_reason() -> None:
    assert FACTS["definitions"].keys() == names.TYPES.keys()
    assert all(reason.text for reason in names.TYPES.values() if isinstance(reason, names.Reason))


@pytest.mark.slow
@pytest.mark.prove  # needs the package
def test_the_facts_are_those_of_the_npm_package() -> None:
    if not INSTALLED.is_dir():
        pytest.skip("npm package @agentclientprotocol/sdk is not installed")
    assert as_text(facts_in(INSTALLED)) == TEXT


def test_the_facts_file_is_as_the_tool_writes_it() -> None:
    assert as_text(FACTS) == TEXT


def test_the_facts_hold_no_prose() -> None:
    assert "description" not in {key for spec in FACTS["definitions"].values() for key in spec}
    assert not any(" " in text for text in strings_in(FACTS))


def strings_in(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for key, inner in value.items() for text in (key, *strings_in(inner))]
        case list():
            return [text for inner in value for text in strings_in(inner)]
        case _:
            return []


@each_row("kind", list(names.LEGACY_FIELDS))
def test_a_listed_legacy_field_exists_and_is_marked(kind: type) -> None:
    assert names.LEGACY_FIELDS[kind] <= marked_legacy(kind)


def test_every_marked_legacy_field_is_listed() -> None:
    structs = [kind for kind in our_types() if hasattr(kind, "__struct_fields__")]
    assert {kind: marked_legacy(kind) for kind in structs} == {kind: legacy_fields(kind) for kind in structs}


def test_the_schema_has_no_legacy_type_or_method() -> None:
    assert not names.LEGACY_TYPES & {ours for ours in names.TYPES.values() if isinstance(ours, type)}
    assert not names.LEGACY_METHODS & {spec["name"] for spec in FACTS["methods"]}


def test_a_renamed_field_is_noticed() -> None:
    def change(facts: Facts) -> None:
        fields = facts["definitions"]["PromptRequest"]["fields"]
        fields["promptBlocks"] = fields.pop("prompt")

    assert problems_after(change) == [
        "PromptRequest.promptBlocks: missing in Prompt",
        "PromptRequest.prompt: only in Prompt",
    ]


def test_a_changed_requirement_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["Implementation"]["fields"]["title"]["required"] = True

    assert problems_after(change) == ["Implementation.title: required in the schema, and not here"]


def test_a_new_word_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["ToolKind"]["words"].append("paint")

    [problem] = problems_after(change)
    assert problem.startswith("ToolKind: its words are")


def test_a_new_kind_of_update_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["SessionUpdate"]["variants"].append({"tag": {"sessionUpdate": "weather"}, "ref": "Plan"})

    assert problems_after(change) == ["SessionUpdate: no member for {'sessionUpdate': 'weather'}"]


def test_a_kind_of_update_that_went_is_noticed() -> None:
    def change(facts: Facts) -> None:
        variants = facts["definitions"]["SessionUpdate"]["variants"]
        variants.remove(next(one for one in variants if one["ref"] == "Plan"))

    assert problems_after(change) == ["SessionUpdate: Plan is no member"]


def test_a_method_that_we_lack_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["methods"].append({"name": "session/paint", "params": "PromptRequest", "side": "agent"})

    assert problems_after(change) == ["session/paint: no such notice here"]


def test_a_method_that_the_schema_lost_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["methods"] = [spec for spec in facts["methods"] if spec["name"] != "session/prompt"]

    assert problems_after(change) == ["session/prompt: not in the schema"]


@pytest.mark.parametrize(
    ("key", "value"), [("side", "protocol"), ("params", "Plan"), ("result", "Plan"), ("unstable", True)]
)
def test_a_change_of_a_method_is_noticed(key: str, value: object) -> None:
    def change(facts: Facts) -> None:
        next(spec for spec in facts["methods"] if spec["name"] == "session/prompt")[key] = value

    [problem] = problems_after(change)
    assert problem.startswith("session/prompt: ")


def test_a_definition_that_came_or_went_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["Weather"] = facts["definitions"].pop("Role")

    assert problems_after(change)[:2] == ["Weather: no type and no reason", "Role: not in the schema"]


def test_a_change_of_stability_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["Cost"]["unstable"] = True
        del facts["definitions"]["McpCapabilities"]["fields"]["acp"]["unstable"]

    assert problems_after(change) == [
        "Cost: unstable in the schema, and not here",
        "McpCapabilities.acp: has the wrong stability",
    ]


def test_a_change_of_default_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["PromptCapabilities"]["fields"]["image"]["default"] = True

    [problem] = problems_after(change)
    assert problem.startswith("PromptCapabilities.image: its default is")


def test_a_word_of_a_plain_string_is_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["IdleStateUpdate"]["variants"].append({"tag": {"stopReason": "tired"}})

    [problem] = problems_after(change)
    assert problem.startswith("IdleStateUpdate.stopReason: its words are")


def other_type(field: Facts) -> None:
    field["type"] = "bool" if field["type"] == "any" else field["type"] + "|[[bool]]"


def other_requirement(field: Facts) -> None:
    field["required"] = not field.get("required")


def other_leniency(field: Facts) -> None:
    field["marks"] = "ES" if field.get("marks") == "N" else "N"


@pytest.mark.parametrize("alter", [other_type, other_requirement, other_leniency])
def test_no_field_escapes_the_comparison(alter: Callable[[Facts], None]) -> None:
    noticed = {problem.partition(":")[0] for problem in problems_after(change_every_field(alter))}
    said_otherwise = {"IdleStateUpdate.stopReason"} if alter is other_type else set()  # see names.OURS
    assert {f"{name}.{wire}" for name, wire in compared_fields()} - noticed == said_otherwise


def test_every_struct_has_a_field_for_extensions() -> None:
    assert all("_meta" in wire_names(kind) for kind in our_types() if hasattr(kind, "__struct_fields__"))
