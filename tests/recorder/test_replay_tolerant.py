"""The tolerant stand-in for an agent: each question is answered as the recording answers such a question."""

from tests.recorder.replay_recordings import INITIALIZE, TURN, answer, ask, asked, prompt, say, tell, tolerant, update

SAID = [line for line in TURN if line[0] == "c2a"]
ANSWERED = [msg for dir, msg in TURN if dir == "a2c"]


def test_the_recorded_client_receives_what_was_recorded() -> None:
    player = tolerant(TURN)
    assert say(player, *SAID) == ANSWERED
    assert player.notes == []


def test_another_client_receives_the_same_and_each_difference_is_noted_once() -> None:
    player = tolerant(TURN)
    events = say(
        player, ask("a", "initialize", protocolVersion=1), ask("b", "session/new", cwd="/old/songs", mcpServers=[])
    )
    events += say(player, tell("_focus"), tell("_focus"), prompt("c", "hello"), answer(0, by="c2a", outcome={}))
    assert [line["id"] for line in events if "result" in line] == ["a", "b", "c"]
    assert player.notes == [
        'message 1 (initialize): params.clientInfo: recorded {"name":"editor","version":"1"}, got nothing',
        "ignored: _focus",
        'message 6 (session/prompt): params.prompt[0].text: recorded "fix the tests", got "hello"',
    ]
    assert player.problems == []


def test_what_is_not_requested_is_left_out() -> None:
    player = tolerant(TURN)
    events = say(player, prompt(9, "now"), answer(0, by="c2a"))
    assert [line.get("method", line.get("id")) for line in events] == [
        "session/update",
        "session/request_permission",
        "session/update",
        9,
    ]


def test_what_comes_after_the_answer_of_the_client_waits_for_it() -> None:
    player = tolerant(TURN)
    assert len(say(player, prompt(9, "now"))) == 2
    assert player.wait(0.0) is None
    assert len(say(player, answer(0, by="c2a"))) == 2


def test_a_second_session_is_the_recorded_one_again() -> None:
    player = tolerant(TURN)
    first = say(player, ask(1, "session/new", cwd="/a", mcpServers=[]))
    second = say(player, ask(2, "session/new", cwd="/b", mcpServers=[]))
    assert first[0]["result"] == second[0]["result"] and len(first) == len(second) == 2
    assert "played again: session/new (message 3)" in player.notes


def test_the_same_question_gets_its_own_answer_and_others_the_next() -> None:
    recording = [INITIALIZE, answer(0)]
    for id, text in enumerate(("one", "two", "three"), 1):
        recording += [prompt(id, text), answer(id, stopReason=text)]
    player = tolerant(recording)
    events = say(player, prompt(7, "three"), prompt(8, "else"), prompt(9, "else"), prompt(10, "else"))
    assert [line["result"]["stopReason"] for line in events] == ["three", "one", "two", "three"]


def test_a_session_receives_its_own_updates() -> None:
    recording = [
        INITIALIZE,
        answer(0),
        prompt(1, "x", "s1"),
        prompt(2, "y", "s2"),
        update("plan", "s1"),
        update("plan", "s2"),
    ]
    recording += [answer(2, stopReason="end_turn"), answer(1, stopReason="refusal")]
    player = tolerant(recording)
    events = say(player, prompt(5, "z", "s2"))
    assert events[0]["params"]["sessionId"] == "s2" and events[1]["result"]["stopReason"] == "end_turn"


def test_methods_that_were_never_recorded_are_refused() -> None:
    player = tolerant(TURN)
    unknown, missing = say(player, ask(1, "session/dance"), ask(2, "session/list"))
    assert unknown["error"]["code"] == -32601
    assert missing["error"] == {"code": -32603, "message": "replay: the recording has no answer to session/list"}


def test_a_recording_that_ends_in_a_turn_answers_with_an_error() -> None:
    player = tolerant(TURN[:7])
    *_, last = say(player, prompt(3, "go"))
    assert last["error"]["message"] == "replay: the recording ends without an answer to session/prompt"


def test_cancelling_ends_the_turn_at_once_and_cancels_the_request() -> None:
    player = tolerant(TURN)
    say(player, prompt(3, "go"))
    assert say(player, tell("session/cancel", sessionId="s1")) == [
        {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}
    ]
    assert say(player, answer(0, by="c2a", outcome={"outcome": "cancelled"})) == []
    assert player.wait(0.0) is None


def test_cancelling_another_session_changes_nothing() -> None:
    player = tolerant(TURN)
    say(player, prompt(3, "go"))
    assert say(player, tell("session/cancel", sessionId="s2")) == []
    assert len(say(player, answer(0, by="c2a"))) == 2


def test_cancelling_as_recorded_ends_as_recorded() -> None:
    recording = [prompt(1, "go"), asked(0, "session/request_permission"), tell("session/cancel", sessionId="s1")]
    recording += [answer(0, by="c2a"), update("tool_call_update", toolCallId="c"), answer(1, stopReason="cancelled")]
    player = tolerant(recording)
    assert len(say(player, prompt(1, "go"))) == 1
    assert len(say(player, answer(0, by="c2a"))) == 0
    assert [line.get("id") for line in say(player, tell("session/cancel", sessionId="s1"))] == [None, 1]


def test_in_version_2_cancelling_sends_the_state_that_ends_the_turn() -> None:
    recording = [
        prompt(1, "go"),
        answer(1),
        update("agent_message_chunk"),
        tell("_x"),
        update("state_update", state="idle"),
    ]
    player = tolerant(recording, speed=1.0)
    assert say(player, prompt(1, "go"), now=10.0) == []
    assert len(player.ready(11.0)) == 1
    [idle] = say(player, tell("session/cancel", sessionId="s1"), now=11.5)
    assert idle["params"]["update"]["state"] == "idle"


def test_a_session_that_the_client_names_is_named_so_by_us() -> None:
    recording = [ask(1, "session/load", sessionId="old", cwd="/w", mcpServers=[]), update("plan", "old"), answer(1)]
    player = tolerant(recording)
    events = say(player, ask(1, "session/load", sessionId="new", cwd="/w", mcpServers=[]))
    assert events[0]["params"]["sessionId"] == "new"


def test_a_question_of_ours_that_is_open_twice_has_two_ids() -> None:
    player = tolerant(TURN)
    say(player, prompt(1, "a"))
    again = say(player, prompt(2, "b"))
    assert again[1]["id"] == "replay-1"
    assert [line.get("id") for line in say(player, answer("replay-1", by="c2a"))] == [None, 2]
    assert [line.get("id") for line in say(player, answer(0, by="c2a"))] == [None, 1]


def test_what_was_sent_before_any_request_is_sent_so_again() -> None:
    player = tolerant([("a2c", "hello"), *TURN])
    assert player.ready(0.0) == [b"hello\n"]


def test_pauses_are_those_within_the_exchange() -> None:
    player = tolerant(TURN, speed=2.0)
    assert say(player, prompt(1, "a"), now=50.0) == [] and player.wait(50.0) == 0.5
    assert len(player.ready(51.0)) == 2 and player.wait(51.0) is None
    assert say(player, answer(0, by="c2a"), now=70.0) == [] and player.wait(70.0) == 0.5


def test_a_terminal_is_the_one_of_this_time_also_when_played_again() -> None:
    recording = [prompt(1, "ls"), asked(1, "terminal/create"), answer(1, by="c2a", terminalId="old")]
    recording += [asked(2, "terminal/output", terminalId="old"), answer(2, by="c2a"), answer(1, stopReason="end_turn")]
    player = tolerant(recording)
    for live in ("first", "second"):
        say(player, prompt(live, "ls"))
        [output] = say(player, answer(1, by="c2a", terminalId=live))
        assert output["params"]["terminalId"] == live
        assert say(player, answer(2, by="c2a"))[0]["id"] == live


# Version 2: the answer accepts a prompt, and a state ends the work.

PROMPTED = [
    ask(0, "initialize", protocolVersion=2, info={"name": "editor", "version": "1"}),
    answer(0, protocolVersion=2, info={"name": "singer", "version": "1"}, capabilities={"session": {}}),
    ask(1, "session/new", cwd="/old/songs"),
    answer(1, sessionId="s1"),
    prompt(2, "sing"),
    answer(2, messageId="m"),
    update("state_update", state="running"),
    update("agent_message_chunk", messageId="n", content={"type": "text", "text": "la"}),
    update("state_update", state="idle", stopReason="end_turn"),
]


def test_what_comes_after_the_answer_to_a_prompt_is_played_in_version_2() -> None:
    player = tolerant(PROMPTED)
    events = say(player, *(line for line in PROMPTED if line[0] == "c2a"))
    assert events == [msg for dir, msg in PROMPTED if dir == "a2c"]


def test_a_cancelled_turn_of_version_2_ends_with_a_state() -> None:
    player = tolerant(PROMPTED, speed=1.0)
    said = [line for line in PROMPTED if line[0] == "c2a"]
    say(player, *said[:2], now=8.0)
    say(player, said[2], now=9.0)
    assert [msg["result"] for msg in say(player, tell("_tick"), now=10.0)] == [{"messageId": "m"}]
    [told] = say(player, tell("session/cancel", sessionId="s1"), now=10.5)
    assert told["params"]["update"] == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}
    assert player.wait(10.5) is None


def test_methods_of_another_version_are_refused() -> None:
    [refused] = say(tolerant(PROMPTED), ask(9, "session/load", sessionId="s1"))
    assert refused["error"]["code"] == -32601
    [refused] = say(tolerant(PROMPTED), ask(9, "tool_call/cancel", sessionId="s1", toolCallId="c"))
    assert refused["error"]["code"] == -32603
