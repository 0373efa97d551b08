"""A history replayed folds to what was seen, in few updates."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.duet.history.events import (
    ClearEvent,
    EndEvent,
    Event,
    GivenEvent,
    PromptEvent,
    now,
    pack,
    replayed,
    unpack,
    update_event,
)
from antiphon.protocol import v1
from antiphon.protocol.base import decoder, encode
from antiphon.transcript.transcript import CallEntry, Entry, Message, Thought, fold

_update: "msgspec.json.Decoder[v1.Update]" = decoder(v1.Update)  # type: ignore[arg-type]  # a union is a type to msgspec


def sent(events: list[Event]) -> list[v1.Update]:
    """As a client reads them."""
    return [_update.decode(encode(update)) for update in replayed(events)]


def test_pieces_of_one_message_come_as_one_and_other_things_stay_between() -> None:
    events: list[Event] = [
        PromptEvent(now(), [v1.TextBlock("hi")], "u1"),
        GivenEvent(now(), "claude", "hi"),
        *(update_event(v1.AgentMessageChunk(v1.TextBlock(word), "m1"), "claude") for word in "abcd"),
        update_event(v1.ToolCall("c", "make"), "claude"),
        *(update_event(v1.AgentMessageChunk(v1.TextBlock(word), "m2"), "claude") for word in "ef"),
        update_event(v1.AgentThoughtChunk(v1.TextBlock("hm"), "m2"), "claude"),
        EndEvent(now(), "claude", "end_turn"),
    ]
    assert sent(events) == [
        v1.UserMessageChunk(v1.TextBlock("hi"), "u1"),
        v1.AgentMessageChunk(v1.TextBlock("abcd"), "m1"),
        v1.ToolCall("c", "make"),
        v1.AgentMessageChunk(v1.TextBlock("ef"), "m2"),
        v1.AgentThoughtChunk(v1.TextBlock("hm"), "m2"),
    ]


def test_twenty_thousand_events_of_one_answer_are_a_handful_of_updates() -> None:
    chunk = v1.AgentMessageChunk(v1.TextBlock("word "), "m")
    kept = [pack(update_event(chunk, "claude")) for _ in range(20_000)]
    assert sent(list(unpack(kept))) == [v1.AgentMessageChunk(v1.TextBlock("word " * 20_000), "m")]


def test_what_is_not_plain_text_leaves_as_the_bytes_that_it_was_kept_as() -> None:
    odd = b'{"event":"shown","at":1,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","x":[1]},"y":2}}'
    assert [bytes(encode(update)) for update in replayed(list(unpack([odd])))] == [
        odd[len(b'{"event":"shown","at":1,"update":') : -1]
    ]


@pytest.mark.parametrize(
    "piece",
    [
        {"content": {"type": "text", "text": "la", "_meta": {"of": "alto"}}},
        {"content": {"type": "text", "text": "la", "annotations": {"priority": 1}}},
        {"content": {"type": "text", "text": "la", "tune": "high"}},
        {"content": {"type": "text", "text": "la"}, "tempo": 3},
        {"content": {"type": "text", "text": "la"}, "messageId": "m", "_meta": {"of": "alto"}},
    ],
    ids=["meta of its content", "annotations", "unknown in its content", "unknown", "alone"],
)
def test_a_piece_that_is_more_than_text_or_stands_alone_leaves_as_its_bytes(piece: dict[str, object]) -> None:
    update = msgspec.json.encode({"sessionUpdate": "agent_message_chunk", **piece})
    kept = [
        b'{"event":"shown","at":1,"update":%b}' % update,
        pack(update_event(v1.ToolCall("c", "make"), "claude")),
        b'{"event":"shown","at":2,"update":%b}' % update,
    ]
    sent = [bytes(encode(each)) for each in replayed(list(unpack(kept)))]
    assert sent[0] == sent[2] == update


def test_only_what_is_nothing_but_text_is_put_together() -> None:
    plain = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"la"},"messageId":"m"}'
    more = plain.replace(b'"text":"la"', b'"text":"la","_meta":{"of":"alto"}')
    kept = [b'{"event":"shown","at":1,"update":%b}' % each for each in (plain, plain, more, more, plain)]
    sent = [bytes(encode(each)) for each in replayed(list(unpack(kept)))]
    assert sent == [plain.replace(b'"la"', b'"lala"'), more, more, plain]


def test_an_event_of_a_newer_antiphon_is_left_out_and_the_others_are_replayed() -> None:
    kept = [b'{"event":"tomorrow","at":1}', b"not even JSON", pack(PromptEvent(now(), [v1.TextBlock("hi")], "u"))]
    assert sent(list(unpack(kept))) == [v1.UserMessageChunk(v1.TextBlock("hi"), "u")]


def shape(entry: Entry) -> tuple[object, ...]:
    match entry:
        case CallEntry():
            return entry.id, entry.title, entry.status
        case Message() | Thought():
            return type(entry), entry.message_id, entry.text
        case _:
            return (entry,)


_texts = st.text(max_size=5)
_ids = st.sampled_from(["m1", "m2", None])
_updates: st.SearchStrategy[v1.Update] = st.one_of(
    st.builds(lambda text, id: v1.AgentMessageChunk(v1.TextBlock(text), id), _texts, _ids),
    st.builds(lambda text, id: v1.AgentThoughtChunk(v1.TextBlock(text), id), _texts, _ids),
    st.builds(lambda id, title: v1.ToolCall(id, title), st.sampled_from(["c1", "c2"]), _texts),
    st.builds(lambda id: v1.ToolCallUpdate(id, status=v1.ToolStatus.COMPLETED), st.sampled_from(["c1", "c2"])),
)


@given(st.lists(_updates, max_size=30))
def test_the_fold_is_the_same(updates: list[v1.Update]) -> None:
    events: list[Event] = [update_event(update, "claude") for update in updates]
    kept = [pack(event) for event in (*events, ClearEvent(now()))]
    again = fold(sent(list(unpack(kept))))
    assert [shape(entry) for entry in again.entries] == [shape(entry) for entry in fold(updates).entries]
