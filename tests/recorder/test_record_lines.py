"""What was on the wire, as lines of a recording: nothing is changed, nothing is lost, and every line is JSON."""

import json
import re
from base64 import b64decode
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.lines import DirectionRecorder
from antiphon.traffic.entries import RecordingReader, entries_of
from tests.rows import each_row

JSON_LINES = st.sampled_from([
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', b'{ "b" : 1.0, "a" : 1e2 }', b'{"text":"\\u00e9 \\n"}',
    '{"text":"für dich 🎵"}'.encode(), b"[]", b"null", b'"words"', b"{}", b'{"n":123456789012345678901234567890}', b" {} ",
])  # fmt: skip
HOSTILE = st.sampled_from([
    b"", b"{", b"}", b"{}{}", b"{} {}", b"[1,", b"2]", b'{"a":1}}', b'1,"dir":"x"', b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b'"\xed\xa0\x80"', b"\x00",
    b"\x1b[31mred", b"NaN", b"[" * 5000, b'{"a":\r1}', b"{}\r\r", b'{"t":0,"dir":"c2a","msg":{}}', b'"\\ud800"', "\u2028".encode(), b"1e999",
])  # fmt: skip
WIRES = st.lists(st.one_of(JSON_LINES, HOSTILE, st.binary(max_size=20).map(lambda some: some.replace(b"\n", b""))))
ENDS = st.sampled_from([b"\n", b"\r\n"])


def recorded(blocks: list[bytes]) -> bytes:
    wire = DirectionRecorder("a2c")
    return b"".join(wire.feed(1.5, block) for block in blocks) + wire.end(1.5)


def bytes_of(line: dict[str, Any], source: bytes) -> bytes:
    """What a line of the recording says was on the wire, with its line end."""
    end = b"" if line.get("partial") else str(line.get("end", "\n")).encode()
    if "base64" in line:
        return b64decode(line["base64"]) + end
    if "raw" in line:
        return str(line["raw"]).encode() + end
    rest = b',"partial":true}' if line.get("partial") else b',"end":"\\r\\n"}' if "end" in line else b"}"
    return source.removeprefix(b'{"t":1.500000,"dir":"a2c","msg":').removesuffix(rest) + end


@given(WIRES, ENDS, st.booleans(), st.lists(st.integers(0, 400)))
def test_any_cutting_gives_the_same_lines_and_each_has_what_was_sent(
    lines: list[bytes], end: bytes, ends: bool, cuts: list[int]
) -> None:
    wire = end.join(lines) + (end if ends else b"")
    places = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    whole = recorded([wire])
    assert recorded([wire[a:b] for a, b in pairwise(places)]) == whole

    sent = [line for line in re.split(rb"(?<=\n)", wire) if line]
    assert b"\r" not in whole, "many programs take it for a line end"
    entries = list(entries_of(whole.splitlines(keepends=True)))
    for line, source, entry in zip(whole.split(b"\n")[:-1], sent, entries, strict=True):
        found = json.loads(line)
        assert bytes_of(found, line) == source
        words = source.removesuffix(b"\n").removesuffix(b"\r" if source.endswith(b"\r\n") else b"")
        assert entry.raw.strip() == words.strip()
        assert ("msg" in found) == is_json(words)
        assert list(found)[:2] == ["t", "dir"] and found["t"] == 1.5


def is_json(line: bytes) -> bool:
    try:
        line.decode()
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


@given(
    st.lists(
        st.sampled_from([b"{}", b'{"a":1}', b"{}{}", b"[{},", b"{}]", b'{"a":{}', b"{}}", b"{} {}", b"1"]), min_size=1
    )
)
def test_lines_that_look_like_objects_together_are_still_judged_one_by_one(lines: list[bytes]) -> None:
    found = [json.loads(line) for line in recorded([b"\n".join(lines) + b"\n"]).splitlines()]
    assert ["msg" in line for line in found] == [is_json(line) for line in lines]


def test_our_own_reader_understands_a_recording() -> None:
    reading = RecordingReader()
    lines = recorded([b'{"id":1,"method":"x"}\nnoise\n{"id":1,"result":{}}\n{"id']).splitlines()
    entries = [entry for line in lines if (entry := reading.entry(line)) is not None]
    assert [entry.raw for entry in entries] == [b'{"id":1,"method":"x"}', b"noise", b'{"id":1,"result":{}}', b'{"id']
    assert (reading.messages, reading.undecodable) == (2, 2)


def test_words_for_people_are_never_messages() -> None:
    wire = DirectionRecorder("stderr", is_protocol=False)
    assert json.loads(wire.feed(0, b"{}\n")) == {"t": 0, "dir": "stderr", "raw": "{}"}


@each_row("cut", range(1, 16))
def test_a_line_that_is_too_long_is_recorded_by_its_size_and_the_next_one_is_whole(cut: int) -> None:
    wire = DirectionRecorder("c2a", longest=4)
    sent = b"0123456789\n{}\n["
    *lines, last = (wire.feed(0, sent[:cut]) + wire.feed(0, sent[cut:]) + wire.end(0)).splitlines()
    shown = [json.loads(line) for line in lines]
    if "note" in shown[0]:
        assert (shown[0]["of"], shown[0]["bytes"]) == ("c2a", 10)
    assert shown[1]["msg"] == {} and json.loads(last)["raw"] == "["


def test_what_the_disk_was_too_slow_for_is_noted() -> None:
    wire = DirectionRecorder("c2a")
    found = wire.feed(0, b'{}\n{"begun') + wire.gap(1, 1000) + wire.feed(2, b'the end"}\n{"next":1}\n') + wire.end(3)
    sent = [json.loads(line) for line in found.splitlines()]
    assert [line.get("msg", line.get("raw", line.get("bytes"))) for line in sent] == [{}, '{"begun', 1009, {"next": 1}]
    assert sent[1]["partial"] is True
