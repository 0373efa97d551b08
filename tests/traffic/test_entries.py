"""Recordings are read as they are, however strange their lines: nothing is called wrong that is right, and nothing is lost."""

from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.lines import DirectionRecorder
from antiphon.recorder.redaction import RecordingRedactor
from antiphon.traffic.checker import TrafficChecker
from antiphon.traffic.entries import LATEST, Direction, Entry, RecordingReader, entries_of, parse
from tests.rows import each_row


def entry_of(raw: bytes) -> Entry:
    return parse(1, 0.0, Direction.A2C, raw)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'{"a":"\ud83d"}', "�"),
        (rb'{"a":"\uDC00 x \uD83D"}', "� x �"),
        (rb'{"a":"\ud83d\ude00\ud83d"}', "😀�"),
        (rb'{"a":"\\ud83d\ud83d"}', "\\ud83d�"),
    ],
)
def test_half_a_letter_is_json(raw: bytes, text: str) -> None:
    entry = entry_of(raw)
    assert entry.msg == {"a": text} and entry.raw == raw


@pytest.mark.parametrize(
    "raw", [b'{"a":"\\ud83d"', rb'{"a":"\ud83d" x}', rb"\ud83d", rb'{"a":"\x \ud83d"}', b'{"a":"\\ud83d \xff"}']
)
def test_what_is_not_json_does_not_become_json_by_half_a_letter(raw: bytes) -> None:
    assert entry_of(raw).is_noise


@pytest.mark.parametrize("line", [rb'"msg":{"a":"\ud83d"}', rb'"raw":"{\"a\":\"\\ud83d\"}"'])
def test_half_a_letter_is_json_in_recordings_too(line: bytes) -> None:
    """Ours have it as `raw`, because a line of a recording is for every reader; those of others may have it as it is."""
    [entry] = entries_of([b'{"t":0,"dir":"a2c",%b}' % line])
    assert entry.msg == {"a": "�"}


def rules_broken(lines: list[bytes]) -> list[str]:
    checker = TrafficChecker()
    for entry in entries_of(lines):
        checker.check(entry)
    return [one.rule for one in checker.deviations]


def test_bytes_that_are_not_text_are_found_in_our_own_recordings() -> None:
    lines = (
        DirectionRecorder("a2c")
        .feed(0.5, b'{"jsonrpc":"2.0","method":"_x","params":{"a":"\xff"}}\n')
        .splitlines(keepends=True)
    )
    assert rules_broken(lines) == ["wire.utf8", "wire.json"]
    [entry] = entries_of(lines)
    assert b"\xff" in entry.raw
    cleared = [RecordingRedactor(["secrets"], {}).line(line.rstrip()) for line in lines]
    assert rules_broken(cleared) == []  # what was taken out cannot be judged


@given(st.binary(max_size=20) | st.text(max_size=20))
def test_whatever_base64_holds_stops_nothing(exact: bytes | str) -> None:
    text = b64encode(exact).decode() if isinstance(exact, bytes) else exact
    [entry] = entries_of([msgspec.json.encode({"t": 0, "dir": "c2a", "raw": "words", "base64": text})])
    assert entry.raw == (exact or b"words") if isinstance(exact, bytes) else isinstance(entry.raw, bytes)


@each_row(
    ("t", "seconds"),
    [
        ("1" + "0" * 400, LATEST), ("-1" + "0" * 400, -LATEST), ("1.5", 1.5), ("1e300", LATEST), ("-3", -3.0),
        ("true", 0.0), ('"now"', 0.0), ("null", 0.0), ("[]", 0.0),
    ],
)  # fmt: skip
def test_any_time_can_be_counted_with(t: str, seconds: float) -> None:
    [entry] = entries_of([f'{{"t":{t},"dir":"c2a","msg":{{}}}}'.encode()])
    assert entry.t == seconds


def test_a_number_that_is_too_large_is_a_line_that_cannot_be_read() -> None:
    reading = RecordingReader()
    assert list(entries_of([b'{"t":1e999,"dir":"c2a","msg":{}}', b'{"t":NaN,"dir":"c2a","msg":{}}'], reading)) == []
    assert reading.undecodable == 2
