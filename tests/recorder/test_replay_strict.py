"""The strict stand-in for an agent: the client says what was recorded, or receives what differed."""

from typing import Any

import pytest

from tests.recorder.replay_recordings import (
    INITIALIZE,
    TURN,
    answer,
    ask,
    asked,
    prompt,
    raw,
    say,
    strict,
    tell,
    update,
)

SAID = [line for line in TURN if line[0] == "c2a"]
ANSWERED = [msg for dir, msg in TURN if dir == "a2c"]


def test_the_recorded_client_receives_what_was_recorded_and_nothing_is_wrong() -> None:
    player = strict(TURN)
    assert say(player, *SAID) == ANSWERED
    assert player.end(0.0) == [] and player.problems == [] and player.matched == 4


def test_another_value_is_reported_with_its_path_and_answered_with_an_error() -> None:
    player = strict(TURN)
    *_, refused = say(player, *SAID[:2], prompt(2, "hello"))
    problem = 'message 6 (session/prompt): params.prompt[0].text: recorded "fix the tests", got "hello"'
    assert player.problems == [problem] and player.over
    assert refused == {"jsonrpc": "2.0", "id": 2, "error": {"code": -32602, "message": f"replay: {problem}"}}
    assert say(player, SAID[3]) == [] and player.problems == [problem]


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (ask(0, "session/list"), 'message 1 (initialize): recorded "initialize", got "session/list"'),
        (tell("initialize"), 'message 1 (initialize): recorded "initialize", got "initialize"'),
        (ask(0, "initialize"), "message 1 (initialize): params.protocolVersion: recorded 1, got nothing"),
        (answer(9, by="c2a"), 'message 1 (initialize): recorded "initialize", got "an answer"'),
        (("c2a", [1]), 'message 1 (initialize): recorded "initialize", got "JSON that is not a message"'),
    ],
)
def test_a_message_of_another_kind_is_reported(texts: tuple[str, Any], problem: str) -> None:
    player = strict(TURN)
    say(player, texts)
    assert player.problems[0] == problem


def test_an_answer_is_compared_too() -> None:
    player = strict(TURN)
    say(player, *SAID[:3], answer(0, by="c2a", outcome={"outcome": "cancelled"}))
    assert player.problems == [
        'message 9 (answer to session/request_permission): result.outcome.outcome: recorded "selected", got "cancelled"',
        'message 9 (answer to session/request_permission): result.outcome.optionId: recorded "allow", got nothing',
    ]


def test_what_never_came_is_named() -> None:
    player = strict(TURN)
    say(player, *SAID[:2])
    player.end(0.0)
    assert player.problems == [
        "the client never sent: session/prompt (message 6)",
        "the client never sent: the answer to session/request_permission (message 9)",
    ]


def test_a_message_too_many_is_reported() -> None:
    player = strict(TURN)
    say(player, *SAID, ask(7, "session/list"))
    assert player.problems == ['session/list: recorded nothing, got {"params":{}}']


def test_what_may_differ_is_named_by_its_path() -> None:
    other = ask(0, "initialize", protocolVersion=1, clientInfo={"name": "other", "version": "2"})
    player = strict(TURN, "params.clientInfo", "params.prompt[*].text")
    assert len(say(player, other, SAID[1], prompt(2, "anything"))) == 5
    assert player.problems == []
    player = strict(TURN, "params.clientInfo.version")
    say(player, other)
    assert player.problems == ['message 1 (initialize): params.clientInfo.name: recorded "editor", got "other"']


def test_answers_have_the_ids_of_the_live_client_and_all_other_bytes_of_the_recorded_agent() -> None:
    player = strict([INITIALIZE, ("a2c", {"result": {"id": 0, "x": '"id": 1'}, "id": 0, "jsonrpc": "2.0"})])
    player.receive(b'{ "method" : "initialize", "id" : "un\\u0065" , "params" :%b}' % raw(INITIALIZE[1]["params"]), 0.0)
    assert player.ready(0.0) == [b'{"result":{"id":0,"x":"\\"id\\": 1"},"id":"un\\u0065","jsonrpc":"2.0"}\n']


def test_paths_are_those_of_the_live_directory() -> None:
    player = strict(TURN)
    events = say(player, SAID[0], ask(1, "session/new", cwd="/new", mcpServers=[]), SAID[2])
    moved = events[3]["params"]["update"]
    assert moved["title"] == "Read /new/a.py" and moved["locations"] == [{"path": "/new/a.py"}]
    assert player.problems == []


def test_verbatim_leaves_paths_alone_and_wants_the_recorded_directory() -> None:
    player = strict(TURN, verbatim=True)
    say(player, SAID[0], ask(1, "session/new", cwd="/new", mcpServers=[]))
    assert player.problems == ['message 3 (session/new): params.cwd: recorded "/old/songs", got "/new"']


def test_ids_that_the_client_makes_up_are_followed() -> None:
    recording = [
        INITIALIZE,
        asked(1, "terminal/create", sessionId="s1", command="ls"),
        answer(1, by="c2a", terminalId="t-old"),
        asked(2, "terminal/output", sessionId="s1", terminalId="t-old"),
    ]
    player = strict(recording)
    events = say(player, INITIALIZE, answer(1, by="c2a", terminalId="t-new"))
    assert events[1]["params"]["terminalId"] == "t-new" and player.problems == []


def test_what_was_sent_at_once_may_come_in_any_order() -> None:
    one, two = ask(1, "session/list"), ask(2, "session/new", cwd="/w")
    recording = [INITIALIZE, answer(0), one, two, tell("_note"), answer(1, sessions=[]), answer(2, sessionId="s")]
    player = strict(recording)
    events = say(player, INITIALIZE, tell("_note"), two, one)
    assert [line["id"] for line in events] == [0, 1, 2] and player.problems == []


def test_answers_may_come_in_any_order_but_not_before_they_are_asked_for() -> None:
    recording = [INITIALIZE, asked(1, "a"), asked(2, "b"), answer(1, by="c2a"), update("plan"), answer(2, by="c2a")]
    player = strict(recording)
    assert len(say(player, INITIALIZE, answer(2, by="c2a"))) == 2
    assert len(say(player, answer(1, by="c2a"))) == 1 and player.problems == []


def test_pauses_are_as_recorded_and_count_from_when_their_cause_came() -> None:
    player = strict(TURN, speed=1.0)
    assert player.wait(5.0) is None
    assert say(player, INITIALIZE, now=100.0) == [] and player.wait(100.25) == 0.75
    assert len(player.ready(101.0)) == 1 and player.wait(101.0) is None
    faster = strict(TURN, speed=10.0)
    say(faster, INITIALIZE, now=100.0)
    assert faster.wait(100.0) == pytest.approx(0.1)


def test_a_client_that_closes_its_end_gets_the_rest_at_once() -> None:
    player = strict(TURN, speed=1.0)
    say(player, INITIALIZE, now=100.0)
    assert len(player.end(100.0)) == 1


def test_noise_is_noise_again_and_a_message_that_was_cut_off_has_no_end() -> None:
    recording = [INITIALIZE, ("a2c", "warming up"), answer(0), ("a2c", '{"jsonrpc":"2.0","id":')]
    player = strict(recording)
    player.receive(raw(INITIALIZE), 0.0)
    assert player.ready(0.0) == [b"warming up\n", raw(answer(0)) + b"\n", b'{"jsonrpc":"2.0","id":']


def test_noise_of_the_client_is_expected_where_it_was_recorded() -> None:
    recording = [("c2a", "?"), ("a2c", {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}})]
    player = strict(recording)
    player.receive(b"?", 0.0)
    assert len(player.ready(0.0)) == 1 and player.problems == []
    other = strict(recording)
    other.receive(b"!", 0.0)
    assert other.problems == ['message 1 (a line that is not JSON): recorded "?", got "!"']


def test_what_is_nested_beyond_all_sense_is_noise() -> None:
    player = strict(TURN)
    player.receive(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + b"[" * 900 + b"]" * 900 + b"}", 0.0)
    assert player.problems == ['message 1 (initialize): recorded "initialize", got "a line that is not JSON"']


def test_a_cancelled_request_is_named_by_its_live_id() -> None:
    recording = [prompt(2, "go"), tell("$/cancel_request", requestId=2), answer(2, stopReason="cancelled")]
    player = strict(recording)
    say(player, prompt("two", "go"), tell("$/cancel_request", requestId="two"))
    assert player.problems == []
    other = strict(recording)
    say(other, prompt("two", "go"), tell("$/cancel_request", requestId=2))
    assert other.problems == ['message 2 ($/cancel_request): params.requestId: recorded "two", got 2']


def test_a_form_for_a_question_names_it_by_its_live_id() -> None:
    recording = [prompt(2, "go"), asked(1, "elicitation/create", requestId=2), asked(2, "_x"), tell("_y")]
    events = say(strict(recording), prompt("two", "go"))
    assert events[0]["params"]["requestId"] == "two"


def test_pauses_before_any_request_count_from_the_start() -> None:
    player = strict([("a2c", "one"), ("a2c", "two"), *TURN], speed=1.0)
    assert player.ready(500.0) == [b"one\n"] and player.wait(500.0) == 1.0


def test_a_method_is_text_of_a_peer_and_escaped_as_such() -> None:
    player = strict(TURN)
    say(player, ask(1, "\x1b[2J\nerror: all is well"))
    assert player.problems == [
        'message 1 (initialize): recorded "initialize", got "\\"\\\\u001b[2J\\\\nerror: all is well\\""'
    ]
