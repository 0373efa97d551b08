"""The table of rules, the hints, the aliases and the rows hold together, both ways."""

import importlib
import pkgutil
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, LEGACY, Choice, Unknown, encode
from antiphon.protocol.dialects import DialectRule
from antiphon.protocol.methods import DecodedPart, Half, Method
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.dialects import HINTS, table
from antiphon.protocol.v1.dialects.table import NULL_IS_ENOUGH, RULES, repair
from antiphon.protocol.v1.dialects.updates import KINDS
from antiphon.protocol.v1.updates import Update
from antiphon.protocol.words import Word
from tests.dialects.rows import ROWS, Row
from tests.dialects.rows_content import BLOCKS
from tests.rows import each_row

for module in pkgutil.iter_modules(v1.__path__, "antiphon.protocol.v1."):
    importlib.import_module(module.name)


def method_of(name: str) -> Method[Any]:
    return m.BY_NAME[name]


def is_strict(row: Row) -> bool:
    """Whether the strict decoder takes the row's bytes as they are."""
    method = method_of(row.method)
    decoder = method.params_decoder if row.half == "params" else m.CALLS_BY_NAME[row.method].result_decoder
    try:
        decoder.decode(row.wire)
    except BAD_INPUT:
        return False
    return True


def hints_in(row: Row) -> set[bytes]:
    return {hint for hint in HINTS.get((row.method, row.half), ()) if hint in row.wire}


# --- rules and rows ---


def test_every_rule_has_a_row_and_every_row_names_rules_that_exist() -> None:
    shown = {(name, row.method, row.half) for row in ROWS for name in row.rules}
    assert shown == {(rule.name, rule.method, rule.half) for rule in RULES}


def test_no_two_rules_or_rows_share_a_name() -> None:
    rules = [(rule.name, rule.method, rule.half) for rule in RULES]
    rows = [row.name for row in ROWS]
    assert len(set(rules)) == len(rules)
    assert len(set(rows)) == len(rows)


def test_every_rule_is_about_a_method_that_exists() -> None:
    for rule in RULES:
        assert rule.method in (m.BY_NAME if rule.half == "params" else m.CALLS_BY_NAME), rule.name


def test_every_rule_that_answers_in_other_words_has_a_row_that_receives_them() -> None:
    answering = {(rule.name, rule.method) for rule in RULES if rule.answer is not None}
    assert answering
    assert answering <= {(name, row.method) for row in ROWS if row.received != row.says for name in row.rules}


@each_row("rule", RULES, ids=lambda rule: f"{rule.name}, {rule.method} {rule.half}")
def test_without_its_rule_a_row_is_not_understood(rule: DialectRule) -> None:
    place = (rule.method, rule.half)
    rows = [row for row in ROWS if (row.method, row.half) == place and rule.name in row.rules]
    assert all(map(is_understood, rows))
    others = tuple(other for other in RULES if other is not rule and is_at(other, place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(table.TABLE._places, place, others)
        assert not all(map(is_understood, rows))


def is_at(rule: DialectRule, place: tuple[str, Half]) -> bool:
    return (rule.method, rule.half) == place


def is_understood(row: Row) -> bool:
    """Whether the row's value arrives and, if it is a question, its asker receives what it should."""
    try:
        reading = method_of(row.method).read_params(row.wire) if row.half == "params" else read_result(row)
    except AcpError:
        return False
    says = msgspec.json.encode(row.says)
    received = msgspec.json.decode(reading.reply(says) if reading.reply else says)
    expected = row.says if row.received is None else row.received
    return bool(msgspec.json.decode(encode(reading.value)) == row.seen and received == expected)


def read_result(row: Row) -> DecodedPart[Any]:
    return m.CALLS_BY_NAME[row.method].read_result(row.wire)


def test_every_older_name_of_a_method_has_a_row() -> None:
    assert {row.sent_as: row.method for row in ROWS if row.sent_as} == {
        alias: method.name for method in m.ALL for alias in method.aliases
    }


def test_every_alias_of_a_word_has_a_row() -> None:
    aliases = {word: meaning for words in Word.__subclasses__() for word, meaning in aliases_of(words).items()}
    assert aliases
    assert aliases.items() <= {pair for row in ROWS for pair in row.meanings.items()}


def aliases_of(words: type[Word]) -> dict[str, str]:
    found: dict[str, str] = words.__dict__.get("__reads__", (None, {}))[1]
    return found


# --- hints ---


def test_the_hints_are_those_of_the_rules() -> None:
    gathered: dict[tuple[str, str], set[bytes]] = {}
    for rule in RULES:
        if rule.hints:
            gathered.setdefault((rule.method, rule.half), set()).update(rule.hints)
    assert {place: set(hints) for place, hints in HINTS.items()} == gathered


def test_the_stream_of_updates_has_no_hints() -> None:
    assert ("session/update", "params") not in HINTS


@each_row("row", [row for row in ROWS if row.rules], ids=lambda row: row.name)
def test_a_dialect_that_the_strict_decoder_would_lose_has_a_hint(row: Row) -> None:
    assert hints_in(row) or not is_strict(row)


def test_every_hint_is_needed() -> None:
    needed = {(row.method, row.half, hint) for row in ROWS if is_strict(row) for hint in hints_in(row)}
    assert needed == {(*place, hint) for place, hints in HINTS.items() for hint in hints}


@pytest.mark.parametrize("place", HINTS, ids=" ".join)
def test_no_hint_is_a_name_that_the_schema_has_there(place: tuple[str, Half]) -> None:
    call = m.CALLS_BY_NAME[place[0]]
    names = wire_names(call.params if place[1] == "params" else call.result)
    assert names
    assert not {f'"{name}"'.encode() for name in names} & set(HINTS[place])


def wire_names(kind: Any) -> set[str]:
    """Every field name that a message of this type may have, legacy fields and what hangs on them left out."""
    if get_origin(kind) is Annotated and LEGACY in get_args(kind)[1:]:
        return set()
    if isinstance(kind, type) and issubclass(kind, Choice):
        return set().union(*map(wire_names, kind.members()))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        legacy = {
            name for name, hint in hints.items() if get_origin(hint) is Annotated and LEGACY in get_args(hint)[1:]
        }
        own = {field.encode_name for field in msgspec.structs.fields(kind) if field.name not in legacy}
        return own.union(*(wire_names(hint) for hint in hints.values()))
    return set().union(*(wire_names(argument) for argument in get_args(kind)))


# --- lists that repeat what the types say ---


def test_the_kinds_of_update_are_those_we_have_types_for() -> None:
    members = [member for member in get_args(Update) if member is not Unknown]
    assert {member.__struct_config__.tag for member in members} == KINDS


def test_null_is_enough_for_every_call_whose_answer_may_be_empty() -> None:
    empty = {name for name, call in m.CALLS_BY_NAME.items() if name != "mcp/message" and may_be_empty(call.result)}
    assert empty == set(NULL_IS_ENOUGH)


def may_be_empty(kind: Any) -> bool:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return is_struct and not any(field.required for field in msgspec.structs.fields(kind))


# --- what rows cannot show ---


@each_row(("rules", "sent", "seen"), [block[2:] for block in BLOCKS], ids=[block[0] for block in BLOCKS])
@each_row(
    "place",
    [
        '{"sessionUpdate":"user_message_chunk","content":BLOCK}',
        '{"sessionUpdate":"agent_thought_chunk","content":BLOCK}',
        '{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","content":[{"type":"content","content":BLOCK}]}',
        '{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":BLOCK}]}',
        '{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[BLOCK]}',
        '{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":BLOCK}',
        '{"sessionUpdate":"session_message","messageId":"m","content":[BLOCK]}',
        '{"sessionUpdate":"session_message_chunk","messageId":"m","content":BLOCK}',
    ],
)
def test_blocks_are_understood_in_every_kind_of_update(
    place: str, rules: tuple[str, ...], sent: dict[str, Any], seen: dict[str, Any]
) -> None:
    def params(block: dict[str, Any]) -> bytes:
        return f'{{"sessionId":"s","update":{place.replace("BLOCK", msgspec.json.encode(block).decode())}}}'.encode()

    reading = m.SESSION_UPDATE.read_params(params(sent))
    assert reading.rules == rules
    assert reading.value == m.SESSION_UPDATE.decode_params(params(seen))


@pytest.mark.parametrize(
    "update",
    [
        b'{"sessionUpdate":"mood_update","type":"tool_call","id":"1","content":[{"type":"text","text":"hi"}]}',
        b'{"sessionUpdate":"plan_update","plan":{"type":"tree","steps":["a"]}}',
        b'{"type":"mood_update","mood":"good"}',
        b'{"kind":"read","toolCallId":"t"}',
    ],
)
def test_an_unknown_update_stays_as_it_came(update: bytes) -> None:
    params = b'{ "sessionId":"s", "update":' + update + b"}"
    assert repair("session/update", "params", params) == (params, (), None)


@each_row(
    ("method", "half", "raw"),
    [
        ("session/request_permission", "result", b'{"decision":"maybe"}'),
        ("session/request_permission", "result", b'{"decision":null,"cancelled":false}'),
        ("session/request_permission", "params", b'{"sessionId":"s","permissionId":7,"title":"T"}'),
        ("session/set_mode", "params", b'{"sessionId":"s","modeId":"a","mode":"b"}'),
        ("session/new", "params", b'{"cwd":"/w","mcpServers":[7,"x",{"name":"no command"}]}'),
        ("session/prompt", "params", b'{"sessionId":"s","content":"hi"}'),
        ("session/prompt", "result", b"null"),
        ("session/fork", "result", b"null"),
        ("mcp/message", "result", b"null"),
        ("session/list", "result", b"[]"),
        ("no/such_method", "params", b"{}"),
    ],
)
def test_what_is_not_a_dialect_stays_as_it_came(method: str, half: Half, raw: bytes) -> None:
    assert repair(method, half, raw) == (raw, (), None)


def test_an_answer_that_no_dialect_can_express_is_left_alone() -> None:
    _, _, reply = repair("session/new", "params", b'{"cwd":"/w","modeId":"m"}')
    assert reply is not None
    assert reply(b"null") == b"null"
    assert reply(b'{"sessionId":"s"}') == b'{"sessionId":"s"}'


def test_two_dialects_in_one_question_are_both_answered() -> None:
    _, rules, reply = repair("initialize", "params", b'{"protocolVersion":1,"capabilities":{"prompt":{"image":true}}}')
    assert rules == ("client capabilities by their short name", "client that prompts and knows MCP")
    assert reply is not None
    assert msgspec.json.decode(reply(b'{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}')) == {
        "protocolVersion": 1,
        "authMethods": ["a"],
        "capabilities": {},
    }


def test_passwords_and_tokens_are_never_printed() -> None:
    for secret in (b'{"method":"password","password":"hunter2"}', b'{"method":"oauth","token":"hunter2"}'):
        assert "hunter2" not in repr(m.AUTHENTICATE.decode_params(secret))
