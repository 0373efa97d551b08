"""Redaction: every way in which a secret is distinguished by its name, and the words and numbers beside them that are none."""

import json
import string
from base64 import b64decode, b64encode
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.recorder.redaction import RecordingRedactor
from antiphon.redaction import Secrets
from antiphon.traffic.schema import look
from tests.rows import each_row

LETTERS = string.ascii_letters + string.digits
SECRET = st.text(LETTERS, min_size=8, max_size=24).filter(
    lambda some: any(map(str.isdigit, some)) and not some.isdigit()
)
TEXTS = (
    "run --token={}", "run --password={} now", "run --api-key='{}'", "login password={}", "Password={}", "api_key={}&x=1", "secret={}",
    "curl -H 'Authorization: Basic {}' https://host", "authorization: basic {}", "Proxy-Authorization: Digest {}", "x-api-key: {}",
    "X-Api-Key: {}", "X-Auth-Token:{}", "Cookie: sid={}; theme=dark", "password: {}",
    "https://host/cb#access_token={}", "https://host/?key={}", "https://host/a?b=1&sig={}", "https://host/?X-Amz-Signature={}&a=1",
    "https://host/?API_KEY={}", "export GITHUB_TOKEN={}", "https://ada:{}@host/",
)  # fmt: skip


def cleared(message: Any) -> Any:
    line = json.dumps({"t": 0.5, "dir": "a2c", "msg": message}).encode()
    return json.loads(RecordingRedactor(["secrets"], {"HOME": "/home/ada"}).line(line))["msg"]


@given(st.sampled_from(TEXTS), SECRET)
def test_a_secret_in_a_text_is_known_by_what_stands_before_it(text: str, secret: str) -> None:
    left = cleared({"params": {"text": text.format(secret)}})["params"]["text"]
    assert secret not in left
    assert "[secret 1]" in left


@given(
    st.sampled_from(["apiKeys", "tokens", "access_tokens", "credentials", "secrets", "token", "Passwords", "cookies"]),
    SECRET,
    st.integers(0, 3),
)
def test_everything_below_a_secret_name_is_hidden(name: str, secret: str, depth: int) -> None:
    value: Any = secret
    for at in range(depth):
        value = [value, "x"] if at % 2 else {"github": value}
    assert secret not in json.dumps(cleared({"params": {"_meta": {name: value}}}))


@given(st.sampled_from(["API_TOKEN", "apiKey", "X-Api-Key", "db.password"]), SECRET, st.booleans())
def test_a_value_is_hidden_where_its_name_stands_beside_it(name: str, secret: str, name_first: bool) -> None:
    pair = {"name": name, "value": secret} if name_first else {"value": secret, "name": name}
    assert cleared({"params": {"x": [pair]}})["params"]["x"][0] == {"name": name, "value": "[secret 1]"}


@given(SECRET)
def test_everything_that_is_given_to_a_program_is_hidden_however_deep_it_is(secret: str) -> None:
    for given_ in ({"A": {"b": [secret]}}, [{"name": "A", "value": {"b": secret}}], [f"A={secret}"]):
        left = json.dumps(cleared({"params": {"env": given_}}))
        assert secret not in left
    assert cleared({"env": [{"name": "MODE", "value": "x"}]})["env"][0]["name"] == "MODE"


@given(st.integers(1_000, 10**15), st.sampled_from(["token", "password", "accessToken", "api_key", "client-secret"]))
def test_a_number_that_is_a_secret_becomes_another_number(number: int, name: str) -> None:
    assert cleared({"params": {"_meta": {name: number, "a": number}}}) == {"params": {"_meta": {name: 0, "a": number}}}


@each_row(
    "message",
    [
        {"maxTokens": 4096, "usage": {"tokens": 123456, "inputTokens": 5000, "total_tokens": 99999, "costPerToken": 0.0003}},
        {"tokens": {"input": 123456, "output": 4096}, "token": 7, "maxToken": 100000},
        {"_meta": {"tokens": "1,234"}},
        {"tokenCount": 123456, "tokenLimit": "many", "stopReason": "max_tokens", "inputTokens": "many"},
        {"text": "The token is next. Enter a password: then press return. Set max_token=4096, or token=none."},
        {"text": "def login(token=None, password=self.word, api_key=read(key)): ..."},
        {"text": "authorization: see the documentation; the cookie: a small cake; the secret: work hard"},
        {"text": "https://host/path?page=12&keyword=music&monkey=george#section"},
        {"options": [{"name": "Token", "value": "by-token"}, {"name": "API key", "value": "by-key"}]},
        {"agentCapabilities": {"auth": {"logout": {}, "_meta": {"way": "browser"}}}},
        {"line": 123456, "name": "token", "title": "Count the tokens"},
    ],
)  # fmt: skip
def test_words_and_numbers_that_are_not_secrets_stay(message: Any) -> None:
    assert cleared({"params": message}) == {"params": message}


def test_the_fields_of_a_form_keep_their_types() -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string", "title": "Password"}}}
    params = {"sessionId": "s", "mode": "form", "message": "Who are you?", "requestedSchema": schema}
    assert cleared(params) == params and not look("CreateElicitationRequest", params).faults


def test_half_a_surrogate_pair_stops_nothing() -> None:
    line = rb'{"t":0,"dir":"a2c","msg":{"a":"\ud83d","token":"abcd1234","b":"\udc00 abcd1234"}}'
    found = RecordingRedactor(["secrets"], {}).line(line)
    assert found == rb'{"t":0,"dir":"a2c","msg":{"a":"\ud83d","token":"[secret 1]","b":"' + '� [secret 1]"}}'.encode()


def test_a_secret_with_a_name_and_a_shape_has_one_number() -> None:
    secrets = Secrets()
    text = "echo API_KEY=sk-abcdefghijklmnop12345 TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    cleared = secrets.clear(text)
    assert cleared == "echo API_KEY=[secret 1] TOKEN=[secret 2]"
    assert secrets.clear(cleared) == cleared and secrets.clear(text) == cleared


def redacted(update: Any, *what: str) -> Any:
    """An update of version 2 after redaction."""
    message = {"method": "session/update", "params": {"sessionId": "s", "update": update}}
    line = json.dumps({"t": 0.5, "dir": "a2c", "msg": message}).encode()
    done = RecordingRedactor(what, {"HOME": "/home/ada", "USER": "ada"}).line(line)
    return json.loads(done)["msg"]["params"]["update"]


@given(st.sampled_from(TEXTS), SECRET)
def test_a_secret_in_the_output_of_a_terminal_is_hidden_though_it_is_in_base64(text: str, secret: str) -> None:
    data = b64encode(f"\x1b[1m{text.format(secret)}\n".encode() + b"\xff").decode()
    for update in (
        {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data},
        {"sessionUpdate": "terminal_update", "terminalId": "t", "output": {"data": data}},
    ):
        left = redacted(update, "secrets")
        shown = b64decode(left.get("data") or left["output"]["data"])
        assert secret.encode() not in shown and b"[secret 1]" in shown
        assert shown.startswith(b"\x1b[1m") and shown.endswith(b"\xff")


def test_the_home_directory_is_hidden_in_the_output_of_a_terminal() -> None:
    data = b64encode(b"cd /home/ada/songs").decode()
    left = redacted({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data}, "home")
    assert b64decode(left["data"]) == b"cd /~/songs"


def test_output_that_has_nothing_to_hide_or_is_no_base64_stays() -> None:
    for data in (b64encode(b"la la\xc3").decode(), "no base64!"):
        update = {"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data}
        assert redacted(update, "secrets", "home") == update


def test_files_of_version_2_are_counted_in_patches_and_in_pieces_of_tool_calls() -> None:
    patch = {"format": "git_patch", "text": "+x = 1\n"}
    diff = {"type": "diff", "changes": [{"operation": "modify", "path": "/w/a"}], "patch": patch}
    left = redacted({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [diff]}, "files")
    assert left["content"][0]["patch"]["text"] == "[redacted: 7 characters]"
    shown = {"type": "content", "content": {"type": "text", "text": "x = 1"}}
    left = redacted({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": shown}, "files")
    assert left["content"]["content"]["text"] == "[redacted: 5 characters]"
    said = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "la"}}
    assert redacted(said, "files") == said
