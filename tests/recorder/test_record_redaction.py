"""Redaction: what is to be hidden is gone wherever it stood, and everything else is as it was, byte for byte."""

import json
import string
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.redaction import RecordingRedactor, redact_file
from antiphon.traffic.checker import TrafficChecker
from antiphon.traffic.entries import entries_of
from antiphon.traffic.schema import look

HOME = {"HOME": "/home/ada", "USER": "ada"}
ALL = ("secrets", "home", "files")
SAFE = st.text(alphabet=" .,;()äß🎵\n\t\\/\"'abcxyzABC019_-", max_size=20)
LETTERS = string.ascii_letters + string.digits
SHAPES = st.one_of(
    st.text(LETTERS, min_size=20, max_size=40).map(lambda some: f"sk-ant-api03-{some}"),
    st.text(LETTERS, min_size=36, max_size=36).map(lambda some: f"ghp_{some}"),
    st.text(string.digits, min_size=10, max_size=12).map(lambda some: f"xoxb-{some}-abcdefghij"),
    st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16).map(lambda some: f"AKIA{some}"),
    st.text(LETTERS, min_size=10, max_size=40).map(lambda some: f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{some}.{some}"),
    st.text(LETTERS + "+/\n", min_size=10).map(
        lambda some: f"-----BEGIN RSA PRIVATE KEY-----\n{some}\n-----END RSA PRIVATE KEY-----"
    ),
)
NAMES = st.sampled_from(
    [
        "apiKey",
        "api_key",
        "ANTHROPIC_API_KEY",
        "token",
        "access_token",
        "Authorization",
        "password",
        "client-secret",
        "x-api-key",
    ]
)
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), SAFE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "text", "update", "items", "name"]), inner, max_size=3),
    ),
    max_leaves=8,
)


def line_of(msg: object, *, ascii_only: bool = False, spaced: bool = False) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps({"t": 0.5, "dir": "a2c", "msg": msg}, ensure_ascii=ascii_only, separators=separators).encode()


def redacted(msg: object, *what: str) -> Any:
    return json.loads(RecordingRedactor(what or ALL, HOME).line(line_of(msg)))["msg"]


@st.composite
def hidden(draw: st.DrawFn, secret: str) -> Any:
    """A message with the secret somewhere: in a text, alone, as a name, deep or flat."""
    text = draw(SAFE) + " " + secret + " " + draw(SAFE)
    value: Any = draw(st.sampled_from([secret, text, {secret: 1}, {"a": text}, [text, 1]]))
    for _ in range(draw(st.integers(0, 3))):
        value = draw(
            st.sampled_from([{"params": value, "id": 1}, [draw(PLAIN), value], {"update": value, "text": draw(SAFE)}])
        )
    return value


@given(SHAPES.flatmap(lambda secret: st.tuples(st.just(secret), hidden(secret))), st.booleans(), st.booleans())
def test_a_secret_with_a_known_shape_survives_nowhere(found: tuple[str, Any], ascii_only: bool, spaced: bool) -> None:
    secret, message = found
    line = line_of(message, ascii_only=ascii_only, spaced=spaced)
    after = json.loads(RecordingRedactor(["secrets"], HOME).line(line))
    assert secret not in str(after) and secret.strip() not in json.dumps(after)
    assert "[secret 1]" in str(after)


@given(NAMES, st.text(LETTERS, min_size=8, max_size=30).filter(lambda some: not some.isalpha()), SAFE)
def test_a_secret_with_a_name_is_hidden_there_and_everywhere_after(name: str, secret: str, words: str) -> None:
    redactor = RecordingRedactor(["secrets"], HOME)
    named = json.loads(redactor.line(line_of({"params": {name: secret}})))
    later = redactor.line(line_of({"params": {"text": f"{words} {secret}!"}}))
    assert named["msg"] == {"params": {name: "[secret 1]"}}
    assert secret.encode() not in later and b"[secret 1]!" in later


@given(PLAIN, st.booleans(), st.booleans())
def test_a_message_with_nothing_to_hide_is_unchanged_byte_for_byte(
    message: Any, ascii_only: bool, spaced: bool
) -> None:
    line = line_of({"id": 1, "params": message}, ascii_only=ascii_only, spaced=spaced)
    assert RecordingRedactor(ALL, HOME).line(line) == line


WORDS = st.lists(
    st.sampled_from([
        "token", "=", ":", "abc12345", " ", "/home/ada", "sk-ant-0123456789abcdefgh", "key", '"', "\\", "bearer ", "\n", "content", "data", "/", "ada", "ß",
        "eyJhbGciOiJI.eyJz.x", "://", "@", "?", "-----BEGIN PRIVATE KEY-----", "rawInput", "env", "ghp_0123456789abcdefghij0123456789abcdef",
    ]),
    max_size=6,
).map("".join)  # fmt: skip
ANYTHING = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | NAMES, inner, max_size=3)
)


@given(st.lists(ANYTHING, max_size=3), st.booleans())
def test_a_line_that_is_not_looked_at_closely_has_nothing_to_hide(messages: list[Any], ascii_only: bool) -> None:
    """Most lines are only searched for signs; reading all of them string by string gives the same."""
    quick, thorough = RecordingRedactor(ALL, HOME), Thorough(ALL, HOME)
    for message in messages:
        line = line_of(message, ascii_only=ascii_only)
        found = quick.line(line)
        assert found == thorough.line(line)
        json.loads(found)


class Thorough(RecordingRedactor):
    def _may_change(self, text: str) -> bool:
        return True


@pytest.mark.parametrize(
    "text",
    [
        "\\" * 100_000,
        '"' * 100_000,
        "A" * 100_000,
        "://" * 40_000,
        "?a" * 50_000,
        "-----BEGIN " * 10_000,
        "eyJ" * 40_000,
    ],
)
def test_no_text_makes_redaction_think_for_ever(text: str) -> None:
    line = line_of({"params": {"text": f"token {text}", "path": f"/home/{text}"}})
    json.loads(RecordingRedactor(ALL, HOME).line(line))


def test_everything_beside_the_secret_stays_as_it_was_written() -> None:
    line = b'{"t":1,"dir":"c2a","msg": { "n":1.50, "big":123456789012345678901234567890, "k":{"token" : "abc"}, "e":1E5,"id":"x" }}'
    assert RecordingRedactor(ALL, HOME).line(line) == line.replace(b'"abc"', b'"[secret 1]"')


def test_the_same_secret_has_the_same_number_and_a_redacted_line_stays_as_it_is() -> None:
    redactor = RecordingRedactor(["secrets"], HOME)
    first = redactor.line(line_of({"token": "one-1111", "password": "two-2222", "again": "one-1111"}))
    assert json.loads(first)["msg"] == {"token": "[secret 1]", "password": "[secret 2]", "again": "[secret 1]"}
    assert RecordingRedactor(ALL, HOME).line(first) == first


def test_what_is_given_to_servers_and_programs_is_hidden() -> None:
    server = {
        "name": "files",
        "command": "/usr/bin/server",
        "args": ["--api-key", "k-123", "--verbose", "--url=https://ada:pw1@host/?token=abcd1234"],
        "env": [{"name": "MODE", "value": "fast"}],
    }
    http = {"type": "http", "name": "h", "url": "https://h/", "headers": [{"name": "X-Team", "value": "blue"}]}
    params = {"cwd": "/project", "mcpServers": [server, http]}
    found = redacted({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params}, "secrets")["params"]
    assert found["mcpServers"][0]["args"][0:3:2] == ["--api-key", "--verbose"]
    left = json.dumps(found)
    assert not [secret for secret in ("k-123", "fast", "pw1", "abcd1234", "blue") if secret in left]
    assert found["mcpServers"][0]["env"][0]["name"] == "MODE"
    assert not look("NewSessionRequest", found).faults


@pytest.mark.parametrize(
    "text",
    ["Authorization: Bearer abcdef0123456", "export API_KEY=s3cr3t-words", '{"password": "s3cr3t"}', 'say "{\\"token\\": \\"s3cr3t\\"}"', "postgres://ada:s3cr3t@db/"],
)  # fmt: skip
def test_secrets_in_texts_are_known_by_what_stands_before_them(text: str) -> None:
    left = redacted({"params": {"text": text}}, "secrets")["params"]["text"]
    assert "s3cr3t" not in left and "abcdef0123456" not in left
    assert "[secret 1]" in left


@pytest.mark.parametrize(
    "text",
    [
        "a task-force of 12 people-with-many-words",
        "maxTokens: 100",
        "the token is next",
        "keys and tokens",
        "https://host/path?page=12",
    ],
)
def test_words_are_not_secrets(text: str) -> None:
    message = {"params": {"text": text, "tokens": 12, "inputTokens": "many"}}
    assert redacted(message, "secrets") == message


def test_home_directories_and_our_name_in_paths_become_a_tilde() -> None:
    texts = [
        "/home/ada/songs/a.py",
        "see /home/ada.",
        "file:///home/ada/x",
        "/Users/bob/y",
        "/mnt/home/adam",
        "/run/ada/s",
        "/home/adam2/z",
        "/x/-home-ada-songs",
    ]
    found = redacted({"texts": texts}, "home")["texts"]
    assert found == [
        "/~/songs/a.py",
        "see /~",
        "file:///~/x",
        "/~/y",
        "/mnt/home/adam",
        "/run/~/s",
        "/~/z",
        "/x/-~-songs",
    ]


def test_contents_of_files_are_counted_and_messages_stay_valid() -> None:
    diff = {"type": "diff", "path": "/w/a", "oldText": "old", "newText": "new words"}
    shown = {"type": "content", "content": {"type": "text", "text": "file text"}}
    call = {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "Read",
        "content": [diff, shown],
        "rawInput": {"path": "p", "n": [1, "x"]},
    }
    found = redacted({"method": "session/update", "params": {"sessionId": "s", "update": call}}, "files")["params"]
    counted = "[redacted: {} characters]".format
    assert found["update"]["content"][0] == {**diff, "oldText": counted(3), "newText": counted(9)}
    assert found["update"]["content"][1]["content"]["text"] == counted(9)
    assert found["update"]["rawInput"] == {"path": counted(1), "n": [1, counted(1)]}
    assert found["update"]["title"] == "Read"
    assert not look("SessionNotification", found).faults

    picture = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    prompt = redacted(
        {"method": "session/prompt", "params": {"prompt": [picture, resource, {"type": "text", "text": "say"}]}},
        "files",
    )
    assert [counted(4), counted(6), "say"] == [
        prompt["params"]["prompt"][0]["data"], prompt["params"]["prompt"][1]["resource"]["text"], prompt["params"]["prompt"][2]["text"],
    ]  # fmt: skip
    assert redacted({"id": 1, "result": {"content": "text"}}, "files")["result"] == {"content": counted(4)}
    assert redacted({"id": 1, "result": {"output": "text", "truncated": False}}, "files")["result"][
        "output"
    ] == counted(4)
    plan = {"params": {"update": {"sessionUpdate": "plan", "entries": [{"content": "a step"}]}}}
    assert redacted(plan, "files") == plan


def test_noise_is_cleared_too_and_its_exact_bytes_are_not_kept() -> None:
    line = b'{"t":0,"dir":"a2c","raw":"key sk-ant-0123456789abcdefgh \xef\xbf\xbd","base64":"c2stYW50"}'
    found = json.loads(RecordingRedactor(["secrets"], HOME).line(line))
    assert found["raw"] == "key [secret 1] \ufffd" and found["base64"] == "[redacted: 8 characters]"
    assert json.loads(RecordingRedactor(["files"], HOME).line(line))["raw"].startswith("[redacted: ")
    message = json.loads(
        RecordingRedactor(["secrets", "files"], HOME).line(
            b'{"t":0,"dir":"a2c","raw":"{\\"id\\":1,\\"token\\":\\"abc\\"}"}'
        )
    )
    assert message["raw"] == '{"id":1,"token":"[secret 1]"}', "a message that another tool wrote down as text"
    stderr = json.loads(RecordingRedactor(["files"], HOME).line(b'{"t":0,"dir":"stderr","raw":"words"}'))
    assert stderr["raw"] == "words"


def test_a_recording_is_rewritten_with_secrets_that_show_themselves_late(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    lines = [line_of({"params": {"text": "hunter2-and-more"}}), b"{torn", line_of({"password": "hunter2-and-more"})]
    source.write_bytes(b"\n".join(lines) + b"\n")
    assert redact_file(str(source), str(target), frozenset({"secrets"})) == (3, 1)
    first, torn, last = (msgspec.json.decode(line) for line in target.read_bytes().splitlines())
    assert first["msg"]["params"]["text"] == last["msg"]["password"] == "[secret 1]"
    assert torn["dir"] == "note" and source.read_bytes().startswith(lines[0])
    with pytest.raises(ValueError, match="onto itself"):
        redact_file(str(source), str(source), frozenset({"secrets"}))


@pytest.mark.parametrize(
    "recording",
    sorted((Path(__file__).parents[2] / "examples" / "recordings").glob("*.jsonl")),
    ids=lambda path: path.name,
)
def test_a_redacted_recording_is_judged_as_before(recording: Path) -> None:
    lines = recording.read_bytes().splitlines()
    redactor = RecordingRedactor(ALL, HOME)
    hidden_lines = [redactor.line(line) for line in lines]
    assert hidden_lines != lines and deviations(hidden_lines) == deviations(lines)


def deviations(lines: list[bytes]) -> list[tuple[str, int]]:
    checker = TrafficChecker()
    for entry in entries_of(lines):
        checker.check(entry)
    return [(deviation.rule, deviation.entry.number) for deviation in checker.deviations]
