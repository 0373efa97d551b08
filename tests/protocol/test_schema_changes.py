"""What moved in a newer schema is printed in words, and by the tool for a folder of schemas."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tools import schema_facts
from tools.schema_facts import moved, moved_sentences

Json = dict[str, Any]
TRAFFIC = Path(__file__).parents[2] / "src" / "antiphon" / "traffic"
FACTS: Json = json.loads((TRAFFIC / "facts_v2.json").read_text(encoding="utf-8"))


def after(*changes: Any) -> list[str]:
    newer = copy.deepcopy(FACTS)
    for change in changes:
        change(newer["definitions"], newer["methods"])
    return sorted(moved(FACTS, newer))


def test_types_fields_words_and_variants_that_moved_are_printed_in_words() -> None:
    def change(types: Json, methods: list[Json]) -> None:
        types["Weather"] = {"type": "string", "unstable": True}
        del types["PromptRequest"]["fields"]["_meta"]
        types["PromptRequest"]["fields"]["mood"] = {"type": "#Weather", "required": True}
        types["ToolKind"]["words"].append("paint")
        types["NoticeSeverity"]["words"].remove("warning")
        types["Cost"]["fields"]["amount"]["type"] = "int"
        del types["Cost"]["fields"]["currency"]["required"]
        types["SessionUpdate"]["variants"].append({"tag": {"sessionUpdate": "weather_update"}, "ref": "Weather"})
        types["DiffPatch"]["fields"]["text"]["marks"] = "E"

    assert after(change) == [
        "Cost: the field amount: type was float, and is int now",
        "Cost: the field currency: is optional now",
        "DiffPatch: the field text: now a value that cannot be read is dropped",
        "NoticeSeverity: the word warning is gone",
        "PromptRequest: new field mood: #Weather, required",
        "PromptRequest: the field _meta is gone",
        "SessionUpdate: new variant sessionUpdate=weather_update Weather",
        "ToolKind: new word paint",
        "new type Weather, a draft",
    ]


def test_methods_that_moved_are_printed_in_words() -> None:
    def change(types: Json, methods: list[Json]) -> None:
        methods[:] = [one for one in methods if one["name"] != "terminal/cancel"]
        next(one for one in methods if one["name"] == "session/fork").pop("unstable")
        methods.append({"name": "session/sing", "params": "SingNotification", "side": "agent"})

    assert after(change) == [
        "method session/fork: is no draft any more",
        "new method session/sing (SingNotification, a notification, for the agent)",
        "the method terminal/cancel (CancelTerminalRequest, → CancelTerminalResponse, for the agent) is gone",
    ]


def test_a_type_that_only_has_another_name_is_not_called_new() -> None:
    def change(types: Json, methods: list[Json]) -> None:
        types["ToolReport"] = types.pop("ToolCallUpdate")

    assert "the type ToolCallUpdate is now called ToolReport" in after(change)


def test_nothing_is_printed_where_nothing_moved() -> None:
    assert list(moved(FACTS, FACTS)) == []


def schema(says: str, **more: Any) -> Json:
    field = {"type": "string", "description": "A plain word. It MUST be short."}
    return {"$defs": {"Song": {"type": "object", "description": says, "properties": {"title": field, **more}}}}


def written(folder: Path, version: str, content: Json) -> Path:
    place = folder / version
    place.mkdir(parents=True)
    for name in ("schema.json", "schema.unstable.json"):
        (place / name).write_text(json.dumps(content), encoding="utf-8")
    return place / "schema.unstable.json"


def test_sentences_that_oblige_and_have_moved_are_quoted(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "v2", schema("Sung by all. Singers MUST\nbreathe. They may smile."))
    new = written(tmp_path / "new", "v2", schema("Sung by one. Singers SHOULD breathe. They may smile."))
    assert list(moved_sentences(old, new)) == [
        "Song said: Singers MUST breathe.",
        "Song says now: Singers SHOULD breathe.",
    ]


def test_the_tool_compares_a_folder_with_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for version in ("v1", "v2"):
        written(old, version, schema("It MAY rhyme."))
        written(new, version, schema("It MAY rhyme.", **({"key": {"type": "string"}} if version == "v2" else {})))
    targets = {version: tmp_path / f"{version}.json" for version in ("v1", "v2")}
    monkeypatch.setattr(schema_facts, "TARGETS", targets)
    assert schema_facts.main([str(old)]) == 0
    capsys.readouterr()
    assert schema_facts.main(["--compare", str(old)]) == 0
    assert capsys.readouterr().out == "v1: nothing moved\nv2: nothing moved\n"
    assert schema_facts.main(["--compare", str(new), "--against", str(old)]) == 1
    assert capsys.readouterr().out == "v1: nothing moved\nv2 Song: new field key: string\nv2: 1 moved\n"
    assert schema_facts.main(["--compare", str(tmp_path / "nowhere")]) == 2
    assert "no v1/schema.unstable.json" in capsys.readouterr().err
