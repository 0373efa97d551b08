"""Server-sent events: what was encoded is read again, in whatever pieces and with whatever line ends it arrives."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.errors import RemoteProtocolError
from antiphon.transports.sse import KEEP_ALIVE, EventParser, ServerEvent, encode_event
from tests.rows import each_row

messages = st.dictionaries(st.text(max_size=5), st.text(max_size=10)).map(lambda one: json.dumps(one).encode())
ids = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


@given(
    st.lists(st.tuples(messages, ids), max_size=6),
    st.lists(st.integers(0, 5000)),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
@example([(b"{}", ""), (b"{}", "\ufeff")], [1, 2, 3], "\r\n")
def test_events_arrive_in_any_pieces_and_with_any_line_end(
    sent: list[tuple[bytes, str]], places: list[int], end: str
) -> None:
    stream = b"".join(encode_event(data, id) + KEEP_ALIVE for data, id in sent).replace(b"\n", end.encode())
    parser, last, expected = EventParser(), "", []
    for data, id in sent:
        last = id or last
        expected.append(ServerEvent(data, last))
    found = [event for piece in cut(stream, places) for event in parser.feed(piece)]
    assert found == expected and parser.last_id == last


@given(st.lists(st.binary(max_size=40)))
def test_no_bytes_make_the_parser_fail(pieces: list[bytes]) -> None:
    whole, parts = EventParser(), EventParser()
    found = [event for piece in pieces for event in parts.feed(piece)]
    assert found == whole.feed(b"".join(pieces))


@each_row(
    ("stream", "events"),
    [
        (b"data: one\ndata: two\n\n", [ServerEvent(b"one\ntwo")]),
        (b"data:one\n\n", [ServerEvent(b"one")]),
        (b"data:  one\n\n", [ServerEvent(b" one")]),
        (b"data\n\n", [ServerEvent(b"")]),
        (b"event: x\n\ndata: one\n\n", [ServerEvent(b"one")]),
        (b"event: x\ndata: one\n\ndata: two\n\n", [ServerEvent(b"one", event="x"), ServerEvent(b"two")]),
        (b"id: 7\ndata: one\n\nid\ndata: two\n\n", [ServerEvent(b"one", "7"), ServerEvent(b"two", "")]),
        (b"id: 7\nid: 8\0\ndata: one\n\n", [ServerEvent(b"one", "7")]),
        (b"\xef\xbb\xbfdata: one\n\n", [ServerEvent(b"one")]),
        (b": note\nother: x\n:data: no\ndata: one\n\n", [ServerEvent(b"one")]),
        (b"data: cut off\n", []),
    ],
)
def test_fields_are_read_as_the_standard_has_them(stream: bytes, events: list[ServerEvent]) -> None:
    assert EventParser().feed(stream) == events


def test_the_time_to_wait_is_kept_and_nonsense_is_not() -> None:
    parser = EventParser()
    parser.feed(b"retry: 1500\n\nretry: soon\n\nretry: \xd9\xa3\n\n")
    assert parser.retry == 1500


def test_an_event_over_the_limit_is_an_error_before_it_fills_the_memory() -> None:
    for piece in (b"x" * 30, b"data: xx\n" * 3):
        parser = EventParser(limit=100)
        for _ in range(3):
            parser.feed(piece)
        with pytest.raises(RemoteProtocolError, match="larger than 100 bytes"):
            parser.feed(piece * 20)


@pytest.mark.parametrize(("data", "id"), [(b"a\nb", ""), (b"a\rb", ""), (b"{}", "a\nb"), (b"{}", "a\0")])
def test_what_would_break_the_stream_is_not_encoded(data: bytes, id: str) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode_event(data, id)


def test_a_long_line_in_small_pieces_costs_no_more_than_its_length() -> None:
    """Each piece is searched once: a million bytes in pieces of one hundred are read in a moment, not in minutes."""
    parser, piece = EventParser(), b"x" * 100
    parser.feed(b"data: ")
    for _ in range(10_000):
        assert parser.feed(piece) == []
    [event] = parser.feed(b"\n\n")
    assert len(event.data) == 1_000_000
