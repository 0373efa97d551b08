"""The front of the Claude Code engine: quick, offered for what it is, and clear when the program behind it is not there."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import antiphon
from antiphon.engines.base import Host
from antiphon.engines.claude.engine import Claude
from antiphon.errors import RequestRefused
from tests.engines.claude.place import AGENT
from tests.engines.claude.versions import NEW, program


def initialize(**capabilities: Any) -> dict[str, Any]:
    asked = {"protocolVersion": 1, "clientCapabilities": capabilities}
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}) + b"\n"
    done = subprocess.run(AGENT, input=line, capture_output=True, check=True, timeout=30)
    assert done.stderr == b""
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)["result"]
    return answer


def test_it_offers_what_it_does() -> None:
    answer = initialize()
    assert answer["agentInfo"] == {
        "name": "antiphon-claude",
        "title": "Claude Code",
        "version": antiphon.__version__,
    }
    offered = answer["agentCapabilities"]
    assert offered["loadSession"] is True
    assert offered["promptCapabilities"] == {"image": True, "embeddedContext": True}
    assert offered["mcpCapabilities"] == {"http": True, "sse": True}
    assert offered["auth"] == {"logout": {}}
    assert set(offered["sessionCapabilities"]) == {
        "additionalDirectories", "close", "delete", "fork", "list", "resume"
    }  # fmt: skip


def test_initialize_is_answered_before_anything_heavy_is_imported_and_before_the_program_is_looked_for() -> None:
    script = (
        "import os, sys\n"
        "from antiphon.cli.agent import run\n"
        "plain = os.write\n"
        "heavy = {'asyncio', 'ssl', 'sqlite3', 'argparse', 'subprocess', 'pathlib', 'tomllib', 'antiphon.engines.cli_program'}\n"
        "def write(fd, data):\n"
        "    os.write = plain\n"
        "    sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))\n"
        "    return plain(fd, data)\n"
        "os.write = write\n"
        "run(['--engine', 'claude'])\n"
    )
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run([sys.executable, "-c", script], input=line, capture_output=True, check=True, timeout=30)
    assert done.stdout.startswith(b'{"jsonrpc":"2.0","id":1,"result"') and done.stderr == b""


# Ways to sign in.


def test_a_client_with_terminals_gets_the_command_to_run_there() -> None:
    methods = initialize(auth={"terminal": True})["authMethods"]
    assert [(method["id"], method.get("type"), method.get("args")) for method in methods] == [
        ("claude-ai-login", "terminal", ["--login"]),
        ("console-login", "terminal", ["--login", "console"]),
        ("api-key", None, None),
    ]


def test_a_client_that_announces_it_in_its_own_way_gets_the_whole_command() -> None:
    first, second, key = initialize(_meta={"terminal-auth": True})["authMethods"]
    assert first["_meta"]["terminal-auth"] == {
        "command": sys.executable,
        "args": [*AGENT[1:], "--login"],
        "label": "Claude subscription",
    }
    assert second["_meta"]["terminal-auth"]["args"] == [*AGENT[1:], "--login", "console"]
    assert key["id"] == "api-key"


def test_a_client_without_terminals_gets_the_name_of_the_variable() -> None:
    (key,) = initialize()["authMethods"]
    assert key["id"] == "api-key" and "ANTHROPIC_API_KEY" in key["description"]


# Without the program.


@pytest.fixture
def without_package(tmp_path: Path) -> str:
    """A place with msgspec and nothing else."""
    place = tmp_path / "packages"
    place.mkdir()
    (place / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    return str(place)


async def new_session(tmp_path: Path, packages: str, **environment: str) -> RequestRefused:
    env = {
        "PATH": "/nowhere",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join((str(Path(antiphon.__file__).parents[1]), packages)),
        "ANTIPHON_STATE_DIR": str(tmp_path / "state"),
        **environment,
    }
    command = [sys.executable, "-S", *AGENT[1:]]  # -S: without site-packages
    async with asyncio.timeout(30), antiphon.connect(command, env=env) as agent:
        with pytest.raises(RequestRefused) as caught:
            await agent.new_session(tmp_path)
        with pytest.raises(RequestRefused) as again:  # it still answers, and says the same
            await agent.new_session(tmp_path)
        assert again.value.message == caught.value.message
        return caught.value


async def test_a_session_without_the_program_is_refused_with_how_to_get_it(
    tmp_path: Path, without_package: str
) -> None:
    error = await new_session(tmp_path, without_package)
    assert error.code == -32603 and error.message.startswith("Claude Code is not installed: ")
    assert error.hint.startswith("`pip install 'antiphon[claude]'`")


async def test_a_session_with_a_program_that_is_too_old_is_refused(tmp_path: Path, without_package: str) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho '1.0.128 (Claude Code)'\n", encoding="utf-8")
    old.chmod(0o755)
    error = await new_session(tmp_path, without_package, CLAUDE_CODE_EXECUTABLE=str(old))
    assert "Claude Code 1.0.128 is too old" in error.message and str(old) in error.message


async def test_a_session_with_a_variable_that_names_nothing_is_refused(tmp_path: Path, without_package: str) -> None:
    error = await new_session(tmp_path, without_package, CLAUDE_CODE_EXECUTABLE="/nowhere/claude")
    assert "CLAUDE_CODE_EXECUTABLE names `/nowhere/claude`" in error.message


@pytest.mark.slow  # needs the real program
def test_the_real_program_is_found_in_the_package_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.engines.cli_program import CLAUDE, find_cli, version_of

    monkeypatch.delenv(CLAUDE.variable, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", "/nowhere")
    found = find_cli(CLAUDE)
    assert (found.path, found.source, version_of(found)) == (str(program(NEW)), "package", NEW)


def test_the_engine_has_every_method_that_is_offered() -> None:
    host = Host(Claude())
    assert host.capabilities.load_session and host.also_takes == ("audio",)
