"""Updates become what a screen shows."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocol import v1
from antiphon.protocol.base import Unknown
from antiphon.transcript.entries import lines_of
from antiphon.transcript.transcript import CallEntry, CompactionEntry, Message, NoticeEntry, Thought, Transcript, fold
from tests.protocol.strategies import messages

IMAGE = v1.ImageBlock(data="", mime_type="image/png")
TWO_TODOS = [
    v1.PlanEntry(content="look", priority=v1.PlanPriority.HIGH, status=v1.PlanStatus.COMPLETED),
    v1.PlanEntry(content="leap", priority=v1.PlanPriority.LOW, status=v1.PlanStatus.PENDING),
]


def text(words: str, **more: Any) -> v1.TextBlock:
    return v1.TextBlock(text=words, **more)


def user(words: str, id: str | None = None) -> v1.UserMessageChunk:
    return v1.UserMessageChunk(content=text(words), message_id=id)


def agent(words: str, id: str | None = None) -> v1.AgentMessageChunk:
    return v1.AgentMessageChunk(content=text(words), message_id=id)


def thought(words: str, id: str | None = None) -> v1.AgentThoughtChunk:
    return v1.AgentThoughtChunk(content=text(words), message_id=id)


def call(id: str = "c", title: str = "Read", **more: Any) -> v1.ToolCall:
    return v1.ToolCall(tool_call_id=id, title=title, **more)


def patch(id: str = "c", **more: Any) -> v1.ToolCallUpdate:
    return v1.ToolCallUpdate(tool_call_id=id, **more)


def only_call(*updates: v1.Update) -> CallEntry:
    [entry] = fold(updates).entries
    assert isinstance(entry, CallEntry)
    return entry


def look(transcript: Transcript) -> Any:
    """Everything there is to see, as values that can be compared."""
    slots = [name for kind in (Message, Thought, CallEntry, NoticeEntry, CompactionEntry) for name in kind.__slots__]
    shown = [
        [type(entry), getattr(entry, "blocks", None), *(getattr(entry, name, None) for name in slots)]
        for entry in transcript.entries
    ]
    state = {name: value for name, value in vars(transcript).items() if not name.startswith("_") and name != "entries"}
    return shown, state


# --- messages ---


def test_pieces_become_messages_in_the_order_of_their_first_piece() -> None:
    transcript = fold([user("do "), user("it"), thought("hm"), agent("Well, "), agent("done."), user("thanks")])
    assert transcript.plain() == "> do it\n… hm\nWell, done.\n> thanks"
    assert [entry.key for entry in transcript.entries] == [0, 1, 2, 3]


def test_another_entry_between_starts_a_new_message() -> None:
    assert fold([agent("one"), call(), agent("two")]).plain() == "one\n[pending] Read\ntwo"


def test_an_update_without_an_entry_does_not_cut_a_message() -> None:
    usage = v1.UsageUpdate(used=1, size=2)
    updates: list[v1.Update] = [
        call(),
        agent("one "),
        usage,
        patch(status=v1.ToolStatus.COMPLETED),
        v1.Plan(entries=[]),
        agent("two"),
    ]
    assert fold(updates).plain() == "[completed] Read\none two"


def test_a_new_message_id_starts_a_new_message() -> None:
    assert fold([agent("one", "1"), agent("two", "2")]).plain() == "one\ntwo"
    assert fold([agent("no id"), agent("with id", "1")]).plain() == "no id\nwith id"


def test_a_piece_without_an_id_goes_on_with_the_last_message() -> None:
    assert fold([agent("one, ", "1"), agent("still one")]).plain() == "one, still one"


def test_the_same_message_id_goes_to_the_same_message_after_an_interruption() -> None:
    transcript = fold([agent("one ", "1"), call(), agent("more", "1"), agent("new")])
    assert transcript.plain() == "one more\n[pending] Read\nnew"


def test_an_id_is_the_name_of_a_message_among_those_of_its_kind() -> None:
    assert fold([user("q", "1"), thought("t", "1"), agent("a", "1"), user("q", "1")]).plain() == "> qq\n… t\na"


def test_blocks_that_are_not_text_stay_in_their_place() -> None:
    chunks = [agent("see "), agent("this: "), v1.AgentMessageChunk(content=IMAGE), agent("nice"), agent("!")]
    [message] = fold(chunks).entries
    assert isinstance(message, Message)
    assert message.blocks == [text("see this: "), IMAGE, text("nice!")]
    assert message.text == "see this: nice!"
    assert list(lines_of(message)) == ["see this: [image]nice!"]


def test_text_with_other_annotations_is_a_block_of_its_own() -> None:
    aside = v1.Annotations(priority=0.1)
    chunks = [
        v1.AgentMessageChunk(content=text(word, annotations=note))
        for word, note in zip("abcd", (None, aside, aside, None), strict=True)
    ]
    [message] = fold(chunks).entries
    assert isinstance(message, Message)
    assert message.blocks == [text("a"), text("bc", annotations=aside), text("d")]
    assert message.text == "abcd"


def test_apply_returns_the_entry_that_changed() -> None:
    transcript = Transcript()
    first = transcript.apply(agent("one", "1"))
    made = transcript.apply(call())
    assert [first, made] == transcript.entries
    assert transcript.apply(agent(" more", "1")) is first
    assert transcript.apply(patch(title="Write")) is made
    assert transcript.apply(v1.UsageUpdate(used=1, size=2)) is None


def test_a_long_stream_is_joined_once() -> None:
    transcript = Transcript()
    for _ in range(200_000):  # n² steps would take minutes
        transcript.apply(agent("twelve bytes"))
    [message] = transcript.entries
    assert isinstance(message, Message)
    assert message.text == "twelve bytes" * 200_000


@given(st.text(), st.lists(st.integers(0, 40)), st.sampled_from([agent, user, thought]), st.none() | st.just("id"))
def test_any_cutting_of_a_text_gives_the_same_text(whole: str, cuts: list[int], chunk: Any, id: str | None) -> None:
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(places)]
    transcript = Transcript()
    for piece in pieces:
        entry = transcript.apply(chunk(piece, id))
        assert isinstance(entry, Message | Thought)
        if len(piece) % 2:
            assert whole.startswith(entry.text)  # looking in between changes nothing
    assert look(transcript) == look(fold([chunk(whole, id)]))


# --- what the user says here ---


def test_a_prompt_is_a_message_of_its_own() -> None:
    transcript = Transcript()
    transcript.add_prompt([text("one")])
    transcript.add_prompt([text("two"), IMAGE])
    transcript.apply(agent("yes"))
    assert transcript.plain() == "> one\n> two[image]\nyes"


@pytest.mark.parametrize("id", [None, "u"])
def test_an_agent_that_repeats_a_prompt_does_not_make_it_appear_twice(id: str | None) -> None:
    transcript = Transcript()
    message = transcript.add_prompt([text("look at this"), IMAGE])
    for chunk in (user("look ", id), user("at this", id), v1.UserMessageChunk(content=IMAGE, message_id=id)):
        assert transcript.apply(chunk) is message
    assert message.message_id == id
    transcript.apply(agent("I see"))
    assert transcript.plain() == "> look at this[image]\nI see"


def test_other_words_in_the_user_s_name_are_shown() -> None:
    transcript = Transcript()
    transcript.add_prompt([text("hello")])
    transcript.apply(user("<reminder>"))
    transcript.apply(user("hello"))
    assert transcript.plain() == "> hello\n> <reminder>hello"


def test_after_a_turn_the_agent_begins_a_new_message() -> None:
    transcript = fold([agent("one", "1")])
    transcript.turn_ended()
    transcript.apply(agent("two"))
    transcript.apply(agent(" and one", "1"))
    assert transcript.plain() == "one and one\ntwo"


# --- tool calls ---


def test_a_call_goes_through_its_states_in_one_entry() -> None:
    entry = only_call(
        call(kind=v1.ToolKind.READ), patch(status=v1.ToolStatus.IN_PROGRESS), patch(status=v1.ToolStatus.COMPLETED)
    )
    assert (entry.id, entry.label, entry.kind, entry.status, entry.finished) == ("c", "Read", "read", "completed", True)


def test_absent_stays_null_clears_and_lists_are_replaced() -> None:
    here, there = v1.ToolLocation(path="/a"), v1.ToolLocation(path="/b", line=2)
    made = call(kind=v1.ToolKind.READ, name="read", locations=[here], raw_input={"path": "/a"})
    same = only_call(made, patch())
    assert (same.title, same.name, same.kind, same.locations, same.raw_input) == (
        "Read",
        "read",
        "read",
        [here],
        {"path": "/a"},
    )
    moved = only_call(made, patch(locations=[there]))
    assert moved.locations == [there]
    cleared = only_call(made, patch(title=None, name=None, kind=None, locations=None, content=None, raw_input=None))
    assert (cleared.title, cleared.name, cleared.kind, cleared.locations, cleared.raw_input) == (
        "",
        None,
        "other",
        [],
        None,
    )
    assert cleared.label == "other"


def test_a_null_status_does_not_make_a_finished_call_run_again() -> None:
    assert only_call(call(status=v1.ToolStatus.COMPLETED), patch(status=None)).status == "completed"


def test_a_call_that_first_appears_in_a_request_or_a_patch_is_shown() -> None:
    transcript = Transcript()
    asked = transcript.asked(v1.ToolCallPatch(tool_call_id="c", title="Delete it"))
    assert not asked.announced
    transcript.apply(patch("d", status=v1.ToolStatus.COMPLETED))
    assert transcript.apply(patch(status=v1.ToolStatus.COMPLETED)) is asked
    assert transcript.plain() == "[completed] Delete it\n[completed] other"
    assert transcript.apply(call(title="Delete")) is asked  # a late announcement is no new call
    assert (asked.announced, asked.title, asked.status) == (True, "Delete", "completed")


def test_a_running_call_that_is_announced_twice_is_one_entry_better_described() -> None:
    diff = v1.Diff(path="/a", new_text="x")
    entry = only_call(
        call(title="…", kind=v1.ToolKind.EDIT, content=[diff], raw_input={}),
        patch(status=v1.ToolStatus.IN_PROGRESS),
        call(title="Edit /a", raw_input={"path": "/a"}),
    )
    assert (entry.title, entry.kind, entry.status, entry.content) == ("Edit /a", "edit", "in_progress", [diff])
    assert entry.raw_input == {"path": "/a"}


@pytest.mark.parametrize("end", [v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED])
def test_a_finished_call_that_is_announced_again_is_a_new_call(end: v1.ToolStatus) -> None:
    transcript = fold([call(title="first"), patch(status=end), call(title="second"), patch(title="second!")])
    assert transcript.plain() == f"[{end}] first\n[pending] second!"
    assert [entry.key for entry in transcript.entries] == [0, 1]


def test_a_call_in_the_older_form_is_understood() -> None:
    entry = only_call(call(tool_kind=v1.ToolKind.EXECUTE, input=[1], output="out"))
    assert (entry.kind, entry.raw_input, entry.raw_output) == ("execute", [1], "out")
    patched = only_call(call(), patch(tool_kind=v1.ToolKind.FETCH, output=2))
    assert (patched.kind, patched.raw_output) == ("fetch", 2)


# --- notices and compactions ---


def test_a_notice_is_shown_where_it_came() -> None:
    warning = v1.NoticeUpdate(severity=v1.NoticeSeverity.WARNING, title="Careful", description="It is hot")
    assert fold([agent("a"), warning, agent("b")]).plain() == "a\n! warning: Careful: It is hot\nb"


def test_a_compaction_is_one_entry_and_its_summary_grows() -> None:
    def compaction(status: v1.CompactionStatus, **more: Any) -> v1.CompactionUpdate:
        return v1.CompactionUpdate(compaction_id="k", status=status, **more)

    def piece(words: str) -> v1.CompactionSummaryChunk:
        return v1.CompactionSummaryChunk(compaction_id="k", content=text(words))

    running, done = v1.CompactionStatus.IN_PROGRESS, v1.CompactionStatus.COMPLETED
    transcript = fold([compaction(running), agent("meanwhile"), piece("We "), piece("talked."), compaction(done)])
    assert transcript.plain() == "~ compaction completed\n~ We talked.\nmeanwhile"
    transcript.apply(compaction(v1.CompactionStatus.FAILED, summary=[text("No.")], error="too long"))
    assert transcript.plain() == "~ compaction failed: too long\n~ No.\nmeanwhile"
    transcript.apply(compaction(done, summary=None, error=None))
    assert transcript.plain() == "~ compaction completed\nmeanwhile"
    assert fold([piece("first heard of here")]).plain() == "~ compaction in_progress\n~ first heard of here"


# --- state ---


def test_state_is_what_came_last() -> None:
    command = v1.Command(name="help", description="Helps")
    option = v1.BooleanConfig(id="fast", name="Fast", current_value=True)
    usage = v1.UsageUpdate(used=5, size=10)
    transcript = fold(
        [
            v1.Plan(entries=[]),
            v1.Plan(entries=TWO_TODOS),
            v1.UsageUpdate(used=1, size=10),
            usage,
            v1.CurrentModeUpdate(current_mode_id="plan"),
            v1.CurrentModelUpdate(current_model_id="big"),
            v1.AvailableCommandsUpdate(available_commands=[command]),
            v1.ConfigOptionUpdate(config_options=[option]),
            v1.SessionInfoUpdate(title="Title", updated_at="2026-01-01T00:00:00Z"),
            v1.SessionInfoUpdate(updated_at=None),
        ]
    )
    assert (transcript.plan, transcript.usage, transcript.mode, transcript.model) == (TWO_TODOS, usage, "plan", "big")
    assert (transcript.commands, transcript.config_options) == ([command], [option])
    assert (transcript.title, transcript.updated_at) == ("Title", None)
    assert transcript.entries == []
    assert transcript.plain() == "(x) look\n( ) leap"


def test_several_plans_are_distinguished_by_their_ids() -> None:
    written = v1.PlanMarkdown(plan_id="a", content="# Plan")
    listed = v1.PlanItems(plan_id="b", entries=TWO_TODOS)
    drawn = Unknown("drawing", b'{"type":"drawing","planId":"c"}')
    updates: list[v1.Update] = [v1.PlanUpdate(plan=plan) for plan in (written, listed, drawn)]
    assert fold(updates).plans == {"a": written, "b": listed, "c": drawn}
    assert fold([*updates, v1.PlanRemoved(plan_id="a"), v1.PlanRemoved(plan_id="?")]).plans == {"b": listed, "c": drawn}


def test_unknown_updates_are_counted_and_the_last_is_kept() -> None:
    strange = [Unknown("song", b'{"sessionUpdate":"song","n":%d}' % number) for number in range(1000)]
    transcript = fold([agent("a"), *strange, agent("b")])
    assert transcript.plain() == "ab"
    assert transcript.unshown_count == 1000
    assert 0 < len(transcript.unshown) < 1000
    assert transcript.unshown[-1] == strange[-1]


# --- anything at all ---

KINDS = [
    v1.UserMessageChunk, v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.ToolCall, v1.ToolCallUpdate, v1.Plan, v1.PlanUpdate,
    v1.PlanRemoved, v1.AvailableCommandsUpdate, v1.CurrentModeUpdate, v1.ConfigOptionUpdate, v1.SessionInfoUpdate,
    v1.UsageUpdate, v1.NoticeUpdate, v1.CompactionUpdate, v1.CompactionSummaryChunk, v1.SubagentUpdate, v1.SessionMessage,
    v1.SessionMessageChunk, v1.CurrentModelUpdate,
]  # fmt: skip
any_updates = st.lists(st.one_of([messages(kind) for kind in KINDS]), max_size=12)


@given(any_updates)
def test_the_same_updates_give_the_same_transcript(updates: list[v1.Update]) -> None:
    transcript = fold(updates)
    assert look(transcript) == look(fold(updates))
    assert [entry.key for entry in transcript.entries] == list(range(len(transcript.entries)))
    assert isinstance(transcript.plain(), str)


UPSERTS = (v1.ToolCallUpdate, v1.CompactionUpdate, v1.Plan, v1.UsageUpdate, v1.CurrentModeUpdate, v1.SessionInfoUpdate)


@given(any_updates, st.one_of([messages(kind) for kind in UPSERTS]))
def test_an_upsert_that_comes_twice_changes_nothing_more(updates: list[v1.Update], upsert: v1.Update) -> None:
    assert look(fold([*updates, upsert])) == look(fold([*updates, upsert, upsert]))


# A limit.

IDS = st.sampled_from(["a", "b", "c", None])
NAMES = st.sampled_from(["a", "b", "c", "d"])
STATUSES = st.sampled_from(list(v1.ToolStatus))
UPDATES: "st.SearchStrategy[Any]" = st.one_of(
    st.builds(agent, st.text(max_size=3), IDS),
    st.builds(user, st.text(max_size=3), IDS),
    st.builds(thought, st.text(max_size=3), IDS),
    st.builds(call, NAMES),
    st.builds(lambda id, status: v1.ToolCallUpdate(id, status=status), NAMES, STATUSES),
    st.builds(lambda id: v1.CompactionUpdate(id, status=v1.CompactionStatus.IN_PROGRESS), NAMES),
    st.just(v1.NoticeUpdate(v1.NoticeSeverity.INFO, "look")),
    st.just(v1.CurrentModeUpdate("plan")),
    st.just(v1.Plan(TWO_TODOS)),
    st.none(),  # the turn ends
)


@given(st.lists(UPDATES, max_size=60), st.integers(0, 8))
def test_a_limit_keeps_the_last_entries_the_whole_state_and_what_a_permission_request_may_name(
    compaction: list[Any], limit: int
) -> None:
    whole, bounded = Transcript(), Transcript(limit)
    for update in compaction:
        if update is None:
            whole.turn_ended()
            bounded.turn_ended()
            assert len(bounded._calls) <= limit
            continue
        whole.apply(update)
        bounded.apply(update)
        assert len(bounded.entries) <= limit
        assert [entry.key for entry in bounded.entries] == list(
            range(bounded.dropped, bounded.dropped + len(bounded.entries))
        )
        assert len(bounded._by_message_id) <= limit and len(bounded._compactions) <= limit + 1
        if isinstance(update, v1.ToolCall):  # what was just announced is known when permission is asked for it
            known = bounded.call(update.tool_call_id)
            assert known is not None and known.title == update.title
    assert (bounded.plan, bounded.mode) == (whole.plan, whole.mode)
    if not bounded.dropped:
        assert bounded.plain() == whole.plain()
    if limit == 0:
        assert bounded.plain() == fold([v1.Plan(whole.plan)]).plain()  # no entry, but the plan


def test_a_session_that_runs_for_weeks_keeps_no_more_than_its_limit() -> None:
    bounded = Transcript(50)
    for number in range(5000):
        bounded.add_prompt([text("x" * 100)])
        bounded.apply(call(f"c{number}", content=[v1.ContentItem(IMAGE)]))
        bounded.apply(agent("y" * 100, f"m{number}"))
        bounded.apply(v1.CompactionUpdate(f"k{number}", status=v1.CompactionStatus.IN_PROGRESS))
        bounded.turn_ended()
    held = len(bounded._calls) + len(bounded._by_message_id) + len(bounded._compactions) + len(bounded.entries)
    assert len(bounded.entries) == 50 and held <= 150 and bounded.dropped == 20_000 - 50
