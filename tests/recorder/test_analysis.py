"""What a recording says: its turns, calls, questions, errors, sizes and slow spots."""

from typing import Any

import msgspec

from antiphon.recorder.analysis import ByteCount, RecordedFailure, SlowSpan
from antiphon.recorder.analysis_builder import AnalysisBuilder, analyse
from antiphon.recorder.labels import answer_label, request_label, update_label
from antiphon.traffic.entries import entries_of
from tests.recorder.recordings import Tape
from tests.rows import each_row


def test_client_agent_and_their_bytes_are_named() -> None:
    analysis = Tape().meet().later(2.5).prompt(2).answer(2, {"stopReason": "end_turn"}).analysis()
    assert analysis.client is not None and analysis.agent is not None
    assert (analysis.client.name, analysis.agent.name, analysis.version, analysis.judged) == (
        "editor",
        "singer",
        1,
        True,
    )
    assert (analysis.messages, analysis.undecodable, analysis.duration) == (6, 0, 2.5)
    assert [(one.id, one.how, one.message) for one in analysis.sessions] == [("s", "new", 3)]
    assert analysis.bytes == ByteCount(
        c2a=sum(one.bytes for one in analysis.methods if one.dir == "c2a"),
        a2c=sum(one.bytes for one in analysis.methods if one.dir == "a2c"),
    )


def test_a_turn_lasts_from_its_prompt_to_its_answer() -> None:
    tape = Tape().meet().later(1).prompt(2, "sing a song").later(0.25).say("la").later(0.25).say("lala")
    (turn,) = tape.later(0.5).answer(2, {"stopReason": "max_tokens"}).analysis().turns
    assert (turn.prompt, turn.message, turn.answer) == ("sing a song", 5, 8)
    assert (turn.start, turn.end, turn.duration, turn.first_update) == (1.0, 2.0, 1.0, 0.25)
    assert (turn.stop_reason, turn.updates, turn.text, turn.error) == ("max_tokens", 2, 6, None)


def test_a_turn_that_failed_has_a_reason_and_one_that_goes_on_has_no_end() -> None:
    failed, going = Tape().meet().prompt(2).refuse(2, -32603, "no voice").prompt(3).say("la").analysis().turns
    assert (failed.error, failed.stop_reason, going.end, going.duration) == ("no voice", None, None, None)


def test_a_call_lasts_from_its_first_word_to_its_last_status() -> None:
    tape = Tape().meet().prompt(2).update("tool_call", toolCallId="c", title="Read", kind="read", status="pending")
    tape.later(0.5).update("tool_call_update", toolCallId="c", title="Read a.txt", status="completed")
    (call,) = tape.later(1).answer(2, {"stopReason": "end_turn"}).analysis().calls
    assert (call.title, call.kind, call.status, call.turn, call.duration) == ("Read a.txt", "read", "completed", 1, 0.5)


def test_an_id_that_is_used_again_in_a_later_turn_is_another_call() -> None:
    tape = Tape().meet()
    for id in (2, 3):
        tape.prompt(id).update("tool_call", toolCallId="c", title="Read", status="completed")
        tape.answer(id, {"stopReason": "end_turn"})
    assert [call.turn for call in tape.analysis().calls] == [1, 2]


def test_a_replayed_call_of_a_loaded_session_is_not_a_new_call() -> None:
    tape = Tape().meet().prompt(2).update("tool_call", toolCallId="c", title="Read", status="completed")
    tape.answer(2, {"stopReason": "end_turn"}).ask(3, "session/load", {"sessionId": "s", "cwd": "/w", "mcpServers": []})
    analysis = tape.update("tool_call", toolCallId="c", title="Read", status="pending").answer(3, {}).analysis()
    assert [(call.turn, call.status) for call in analysis.calls] == [(1, "completed")]


def test_a_question_may_be_the_first_to_name_its_call_and_its_wait_counts_for_the_turn() -> None:
    tape = Tape().meet().prompt(2).permission(0, {"toolCallId": "c", "title": "Write"}).later(3).choose(0, "yes")
    analysis = tape.answer(2, {"stopReason": "end_turn"}).analysis()
    (wait,) = analysis.waits
    assert (wait.call, wait.title, wait.duration, wait.outcome, wait.turn) == ("c", "Write", 3.0, "allow_once", 1)
    assert analysis.turns[0].waited == 3.0 and analysis.calls[0].title == "Write"


def test_two_questions_at_once_are_waited_for_once() -> None:
    tape = Tape().meet().prompt(2).permission(0, {"toolCallId": "a"}).later(1).permission(1, {"toolCallId": "b"})
    analysis = tape.later(1).choose(0, "no").later(1).choose(1, "yes").answer(2, {"stopReason": "end_turn"}).analysis()
    assert [wait.outcome for wait in analysis.waits] == ["reject_once", "allow_once"] and analysis.turns[
        0
    ].waited == 3.0


def test_a_form_that_was_declined() -> None:
    tape = Tape().meet().prompt(2).ask(0, "elicitation/create", {"sessionId": "s", "message": "Name?"}, "a2c")
    (wait,) = tape.answer(0, {"action": "decline"}, "c2a").analysis().waits
    assert (wait.kind, wait.title, wait.outcome) == ("elicitation", "Name?", "decline")


def test_errors_name_their_request_or_that_there_was_none() -> None:
    analysis = Tape().meet().ask(2, "session/list", {}).refuse(2, -32601, "no").refuse(None, -32700, "what?").analysis()
    assert analysis.errors == [
        RecordedFailure(6, "session/list", -32601, "no"),
        RecordedFailure(7, None, -32700, "what?"),
    ]


def test_requests_without_a_response_are_listed() -> None:
    assert Tape().meet().ask(2, "session/list", {}).analysis().unanswered == [5]


def test_slow_are_silences_responses_and_waits_but_not_the_time_in_which_the_other_side_is_asked() -> None:
    tape = Tape().ask(9, "session/list", {}).later(4).answer(9, {"sessions": []}).meet().prompt(2)
    tape.later(2).say("la").permission(0, {"toolCallId": "c", "title": "Write"}).later(3).choose(0, "yes").say("lala")
    assert tape.answer(2, {"stopReason": "end_turn"}).analysis().slow == [
        SlowSpan(2, "answer to session/list", 4.0),
        SlowSpan(10, "permission: Write", 3.0),
        SlowSpan(8, "silence before agent_message_chunk", 2.0),
    ]


def test_updates_are_measured_by_their_kind() -> None:
    analysis = Tape().meet().say("a").say("abc").update("plan", entries=[]).analysis()
    (chunks,) = [one for one in analysis.methods if one.method == "session/update agent_message_chunk"]
    assert chunks.count == 2 and chunks.largest < chunks.bytes < 2 * chunks.largest
    assert any(one.method == "session/update plan" for one in analysis.methods)


def test_a_deviation_names_its_rule_its_message_and_its_line() -> None:
    tape = Tape().line(t=0, dir="note", note="begins").meet().ask(2, "session/set_mode", {"sessionId": "s"})
    (found,) = [one for one in tape.analysis().deviations if one.rule == "schema.params"]
    assert (found.message, found.line, found.level) == (5, 6, "must")
    assert "modeId" in found.text and found.link.startswith("https://")


def test_version_2_is_judged_by_its_own_rules_and_ends_its_turns_in_its_own_way() -> None:
    tape = Tape().meet(2).prompt(2).update("user_message", messageId="m", content=[{"type": "text", "text": "sing"}])
    tape.answer(2, {"messageId": "m"}).update("state_update", state="running").later(1)
    tape.update("agent_message", messageId="n", content=[{"type": "text", "text": "la"}])
    tape.update("tool_call_update", toolCallId="c", title="Tune", status="in_progress")
    call = {"type": "tool_call", "toolCall": {"toolCallId": "c"}}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    asked = {"sessionId": "s", "title": "May I tune?", "subject": call, "options": options}
    tape.ask(9, "session/request_permission", asked, "a2c").later(2).choose(9, "yes")
    tape.update("tool_call_update", toolCallId="c", status="completed")
    analysis = tape.update("state_update", state="idle", stopReason="end_turn").analysis()
    assert (analysis.version, analysis.judged, analysis.deviations) == (2, True, [])
    [turn] = analysis.turns
    assert (turn.duration, turn.stop_reason, turn.text, turn.calls, turn.waited) == (3.0, "end_turn", 2, 1, 2.0)
    assert [(call.title, call.status, call.duration) for call in analysis.calls] == [("Tune", "completed", 2.0)]
    assert [(wait.title, wait.call, wait.outcome) for wait in analysis.waits] == [("May I tune?", "c", "allow_once")]
    tape.update("agent_message_chunk", content={"type": "text", "text": "la"})
    assert [found.rule for found in tape.analysis().deviations] == ["schema.update"]


def test_a_prompt_that_is_held_is_not_ended_by_the_end_of_another() -> None:
    tape = Tape().meet(2).prompt(2).answer(2, {"messageId": "m"}).update("state_update", state="running").prompt(3)
    tape.later(1).update("user_message", messageId="m", content=[])
    tape.update("state_update", state="idle", stopReason="end_turn").later(1)
    tape.update("user_message", messageId="n", content=[]).update("state_update", state="running")
    failed = {"code": -32603, "message": "no voice"}
    tape.later(1).update("state_update", state="idle", stopReason="error", error=failed).answer(3, {"messageId": "n"})
    turns = tape.analysis().turns
    assert [(turn.duration, turn.stop_reason, turn.error) for turn in turns] == [
        (1.0, "end_turn", None),
        (3.0, "error", "no voice"),
    ]


def test_a_version_that_is_not_known_is_shown_and_not_judged() -> None:
    analysis = Tape().meet(3).ask(2, "session/sing", {}).analysis()
    assert (analysis.version, analysis.judged) == (3, False)


def test_a_second_handshake_begins_another_connection_with_ids_of_its_own() -> None:
    tape = Tape().meet().prompt(2).later(5)
    tape.t = 0.0  # the clock of another recording, written behind the first
    analysis = tape.meet().prompt(2).later(1).answer(2, {"stopReason": "end_turn"}).analysis()
    assert [one.message for one in analysis.conversations] == [1, 6] and analysis.unanswered == [5]
    assert [(turn.end, turn.duration) for turn in analysis.turns] == [(None, None), (1.0, 1.0)]
    assert [one.how for one in analysis.sessions] == ["new", "new"]


def test_a_handshake_that_was_refused_is_tried_again_in_the_same_connection() -> None:
    tape = Tape().ask(0, "initialize", {"protocolVersion": 2}).refuse(0, -32022, "unsupported").meet()
    assert len(tape.analysis().conversations) == 1


def test_times_of_day_become_times_since_the_beginning() -> None:
    tape = Tape().later(1_800_000_000)
    analysis, shown = tape.meet().later(2).prompt(2).read_back()
    assert (analysis.duration, shown[0].t, analysis.turns[0].start) == (2.0, 0.0, 2.0)


def test_lines_of_other_kinds_noise_and_a_torn_last_line_are_counted() -> None:
    tape = Tape().line(t=0, dir="note", note="x").meet().line(t=1, dir="a2c", raw="Traceback (most recent")
    tape.lines.append(b'{"t": 2, "dir": "a2c", "msg": {"jso')
    analysis, shown = tape.read_back()
    assert (analysis.messages, analysis.undecodable, analysis.skipped) == (4, 2, 1)
    assert (shown[-1].kind, shown[-1].label) == ("noise", "Traceback (most recent")


@each_row(
    "msg",
    [
        None, 1, "x", [], [{"method": "initialize", "id": 1}], {}, {"id": 1}, {"method": 1, "id": []}, {"error": 1}, {"result": 1, "id": {}},
        {"method": "session/update", "params": []}, {"method": "session/update", "params": {"sessionId": 1, "update": 2}},
        {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": [], "content": 1, "toolCallId": 3}}},
        {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": 3}}},
        {"method": "session/prompt", "id": 5, "params": {"sessionId": "s", "prompt": {"text": 1}}},
        {"method": "session/request_permission", "id": 6, "params": {"sessionId": "s", "toolCall": 1, "options": [3, {"optionId": 1}]}},
        {"method": "terminal/create", "id": 7, "params": {"command": 1, "args": "x"}}, {"method": "initialize", "id": 8, "params": 1},
        {"id": 2, "result": {"stopReason": {}}}, {"id": 2, "error": {"code": True, "message": [], "data": {"message": 1}}},
    ],
)  # fmt: skip
@each_row("dir", ["c2a", "a2c"])
def test_nothing_that_peers_send_breaks_the_analysis(msg: object, dir: str) -> None:
    tape = Tape().meet().prompt(2).line(t=1, dir=dir, msg=msg).say("la").answer(2, {"stopReason": "end_turn"})
    analysis, shown = tape.read_back()
    assert analysis.messages == len(shown) == 8 and msgspec.json.decode(msgspec.json.encode(analysis))["messages"] == 8


def test_a_message_is_shown_by_a_few_words() -> None:
    tape = Tape().meet().prompt(2, "sing\n  a song").update("tool_call", toolCallId="c", title="Read", status="pending")
    tape.update("tool_call_update", toolCallId="c", status="completed").answer(2, {"stopReason": "end_turn"})
    _, shown = tape.read_back()
    assert [(one.kind, one.name, one.label, one.turn) for one in shown[4:]] == [
        ("request", "session/prompt", "sing a song", 1),
        ("notification", "tool_call", "Read: pending", 1),
        ("notification", "tool_call_update", "Read: completed", 1),
        ("answer", "session/prompt", "end_turn", 1),
    ]


def test_the_analysis_is_right_after_every_message() -> None:
    builder, seen = AnalysisBuilder(), []
    for entry in entries_of(Tape().meet().prompt(2).say("la").answer(2, {"stopReason": "end_turn"}).lines):
        builder.add(entry)
        seen.append((builder.analysis().messages, builder.going is not None))
    assert seen == [(1, False), (2, False), (3, False), (4, False), (5, True), (6, True), (7, False)]


def test_without_a_checker_the_analysis_has_that_nothing_was_checked() -> None:
    analysis, _ = analyse(Tape().meet().ask(2, "session/set_mode", {}).lines, judged=False)
    assert (analysis.judged, analysis.deviations) == (False, [])


LABELS_V2: dict[str, tuple[dict[str, Any], str]] = {
    "whole message": ({"sessionUpdate": "agent_message", "messageId": "m", "content": [{"type": "text", "text": "la"}]}, "la"),
    "cleared message": ({"sessionUpdate": "agent_message", "messageId": "m", "content": []}, "m cleared"),
    "message kept": ({"sessionUpdate": "agent_thought", "messageId": "m", "_meta": {}}, "m"),
    "piece of a call": (
        {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": {"type": "content", "content": {"type": "text", "text": "la"}}},
        "la",
    ),
    "plan": ({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [{}]}}, "p 1 entry"),
    "plan of another type": ({"sessionUpdate": "plan_update", "plan": {"type": "_tree", "planId": "p"}}, "p"),
    "command": ({"sessionUpdate": "terminal_update", "terminalId": "t", "command": "make test"}, "make test"),
    "exit": ({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"exitCode": 1}}, "exit code 1"),
    "signal": ({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {"signal": "TERM"}}, "TERM"),
    "exit without a code": ({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {}}, "exited"),
    "output": ({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "bGFsYWxh"}, "6 B"),
    "options": (
        {"sessionUpdate": "config_option_update", "configOptions": [{"configId": "mode", "currentValue": "plan"}]},
        "mode = plan",
    ),
    "compaction": ({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed"}, "completed"),
}  # fmt: skip


@each_row("name", LABELS_V2)
def test_an_update_of_version_2_has_a_label(name: str) -> None:
    update, label = LABELS_V2[name]
    assert update_label(update) == label


REQUESTS_V2 = [
    ("session/resume", {"sessionId": "s", "cwd": "/w", "replayFrom": {"type": "start"}}, "s from start"),
    ("session/resume", {"sessionId": "s", "cwd": "/w"}, "/w"),
    ("tool_call/cancel", {"sessionId": "s", "toolCallId": "c"}, "c"),
    ("$/cancel_request", {"requestId": 7}, "request 7"),
]


@each_row(("method", "params", "label"), REQUESTS_V2)
def test_a_request_of_version_2_has_a_label(method: str, params: dict[str, Any], label: str) -> None:
    assert request_label(method, params) == label
    assert answer_label("session/prompt", {"result": {"messageId": "m"}}) == "m"
