"""Lines out of bytes, however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.rpc.envelope import Frame, Overlong
from antiphon.transports.framing import HEAD, LONG, TAIL, LineFramer, lines_of

LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").strip(b"\r")), max_size=12)
CUTS = st.lists(st.integers(0, 500), max_size=10)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    return [data[start:end] for start, end in pairwise(edges)]


@given(LINES, CUTS)
def test_any_cutting_of_the_bytes_gives_the_same_lines(lines: list[bytes], cuts: list[int]) -> None:
    framer = LineFramer()
    found: list[Frame] = []
    for chunk in chunks(b"".join(line + b"\n" for line in lines), cuts):
        found += framer.feed(chunk)
    assert found == [line for line in lines if line.strip()]


@given(LINES, CUTS, st.integers(1, 30))
def test_any_cutting_gives_the_same_lines_under_a_limit(lines: list[bytes], cuts: list[int], limit: int) -> None:
    framer = LineFramer(limit)
    found: list[Frame] = []
    for chunk in chunks(b"".join(line + b"\n" for line in lines), cuts):
        found += framer.feed(chunk)
    shown = [(frame.size, frame.head, frame.tail) if isinstance(frame, Overlong) else frame for frame in found]
    assert shown == [
        (len(line), line[:HEAD], line[-TAIL:].rstrip()) if len(line) > limit else line
        for line in lines
        if line.strip() or len(line) > limit
    ]


@given(LINES, CUTS)
def test_blocks_hold_the_same_lines(lines: list[bytes], cuts: list[int]) -> None:
    framer = LineFramer()
    found: list[bytes] = []
    for chunk in chunks(b"".join(line + b"\n" for line in lines), cuts):
        for block in framer.blocks(chunk):
            assert isinstance(block, bytes) and block.endswith(b"\n")
            found += lines_of(block)
    assert found == [line for line in lines if line.strip()]


def test_carriage_returns_and_empty_lines_are_not_frames() -> None:
    assert LineFramer().feed(b"a\r\n\r\n\nb\r\n") == [b"a", b"b"]


def test_the_last_line_needs_no_end() -> None:
    framer = LineFramer()
    assert framer.feed(b"a\nb") == [b"a"]
    assert framer.end() == [b"b"]
    assert framer.end() == []


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_line_over_the_limit_keeps_its_ends_and_not_its_middle(size: int) -> None:
    line = b'{"id":1,' + b"x" * 100_000 + b',"end":2}'
    framer = LineFramer(5000)
    data = b"before\n" + line + b"\nafter\n"
    found: list[Frame] = []
    for start in range(0, len(data), size):
        found += framer.feed(data[start : start + size])
        assert len(framer._line) <= max(5000, HEAD) + size
    before, over, after = found
    assert (before, after) == (b"before", b"after")
    assert isinstance(over, Overlong) and (over.size, over.limit) == (len(line), 5000)
    assert line.startswith(over.head) and line.endswith(over.tail)
    assert 0 < len(over.head) <= HEAD and 0 < len(over.tail) <= TAIL


def test_an_unfinished_line_over_the_limit_is_reported_at_the_end() -> None:
    framer = LineFramer(10)
    assert framer.feed(b"x" * 30) == []
    (over,) = framer.end()
    assert isinstance(over, Overlong) and over.size == 30


def test_a_long_line_is_handed_on_as_the_buffer_it_was_read_into() -> None:
    framer = LineFramer()
    data = b"x" * (LONG + 10) + b"\n"
    blocks = [block for start in range(0, len(data), 65536) for block in framer.blocks(data[start : start + 65536])]
    assert blocks == [data] and isinstance(blocks[0], bytearray)
    assert framer.blocks(b"next\n") == [b"next\n"]
