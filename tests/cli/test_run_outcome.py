"""What a run came to: each engine's answer whole and with its name, and an exit status that hides no failure."""

import io
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from antiphon.cli.run.printers import JsonPrinter
from antiphon.cli.run.result import AnswerText, failures_in, status_of_turn
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from tests.cli import agents
from tests.cli.program import Place
from tests.protocol.strategies import messages as messages_of
from tests.protocol.strategies import values
from tests.rows import each_row

TITLES = {"claude": "Claude Code", "codex": "Codex", "goose": "Goose"}

# Statuses.

ENDS = {"end_turn": 0, "refusal": 3, "max_tokens": 4, "max_turn_requests": 4, "cancelled": 130}


@each_row(("reason", "denied", "half"), [*product(ENDS, (False, True), (False, True))], ids=lambda each: str(each))
def test_a_denial_counts_before_the_stop_reason_and_half_a_failure_is_never_a_success(
    reason: str, denied: bool, half: bool
) -> None:
    status = status_of_turn(v1.StopReason(reason), denied=denied, half_failed=half)
    assert status == (5 if denied else 6 if half and reason == "end_turn" else ENDS[reason])
    assert not (half and status == 0)


def test_failures_are_read_from_the_response_and_anything_else_there_is_none() -> None:
    listed = [{"engine": "codex", "message": "It failed", "hint": "Try again"}, {"engine": 3}, "odd", None]
    result = v1.PromptResult(v1.StopReason.END_TURN, meta={"antiphon": {"failures": listed}})
    assert [(each.engine, each.message, each.hint) for each in failures_in(result)] == [
        ("codex", "It failed", "Try again")
    ]
    for meta in (None, {}, {"antiphon": None}, {"antiphon": {"failures": "all"}}):
        assert failures_in(v1.PromptResult(v1.StopReason.END_TURN, meta=meta)) == []


# Answers.

TEXTS = st.text("ab \n", min_size=1, max_size=6).filter(lambda text: text.strip() != "")
MESSAGES = st.lists(
    st.tuples(st.sampled_from([*TITLES]), st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=6
)


def updates_of(messages: list[tuple[str, list[str]]], ids: bool) -> list[v1.Update]:
    """The updates of engines that answer in turn, as the joint agent sends them: a label before each message."""
    updates: list[v1.Update] = []
    for place, (engine, pieces) in enumerate(messages):
        id = f"m{place}" if ids else None
        if not ids and place and messages[place - 1][0] == engine:
            updates.append(v1.ToolCall(f"c{place}", "make", meta={"antiphon": {"engine": engine}}))
        before = "\n\n" if place else ""
        label = v1.TextBlock(f"{before}**{TITLES[engine]}**\n\n")
        updates.append(v1.AgentMessageChunk(label, id, meta={"antiphon": {"engine": engine, "label": True}}))
        updates += [
            v1.AgentMessageChunk(v1.TextBlock(piece), id, meta={"antiphon": {"engine": engine}}) for piece in pieces
        ]
    return updates


@given(MESSAGES, st.booleans())
def test_the_last_message_of_each_engine_is_whole_and_has_its_name(
    messages: list[tuple[str, list[str]]], ids: bool
) -> None:
    answer = AnswerText()
    for update in updates_of(messages, ids):
        answer.add_update(update)
    last = {engine: "".join(pieces) for engine, pieces in messages}
    assert {each.engine: each.text for each in answer.answers} == last
    order = sorted(last, key=lambda engine: max(place for place, each in enumerate(messages) if each[0] == engine))
    assert [each.engine for each in answer.answers] == order
    assert not answer.last.startswith("\n")
    found = -1
    for engine in order:  # in order, each behind its name
        found = answer.last.index(f"**{TITLES[engine]}**\n\n{last[engine].rstrip(chr(10))}", found + 1)


@given(MESSAGES, st.booleans())
def test_every_event_names_its_engine(messages: list[tuple[str, list[str]]], ids: bool) -> None:
    out = io.BytesIO()
    printer = JsonPrinter(out.write)
    updates = [each for each in updates_of(messages, ids) if isinstance(each, v1.AgentMessageChunk)]
    for update in updates:
        printer.update(update)
    events = [msgspec.json.decode(line) for line in out.getvalue().splitlines()]
    for engine in TITLES:
        text = "".join(each["text"] for each in events if each["engine"] == engine and not each.get("label"))
        assert text == "".join("".join(pieces) for name, pieces in messages if name == engine)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_an_agent_that_names_no_engine_answers_with_its_last_message(texts: list[str]) -> None:
    answer = AnswerText()
    for place, text in enumerate(texts):
        answer.add_update(v1.AgentMessageChunk(v1.TextBlock(text), f"m{place}"))
    assert answer.last == texts[-1] and answer.answers == []


# The program.


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_denied_turn_that_the_agent_ends_as_cancelled_exits_with_5_and_names_what_was_denied(place: Place) -> None:
    done = place.run("hi", "--agent", place.agent(agents.EndsWhenDenied), "--json")
    assert (done.status, done.result["exitCode"], done.result["stopReason"]) == (5, 5, "cancelled")
    assert [each["subject"] for each in done.of("permission")] == ["Open the garage"]
    assert [each["subject"] for each in done.result["denials"]] == ["Open the garage"]
    [call] = [each for each in done.of("tool_call") if each["status"] == "failed"]
    assert call["denied"] is True


@pytest.mark.slow
def test_a_duet_of_which_one_half_fails_exits_with_6_and_the_other_answer_is_whole(place: Place) -> None:
    place.configure(f'[duet]\nengines = ["demo", """{place.agent(agents.Fails)}"""]\nroute = "duet"\n')
    done = place.run("/say la", "--agent", "antiphon", "--json")
    assert done.status == 6, done.err
    result = done.result
    assert result["stopReason"] == "end_turn" and "error" not in result
    [failure] = result["failures"]
    assert "the model is tired" in failure["message"]
    engines = [each["engine"] for each in result["answers"]]
    assert engines == ["demo", failure["engine"]] and result["answers"][1]["text"] == "I begin"
    assert result["text"].startswith("**Antiphon demo**\n\n") and result["answers"][0]["text"] in result["text"]
    quiet = place.run("/say la", "--agent", "antiphon", "--quiet")
    assert quiet.status == 6 and quiet.out == f"{result['text']}\n"
    assert "the model is tired" in quiet.err and "\nhint: " in quiet.err


# Whatever is sent.

CALLS = st.builds(
    lambda call, status, content: msgspec.structs.replace(call, status=status, content=content),
    messages_of(v1.ToolCall),
    st.sampled_from([v1.ToolStatus.COMPLETED, *v1.ToolStatus]),
    st.lists(values(v1.ToolContent), min_size=1, max_size=3),
)
"""Calls that have something to show: most of what is drawn without this is empty."""

UPDATES = st.tuples(
    st.lists(CALLS, min_size=20, max_size=40), st.lists(values(v1.Update), min_size=20, max_size=40)
).flatmap(lambda both: st.permutations([*both[0], *both[1]]))


@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("form", [(), ("--json",), ("--quiet",)], ids=" ".join)
@settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], derandomize=True
)
@given(updates=UPDATES)
def test_no_valid_update_ends_a_run(
    tmp_path_factory: pytest.TempPathFactory, form: tuple[str, ...], updates: list[v1.Update]
) -> None:
    """With `_meta`, unknown words and whatever else the types allow: some sixty of them in a turn."""
    place = Place(tmp_path_factory.mktemp("sent"))
    (place.cwd / "updates.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in updates))
    done = place.run("hi", "--agent", place.agent(agents.Sends), *form)
    asked = any(isinstance(each, v1.ToolCall) for each in updates)
    assert done.status == (5 if asked else 0), done.err
    assert "That was all." in done.out
