"""The file with the session's MCP servers for the CLI: who may read it, what it says, and when it goes."""

import json
import os
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from antiphon.engines.claude.launch import ServerFile, servers_of
from antiphon.protocol import v1
from tests.engines.mcp_servers.web_server import LITTLE, serving, stdio_server

HEADERS = [v1.HttpHeader("Authorization", "Bearer 1")]


def expanded(value: str, environment: dict[str, str]) -> str:
    """What the CLI makes of a value: `${NAME}` and `${NAME:-otherwise}`, from left to right and once."""
    done = ""
    while (at := value.find("${")) >= 0 and (end := value.find("}", at)) >= 0:
        name, _, otherwise = value[at + 2 : end].partition(":-")
        done, value = done + value[:at] + environment.get(name, otherwise), value[end + 1 :]
    return done + value


def test_a_session_without_servers_needs_no_file() -> None:
    assert ServerFile([]).path() is None


def test_only_its_owner_can_read_it() -> None:
    file = ServerFile([stdio_server(KEY="secret")])
    path = file.path()
    assert path is not None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    file.remove()
    assert not Path(path).exists()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory with a name")
def test_nothing_secret_is_written_to_a_disk() -> None:
    file = ServerFile([stdio_server(KEY="secret")])
    path = file.path()
    assert path is not None and os.stat(path).st_nlink == 0
    file.remove()


def test_where_memory_has_no_name_it_is_a_file_for_its_owner_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    file = ServerFile([stdio_server(KEY="secret")])
    path = file.path()
    assert path is not None
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(Path(path).parent).st_mode) == 0o700
    file.remove()
    assert not Path(path).parent.exists()


def test_the_file_is_kept_for_the_next_process_and_made_again_when_it_is_gone() -> None:
    file = ServerFile([stdio_server()])
    first = file.path()
    assert first is not None
    assert file.path() == first
    file.remove()
    file.remove()
    again = file.path()
    assert again is not None
    assert json.loads(Path(again).read_text(encoding="utf-8"))["mcpServers"].keys() == {"little"}
    file.remove()


def test_every_kind_of_server_is_written_with_its_fields() -> None:
    servers: list[v1.McpServer] = [
        v1.StdioServer("one", "/bin/one", ["-v"], [v1.EnvVariable("KEY", "1")]),
        v1.HttpServer("two", "https://example.com/mcp", HEADERS),
        v1.SseServer("three", "https://example.com/sse", HEADERS),
    ]
    assert servers_of(servers) == {
        "one": {"type": "stdio", "command": "/bin/one", "args": ["-v"], "env": {"KEY": "1"}},
        "two": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer 1"}},
        "three": {"type": "sse", "url": "https://example.com/sse", "headers": {"Authorization": "Bearer 1"}},
    }


def test_servers_of_other_kinds_are_left_out() -> None:
    assert servers_of([v1.AcpServer("a", "b"), v1.Unknown("telnet", b"{}")]) == {}


def test_names_are_made_safe_and_given_once() -> None:
    names = ["my server", "my.server", "my_server", "", "été", "a-b_c9", "../x"]
    found = servers_of([v1.StdioServer(name, "x", [], []) for name in names])
    assert list(found) == ["my_server", "my_server-2", "my_server-3", "server", "t", "a-b_c9", "x"]


@pytest.mark.parametrize("value", ["${HOME}", "a ${NOPE:-d} $x {y}", "${${HOME}}", "$${HOME}", "no variable"])
def test_what_looks_like_a_variable_is_meant_as_it_stands(value: str) -> None:
    found = servers_of(
        [
            v1.StdioServer("s", value, [value], [v1.EnvVariable("KEY", value)]),
            v1.HttpServer("h", value, [v1.HttpHeader("X-Key", value)]),
        ]
    )
    environment = {"HOME": "/home/ada"}
    stdio, http = found["s"], found["h"]
    for each in (stdio["command"], stdio["args"][0], stdio["env"]["KEY"], http["url"]):
        assert expanded(each, environment) == value
    assert expanded(expanded(http["headers"]["X-Key"], environment), environment) == value


# The little server itself, which the tests with the real CLI rely on.

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tell", "arguments": {"name": "X-Key"}}}


def test_the_little_server_returns_its_environment() -> None:
    environment = {**os.environ, "X-Key": "7"}
    words = [sys.executable, LITTLE, "stdio"]
    asked = json.dumps(CALL) + "\n"
    ran = subprocess.run(
        words, input=asked, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=20
    )
    assert _text_of(json.loads(ran.stdout)) == "X-Key=7"


def test_the_little_server_returns_its_headers() -> None:
    with serving("http") as address:
        asked = urllib.request.Request(address, json.dumps(CALL).encode(), {"X-Key": "8"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert _text_of(json.load(answer)) == "X-Key=8"


def test_the_little_server_returns_its_headers_as_events() -> None:
    with serving("sse") as address, urllib.request.urlopen(address, timeout=10) as events:
        assert events.readline() == b"event: endpoint\n"
        messages = address.removesuffix("/sse") + events.readline().decode().removeprefix("data: ").strip()
        asked = urllib.request.Request(messages, json.dumps(CALL).encode(), {"X-Key": "9"})
        urllib.request.urlopen(asked, timeout=10).close()
        assert [events.readline() for _ in range(2)] == [b"\n", b"event: message\n"]
        assert _text_of(json.loads(events.readline().removeprefix(b"data: "))) == "X-Key=9"


def _text_of(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])
