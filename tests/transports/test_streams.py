"""The events of streams over HTTP, as plain code: what is kept for a client that comes back, and how much of it."""

from antiphon.transports.asgi import streams
from antiphon.transports.asgi.streams import EventStream, forget_some, opening

FRAME = b"x" * 100_000


def filled(count: int, *, numbered: bool) -> EventStream:
    """A stream that has sent so many events."""
    stream = EventStream(numbered=numbered)
    for number in range(count):
        stream.put(FRAME, number + 1 if numbered else 0)
    while stream.take()[0]:
        pass
    return stream


def test_all_streams_of_a_connection_keep_a_bounded_part_together() -> None:
    many = [filled(10, numbered=False) for _ in range(100)]
    small = filled(1, numbered=False)
    forget_some([*many, small])
    assert sum(stream.kept for stream in many) + small.kept <= streams.REPLAY_LIMIT
    assert small.after("0"), "those that keep most forget first"


def test_a_stream_whose_sender_numbers_its_events_keeps_none_of_them() -> None:
    stream = filled(10, numbered=True)
    assert stream.kept == 0 and not stream.is_empty
    stream.put(b"response")
    stream.take()
    assert stream.kept == len(b"response")


def test_a_stream_says_where_it_begins() -> None:
    assert b"id: 0\n\n" in opening(EventStream(), "")
    assert b"id: 3\n\n" in opening(filled(3, numbered=False), "")
    assert b"id: 1\n\n" in opening(filled(3, numbered=False), "1"), "what comes after it is sent again"
    assert b"id: 2.1\n\n" in opening(filled(3, numbered=True), "2.1")
