"""A kept session is replayed as it was sent: the same lines that the CLI would have sent."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.engines.claude import wire
from antiphon.engines.claude.history.replay import wire_lines
from tests.engines.claude.history.files import NEW, OLD, SessionFile, call, text, thinking


@pytest.fixture(params=[NEW, OLD])
def session(tmp_path: Path, request: pytest.FixtureRequest) -> SessionFile:
    return SessionFile(tmp_path, version=request.param)


def replayed_lines(session: SessionFile) -> list[str]:
    """Each line in a few words, indented by the call of the sub-agent that sent it."""
    return [words for line in wire_lines(session.path) for words in _words(line)]


def _words(line: wire.Line) -> Iterator[str]:
    if isinstance(line, wire.User | wire.Assistant):
        under = f"{line.parent_tool_use_id}> " if line.parent_tool_use_id else ""
        who = "user" if isinstance(line, wire.User) else "agent"
        who = "summary" if isinstance(line, wire.User) and line.is_synthetic else who
        for block in line.message.blocks:
            match block:
                case wire.ClaudeTextBlock(text=details):
                    yield f"{under}{who}: {details}"
                case wire.ThinkingBlock(thinking=thought):
                    yield f"{under}thought: {thought}"
                case wire.ToolUseBlock(id=id, name=name):
                    yield f"{under}call {id}: {name}"
                case wire.ToolResultBlock(tool_use_id=id, content=content):
                    yield f"{under}result {id}: {content}"
                case _:
                    yield f"{under}{who} {type(block).__name__}"
    else:
        yield type(line).__name__


def test_text_thoughts_calls_and_results_come_in_their_order(session: SessionFile) -> None:
    session.user("fix it")
    session.setting()
    session.assistant(thinking("hm"), message="m1")
    session.assistant(text("I look."), message="m1")
    session.assistant(call("t1", "Bash", command="ls"), message="m1")
    session.result("t1", "a.txt", {"stdout": "a.txt", "stderr": ""})
    session.assistant(text("Done."))
    assert replayed_lines(session) == [
        "user: fix it",
        "thought: hm",
        "agent: I look.",
        "call t1: Bash",
        "result t1: a.txt",
        "agent: Done.",
    ]


def test_a_users_line_keeps_its_id_and_a_result_its_structured_twin(session: SessionFile) -> None:
    asked = session.user("write")
    session.assistant(call("t1", "Write", file_path="/a", content="x"))
    session.result(
        "t1", "ok", {"type": "create", "filePath": "/a", "content": "x", "structuredPatch": [], "originalFile": None}
    )
    first, _, last = wire_lines(session.path)
    assert isinstance(first, wire.User) and first.uuid == asked and first.tool_use_result is None
    assert isinstance(last, wire.User) and isinstance(last.tool_use_result, dict)
    assert last.tool_use_result["type"] == "create"


def test_what_was_asked_another_way_is_not_replayed(session: SessionFile) -> None:
    start = session.user("hello")
    answer = session.assistant(text("hi"))
    session.user("a bad question")
    session.assistant(text("a bad answer"))
    session.user("a good question", after=answer)
    session.assistant(text("a good answer"))
    assert start and replayed_lines(session) == [
        "user: hello",
        "agent: hi",
        "user: a good question",
        "agent: a good answer",
    ]


def test_a_session_that_was_rewound_ends_where_it_was_rewound_to(session: SessionFile) -> None:
    session.user("one")
    answer = session.assistant(text("first"))
    session.user("two")
    session.alone("last-prompt", lastPrompt="two", leafUuid=answer, explicit=True)
    assert replayed_lines(session) == ["user: one", "agent: first"]
    session.user("three", after=answer)
    assert replayed_lines(session) == ["user: one", "agent: first", "user: three"]


def test_a_session_rewound_to_its_beginning_is_empty(session: SessionFile) -> None:
    session.user("one")
    session.alone("last-prompt", leafUuid=None, explicit=True)
    assert replayed_lines(session) == []


def test_results_of_calls_made_at_once_are_all_replayed(session: SessionFile) -> None:
    session.user("both")
    one = session.assistant(call("t1", "Bash", command="1"), message="m")
    two = session.assistant(call("t2", "Bash", command="2"), message="m")
    session.assistant(text("so"), message="m")
    session.result("t1", "1", after=one)
    session.result("t2", "2", after=two)
    session.assistant(text("done"))
    texts = ["user: both", "call t1: Bash", "call t2: Bash", "agent: so", "result t1: 1", "result t2: 2", "agent: done"]
    assert replayed_lines(session) == texts


def test_a_call_has_one_result_even_where_another_branch_has_one_too(session: SessionFile) -> None:
    session.user("go")
    called = session.assistant(call("t1", "Bash", command="1"))
    session.result("t1", "of another branch")
    session.result("t1", "of this one", after=called)
    session.assistant(text("done"))
    assert replayed_lines(session) == ["user: go", "call t1: Bash", "result t1: of this one", "agent: done"]


def test_slash_commands_are_replayed_as_they_were_typed_and_what_they_printed_as_an_answer(
    session: SessionFile,
) -> None:
    session.user("hello")
    session.command("/context", printed="\x1b[1m## Usage\x1b[22m\n")
    session.command("/greet", "Bob")
    session.user([text("Greet Bob warmly")], isMeta=True)
    session.assistant(text("Hi Bob"))
    assert replayed_lines(session) == [
        "user: hello",
        "user: /context",
        "agent: ## Usage",
        "user: /greet Bob",
        "agent: Hi Bob",
    ]


def test_an_old_version_writes_a_command_it_cannot_run_as_a_remark(session: SessionFile) -> None:
    session.user("hello")
    session.say("system", subtype="local_command", content="/nope x")
    session.say(
        "system", subtype="local_command", content="<local-command-stdout>Unknown command: /nope</local-command-stdout>"
    )
    assert replayed_lines(session) == ["user: hello", "user: /nope x", "agent: Unknown command: /nope"]


def test_commands_of_the_users_shell_are_replayed_with_what_they_printed(session: SessionFile) -> None:
    session.user("<bash-input>ls</bash-input>")
    session.user("<bash-stdout>a\n```\nb</bash-stdout><bash-stderr></bash-stderr>")
    assert replayed_lines(session) == ["user: !ls", "agent: ````\na\n```\nb\n````"]


@pytest.mark.parametrize(
    "note",
    [
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
        "<system-reminder>\nRemember the date.\n</system-reminder>",
        "<local-command-caveat>not for you</local-command-caveat>",
        "<ide_opened_file>The user opened a.py</ide_opened_file>",
        "<command-name>/clear</command-name><command-args></command-args>",
        "<local-command-stdout>Compacted </local-command-stdout>",
        "<local-command-stdout></local-command-stdout>",
        "",
    ],
)
def test_notes_for_the_model_are_not_replayed(session: SessionFile, note: str) -> None:
    session.user(note)
    session.user([text(note)])
    session.assistant(text("yes?"))
    assert replayed_lines(session) == ["agent: yes?"]


def test_a_reminder_inside_a_prompt_is_cut_out(session: SessionFile) -> None:
    session.user("before <system-reminder>x</system-reminder>after")
    assert replayed_lines(session) == ["user: before after"]


def test_a_message_about_tags_is_not_dropped(session: SessionFile) -> None:
    session.user("what does <command-name> mean?")
    session.user("<div>what is this?</div>")
    assert replayed_lines(session) == ["user: what does <command-name> mean?", "user: <div>what is this?</div>"]


@pytest.mark.parametrize("mark", ["isMeta", "isVisibleInTranscriptOnly"])
def test_marked_lines_are_not_replayed(session: SessionFile, mark: str) -> None:
    session.user("hidden", **{mark: True})
    assert replayed_lines(session) == []


def test_messages_of_others_to_the_model_are_not_replayed_as_the_users(session: SessionFile) -> None:
    session.user("from a colleague", origin={"kind": "peer"})
    session.user("from me", origin={"kind": "human"})
    assert replayed_lines(session) == ["user: from me"]


def test_pictures_stay_in_the_prompt(session: SessionFile) -> None:
    session.user(
        [text("look"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]
    )
    assert replayed_lines(session) == ["user: look", "user ClaudeImageBlock"]


def test_a_message_in_the_middle_of_a_turn_is_replayed_where_it_reached_the_model(session: SessionFile) -> None:
    session.user("slow")
    session.assistant(call("t1", "Bash", command="sleep"))
    session.result("t1", "ok")
    queued = {"type": "queued_command", "prompt": "hurry", "source_uuid": "own-id", "commandMode": "prompt"}
    session.say("attachment", attachment=queued, rendered=[{"content": "<system-reminder>hurry</system-reminder>"}])
    session.assistant(text("fast now"))
    assert replayed_lines(session) == ["user: slow", "call t1: Bash", "result t1: ok", "user: hurry", "agent: fast now"]
    assert [line.uuid for line in wire_lines(session.path) if isinstance(line, wire.User)][-1] == "own-id"


def test_an_error_of_the_api_is_replayed_as_it_was_shown_and_a_made_up_answer_is_not(session: SessionFile) -> None:
    session.user("go")
    session.assistant(text("API Error: 400 bad"), isApiErrorMessage=True, error="unknown", apiErrorStatus=400)
    session.assistant(text("No response requested."), model="<synthetic>")
    lines = [*wire_lines(session.path)]
    assert replayed_lines(session) == ["user: go", "agent: API Error: 400 bad"]
    assert isinstance(lines[1], wire.Assistant) and lines[1].error is None and not lines[1].is_api_error_message


def test_a_compacted_session_is_replayed_from_its_beginning(session: SessionFile) -> None:
    session.user("long ago")
    last = session.assistant(text("yes"))
    size = {"trigger": "auto", "preTokens": 900, "postTokens": 90}
    session.say("system", after=None, logicalParentUuid=last, subtype="compact_boundary", compactMetadata=size)
    session.user("a summary", isCompactSummary=True)
    session.user("now")
    assert replayed_lines(session) == [
        "user: long ago",
        "agent: yes",
        "CompactBoundary",
        "summary: a summary",
        "user: now",
    ]
    [mark] = [line for line in wire_lines(session.path) if isinstance(line, wire.CompactBoundary)]
    assert mark.compact_metadata == wire.CompactMetadata(trigger="auto", pre_tokens=900, post_tokens=90)


def test_an_old_version_writes_lines_twice_when_it_compacts_and_goes_on_beside_the_mark(session: SessionFile) -> None:
    session.user("long ago")
    last = session.assistant(text("yes"))
    lines = session.path.read_text(encoding="utf-8")
    session.path.write_text(lines + lines, encoding="utf-8")
    session.say(
        "system", after=None, subtype="compact_boundary", logicalParentUuid=last, compactMetadata={"trigger": "manual"}
    )
    session.user("so far", isCompactSummary=True)
    session.last = last
    session.command("/compact")
    session.user("<local-command-stdout>Compacted </local-command-stdout>")
    session.user("now")
    assert replayed_lines(session) == [
        "user: long ago",
        "agent: yes",
        "user: /compact",
        "CompactBoundary",
        "summary: so far",
        "user: now",
    ]


def test_a_line_that_is_lost_does_not_take_those_before_it_along(session: SessionFile) -> None:
    session.user("one")
    session.assistant(text("first"))
    session.user("two", after="a line that is not there")
    assert replayed_lines(session) == ["user: one", "agent: first", "user: two"]


def test_lines_that_follow_each_other_in_a_circle_come_to_an_end(session: SessionFile) -> None:
    session.user("one", after="b", id="a")
    session.user("two", after="a", id="b")
    assert replayed_lines(session) == ["user: one", "user: two"]


def test_what_cannot_be_read_is_left_out(session: SessionFile) -> None:
    session.user("one")
    session.alone("a-kind-of-tomorrow", data=[1])
    session.say("progress", data={"type": "hook"})
    with session.path.open("ab") as file:
        file.write(b'\n[]\n"x"\n{"type":7}\n{"type":"user","uuid":"u1","message":3,"parentUuid":null}\n\xff\xfe\n')
    session.assistant(text("first"))
    with session.path.open("ab") as file:
        file.write(b'{"parentUuid":"x","type":"user","message":{"role":"user","content":"cut o')
    assert replayed_lines(session) == ["user: one", "agent: first"]


def test_a_character_that_was_cut_in_two_is_repaired(session: SessionFile) -> None:
    session.user("one")
    line = {
        "parentUuid": session.last,
        "type": "user",
        "uuid": "u2",
        "message": {"role": "user", "content": "half \ud83d"},
    }
    with session.path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
    assert replayed_lines(session) == ["user: one", "user: half \ufffd"]


def test_a_line_of_twenty_megabytes_is_replayed(session: SessionFile) -> None:
    session.user("read it")
    session.assistant(call("t1", "Read", file_path="/big"))
    session.result("t1", "x" * 20_000_000)
    session.assistant(text("large"))
    assert [len(words) for words in replayed_lines(session)] == [13, 13, 20_000_011, 12]


def test_an_empty_file_replays_nothing(session: SessionFile) -> None:
    assert replayed_lines(session) == []
