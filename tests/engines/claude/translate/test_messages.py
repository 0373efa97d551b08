"""Text and thoughts are sent as they come, once, in order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.claude.translate.events import ClaudeEvent, ClaudeTurnEnded
from antiphon.engines.claude.translate.translator import ClaudeTranslator
from antiphon.protocol import v1
from tests.engines.claude.translate.lines import (
    answer,
    assistant_message,
    call,
    delta,
    described,
    event,
    feed,
    message_start,
    result,
    system,
    text,
    thought,
    translated,
)


def words(received: list[ClaudeEvent]) -> str:
    chunks = [each.content for each in received if isinstance(each, v1.AgentMessageChunk)]
    return "".join(content.text for content in chunks if isinstance(content, v1.TextBlock))


def test_text_streamed_in_parts_is_shown_once() -> None:
    events = translated(
        message_start(),
        delta("Hel"),
        delta("lo"),
        assistant_message(text("Hello")),
        event("content_block_stop", index=0),
    )
    assert described(events) == ["says msg-1: 'Hel'", "says msg-1: 'lo'"]


def test_text_that_was_not_streamed_is_shown_whole() -> None:
    assert described(translated(assistant_message(text("Hello")))) == ["says msg-1: 'Hello'"]


def test_what_the_message_holds_beyond_the_stream_is_shown_after_it() -> None:
    assert words(translated(message_start(), delta("Hel"), assistant_message(text("Hello")))) == "Hello"


def test_a_message_that_was_cut_shorter_than_its_stream_adds_nothing() -> None:
    assert (
        words(translated(message_start(), delta("Hello w"), assistant_message(text("Hello"), aborted=True)))
        == "Hello w"
    )


def test_blocks_of_one_message_are_kept_apart() -> None:
    think = event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    events = translated(
        message_start(),
        think,
        assistant_message(thought("hm")),
        delta("a", 1),
        assistant_message(text("a")),
        delta("b", 2),
        assistant_message(text("bc")),
    )
    assert described(events) == ["thinks msg-1: 'hm'", "says msg-1: 'a'", "says msg-1: 'b'", "says msg-1: 'c'"]


def test_two_blocks_with_the_same_text_are_both_shown() -> None:
    events = translated(
        message_start(), delta("ok", 0), assistant_message(text("ok")), delta("ok", 1), assistant_message(text("ok"))
    )
    assert words(events) == "okok"


def test_the_same_text_in_the_next_message_is_shown_again() -> None:
    turn = [delta("ok"), assistant_message(text("ok"))]
    assert (
        words(
            translated(
                message_start(), *turn, message_start("msg-2"), delta("ok"), assistant_message(text("ok"), id="msg-2")
            )
        )
        == "okok"
    )


def test_a_stream_that_begins_anew_after_a_cut_has_its_own_message() -> None:
    events = translated(
        message_start(),
        delta("He"),
        message_start("msg-2"),
        delta("Hello"),
        assistant_message(text("Hello"), id="msg-2"),
    )
    assert described(events) == ["says msg-1: 'He'", "says msg-2: 'Hello'"]


def test_a_line_that_is_sent_again_is_not_shown_again() -> None:
    line = assistant_message(text("once"))
    assert words(translated(line, line)) == "once"


def test_an_old_stream_without_ids_is_shown_once() -> None:
    def old(words: str) -> dict[str, Any]:
        return {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}},
        }

    start = {"type": "stream_event", "event": {"type": "message_start"}}
    whole = {
        "type": "assistant",
        "message": {"role": "assistant", "content": [text("one"), call("t", "Read"), text("two")]},
    }
    assert words(translated(start, old("on"), old("etw"), old("o"), whole)) == "onetwo"


def test_an_empty_piece_is_not_shown() -> None:
    assert translated(message_start(), delta(""), assistant_message(text(""))) == []


def test_the_users_own_words_are_shown_in_a_history_alone() -> None:
    line = {
        "type": "user",
        "uuid": "u1",
        "message": {"content": [text("hi"), {"type": "image", "source": {"data": "AA=="}}]},
    }
    assert translated(line) == []
    assert described(translated(line, replay=True)) == ["user u1: 'hi'", "user u1: <ImageBlock>"]


def test_notes_and_echoes_of_the_cli_are_never_the_users_words() -> None:
    def line(**more: Any) -> dict[str, Any]:
        return {"type": "user", "message": {"role": "user", "content": "note"}, **more}

    interrupted = {"type": "user", "message": {"content": [text("[Request interrupted by user for tool use]")]}}
    own = line(origin={"kind": "task-notification"})
    lines = [line(isSynthetic=True), line(isReplay=True), line(parent_tool_use_id="a"), interrupted, own]
    assert translated(*lines, replay=True) == []
    assert translated(*lines) == []


def test_an_error_written_as_a_message_is_shown_as_the_turns_error_alone() -> None:
    error = assistant_message(text("API Error: no"), id="e", error="rate_limit", is_api_error_message=True)
    events = translated(error, result(is_error=True, terminal_reason="api_error", result="API Error: no"))
    assert words(events) == "" and described(events) == ["turn ended with error rate_limit"]


def test_the_same_message_is_shown_where_the_turn_did_not_fail() -> None:
    error = assistant_message(text("It is refused."), id="e", error="invalid_request", is_api_error_message=True)
    events = translated(error, result(is_error=True, stop_reason="refusal", terminal_reason="api_error"))
    assert described(events) == ["says e: 'It is refused.'", "turn ended refusal"]


def test_an_error_in_the_middle_of_a_turn_is_shown_in_its_place() -> None:
    error = assistant_message(text("Trouble."), id="e", error="server_error", is_api_error_message=True)
    assert described(translated(error, assistant_message(text("Better."))))[:2] == [
        "says e: 'Trouble.'",
        "says msg-1: 'Better.'",
    ]


def test_an_error_in_a_history_is_shown_at_once() -> None:
    error = assistant_message(text("Trouble."), id="e", error="server_error", is_api_error_message=True)
    assert words(translated(error, replay=True)) == "Trouble."


def test_a_turn_that_only_its_result_mentions_is_shown_from_it() -> None:
    events = translated(result(result="All I have to say."))
    assert words(events) == "All I have to say."
    assert words(translated(assistant_message(text("said")), result(result="said"))) == "said"


def test_what_a_local_command_printed_is_shown_and_nothing_is_not() -> None:
    assert words(translated(system("local_command_output", content="42", uuid="u"))) == "42"
    empty = assistant_message(text("(no content)"), id="s")
    empty["message"]["model"] = "<synthetic>"
    assert words(translated(empty, result(result="(no content)"))) == ""


def test_what_is_ignored_is_counted() -> None:
    translator = ClaudeTranslator("/project")
    odd = assistant_message({"type": "hologram"}, text("hi"))
    feed(translator, system("dream"), system("dream"), {"type": "telepathy"}, {}, odd, event("hiccup"))
    assert translator.unknown == {
        "system/dream": 2,
        "telepathy": 1,
        "garbled": 1,
        "block/hologram": 1,
        "event/hiccup": 1,
    }


@given(st.lists(st.text(min_size=1, max_size=12), max_size=12), st.text(max_size=6))
def test_any_split_into_pieces_gives_the_same_text(pieces: list[str], rest: str) -> None:
    whole = "".join(pieces) + rest
    events = translated(message_start(), *(delta(piece) for piece in pieces), assistant_message(text(whole)))
    assert words(events) == whole


@given(
    st.lists(
        st.tuples(st.sampled_from(["text", "thinking"]), st.lists(st.text(min_size=1, max_size=5), max_size=4)),
        max_size=6,
    )
)
def test_blocks_are_shown_in_their_order(blocks: list[tuple[str, list[str]]]) -> None:
    lines: list[dict[str, Any]] = [message_start()]
    for index, (sort, pieces) in enumerate(blocks):
        lines += [
            event("content_block_delta", index=index, delta={"type": f"{sort}_delta", sort: piece}) for piece in pieces
        ]
        lines.append(assistant_message({"type": sort, sort: "".join(pieces)}))
    received = [(type(each), each.content.text) for each in translated(*lines) if isinstance(each, v1.MessageChunk)]  # type: ignore[union-attr]
    kinds = {"text": v1.AgentMessageChunk, "thinking": v1.AgentThoughtChunk}
    assert received == [(kinds[sort], piece) for sort, pieces in blocks for piece in pieces]


def test_results_between_texts_keep_their_place() -> None:
    events = translated(
        assistant_message(text("a")),
        assistant_message(call("t", "Bash", command="ls")),
        answer("t", "x"),
        assistant_message(text("b"), id="msg-2"),
        result(),
    )
    sorts = [type(each) for each in events]
    assert sorts == [v1.AgentMessageChunk, v1.ToolCall, v1.ToolCallUpdate, v1.AgentMessageChunk, ClaudeTurnEnded]
