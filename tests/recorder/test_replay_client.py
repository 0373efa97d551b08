"""The stand-in for a client: sends what was sent, and compares what the agent answers."""

from typing import Any

from antiphon.recorder.replay.client import ClientPlayer
from tests.recorder.replay_recordings import INITIALIZE, TURN, answer, asked, client, prompt, raw, say, tell, update

SAID = [msg for dir, msg in TURN if dir == "c2a"]
ANSWERS = [line for line in TURN if line[0] == "a2c"]


def differences(player: ClientPlayer) -> list[str]:
    """What differed in the end."""
    player.end(0.0)
    return [str(one) for one in player.differences]


def start(recording: list[tuple[str, Any]] = TURN, *ignored: str, is_strict: bool = True) -> ClientPlayer:
    """A client that has sent its first message."""
    player = client(recording, *ignored, is_strict=is_strict)
    assert player.ready(0.0) == [raw(recording[0]) + b"\n"]
    return player


def test_the_recorded_agent_is_as_recorded() -> None:
    player = start()
    assert [SAID[0], *say(player, *ANSWERS)] == SAID
    assert player.is_through and not player.wants_more
    assert differences(player) == [] and player.matched == 7


def test_nothing_is_sent_before_what_it_responds_to() -> None:
    player = start()
    assert player.wait(0.0) is None
    assert say(player, ANSWERS[0]) == [SAID[1]]


def test_ids_that_the_agent_makes_up_are_followed() -> None:
    player = start()
    events = say(player, ANSWERS[0], answer(1, sessionId="live"))
    assert events[1]["params"]["sessionId"] == "live"
    events = say(
        player,
        update("available_commands_update", "live", availableCommands=[]),
        update("tool_call", "live", toolCallId="x9", **_of(ANSWERS[3], "title", "locations")),
        asked("q", "session/request_permission", sessionId="live", toolCall={"toolCallId": "x9"}, options=[]),
    )
    assert events == [{**SAID[3], "id": "q"}]
    say(player, update("agent_message_chunk", "live", content={"type": "text", "text": "done"}), ANSWERS[-1])
    assert differences(player) == []


def _of(line: tuple[str, Any], *fields: str) -> dict[str, Any]:
    return {field: line[1]["params"]["update"][field] for field in fields}


def test_a_changed_word_is_reported_with_its_path() -> None:
    player = start()
    say(player, *ANSWERS[:-2], update("agent_message_chunk", content={"type": "text", "text": "sorry"}))
    say(player, answer(2, stopReason="refusal"))
    assert differences(player) == [
        'message 10 (session/update): params.update.content.text: recorded "done", got "sorry"',
        'message 11 (answer to session/prompt): result.stopReason: recorded "end_turn", got "refusal"',
    ]
    assert player.differences[0].as_data() == {
        "message": 10, "what": "session/update", "path": "params.update.content.text", "recorded": "done", "got": "sorry",
    }  # fmt: skip


def test_tolerance_is_about_words_and_not_about_how_it_ended() -> None:
    player = start(is_strict=False)
    say(player, *ANSWERS[:-2], update("plan"), answer(2, stopReason="refusal", more=1))
    assert differences(player) == [
        'message 11 (answer to session/prompt): result.stopReason: recorded "end_turn", got "refusal"'
    ]
    player = start(is_strict=False)
    player.receive(b'{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no"}}', 0.0)
    player.end(0.0)
    found = [(one.message, one.path) for one in player.differences]
    assert found[:2] == [(2, "result"), (2, "error")] and (4, "") in found


def test_updates_that_are_missing_new_or_elsewhere_are_reported() -> None:
    player = start()
    say(player, *ANSWERS[:2], ANSWERS[3], ANSWERS[2], update("plan"), *ANSWERS[4:5], ANSWERS[-1])
    found = differences(player)
    assert len(found) == 3
    assert "its place" in found[0]
    assert found[1].startswith("message 10 (session/update): recorded {") and found[1].endswith("got nothing")
    assert found[2].startswith('session/update: recorded nothing, got {"sessionId"')


def test_a_question_that_the_agent_does_not_ask_is_not_answered() -> None:
    player = start()
    events = say(player, *ANSWERS[:4], *ANSWERS[5:])
    assert events == SAID[1:3] and player.is_through
    assert [one.message for one in player.differences] == [8]


def test_a_question_too_many_gets_the_last_answer_again_or_an_error() -> None:
    player = start()
    say(player, *ANSWERS[:5])
    again, refused = say(player, asked(5, "session/request_permission"), asked(6, "fs/read_text_file", path="/x"))
    assert again == {**SAID[3], "id": 5} and refused["error"]["code"] == -32601
    say(player, *ANSWERS[5:])
    assert [one.what for one in player.differences] == ["session/request_permission", "fs/read_text_file"]


def test_an_agent_that_falls_silent_or_dies_is_reported() -> None:
    player = start()
    say(player, *ANSWERS[:3])
    assert [(one.message, one.what) for one in (player.end(0.0), player.differences)[1]] == [
        (8, "session/request_permission"),
        (11, "answer to session/prompt"),
        (7, "session/update"),
        (10, "session/update"),
    ]


def test_times_may_differ_and_so_may_ignored_paths() -> None:
    recording = [INITIALIZE, answer(0, updatedAt="2026-01-02T03:04:05Z", version="1")]
    live = answer(0, updatedAt="2027-01-02T03:04:05.678+01:00", version="2")
    player = start(recording)
    say(player, live)
    assert differences(player) == ['message 2 (answer to initialize): result.version: recorded "1", got "2"']
    player = start(recording, "result.version")
    say(player, live)
    assert differences(player) == []


def test_a_cancel_waits_for_the_updates_before_it_but_not_for_ever() -> None:
    recording = [prompt(1, "go"), update("plan"), update("plan"), tell("session/cancel", sessionId="s1"), answer(1)]
    player = start(recording)
    assert say(player, update("plan")) == []
    wait = player.wait(0.0)
    assert wait is not None and wait > 1.0
    assert [line["method"] for line in say(player, update("plan"))] == ["session/cancel"]
    late = start(recording)
    say(late, update("plan"))
    assert len(late.ready(100.0)) == 1
    done = start(recording)
    assert [line["method"] for line in say(done, answer(1))] == ["session/cancel"]


def test_noise_of_the_agent_is_not_a_difference() -> None:
    player = start()
    player.receive(b"warning: old", 0.0)
    say(player, *ANSWERS, answer(77))
    assert [one.what for one in player.differences] == ["an answer to no question"]
    assert player.notes == ["ignored: a line that is not JSON"]


def test_one_piece_of_thousands_that_is_missing_is_one_difference() -> None:
    pieces = [update("agent_message_chunk", content={"type": "text", "text": str(n)}) for n in range(3000)]
    recording = [prompt(1, "go"), *pieces, answer(1, stopReason="end_turn")]
    player = start(recording)
    say(player, *pieces[:1499], *pieces[1500:], recording[-1])
    [found] = differences(player)
    assert found.startswith("message 1501 (session/update): recorded {") and found.endswith("got nothing")


def test_pieces_that_are_cut_otherwise_are_compared_one_by_one() -> None:
    def pieces(*texts: str) -> list[tuple[str, Any]]:
        return [update("agent_message_chunk", content={"type": "text", "text": text}) for text in texts]

    recording = [prompt(1, "go"), *pieces("a", "b", "c", "d"), answer(1, stopReason="end_turn")]
    player = start(recording)
    say(player, *pieces("a", "x", "d"), recording[-1])
    assert [one.message for one in player.differences] == [3]
    assert len(differences(player)) == 2


# Version 2: the next prompt waits for the end of the work, which is an update.


def test_a_client_of_version_2_waits_for_idle_before_it_goes_on() -> None:
    recording = [
        INITIALIZE,
        answer(0, protocolVersion=2),
        prompt(1, "sing"),
        answer(1, messageId="m"),
        update("state_update", state="running"),
        update("agent_message_chunk", messageId="a", content={"type": "text", "text": "la"}),
        update("state_update", state="idle", stopReason="end_turn"),
        prompt(2, "again"),
        answer(2, messageId="n"),
    ]
    player = start(recording, is_strict=False)
    said = [msg for dir, msg in recording if dir == "c2a"]
    assert say(player, recording[1]) == [said[1]]
    assert say(player, *recording[3:6]) == []
    refused = update("state_update", state="idle", stopReason="refusal")
    assert say(player, refused) == [said[2]]
    say(player, recording[-1])
    assert differences(player) == [
        'message 7 (session/update): params.stopReason: recorded "end_turn", got "refusal"',
    ]
