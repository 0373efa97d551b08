"""What differs from run to run is put into recorded lines, and every other byte stays."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.replay.comparison import differences
from antiphon.recorder.replay.script import BadRecording, ReplayNames, conversations, with_id, written_id
from antiphon.traffic.entries import Direction
from tests.recorder.replay_recordings import INITIALIZE, TURN, answer, ask, asked, entries, raw
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "a", '"id":1', "/w"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    before=JSON,
    after=JSON,
    old=st.sampled_from([b"1", b"0", b"-5", b'"a\\"b"', b"null", b"1180591620717411303424", b"1.50"]),
)
def test_only_the_id_of_the_envelope_changes(before: object, after: object, old: bytes) -> None:
    shape = b'{"x" : %b, "id" :%b , "result":%b}'
    line = shape % (msgspec.json.encode(before), old, msgspec.json.encode(after))
    assert written_id(line) == old
    assert with_id(line, b'"new"') == shape % (msgspec.json.encode(before), b'"new"', msgspec.json.encode(after))


def test_an_id_whose_name_is_escaped_is_replaced_too() -> None:
    line = b'{"\\u0069d":1,"result":{"id":2}}'
    assert msgspec.json.decode(with_id(line, b"7")) == {"id": 7, "result": {"id": 2}}


@each_row(
    ("text", "moved"),
    [
        ("/old/songs", "/new"),
        ("/old/songs/a.py", "/new/a.py"),
        ("file:///old/songs/a", "file:///new/a"),
        ("see /old/songs/a, /old/songs.", "see /new/a, /new."),
        ("/old/songser", "/old/songser"),
        ("/old/songs.old/a", "/old/songs.old/a"),
        ("/very/old/songs/a", "/very/old/songs/a"),
        ("cd '/old/songs' && ls", "cd '/new' && ls"),
    ],
)
def test_paths_move_wherever_they_stand_and_only_whole_ones(text: str, moved: str) -> None:
    names = ReplayNames([], Direction.C2A)
    names.move("/old/songs/", "/new/")
    assert names.value({"a": [text], text: 1}) == {"a": [moved], moved: 1}
    assert msgspec.json.decode(names.line(msgspec.json.encode({"a": [text]}))) == {"a": [moved]}


def test_other_bytes_of_a_line_with_a_path_stay() -> None:
    names = ReplayNames([], Direction.C2A)
    names.move("/old", "/neu\u00e9")
    line = b'{ "a" : "\\/old\\/x", "b":"\\u00e9", "c": 1.50, "d": 1180591620717411303424, "e": "\\ud800/old" }'
    assert (
        names.line(line)
        == b'{ "a" : "/neu\xc3\xa9/x", "b":"\\u00e9", "c": 1.50, "d": 1180591620717411303424, "e": "\\ud800/old" }'
    )


@pytest.mark.parametrize("recorded", ["/", "", "relative", "C:\\work"])
def test_the_root_directory_translates_no_paths(recorded: str) -> None:
    names = ReplayNames([], Direction.C2A)
    names.move(recorded, "/new")
    assert names.line(b'{"a":"/x"}') == b'{"a":"/x"}'


def test_ids_are_renamed_under_their_names_alone() -> None:
    recording = [asked(1, "terminal/create"), answer(1, by="c2a", terminalId="1"), *TURN]
    names = ReplayNames(entries(recording), Direction.C2A)
    names.learn({"terminalId": "1", "sessionId": "s1"}, {"terminalId": "9", "sessionId": "mine"})
    line = raw({"terminalId": "1", "text": "1", "sessionId": "s1", "quoted": '"terminalId":"1"'})
    assert names.line(line) == line.replace(b'"terminalId":"1","text"', b'"terminalId":"9","text"')


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert list(differences(value, msgspec.json.decode(msgspec.json.encode(value)))) == []


def test_differences_have_paths_that_can_be_read() -> None:
    found = list(differences({"a": [{"b c": 1}], "n": None, "t": True}, {"a": [{"b c": 2}, 3], "t": 1}, "params"))
    assert [(path, repr(old), repr(new)) for path, old, new in found] == [
        ('params.a[0]."b c"', "1", "2"),
        ("params.a[1]", "nothing", "3"),
        ("params.n", "None", "nothing"),
        ("params.t", "True", "1"),
    ]


def test_a_file_may_hold_several_connections() -> None:
    first, second = conversations(entries([*TURN, INITIALIZE, answer(0)]))
    assert len(first) == len(TURN) and len(second) == 2


@pytest.mark.parametrize(
    ("recording", "reason"),
    [([], "is empty"), ([answer(0)], "has no line of a client")],
)
def test_what_cannot_be_played_is_refused_with_a_hint(recording: list[tuple[str, object]], reason: str) -> None:
    with pytest.raises(BadRecording, match=f"{reason}(?s:.*)hint: "):
        conversations(entries(recording))


def test_a_connection_without_initialize_is_one_too() -> None:
    assert len(conversations(entries([ask(1, "session/list"), answer(1)]))) == 1
