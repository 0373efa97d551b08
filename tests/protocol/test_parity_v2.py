"""Our types of version 2 say what its schema says, in both directions, and survive the wire with all three states of a patch."""

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from antiphon.errors import RequestError
from antiphon.protocol import v2
from antiphon.protocol.base import Model, Unknown, decoder, encode
from antiphon.protocol.v2 import methods
from antiphon.protocol.words import Word
from tests.protocol import names_v2
from tests.protocol.names import Merged, Reason
from tests.protocol.parity import Facts, our_types, problems
from tests.protocol.strategies import messages
from tests.protocol.test_parity import (
    HERE,
    INSTALLED,
    change_every_field,
    other_leniency,
    other_requirement,
    other_type,
    strings_in,
)
from tests.rows import each_row
from tools.schema_facts import as_text, facts_in

TEXT = (HERE.parents[1] / "src" / "antiphon" / "traffic" / "facts_v2.json").read_text(encoding="utf-8")
FACTS: Facts = json.loads(TEXT)
STRUCTS: list[Any] = sorted(
    (kind for kind in our_types(names_v2) if issubclass(kind, Model)), key=lambda kind: (kind.__module__, kind.__name__)
)
WORDS: list[Any] = sorted(
    (kind for kind in our_types(names_v2) if issubclass(kind, Word)), key=lambda kind: kind.__name__
)
PATCHED = [
    pytest.param(kind, field.name, id=f"{kind.__name__}.{field.name}")
    for kind in names_v2.PATCHES
    for field in msgspec.structs.fields(kind)
    if field.default is UNSET
]
few = settings(max_examples=6, deadline=None, derandomize=True, database=None)


def problems_after(change: Callable[[Facts], None]) -> list[str]:
    facts = copy.deepcopy(FACTS)
    change(facts)
    return problems(facts, names_v2)


def test_our_types_match_the_schema_of_version_2() -> None:
    assert problems(FACTS, names_v2) == []


def test_every_definition_has_a_type_or_a_reason() -> None:
    assert FACTS["definitions"].keys() == names_v2.TYPES.keys()


@pytest.mark.slow
@pytest.mark.prove  # needs the package
def test_the_facts_are_those_of_the_npm_package() -> None:
    folder = INSTALLED.parent / "v2"
    if not folder.is_dir():
        pytest.skip("npm package @agentclientprotocol/sdk is not installed")
    assert as_text(facts_in(folder)) == TEXT


def test_the_facts_are_as_the_tool_writes_them_and_hold_no_prose() -> None:
    assert as_text(FACTS) == TEXT
    assert not any(" " in text for text in strings_in(FACTS))


@pytest.mark.parametrize("alter", [other_type, other_requirement, other_leniency])
def test_no_field_escapes_the_comparison(alter: Callable[[Facts], None]) -> None:
    noticed = {problem.partition(":")[0] for problem in problems_after(change_every_field(alter))}
    fields = {
        f"{name}.{wire}"
        for name, spec in FACTS["definitions"].items()
        if not isinstance(names_v2.TYPES[name], Reason | Merged)
        for wire in spec.get("fields", ())
    }
    other_words = {"IdleStateUpdate.stopReason", "Error.data"} if alter is other_type else set()  # see names_v2.OURS
    assert fields - noticed == other_words


def test_a_kind_of_update_that_came_or_went_is_noticed() -> None:
    def change(facts: Facts) -> None:
        variants = facts["definitions"]["SessionUpdate"]["variants"]
        variants.append({"tag": {"sessionUpdate": "weather"}, "ref": "PlanUpdate"})
        variants.remove(next(one for one in variants if one["ref"] == "TerminalOutputChunk"))

    assert problems_after(change) == [
        "SessionUpdate: no member for {'sessionUpdate': 'weather'}",
        "SessionUpdate: TerminalOutputChunk is no member",
    ]


def test_a_state_and_a_stop_reason_that_came_are_noticed() -> None:
    def change(facts: Facts) -> None:
        facts["definitions"]["IdleStateUpdate"]["variants"].append({"tag": {"stopReason": "tired"}})
        facts["definitions"]["StateUpdate"]["variants"].append(
            {"tag": {"state": "asleep"}, "ref": "RunningStateUpdate"}
        )

    found = problems_after(change)
    assert any(problem.startswith("IdleStateUpdate.stopReason: its words are") for problem in found)
    assert "StateUpdate: no member for {'state': 'asleep'}" in found


def test_the_words_of_the_state_are_the_states_of_the_schema() -> None:
    listed = [variant["tag"]["state"] for variant in FACTS["definitions"]["StateUpdate"]["variants"]]
    assert sorted(word.value for word in v2.ForegroundState) == sorted(listed)


@each_row("kind", STRUCTS, ids=lambda kind: kind.__name__)
@few
@given(data=st.data())
def test_every_message_survives_the_wire(kind: Any, data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    wire = encode(message)
    read = decoder(kind).decode(wire)
    assert read == message
    assert encode(read) == wire


@each_row(("kind", "field"), PATCHED)
def test_absent_null_and_value_stay_different_in_a_patch(kind: Any, field: str) -> None:
    required: dict[str, Any] = {"status": v2.CompactionStatus.COMPLETED, "used": 1, "size": 2}
    fields = {one.name: required.get(one.name, "x") for one in msgspec.structs.fields(kind) if one.required}
    absent, null = kind(**fields), kind(**fields, **{field: None})
    assert getattr(decoder(kind).decode(encode(absent)), field) is UNSET
    assert getattr(decoder(kind).decode(encode(null)), field) is None
    assert encode(absent) != encode(null)


@each_row("words", WORDS, ids=lambda words: words.__name__)
def test_a_word_from_tomorrow_is_kept(words: Any) -> None:
    read = decoder(words).decode(b'"a word from tomorrow"')
    assert encode(read) == b'"a word from tomorrow"'
    assert not read.known


def update_in(body: str) -> Any:
    raw = f'{{"sessionId":"s","update":{body}}}'.encode()
    return methods.SESSION_UPDATE.read_params(raw).value.update


@each_row(
    ("body", "kind"),
    [
        ('{"sessionUpdate":"_weather","sky":"blue"}', "_weather"),
        ('{"sessionUpdate":"weather_update"}', "weather_update"),
    ],
)
def test_an_update_of_an_unknown_kind_keeps_its_bytes(body: str, kind: str) -> None:
    assert update_in(body) == Unknown(kind, body.encode())


def test_an_unknown_member_of_a_union_is_kept_within_a_known_message() -> None:
    found = update_in('{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"_map","x":1}]}')
    assert found.content == [Unknown("_map", b'{"type":"_map","x":1}')]
    found = update_in('{"sessionUpdate":"state_update","state":"dreaming","background":[{"type":"_dream"}]}')
    assert (found.state.value, found.state.known, found.background[0].kind) == ("dreaming", False, "_dream")


def test_a_known_kind_with_a_wrong_body_is_an_error_and_not_unknown() -> None:
    with pytest.raises(RequestError):
        update_in('{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"no id"}}')


def test_a_bad_item_of_a_required_list_is_dropped_and_a_value_that_is_no_list_is_an_error() -> None:
    found = update_in(
        '{"sessionUpdate":"config_option_update","configOptions":[7,{"type":"boolean","configId":"c","name":"C","currentValue":true}]}'
    )
    assert [option.config_id for option in found.config_options] == ["c"]
    with pytest.raises(RequestError):
        update_in('{"sessionUpdate":"config_option_update","configOptions":"none"}')


def test_commands_of_an_earlier_draft_are_read() -> None:
    found = update_in(
        '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"hint":"h"}}]}'
    )
    assert found.available_commands == [v2.Command(name="n", description="d", input=v2.TextCommandInput(hint="h"))]
