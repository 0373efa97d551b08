"""What `antiphon doctor --json` prints is what the schema says."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.doctor import schema
from tests.cli.program import ROOT
from tests.doctor.machine import Machine

SCHEMA = json.loads((ROOT / "docs" / "doctor.schema.json").read_text(encoding="utf-8"))


def fits(value: Any, rule: dict[str, Any]) -> bool:
    """Whether a value fits a schema, as far as ours goes. Unknown words in it fail, so that none is forgotten."""
    assert set(rule) <= {
        "$ref", "$defs", "$schema", "additionalProperties", "anyOf", "description", "enum", "items", "properties", "required",
        "title", "type",
    }  # fmt: skip
    if "$ref" in rule:
        return fits(value, SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]])
    if "anyOf" in rule:
        return any(fits(value, each) for each in rule["anyOf"])
    if "enum" in rule:
        return value in rule["enum"]
    kinds: dict[str, Any] = {
        "string": str, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None),
    }  # fmt: skip
    if not isinstance(value, kinds[rule["type"]]) or (rule["type"] == "boolean") != isinstance(value, bool):
        return False
    if isinstance(value, list):
        return all(fits(item, rule["items"]) for item in value)
    if isinstance(value, dict) and "properties" in rule:
        known = rule["properties"]
        return set(rule["required"]) <= set(value) <= set(known) and all(fits(value[key], known[key]) for key in value)
    if isinstance(value, dict):
        return all(fits(each, rule["additionalProperties"]) for each in value.values())
    return True


def test_the_schema_in_the_docs_is_that_of_the_code() -> None:
    assert schema() == SCHEMA, "write it again: python -m antiphon.cli.doctor > docs/doctor.schema.json"


@pytest.mark.parametrize("words", [(), ("codex",), ("demo", "--start"), ("editors",)])
def test_every_report_fits_the_schema(tmp_path: Path, words: tuple[str, ...]) -> None:
    machine = Machine(tmp_path)
    machine.configure("model = 7\n")
    report = machine.report(*words).data
    assert fits(report, SCHEMA)
    assert (report["start"], report["network"]) == ("--start" in words, False)


def test_what_is_not_a_report_does_not_fit() -> None:
    check: dict[str, Any] = {
        "id": "a.b", "part": "a", "title": "", "status": "ok", "sentence": "", "hint": None, "facts": {}, "seconds": 0.1,
    }  # fmt: skip
    whole = {"antiphon": "1", "status": "ok", "network": False, "start": False, "checks": [check]}
    assert fits(whole, SCHEMA)
    for broken in (
        {},
        {**whole, "more": 1},
        {**whole, "status": "note"},
        {**whole, "checks": [{**check, "status": "bad"}]},
    ):
        assert not fits(broken, SCHEMA)
