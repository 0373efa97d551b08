"""What the model says and thinks is sent once, however it comes."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocol import v1
from tests.engines.codex.translate.harness import TranslatedThread

DROPPED = {"responseStreamDisconnected": {"httpStatusCode": None}}


def messages_of(thread: TranslatedThread, kind: type = v1.AgentMessageChunk) -> list[tuple[str | None, str]]:
    """Whole messages, in order."""
    texts: dict[str | None, str] = {}
    for each in thread.events:
        if isinstance(each, kind):
            assert isinstance(each, v1.MessageChunk) and isinstance(each.content, v1.TextBlock)
            texts[each.message_id] = texts.get(each.message_id, "") + each.content.text
    return list(texts.items())


def cut(text: str, places: Sequence[int]) -> list[str]:
    """The text in pieces."""
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


@given(st.text(min_size=1), st.lists(st.integers(0, 99), max_size=5), st.integers(0, 6))
def test_a_text_in_any_pieces_is_shown_once(text: str, places: list[int], received: int) -> None:
    """Pieces that were missed come with the whole."""
    thread = TranslatedThread()
    thread.begin()
    thread.says("m", *cut(text, places)[:received], whole=text)
    assert messages_of(thread) == [("m", text)]


@given(
    st.text("ab", min_size=1),
    st.lists(st.integers(0, 99), max_size=4),
    st.lists(st.integers(0, 99), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_text_that_a_retry_repeats_is_shown_once(
    text: str, places: list[int], breaks: list[int], same_id: bool
) -> None:
    thread = TranslatedThread()
    thread.begin()
    first = "m0"
    longest = 0
    for number, place in enumerate(breaks):
        id = "m0" if same_id else f"m{number}"
        thread.started("agentMessage", id)
        part = text[: place % (len(text) + 1)]
        for piece in cut(part, places):
            thread.notify("item/agentMessage/delta", itemId=id, delta=piece)
        if not longest and part:
            first = id
        longest = max(longest, len(part))
        thread.error("Reconnecting", DROPPED, retry=True)
    last = "m0" if same_id else "last"
    thread.says(last, *cut(text, places))
    if not longest:
        first = last
    shown = messages_of(thread)
    assert "".join(part for _, part in shown) == text
    assert len(shown) == 1 and (same_id or shown[0][0] == first)


def test_another_answer_after_a_retry_is_shown_whole_in_a_message_of_its_own() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.says("a", "Hello wor")
    thread.error("Reconnecting", DROPPED, retry=True)
    thread.says("b", "Hello ", "there")
    assert messages_of(thread) == [("a", "Hello wor"), ("b", "Hello there")]


def test_a_second_message_of_a_repeated_answer_is_shown_too() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.thinks("r1", "hm")
    thread.says("a", "one")
    thread.error("Reconnecting", DROPPED, retry=True)
    thread.thinks("r2", "hm")
    thread.says("b", "one")
    thread.says("c", "two")
    assert messages_of(thread) == [("a", "one"), ("c", "two")]
    assert messages_of(thread, v1.AgentThoughtChunk) == [("r1", "hm")]


def test_the_same_words_in_a_later_answer_are_shown_again() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.says("a", "ok")
    thread.answered(100)
    thread.error("Reconnecting", DROPPED, retry=True)
    thread.says("b", "ok")
    assert messages_of(thread) == [("a", "ok"), ("b", "ok")]


def test_without_a_retry_the_same_words_are_two_messages() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.says("a", "ok")
    thread.says("b", "ok")
    assert messages_of(thread) == [("a", "ok"), ("b", "ok")]


def test_a_whole_message_that_comes_twice_is_shown_once() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.says("a", "ok")
    thread.completed("agentMessage", "a", text="ok")
    thread.over(items=[thread.item("agentMessage", "a", text="ok")])
    assert messages_of(thread) == [("a", "ok")]


def test_last_words_that_were_missed_come_with_the_end_of_the_turn() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.over(items=[thread.item("agentMessage", "a", text="ok")])
    assert thread.outline == ["say a 'ok'", "end u1 end_turn"]


def test_words_after_the_turn_are_shown() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.over()
    thread.says("m", "by the way")
    assert thread.outline == ["end u1 end_turn", "say m 'by the way'"]


def test_the_parts_of_a_thought_stand_apart_and_are_shown_once() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.notify("item/reasoning/summaryTextDelta", itemId="r", delta="on", summaryIndex=0)
    thread.notify("item/reasoning/summaryTextDelta", itemId="r", delta="e", summaryIndex=0)
    thread.notify("item/reasoning/summaryTextDelta", itemId="r", delta="two", summaryIndex=1)
    thread.completed("reasoning", "r", summary=["one", "two", "three"], content=["at length"])
    assert messages_of(thread, v1.AgentThoughtChunk) == [("r", "one\n\ntwo\n\nthree")]


def test_a_thought_is_shown_in_short_or_at_length_and_not_in_both() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.notify("item/reasoning/textDelta", itemId="r", delta="at len", contentIndex=0)
    thread.notify("item/reasoning/summaryTextDelta", itemId="r", delta="short", summaryIndex=0)
    thread.completed("reasoning", "r", summary=["short"], content=["at length"])
    assert messages_of(thread, v1.AgentThoughtChunk) == [("r", "at length")]


def test_a_plan_that_is_laid_before_the_user_is_a_message() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.started("plan", "p", text="")
    thread.notify("item/plan/delta", itemId="p", delta="# Plan")
    thread.completed("plan", "p", text="# Plan\n1. x")
    assert messages_of(thread) == [("p", "# Plan\n1. x")]


def test_the_findings_of_a_review_are_shown_once_though_they_come_twice() -> None:
    thread = TranslatedThread()
    thread.begin()
    thread.started("enteredReviewMode", "e", review="current changes")
    thread.completed("enteredReviewMode", "e", review="current changes")
    thread.completed("exitedReviewMode", "x", review="All is well.")
    thread.says("m", whole="All is well.")
    thread.over()
    assert thread.outline == [
        "notice info: A review begins | current changes",
        "say x 'All is well.'",
        "end u1 end_turn",
    ]
