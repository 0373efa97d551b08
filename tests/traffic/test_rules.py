"""Each rule is kept by traffic that keeps it and broken by traffic that breaks it, and a provoked peer is not blamed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.traffic.checker import ALL_VERSIONS, SPECS, rules
from antiphon.traffic.entries import Direction
from tests.rows import each_row
from tests.traffic import table_v2 as v2
from tests.traffic.messages import (
    Line,
    agent,
    call,
    call_update,
    chosen,
    client,
    dismissed,
    done,
    hello,
    judged,
    may_i,
    message_chunk,
    new,
    prompt,
    text,
    turn,
    update,
)
from tests.traffic.table import BEGIN, CANCEL, MADE, RELEASE, ROWS, USAGE, Row


def broken(talk: list[Line]) -> list[str]:
    return [one.rule for one in judged(talk).deviations]


EVERY_ROW = [*((1, row) for row in ROWS), *((2, row) for row in v2.ROWS)]


@each_row(("version", "row"), EVERY_ROW, ids=lambda one: getattr(one, "rule", None))
def test_a_rule_is_kept_and_broken(version: int, row: Row) -> None:
    checker = judged(row.kept)
    assert [(one.rule, one.text) for one in checker.deviations if one.rule not in row.also] == []
    assert {id for id, _ in checker.seen} >= {row.rule} or row.rule in NEVER_PUT_TO_THE_TEST_BY_THE_GOOD
    checker = judged(row.broken)
    assert {one.rule for one in checker.deviations} == {row.rule, *row.also}
    assert [one.rule for one in checker.deviations].count(row.rule) == 1
    [found] = [one for one in checker.deviations if one.rule == row.rule]
    assert found.text.isprintable() and len(found.text) < 250
    assert found.version == (version if row.rule != "init.first" else 1)  # before `initialize` no version is known
    assert rules(version)[row.rule].side.includes(found.entry.dir)


NEVER_PUT_TO_THE_TEST_BY_THE_GOOD = {"schema.removed", "session.refused"}
"""These can only be kept where they could be broken, and that takes a peer that broke another rule."""


def test_every_rule_has_a_row() -> None:
    assert sorted(row.rule for row in ROWS) == sorted(rules())
    assert sorted(row.rule for row in v2.ROWS) == sorted(rules(2))


RULES = [(version, one) for version in ALL_VERSIONS for one in rules(version).values()]


@each_row(("version", "one"), RULES, ids=lambda one: getattr(one, "id", None))
def test_every_rule_has_a_sentence_and_a_fix(version: int, one: Any) -> None:
    assert one.text.endswith(".") and one.text[0].isupper() | (one.text[0] == "`")
    assert one.fix.endswith(".")
    assert one.link.startswith(SPECS[version]) and one.link != SPECS[version]


# What was provoked.


JUNK: list[tuple[Line, list[Line]]] = [
    (client.sends(b"{"), [agent.fails(None, -32700)]),
    (client.sends(b'{"jsonrpc":"2.0","id":9,"method":'), [agent.fails(9, -32700)]),
    (client.sends({"foo": 1}), [agent.fails(None, -32600)]),
    (client.sends({"jsonrpc": "2.0", "id": 9}), [agent.fails(9, -32600)]),
    (client.sends({"jsonrpc": "1.0", "id": 9, "method": "session/list"}), [agent.fails(9, -32600)]),
    (client.sends({"jsonrpc": "2.0", "id": None, "method": "session/list"}), [agent.fails(None, -32600)]),
    (client.sends([{"jsonrpc": "2.0", "id": 9, "method": "_x"}]), [agent.fails(9, -32601)]),
    (client.sends([{"jsonrpc": "2.0", "id": 9, "method": "_x"}]), [agent.sends([{"jsonrpc": "2.0", "id": 9, "result": {}}])]),
    (client.asks(9, "no/such_method"), [agent.fails(9, -32601)]),
    (client.asks(9, "session/new", cwd=1), [agent.fails(9, -32602)]),
    (client.asks(9, "session/prompt", sessionId="nope", prompt=[text("x")]), [agent.fails(9, -32002)]),
    (client.asks(9, "session/prompt", sessionId="s", prompt=[]), [done(9)]),
    (client.asks(9, "session/set_mode", sessionId="s", modeId="nope"), [agent.fails(9, -32602)]),
    (client.notifies("no/such_notice"), []),
]  # fmt: skip


@each_row(("junk", "answers"), JUNK)
def test_the_answer_to_junk_is_not_held_against_the_agent(junk: Line, answers: list[Line]) -> None:
    checker = judged([*BEGIN, junk, *answers, *turn()])
    assert [one.rule for one in checker.deviations if one.entry.dir is Direction.A2C] == []
    assert [one.rule for one in checker.deviations if one.entry.dir is Direction.C2A] != []


# Cancelling.


def test_an_answer_that_crosses_a_cancellation_is_fine() -> None:
    assert broken([*BEGIN, prompt(), message_chunk(), CANCEL, done(after=0.01)]) == []


def test_an_agent_that_went_on_after_a_question_it_had_open_has_read_the_cancellation() -> None:
    asked = [*BEGIN, prompt(), call(), may_i(), CANCEL, dismissed(), call_update(status="failed")]
    assert broken([*asked, done()]) == ["cancel.stop-reason"]


def test_an_agent_that_answered_a_later_question_has_read_the_cancellation() -> None:
    later = [client.asks(9, "_x/ask"), agent.gives(9)]
    assert broken([*BEGIN, prompt(), message_chunk(), CANCEL, *later, done()]) == ["cancel.stop-reason"]
    assert broken([*BEGIN, prompt(), message_chunk(), CANCEL, *later, agent.fails(2, -32800)]) == []


def test_a_question_that_crosses_a_cancellation_may_be_answered_in_any_way() -> None:
    assert broken([*BEGIN, prompt(), call(), CANCEL, may_i(), chosen(), done(reason="cancelled")]) == []


def test_calls_may_be_left_open_by_a_turn_that_was_cancelled() -> None:
    assert broken([*BEGIN, prompt(), call(), CANCEL, done(reason="cancelled")]) == []


# Other versions and other beginnings.


def test_another_version_has_other_rules() -> None:
    asked = client.asks(0, "initialize", protocolVersion=2, info={"name": "x", "version": "1"})
    settled = agent.gives(0, protocolVersion=2, info={"name": "y", "version": "1"}, capabilities={"session": {}})
    without_servers = client.asks(1, "session/new", cwd="/w")
    assert broken([asked, settled, without_servers]) == []
    assert broken([*hello(), without_servers]) == ["schema.params"]
    assert broken([asked, agent.gives(0, protocolVersion=1), client.asks(1, "session/new", cwd="/w")]) == [
        "schema.params"
    ]
    error = {"code": -32022, "message": "No such version", "data": {"requested": 2, "supported": [3]}}
    refused = [asked, agent.sends({"jsonrpc": "2.0", "id": 0, "error": error})]
    assert broken([*refused, *hello(), *new(), *turn()]) == []


def test_a_recording_that_begins_in_the_middle_deviates_in_nothing_but_its_beginning() -> None:
    assert broken([agent.gives(9), message_chunk(), prompt(), message_chunk(), done()]) == ["init.first"]


def test_a_second_introduction_that_is_refused_changes_nothing() -> None:
    again = [client.asks(5, "initialize", protocolVersion=2, info=v2.INFO), agent.fails(5, -32600)]
    read = agent.asks(50, "fs/read_text_file", sessionId="s", path="/w/a")
    assert broken([*BEGIN, *again, prompt(), read]) == ["init.once", "capability.fs-read"]


def test_ids_that_only_look_alike_are_reported() -> None:
    [found] = judged([*hello(), client.asks(7, "_x/ask"), agent.gives("7")]).deviations
    assert found.text == 'the id "7" is not that of `_x/ask`, which was asked with 7'
    [found] = judged([*hello(), client.asks("7", "_x/ask"), agent.gives(7)]).deviations
    assert found.text == 'the id 7 is not that of `_x/ask`, which was asked with "7"'
    [found] = judged([*hello(), client.asks(7, "_x/ask"), agent.gives(7), agent.gives(7)]).deviations
    assert found.text == "no request with the id 7 is open"


def test_both_of_two_requests_with_one_id_may_be_answered() -> None:
    twice = [client.asks(7, "_x/ask"), client.asks(7, "_x/ask"), agent.gives(7), agent.gives(7)]
    assert broken([*BEGIN, *twice]) == ["rpc.id-unique"]


def test_a_terminal_is_not_used_after_it_was_released() -> None:
    waits = agent.asks(53, "terminal/wait_for_exit", sessionId="s", terminalId="t")
    assert broken([*MADE, *RELEASE, waits]) == ["terminal.known"]
    shown = call(content=[{"type": "terminal", "terminalId": "t"}])
    assert broken([*MADE, *RELEASE, shown]) == []  # what it showed stays


def test_the_options_of_a_group_are_values_too() -> None:
    group = {"group": "g", "name": "G", "options": [{"value": "deep", "name": "Deep"}]}
    option = {"id": "o", "name": "O", "type": "select", "currentValue": "deep", "options": [group]}
    assert broken([*hello(), *new(configOptions=[option])]) == []


def test_a_session_that_could_not_be_loaded_is_none() -> None:
    load = client.asks(1, "session/load", sessionId="t", cwd="/w", mcpServers=[])
    begin = [*hello(offers={"loadSession": True}), load]
    assert broken([*begin, agent.fails(1), prompt(2, "t")]) == ["session.id"]
    assert broken([*begin, agent.gives(1), prompt(2, "t")]) == []


def test_a_path_is_reported_once_on_a_connection() -> None:
    many = [update("agent_message_chunk", content=text("x"), timestamp=at) for at in range(5)]
    assert broken([*BEGIN, *turn(*many)]) == ["schema.unknown-field"]


def test_a_rule_that_nothing_put_to_the_test_is_not_seen() -> None:
    seen = {id for id, _ in judged([*BEGIN, *turn()]).seen}
    assert not seen & {
        "call.ends",
        "permission.option",
        "cancel.stop-reason",
        "terminal.known",
        "config.current",
        "session.refused",
    }
    assert seen >= {"capability.fs-write", "capability.image", "turn.answer-last", "session.unique"}


def test_a_turn_without_any_action_tests_no_capability() -> None:
    tempting = {"capability.plan", "capability.subagents", "capability.fs-write", "capability.terminal"}
    assert not tempting & {id for id, _ in judged([*BEGIN, prompt(), USAGE, done()]).seen}
    assert tempting <= {id for id, _ in judged([*BEGIN, *turn(call(), call_update(status="completed"))]).seen}


# Version 2: what its states and ids allow.

KEPT_V2 = {
    "an answer that comes after the work": [*v2.BEGIN, v2.prompt(), v2.echo(), v2.state("running"), v2.done(), agent.gives(2, messageId="u2")],
    "two prompts that end together": [
        *v2.WORKS, v2.prompt(3), v2.echo("u3"), agent.gives(3, messageId="u3"), v2.chunk(), v2.done(), *v2.turn(id=4),
    ],
    "a prompt after a cancellation that is worked on": [*v2.WORKS, CANCEL, v2.prompt(3), *v2.LATER, *v2.accepted(3), v2.done()],
    "an end that crosses a cancellation": [*v2.WORKS, CANCEL, v2.done()],
    "updates before the answer to `session/new`": [*v2.hello(), v2.ASK_NEW, v2.state("running"), agent.gives(1, sessionId="s"), v2.done()],
    "a state that comes again": [*v2.BEGIN, *v2.turn(), v2.done(), v2.done()],
    "work without a prompt": [*v2.BEGIN, v2.state("running"), v2.chunk(), v2.done()],
    "updates while it is idle": [*v2.BEGIN, *v2.turn(), v2.chunk("later")],
    "a session that is resumed while it works": [*v2.WORKS, v2.RESUME, v2.chunk(), v2.state("running"), v2.CLOSED, v2.done()],
    "a session that is closed and opened again": [*v2.BEGIN, v2.CLOSE, v2.CLOSED, v2.RESUME, v2.IDLE, v2.CLOSED, *v2.turn()],
    "a question of the background that outlives a cancellation": [
        *v2.WORKS, v2.call(), v2.done(background=v2.RUNS), v2.may_i(type="tool_call", toolCall={"toolCallId": "c"}), CANCEL, chosen(),
    ],
}  # fmt: skip


@each_row("what", KEPT_V2)
def test_version_2_allows(what: str) -> None:
    assert broken(KEPT_V2[what]) == []


def test_a_state_that_version_2_does_not_know_is_work() -> None:
    assert (
        broken([*v2.BEGIN, v2.prompt(), v2.echo(), agent.gives(2, messageId="u2"), v2.state("_dreaming"), v2.done()])
        == []
    )


# Hostile input.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(["s", "c", "", "t"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "sessionId", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = sorted({name for _, one in RULES for name in one.on if "/" in name or name in ("initialize", "authenticate")})
WORDS = sorted(
    {name.removeprefix("update ") for name in METHODS} | {"terminal", "select", "diff", "selected", "cancelled"}
)
FIELDS = ("sessionId", "update", "sessionUpdate", "toolCallId", "toolCall", "options", "prompt", "content", "locations", "path", "cwd",
          "modes", "configOptions", "currentModeId", "availableModes", "outcome", "optionId", "terminalId", "line", "status", "type",
          "authMethods", "mcpServers", "additionalDirectories", "agentCapabilities", "clientCapabilities", "protocolVersion", "capabilities",
          "state", "background", "messageId", "subject", "replayFrom", "changes", "patch", "exitStatus", "availableCommands")  # fmt: skip
PARAMS = st.dictionaries(
    st.sampled_from(FIELDS),
    JSON | st.sampled_from(WORDS) | st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(WORDS), max_size=4),
    max_size=5,
)
ENVELOPES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={
        "id": JSON, "method": st.sampled_from(METHODS) | JSON, "params": PARAMS | JSON, "result": PARAMS | JSON, "error": PARAMS | JSON,
    },
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from([client, agent]), ENVELOPES | JSON), max_size=12))
def test_nothing_that_is_sent_makes_the_judge_stumble(lines: list[tuple[Any, Any]]) -> None:
    texts = [by.sends(message) for by, message in lines]
    judged([*BEGIN, prompt(), call(), may_i(), *texts, CANCEL, dismissed(), done(), USAGE])
    judged([*v2.WORKS, v2.call(), v2.may_i(), *texts, CANCEL, dismissed(), v2.done()])
    judged(texts)


def test_what_peers_send_is_quoted_so_that_it_can_be_read() -> None:
    texts = [one.text for one in judged([*BEGIN, client.notifies("x\x1b[2J\u202e\n" + "y" * 9_999)]).deviations]
    assert len(texts) == 1 and texts[0].isprintable() and len(texts[0]) < 400
    many = client.asks(9, "session/prompt", sessionId="s", prompt=[1] * 1_000)
    assert [one.text for one in judged([*BEGIN, many]).deviations][9:] == [
        "`params.prompt[9]` is 1, not an object",
        "and 990 times more in this message",
    ]


def test_depth_does_not_make_it_stumble_either() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    lines = [
        b'{"jsonrpc":"2.0","id":%b,"method":"session/prompt","params":%b}' % (deep, deep),
        b'{"jsonrpc":"2.0","id":1,"result":%b}' % deep,
    ]
    assert set(broken([*BEGIN, *(client.sends(line) for line in lines)])) == {"wire.json"}
    less = b"[" * 600 + b"]" * 600
    shallow = b'{"jsonrpc":"2.0","id":%b,"method":"session/prompt","params":%b}' % (less, less)
    assert "rpc.id" in broken(
        [*BEGIN, client.sends(shallow), agent.sends(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % less)]
    )


def test_a_turn_that_was_cancelled_may_end_without_a_word() -> None:
    assert broken([*BEGIN, prompt(), CANCEL, done()]) == []
