"""The parts of the broker on NATS that need no server: the protocol, keys, logins, the program."""

import base64
import json
import random
import stat
import string
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import AcpError, ExtraMissing
from antiphon.fleet.nats.keys import KeyProblem, new_seed, public_key, sign
from antiphon.fleet.nats.login import Login, ServerAddress, connect_options, read_address, read_addresses, read_login
from antiphon.fleet.nats.program import OLDEST_SERVER, find_nats_server, server_version
from antiphon.fleet.nats.wire import (
    ServerLine,
    WireError,
    WireEvent,
    WireMessage,
    WireParser,
    encode_publish,
    encode_subscribe,
    encode_unsubscribe,
    read_headers,
)

# The protocol.

WORDS = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_-$", min_size=1, max_size=12)
SUBJECTS = st.lists(WORDS, min_size=1, max_size=4).map(".".join)


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, WireMessage]:
    """A message, and the bytes in which a server sends it."""
    sid, subject = draw(st.integers(1, 10**6)), draw(SUBJECTS)
    reply = draw(st.just("") | SUBJECTS)
    data = draw(st.binary(max_size=200))
    names = draw(st.dictionaries(WORDS, st.text("abc :\t~", max_size=8), max_size=3))
    head = b"NATS/1.0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in names.items()) + b"\r\n"
    head = head if names else b""
    where = f"{subject} {sid} {reply}".strip()
    line = f"HMSG {where} {len(head)} {len(head) + len(data)}" if head else f"MSG {where} {len(data)}"
    return line.encode() + b"\r\n" + head + data + b"\r\n", WireMessage(sid, subject, reply, head, data)


LINES = st.sampled_from([
    (b"PING\r\n", ServerLine("PING", "")), (b"PONG\r\n", ServerLine("PONG", "")), (b"+OK\r\n", ServerLine("+OK", "")),
    (b'INFO {"a": 1}\r\n', ServerLine("INFO", '{"a": 1}')), (b"-ERR 'Stale Connection'\r\n", ServerLine("-ERR", "'Stale Connection'")),
])  # fmt: skip


@given(parts=st.lists(messages() | LINES, max_size=12), seed=st.integers(0, 2**32))
def test_what_a_server_sends_is_read_however_it_is_cut(parts: list[tuple[bytes, WireEvent]], seed: int) -> None:
    data = b"".join(sent for sent, _ in parts)
    parser, found, draw = WireParser(), [], random.Random(seed)
    while data:
        size = draw.randint(1, draw.choice([2, 20, 400]))
        found += parser.feed(data[:size])
        data = data[size:]
    assert found == [event for _, event in parts]


@given(subject=SUBJECTS, reply=st.just("") | SUBJECTS, data=st.binary(max_size=100),
       headers=st.dictionaries(WORDS, st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20), max_size=4))  # fmt: skip
def test_what_is_published_is_what_a_server_reads(
    subject: str, reply: str, data: bytes, headers: dict[str, str]
) -> None:
    command = encode_publish(subject, data, reply, headers)
    line, _, rest = command.partition(b"\r\n")
    words = line.decode().split()
    assert words[0] == ("HPUB" if headers else "PUB") and words[1] == subject
    size = int(words[-1])
    assert rest[size:] == b"\r\n"
    begin = int(words[-2]) if headers else 0
    assert rest[begin:size] == data
    if headers:
        assert read_headers(rest[:begin]).fields == {
            name: value.strip(string.whitespace) for name, value in headers.items()
        }
    assert (words[2] == reply) if reply else len(words) == (4 if headers else 3)


@given(data=st.binary(max_size=300))
def test_what_is_no_protocol_is_refused_or_waits_for_more(data: bytes) -> None:
    with suppress(WireError):
        assert len(WireParser().feed(data)) <= len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n", b"MSG a 1\r\n", b"MSG a b 1\r\n", b"MSG a 1 -5\r\n", b"MSG a 1 b c 5\r\n", b"HMSG a 1 9 5\r\n",
        b"MSG a 1 99999999999\r\n", b"MSG a 1 2\r\nabcd\r\n", b"x" * (2 << 20), b"HMSG a 1 -1 5\r\n",
    ],
)  # fmt: skip
def test_what_a_server_never_sends_ends_the_connection(data: bytes) -> None:
    with pytest.raises(WireError):
        WireParser().feed(data)


@pytest.mark.parametrize(
    ("head", "status", "fields"),
    [
        (b"NATS/1.0 503\r\n\r\n", 503, {}),
        (b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 3\r\n\r\n", 204, {"Nats-Num-Pending": "3"}),
        (b"NATS/1.0 404 No Messages\r\n\r\n", 404, {}),
        (b"NATS/1.0\r\nA:b\r\nno header\r\nC: d:e \r\n\r\n", 0, {"A": "b", "C": "d:e"}),
        (b"", 0, {}),
        (b"NATS/1.0 what\r\n\xff: \xfe\r\n\r\n", 0, {"�": "�"}),
    ],
)
def test_headers_are_read(head: bytes, status: int, fields: dict[str, str]) -> None:
    assert read_headers(head) == (status, fields)


def test_subscriptions_are_commands() -> None:
    assert encode_subscribe(7, "acp.*.>") == b"SUB acp.*.> 7\r\n"
    assert encode_subscribe(7, "acp.>", "workers") == b"SUB acp.> workers 7\r\n"
    assert encode_unsubscribe(7) == b"UNSUB 7\r\n"
    for pattern, queue in (("a b", ""), ("a", "b c"), ("", ""), ("a\r\nPUB b 0\r\n", "")):
        with pytest.raises(ValueError, match="subject"):
            encode_subscribe(1, pattern, queue)


@pytest.mark.parametrize("subject", ["a b", "a\r\nPUB b 0", "", "ü"])
def test_a_subject_cannot_carry_a_second_command(subject: str) -> None:
    with pytest.raises(ValueError, match="subject"):
        encode_publish(subject, b"")
    with pytest.raises(ValueError, match="subject"):
        encode_publish("a", b"", reply=subject or "b c")


@pytest.mark.parametrize("headers", [{"A": "1\r\nB: 2"}, {"A\r\nB": "1"}, {"A:B": "1"}, {"": "1"}, {"A B": "1"}])
def test_a_header_cannot_carry_another(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="header"):
        encode_publish("a", b"", headers=headers)


# Keys and logins.


def test_keys_are_those_that_nats_knows() -> None:
    seed = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU"  # of the documentation of NATS
    assert public_key(seed) == "UCK5N7N66OBOINFXAYC2ACJQYFSOD4VYNU6APEJTAVFZB2SVHLKGEW7L"
    made = new_seed()
    assert made.startswith("SU") and len(made) == len(seed) and made != new_seed()
    raw = base64.b32decode(public_key(made) + "=" * (-len(public_key(made)) % 8))[1:-2]
    Ed25519PublicKey.from_public_bytes(raw).verify(sign(made, "a nonce"), b"a nonce")


@pytest.mark.parametrize("position", [0, 1, 5, 30, 56])
def test_a_seed_with_a_mistake_is_refused_and_not_shown(position: int) -> None:
    seed = new_seed()
    wrong = seed[:position] + ("A" if seed[position] != "A" else "B") + seed[position + 1 :]
    for text in (wrong, wrong.lower(), seed[:-1], "", "not base32!", public_key(seed), seed + "A"):
        with pytest.raises(KeyProblem) as caught:
            public_key(text)
        assert "SUA" not in str(caught.value) and caught.value.hint


def test_credentials_are_read_from_each_kind_of_file(tmp_path: Path) -> None:
    seed = new_seed()
    creds = (
        "-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QifQ.e30.c2ln\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    path = tmp_path / "key"
    for text, jwt, inbox in (
        (seed, "", "_INBOX"),
        (f"  {seed}\n", "", "_INBOX"),
        (creds, "eyJ0eXAiOiJKV1QifQ.e30.c2ln", "_INBOX"),
        (json.dumps({"name": "worker-1", "role": "worker", "public": "U", "seed": seed}), "", "_INBOX.worker-1"),
    ):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        assert read_login(path) == Login(seed, jwt, inbox, str(path))
    for wrong in (b"", b"{}", b"-----BEGIN NATS USER JWT-----\n", b"\xff\xfe", b'{"name": 1, "seed": 2}'):
        path.write_bytes(wrong)
        with pytest.raises(AcpError) as caught:
            read_login(str(path))
        assert str(path) in caught.value.sentence and caught.value.hint


def test_a_key_signs_what_the_server_sends(tmp_path: Path) -> None:
    near = ServerAddress("127.0.0.1", 4222)
    info = {"nonce": "abc", "auth_required": True}
    seed = new_seed()
    options = connect_options(Login(seed), near, info, "name", encrypted=False)
    assert options["nkey"] == public_key(seed) and "jwt" not in options and options["name"] == "name"
    options = connect_options(Login(seed, "a.b.c"), near, info, "name", encrypted=False)
    assert options["jwt"] == "a.b.c" and "nkey" not in options and seed not in json.dumps(options)
    options = connect_options(Login(seed), near, {}, "name", encrypted=False)
    assert "sig" not in options, "a server without keys asks for none"


@pytest.mark.parametrize(
    ("text", "found", "shown"),
    [
        ("nats://host", ServerAddress("host", 4222), "nats://host:4222"),
        ("host:5000", ServerAddress("host", 5000), "nats://host:5000"),
        ("tls://u:p%40@host:1", ServerAddress("host", 1, True, "u", "p@"), "tls://host:1"),
        ("nats://[::1]:7", ServerAddress("::1", 7), "nats://[::1]:7"),
        ("nats://token@h", ServerAddress("h", 4222, False, "token"), "nats://h:4222"),
    ],
)
def test_addresses_are_read_and_shown_without_secrets(text: str, found: ServerAddress, shown: str) -> None:
    assert read_address(text) == found and str(found) == shown
    assert read_addresses(f" {text} ,nats://b") == [found, ServerAddress("b", 4222)]
    assert read_addresses([text]) == [found]


# The program.


def program(directory: Path, version: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "nats-server"
    path.write_text(f"#!/bin/sh\necho 'nats-server: v{version}'\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_program_on_the_path_is_used_if_it_is_new_enough(tmp_path: Path) -> None:
    newer, older = program(tmp_path / "new", "2.12.0-RC.1"), program(tmp_path / "old", "2.9.10")
    assert find_nats_server({"PATH": str(newer.parent)}) == str(newer)
    packaged = find_nats_server({"PATH": str(older.parent)})
    assert packaged != str(older) and server_version(packaged) >= OLDEST_SERVER
    assert find_nats_server({"PATH": str(tmp_path)}) == packaged


def test_without_a_program_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.fleet.nats.program._packaged", lambda: iter(()))
    with pytest.raises(ExtraMissing) as caught:
        find_nats_server({"PATH": str(tmp_path)})
    assert "antiphon[fleet]" in caught.value.hint
    older = program(tmp_path / "old", "2.9.10")
    with pytest.raises(ExtraMissing, match=r"2\.9\.10"):
        find_nats_server({"PATH": str(older.parent)})
    silent = program(tmp_path / "silent", "")
    silent.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    with pytest.raises(ExtraMissing):
        find_nats_server({"PATH": str(silent.parent)})
