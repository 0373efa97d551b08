"""What the session looks like, without a terminal: lines that are final and lines that are not."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.tui.painter import Painter
from antiphon.tui.screen import PROMPT, ChatScreen
from antiphon.tui.terminals import TerminalTail


def screen(width: int = 60, tails: dict[str, TerminalTail] | None = None) -> ChatScreen:
    return ChatScreen(Painter(width, colour=False), (tails or {}).get, "/w")


def say(text: str, id: str | None = None) -> v1.AgentMessageChunk:
    return v1.AgentMessageChunk(v1.TextBlock(text), id)


def think(text: str) -> v1.AgentThoughtChunk:
    return v1.AgentThoughtChunk(v1.TextBlock(text))


def call(id: str, status: v1.ToolStatus = v1.ToolStatus.IN_PROGRESS, title: str = "Work") -> v1.ToolCall:
    return v1.ToolCall(id, title, v1.ToolKind.OTHER, status)


def test_finished_blocks_are_final_and_the_open_one_is_live() -> None:
    shown = screen()
    shown.show_prompt("hello")
    assert shown.take() == [f"{PROMPT} hello"]
    shown.apply(say("# One\n\nTwo is **op"))
    assert shown.take() == ["", "One"]
    assert shown.live(10) == ["", "Two is **op"]
    shown.apply(say("en**"))
    assert (shown.take(), shown.live(10)) == ([], ["", "Two is open"])
    shown.end_turn()
    assert (shown.take(), shown.live(10)) == (["", "Two is open"], [])


def test_a_call_changes_in_place_and_is_final_when_something_follows_it() -> None:
    shown = screen()
    shown.apply(call("1"))
    assert shown.live(10)[0].endswith("Work") and shown.take() == []
    shown.apply(v1.ToolCallUpdate("1", status=v1.ToolStatus.COMPLETED))
    assert shown.live(10) == ["✓ Work"] and shown.take() == []
    shown.apply(v1.ToolCallUpdate("1", content=[v1.ContentItem(v1.TextBlock("late news"))]))
    shown.apply(say("done"))
    assert shown.take() == ["✓ Work", "  late news"]
    assert shown.live(10) == ["", "done"]


def test_a_call_that_runs_does_not_hold_back_messages() -> None:
    shown = screen()
    shown.apply(call("1"))
    shown.apply(say("meanwhile\n\n"))
    assert shown.take() == ["meanwhile"]
    assert shown.live(10)[-1].endswith("Work")
    shown.apply(v1.ToolCallUpdate("1", status=v1.ToolStatus.FAILED))
    shown.end_turn()
    assert shown.take() == ["", "✗ Work  failed"]


def test_live_lines_are_never_more_than_fit() -> None:
    shown = screen()
    shown.apply(say("```\n" + "".join(f"line {number}\n" for number in range(500))))
    lines = shown.live(8)
    assert len(lines) == 8 and lines[-1] == "  line 499" and lines[0].startswith("… ")
    assert len(shown.live(1)) == 1


def test_diffs_and_output_are_bounded() -> None:
    shown = screen(tails={"t": TerminalTail("".join(f"{number}\n" for number in range(50)), "exit status 1")})
    diff = v1.Diff("/w/a.txt", "x\n" * 100)
    shown.apply(v1.ToolCall("1", "Edit", status=v1.ToolStatus.COMPLETED, content=[diff, v1.TerminalItem("t")]))
    shown.end_turn()
    lines = shown.take()
    assert lines[1] == "  a.txt  +100 -0  new" and "  … 77 more lines · Ctrl-O" in lines
    assert lines[-3:] == ["  48", "  49", "  exit status 1"] and "  … 41 more lines · Ctrl-O" in lines


def test_output_in_a_fence_is_shown_as_output() -> None:
    def lines(text: str) -> list[str]:
        shown = screen()
        item = v1.ContentItem(v1.TextBlock(text))
        shown.apply(v1.ToolCall("1", "Run", status=v1.ToolStatus.COMPLETED, content=[item]))
        shown.end_turn()
        return shown.take()[1:]

    assert lines("```console\na\nb\n```") == ["  a", "  b"]
    assert lines("````\n```\nx\n```\n````") == ["  ```", "  x", "  ```"]
    assert lines("```\na\n```\nand\n```\nb\n```")[0] == "  ```"


def test_a_command_that_its_title_does_not_show_is_shown() -> None:
    shown = screen()
    shown.apply(v1.ToolCall("1", "Clean up", raw_input={"command": "rm -r build"}))
    assert shown.live(9)[1] == "  $ rm -r build"


def test_thoughts_notices_plans_and_compactions_have_their_places() -> None:
    shown = screen()
    shown.apply(think("hmm"))
    shown.apply(v1.NoticeUpdate(v1.NoticeSeverity.WARNING, "Careful", "hot"))
    shown.apply(v1.CompactionUpdate("c", v1.CompactionStatus.FAILED, error="no"))
    shown.apply(v1.Plan([v1.PlanEntry("Sing", v1.PlanPriority.HIGH, v1.PlanStatus.IN_PROGRESS)]))
    assert shown.live(20)[-2:] == ["Plan  0 of 1 done", "  ▸ Sing"]
    shown.end_turn()
    assert shown.take() == [
        "  hmm",
        "",
        "! Careful: hot",
        "~ compaction: failed: no",
        "",
        "Plan  0 of 1 done",
        "  ▸ Sing",
    ]
    shown.apply(v1.Plan([v1.PlanEntry("Sing", v1.PlanPriority.HIGH, v1.PlanStatus.COMPLETED)]))
    assert shown.take() == ["", "Plan  1 of 1 done", "  ✓ Sing"]


def test_history_is_shown_with_the_author_of_each_message() -> None:
    shown = screen()
    shown.apply(v1.UserMessageChunk(v1.TextBlock("what ")))
    shown.apply(v1.UserMessageChunk(v1.TextBlock("now?")))
    shown.apply(say("this\n\n"))
    assert shown.take() == [f"{PROMPT} what now?", "", "this"]


def test_a_message_of_another_person_is_shown_with_the_name() -> None:
    shown = screen()
    shown.own_name = "alice"
    for name, text in (("bob\x1b[2J", "hello"), ("alice", "hi")):
        meta: JsonObject = {"antiphon": {"from": name, "turn": "1"}}
        shown.apply(v1.UserMessageChunk(v1.TextBlock(text), meta=meta))
        shown.apply(say("yes\n\n"))
    lines = shown.take()
    assert lines[0].startswith(f"{PROMPT} bob") and lines[0].endswith(": hello") and "\x1b" not in lines[0]
    assert f"{PROMPT} hi" in lines


def test_an_echo_of_what_was_typed_is_not_shown_again() -> None:
    shown = screen()
    shown.show_prompt("hello")
    shown.apply(v1.UserMessageChunk(v1.TextBlock("hello")))
    shown.apply(say("hi"))
    shown.end_turn()
    assert shown.take() == [f"{PROMPT} hello", "", "hi"]


@given(st.lists(st.sampled_from(["a ", "b\n", "\n", "- x\n", "```\n", "# h\n"]), max_size=30))
def test_looking_changes_nothing(pieces: list[str]) -> None:
    watched, alone = screen(), screen()
    for piece in pieces:
        watched.apply(say(piece))
        watched.live(5)
        alone.apply(say(piece))
    watched.end_turn()
    alone.end_turn()
    assert watched.take() == alone.take()


def test_wide_characters_are_wrapped_by_their_width() -> None:
    shown = screen(20)
    shown.apply(say("日本語" * 10))
    shown.end_turn()
    assert shown.take() == ["日本語日本語日本語日", "本語日本語日本語日本", "語日本語日本語日本語"]


def test_what_markdown_would_hide_is_shown_as_it_was_written() -> None:
    shown = screen()
    shown.apply(say("<b>bold</b> [x](http://y)\n\n[ref]: http://z\n\n"))
    assert shown.take() == ["<b>bold</b> x (http://y)", "", "[ref]: http://z"]


def from_engine(update: v1.Update, engine: str, *, label: bool = False) -> v1.Update:
    meta: JsonObject = {"antiphon": {"engine": engine, **({"label": True} if label else {})}}
    return structs.replace(update, meta=meta)  # type: ignore[type-var]  # every update is a struct


def test_where_several_engines_answer_each_is_named_once_before_its_words_and_its_calls() -> None:
    shown = screen()
    shown.titles = {"claude": "Claude Code", "codex": "Codex"}
    for update in (
        from_engine(say("**Claude Code**\n\n"), "claude", label=True),
        from_engine(say("one\n\n"), "claude"),
        from_engine(call("1", v1.ToolStatus.COMPLETED, "Codex: ls"), "codex"),
        from_engine(say("\n\n**Codex**\n\n"), "codex", label=True),
        from_engine(say("two\n\n"), "codex"),
    ):
        shown.apply(update)
    shown.end_turn()
    assert [line for line in shown.take() if line] == ["● Claude Code", "one", "● Codex", "✓ Codex: ls", "two"]


def test_an_engine_that_answers_alone_is_not_named() -> None:
    shown = screen()
    shown.apply(from_engine(call("1", v1.ToolStatus.COMPLETED, "ls"), "codex"))
    shown.apply(from_engine(say("one\n\n"), "codex"))
    shown.end_turn()
    assert [line for line in shown.take() if line] == ["✓ ls", "one"]


def test_the_answer_to_a_question_leaves_no_trace_of_the_question_in_the_call() -> None:
    shown = screen()
    note = v1.ContentItem(v1.TextBlock("Claude Code asks."), meta={"antiphon": {"question": "engine"}})
    shown.apply(v1.ToolCall("1", "ls", status=v1.ToolStatus.IN_PROGRESS, content=[note]))
    assert [line[2:] for line in shown.live(9)] == ["ls"]


def test_a_denied_call_shows_the_reason_of_the_policy_and_nothing_that_was_written_for_the_model() -> None:
    shown = screen()
    text = v1.ContentItem(v1.TextBlock("The user rejected this tool call. Stop what you are doing."))
    for id, why in (("1", {}), ("2", {"why": "The rule `Bash(rm *)` denies it."})):
        meta: JsonObject = {"antiphon": {"denied": True, **why}}
        shown.apply(v1.ToolCall(id, "rm x", status=v1.ToolStatus.FAILED, content=[text], meta=meta))
    shown.end_turn()
    assert shown.take() == ["✗ rm x  denied", "✗ rm x  denied", "  The rule `Bash(rm *)` denies it."]


def test_a_denied_call_is_shown_as_denied_also_if_the_agent_does_not_report_it() -> None:
    shown = ChatScreen(Painter(40, colour=False), word_of=lambda id: "denied" if id == "1" else "failed")
    shown.apply(call("1", v1.ToolStatus.IN_PROGRESS, "rm x"))
    shown.apply(call("2", v1.ToolStatus.IN_PROGRESS, "ls"))
    assert shown.live(9)[0] == "✗ rm x  denied" and "denied" not in shown.live(9)[1]
    shown.apply(call("1", v1.ToolStatus.COMPLETED, "rm x"))  # it went on in another way
    assert shown.live(9)[0] == "✓ rm x"


def test_what_became_of_a_call_is_shown_also_behind_a_long_title() -> None:
    for status, meta, word in (
        (v1.ToolStatus.FAILED, None, "failed"),
        (v1.ToolStatus.FAILED, {"antiphon": {"denied": True}}, "denied"),
    ):
        shown = screen()
        shown.apply(v1.ToolCall("1", "many words " * 40, v1.ToolKind.EXECUTE, status, meta=meta))
        shown.end_turn()
        [line] = shown.take()
        assert line.startswith("✗ many words") and line.endswith(f"…  {word}") and len(line) <= shown.painter.width


def test_a_call_that_is_nothing_but_a_form_is_shown_only_if_it_fails() -> None:
    shown = screen()
    for id in ("1", "2"):
        shown.apply(call(id, v1.ToolStatus.IN_PROGRESS, f"Which database {id}?"))
        entry = shown.transcript.call(id)
        assert entry is not None
        shown.in_forms.add(entry.key)
    assert shown.live(9) == []
    for id, status in (("1", v1.ToolStatus.COMPLETED), ("2", v1.ToolStatus.FAILED)):
        shown.apply(v1.ToolCallUpdate(id, status=status))
    shown.end_turn()
    assert shown.take() == ["✗ Which database 2?  failed"]


def word(number: int) -> v1.AgentMessageChunk:
    return say(f"w{number} " if number % 40 else f"w{number}.\n\n", "m")


def test_a_long_stream_is_given_out_once_and_in_order() -> None:
    shown, lines = screen(80), list[str]()
    for number in range(20_000):
        shown.apply(word(number))
        if number % 100 == 99:  # as often as it is drawn
            lines += shown.take()
            assert len(shown.live(10)) <= 10
    shown.end_turn()
    lines += shown.take()
    words = [each.rstrip(".") for line in lines for each in line.split()]
    assert words == [f"w{number}" for number in range(20_000)]
