"""What an engine's own history holds beyond ours."""

from collections.abc import Sequence

from hypothesis import given as over
from hypothesis import strategies as st

from antiphon.duet.history import events
from antiphon.protocol import v1
from tests.duet.history.histories import (
    Call,
    RecordedTurn,
    Say,
    agent,
    call,
    done,
    ended,
    ends_of_open_calls,
    given,
    live,
    looks,
    missed_updates,
    prompted,
    shown,
    theirs,
    thought,
    updates_of,
    user,
)

SONG = [
    RecordedTurn(
        "sing",
        (Say("how to begin", "m1", thought=True), Say("I read it. ", "m1"), Call("c1"), Say("All is sung.", "m2")),
    ),
    RecordedTurn("again", (Say("la la", "m3"),)),
    RecordedTurn("again", (Say("la la la", "m4"), Call("c2", failed=True))),
]


def whole(ours: Sequence[events.Event], history: Sequence[v1.Update]) -> list[object]:
    """What is seen in the end. Sending it changes nothing more: what was sent is ours now."""
    more = missed_updates(ours, history, "claude")
    kept = [*ours, ended(stop_reason=""), *shown(*more)]
    assert missed_updates(kept, history, "claude") == []
    return looks([*updates_of(ours), *more])


def test_nothing_is_beyond_what_we_have_seen_to_its_end() -> None:
    assert missed_updates(live(SONG), theirs(SONG), "claude") == []


def test_turns_from_a_terminal_are_shown_whole() -> None:
    assert missed_updates(live(SONG[:1]), theirs(SONG), "claude") == theirs(SONG)[-6:]


def test_all_of_it_is_shown_if_we_have_nothing() -> None:
    assert missed_updates([], theirs(SONG), "claude") == theirs(SONG)
    assert missed_updates(live(SONG, engine="codex"), theirs(SONG), "claude") == theirs(SONG)


def test_wherever_we_were_killed_the_rest_is_shown_and_nothing_twice() -> None:
    kept = live(SONG)
    for cut in range(2, len(kept) + 1):
        if not isinstance(
            kept[cut - 1], events.PromptEvent
        ):  # a prompt that no engine was given yet is shown by us alone
            assert whole(kept[:cut], theirs(SONG)) == looks(theirs(SONG)), cut


def test_what_the_engine_lost_is_not_taken_back() -> None:
    kept, history = live(SONG), theirs(SONG)
    for cut in range(len(history)):
        assert [
            each for each in missed_updates(kept, history[:cut], "claude") if not isinstance(each, v1.ToolCallUpdate)
        ] == []


def test_calls_that_never_ended_are_closed_as_failed() -> None:
    kept = [given("sing"), *shown(call("a"), call("b"), done("b")), *shown(call("c"), engine="codex")]
    assert ends_of_open_calls(kept) == [
        v1.ToolCallUpdate(tool_call_id="a", status=v1.ToolStatus.FAILED),
        v1.ToolCallUpdate(tool_call_id="c", status=v1.ToolStatus.FAILED),
    ]
    assert [each.tool_call_id for each in ends_of_open_calls(kept, "codex") if isinstance(each, v1.ToolCallUpdate)] == [
        "c"
    ]
    assert ends_of_open_calls([*kept, events.ClearEvent(0.0)]) == []


def test_a_call_from_an_earlier_turn_is_brought_to_its_end() -> None:
    kept = [given("sing"), *shown(agent("la", "m1"), call("a")), given("go on"), *shown(agent("lo", "m2")), ended()]
    history: list[v1.Update] = [user("sing"), agent("la", "m1"), call("a"), done("a"), user("go on"), agent("lo", "m2")]
    [end] = missed_updates(kept, history, "claude")
    assert isinstance(end, v1.ToolCallUpdate) and end.status == v1.ToolStatus.COMPLETED and end.content


def test_a_history_that_was_compacted_is_found_by_its_last_turns() -> None:
    summary = v1.CompactionUpdate(compaction_id="k", status=v1.CompactionStatus.COMPLETED)
    history: list[v1.Update] = [summary, *theirs(SONG[2:]), user("from the terminal"), agent("yes")]
    assert missed_updates(live(SONG), history, "claude") == history[-2:]


def test_after_a_compaction_that_left_nothing_the_new_turns_are_shown() -> None:
    history: list[v1.Update] = [
        v1.CompactionUpdate(compaction_id="k", status=v1.CompactionStatus.COMPLETED), user("from the terminal"), agent("yes"),
    ]  # fmt: skip
    assert missed_updates(live(SONG), history, "claude") == history


def test_a_compaction_is_found_though_its_command_is_not_written_down() -> None:
    begun = v1.CompactionUpdate(compaction_id="k", status=v1.CompactionStatus.IN_PROGRESS)
    over_now = v1.CompactionUpdate(compaction_id="k", status=v1.CompactionStatus.COMPLETED)
    history: list[v1.Update] = [*theirs(SONG), over_now]
    assert missed_updates([*live(SONG), given("/compact"), *shown(begun, over_now), ended()], history, "claude") == []
    assert missed_updates([*live(SONG), given("/compact"), *shown(begun)], history, "claude") == [over_now]
    assert missed_updates([*live(SONG), given("/compact")], history, "claude") == [over_now]


def test_a_command_that_is_written_down_by_another_name_is_found_by_its_answer() -> None:
    cost = "Total cost: nothing at all, and nothing to pay"
    kept = [*live(SONG), given("/cost"), *shown(agent(cost[:30], "live"))]
    history: list[v1.Update] = [*theirs(SONG), user("/usage"), agent(cost, "later")]
    [rest] = missed_updates(kept, history, "claude")
    assert rest == agent(cost[30:], "live")
    assert missed_updates([*kept, *shown(rest), ended()], history, "claude") == []
    assert missed_updates([*live(SONG), given("/cost")], history, "claude") == [agent(cost, "later")]


def test_the_same_prompt_many_times_is_distinguished_by_its_place() -> None:
    turns = [RecordedTurn("again", (Say(f"la {number}"),)) for number in range(6)]
    for known in range(1, 6):
        assert missed_updates(live(turns[:known]), theirs(turns), "claude") == theirs(turns)[2 * known :]


def test_a_clipped_prompt_is_found() -> None:
    long = "sing me the song of the river " * 40
    kept = [given(long[:500] + "…"), *shown(agent("la "))]
    assert missed_updates(kept, [user(long), agent("la la")], "claude") == [agent("la")]


def test_a_prompt_that_the_engine_repeats_is_not_a_turn_of_its_own() -> None:
    kept = [given("sing a song"), *shown(user("sing "), user("a song"), agent("la"))]
    assert missed_updates(kept, [user("sing a song"), agent("la la")], "claude") == [agent(" la")]


def test_a_word_added_to_a_running_turn_changes_nothing() -> None:
    kept = [
        prompted("sing"), given("sing"), *shown(agent("la ", "m1")), prompted("higher", steering=True), given("higher"),
        *shown(agent("la", "m1"), agent("lo", "m2")),
    ]  # fmt: skip
    updates: list[v1.Update] = [user("sing"), agent("la la", "m1"), user("higher"), agent("lo lo", "m2")]
    for history in (updates, [*updates[:2], *updates[3:]]):
        assert missed_updates(kept, history, "claude") == [agent(" lo", "m2")]
        assert missed_updates([*kept, *shown(agent(" lo", "m2")), ended()], history, "claude") == []


def test_work_that_the_engine_stores_before_an_added_prompt_is_shown() -> None:
    kept = [
        prompted("sing"),
        given("sing"),
        *shown(agent("la", "m1")),
        prompted("higher", steering=True),
        given("higher"),
    ]
    history: list[v1.Update] = [
        user("sing"),
        agent("la", "m1"),
        call("c"),
        done("c"),
        user("higher"),
        agent("lo", "m2"),
    ]
    assert missed_updates(kept, history, "claude") == [*history[2:4], history[5]]
    assert missed_updates([*kept, *shown(call("c"), done("c"), agent("lo", "m2"))], history, "claude") == []
    without_ids = [
        prompted("sing"),
        given("sing"),
        *shown(agent("la ")),
        prompted("higher", steering=True),
        given("higher"),
    ]
    again: list[v1.Update] = [user("sing"), agent("la la"), user("higher"), agent("lo")]
    assert missed_updates([*without_ids, *shown(agent("la"))], again, "claude") == [agent("lo")]


def test_files_that_came_with_a_prompt_do_not_hide_it() -> None:
    history: list[v1.Update] = [
        *theirs(SONG),
        user("/a.txt:\n```\ndo\n```", "u"),
        user("look at [@a.txt](file:///a.txt)", "u"),
        agent("yes"),
    ]
    assert missed_updates([*live(SONG), given("look at ")], history, "claude") == [agent("yes")]


def test_a_compaction_that_has_another_id_later_is_the_same() -> None:
    begun = v1.CompactionUpdate(compaction_id="live", status=v1.CompactionStatus.IN_PROGRESS)
    over_now = v1.CompactionUpdate(compaction_id="later", status=v1.CompactionStatus.COMPLETED)
    summary = v1.CompactionSummaryChunk(compaction_id="later", content=v1.TextBlock(text="they sang"))
    history: list[v1.Update] = [*theirs(SONG), user("/compact"), over_now, summary]
    updates = missed_updates([*live(SONG), given("/compact"), *shown(begun)], history, "claude")
    assert [
        each.compaction_id for each in updates if isinstance(each, v1.CompactionUpdate | v1.CompactionSummaryChunk)
    ] == ["live"] * 2
    ended_now = v1.CompactionUpdate(compaction_id="live", status=v1.CompactionStatus.COMPLETED)
    assert missed_updates([*live(SONG), given("/compact"), *shown(begun, ended_now)], history, "claude") == []


def test_calls_that_are_counted_from_one_in_every_turn_are_distinguished() -> None:
    turns = [RecordedTurn("again", (Call("1", f"Read {number}"), Say("read"))) for number in range(3)]
    kept = live(turns)
    for cut in range(2, len(kept) + 1):
        if not isinstance(kept[cut - 1], events.PromptEvent):
            assert whole(kept[:cut], theirs(turns)) == looks(theirs(turns)), cut


def test_settings_are_not_history() -> None:
    state: list[v1.Update] = [
        v1.AvailableCommandsUpdate(available_commands=[]), v1.SessionInfoUpdate(title="sing"), v1.UsageUpdate(used=1, size=2),
    ]  # fmt: skip
    warning = v1.NoticeUpdate(severity=v1.NoticeSeverity.WARNING, title="no sandbox")
    assert missed_updates([], [*state, warning, *theirs(SONG), *state], "claude") == theirs(SONG)
    assert missed_updates(live(SONG), [*state, warning, *theirs(SONG), *state], "claude") == []


def test_a_plan_that_we_missed_is_shown_and_an_old_one_is_not() -> None:
    old, new = (
        v1.Plan(entries=[v1.PlanEntry(content=step, priority=v1.PlanPriority.LOW, status=v1.PlanStatus.PENDING)])
        for step in ("do", "re")
    )
    history: list[v1.Update] = [user("sing"), old, agent("la", "m"), new]
    assert missed_updates([given("sing"), *shown(old, agent("la", "m"))], history, "claude") == [new]
    assert missed_updates([given("sing"), *shown(old, agent("la", "m"), new)], history, "claude") == []
    assert missed_updates([given("sing"), *shown(agent("la", "m"), new)], history, "claude") == []


def test_what_an_engine_does_later_by_itself_is_shown() -> None:
    kept = [given("sing"), *shown(agent("la", "m1")), ended()]
    history: list[v1.Update] = [user("sing"), agent("la", "m1"), call("late"), done("late"), agent("it is done", "m2")]
    assert missed_updates(kept, history, "claude") == history[2:]


def test_an_answer_that_is_stored_otherwise_is_not_shown_twice() -> None:
    kept = [given("sing"), *shown(thought("hm"), agent("la la")), ended()]
    assert missed_updates(kept, [user("sing"), thought("Hmm."), agent("La, la!")], "claude") == []
    kept = [given("sing"), *shown(agent("la la", "m"))]
    assert missed_updates(kept, [user("sing"), agent("La, la!", "m")], "claude") == []


def test_other_white_space_is_not_a_difference() -> None:
    kept = [given("sing\n\nit"), *shown(agent("la  la\n"))]
    assert missed_updates(kept, [user("sing it"), agent("la la\n\nlo")], "claude") == [agent("lo")]


def test_parallel_work_that_is_stored_in_another_order_is_whole() -> None:
    kept = [given("sing"), *shown(call("a"), call("b"), agent("b1", "mb"), done("b"))]
    history: list[v1.Update] = [
        user("sing"),
        call("a"),
        agent("a1", "ma"),
        done("a"),
        call("b"),
        agent("b1", "mb"),
        done("b"),
    ]
    assert missed_updates(kept, history, "claude") == [
        agent("a1", "ma"), v1.ToolCallUpdate(tool_call_id="a", status=v1.ToolStatus.COMPLETED, content=done().content),
    ]  # fmt: skip


def test_a_picture_in_an_answer_is_shown_once() -> None:
    picture = v1.AgentMessageChunk(content=v1.ImageBlock(data="aa", mime_type="image/png"))
    history: list[v1.Update] = [user("draw"), agent("look: "), picture, agent(" there")]
    for cut, rest in ((1, history[2:]), (2, history[3:]), (3, [])):
        assert missed_updates([given("draw"), *shown(*history[1 : cut + 1])], history, "claude") == rest


def test_what_was_cleared_is_not_compared() -> None:
    assert missed_updates([*live(SONG), events.ClearEvent(0.0)], theirs(SONG), "claude") == theirs(SONG)


def test_a_call_with_our_label_gets_no_new_title() -> None:
    kept = [given("sing"), *shown(call("a", "Claude Code: Read", status=v1.ToolStatus.IN_PROGRESS))]
    [end] = missed_updates(kept, [user("sing"), call("a", "Read"), done("a")], "claude")
    assert isinstance(end, v1.ToolCallUpdate) and not end.title


THINGS = st.tuples(st.booleans(), st.text("ab ", min_size=1, max_size=7), st.booleans())


@st.composite
def engine_sessions(draw: st.DrawFn) -> list[RecordedTurn]:
    """With ids or without, calls counted anew in each turn or not, the same few words again and again."""
    ids, per_turn = draw(st.booleans()), draw(st.booleans())
    turns = []
    for turn in range(draw(st.integers(1, 5))):
        made: list[Say | Call] = []
        for number, (is_call, text, flag) in enumerate(draw(st.lists(THINGS, max_size=4))):
            if is_call:
                made.append(Call(f"c{number}" if per_turn else f"c{turn}.{number}", text, text, flag))
            elif made and isinstance(made[-1], Say) and made[-1].thought == flag and not ids:
                continue  # without ids two messages in a row are one
            else:
                made.append(Say(text, f"m{turn}.{number}" if ids else None, flag))
        turns.append(RecordedTurn(draw(st.sampled_from(["sing", "again", "/cost"])), tuple(made)))
    return turns


@over(engine_sessions(), st.integers(1, 4))
def test_for_every_cut_the_whole_is_equal_and_nothing_is_twice(turns: list[RecordedTurn], size: int) -> None:
    kept, history = live(turns, size), theirs(turns)
    for cut in range(2, len(kept) + 1):
        if not isinstance(kept[cut - 1], events.PromptEvent):
            assert whole(kept[:cut], history) == looks(history)
