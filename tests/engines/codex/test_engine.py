"""The front of the Codex engine: quick, offered for what it is, and clear when the program behind it is not there."""

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
from antiphon.engines.codex.engine import Codex
from antiphon.errors import RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import playing
from tests.engines.codex.alone import AGENT, environment, real, script
from tests.engines.codex.versions import EACH, PYPI, program


def initialize(**capabilities: Any) -> dict[str, Any]:
    asked = {"protocolVersion": 1, "clientCapabilities": capabilities}
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}) + b"\n"
    done = subprocess.run(AGENT, input=line, capture_output=True, check=True, timeout=30)
    assert done.stderr == b""
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)["result"]
    return answer


def test_it_offers_what_it_does() -> None:
    answer = initialize()
    assert answer["agentInfo"] == {"name": "antiphon-codex", "title": "Codex", "version": antiphon.__version__}
    offered = answer["agentCapabilities"]
    assert offered["loadSession"] is True
    assert offered["promptCapabilities"] == {"image": True, "embeddedContext": True}
    assert offered["mcpCapabilities"] == {"http": True}
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
        "run(['--engine', 'codex'])\n"
    )
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run([sys.executable, "-c", script], input=line, capture_output=True, check=True, timeout=30)
    assert done.stdout.startswith(b'{"jsonrpc":"2.0","id":1,"result"') and done.stderr == b""


# Ways to sign in.


def test_a_client_with_terminals_gets_the_command_to_run_there() -> None:
    methods = initialize(auth={"terminal": True})["authMethods"]
    assert [(method["id"], method.get("type"), method.get("args")) for method in methods] == [
        ("chatgpt-login", "terminal", ["--login"]),
        ("device-login", "terminal", ["--login", "device"]),
        ("api-key", None, None),
    ]


def test_a_client_that_announces_it_in_its_own_way_gets_the_whole_command() -> None:
    first, second, key = initialize(_meta={"terminal-auth": True})["authMethods"]
    assert first["_meta"]["terminal-auth"] == {
        "command": sys.executable,
        "args": [*AGENT[1:], "--login"],
        "label": "ChatGPT account",
    }
    assert second["_meta"]["terminal-auth"]["args"] == [*AGENT[1:], "--login", "device"]
    assert key["id"] == "api-key"


def test_a_client_without_terminals_gets_the_names_of_the_variables() -> None:
    (key,) = initialize()["authMethods"]
    assert key["id"] == "api-key" and "CODEX_API_KEY or OPENAI_API_KEY" in key["description"]


# Without the program.


@pytest.fixture
def without_package(tmp_path: Path) -> str:
    """A place with msgspec and nothing else."""
    place = tmp_path / "packages"
    place.mkdir()
    (place / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    return str(place)


async def new_session(tmp_path: Path, packages: str, codex: str = "") -> RequestRefused:
    env = {
        **environment(tmp_path, codex),
        "PATH": "/nowhere",
        "PYTHONPATH": os.pathsep.join((str(Path(antiphon.__file__).parents[1]), packages)),
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
    assert error.code == -32603 and error.message.startswith("Codex is not installed: ")
    assert error.hint.startswith("`pip install 'antiphon[codex]'`")


async def test_a_session_with_a_program_that_is_too_old_is_refused(tmp_path: Path, without_package: str) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho 'codex-cli 0.98.0'\n", encoding="utf-8")
    old.chmod(0o755)
    error = await new_session(tmp_path, without_package, str(old))
    assert "Codex 0.98.0 is too old" in error.message and str(old) in error.message


async def test_a_session_with_a_variable_that_names_nothing_is_refused(tmp_path: Path, without_package: str) -> None:
    error = await new_session(tmp_path, without_package, "/nowhere/codex")
    assert "CODEX_EXECUTABLE names `/nowhere/codex`" in error.message


async def test_a_server_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    env = environment(tmp_path, script(tmp_path, "echo 'no such command: app-server' >&2; exit 2"))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env) as agent:
        for _ in range(2):  # it is tried again each time
            with pytest.raises(RequestRefused, match=r"(?s)Codex does not start: .*no such command: app-server"):
                [session async for session in agent.list_sessions()]


@pytest.mark.slow  # needs the real program
def test_the_real_program_is_found_in_the_package_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.engines.cli_program import CODEX, find_cli, version_of

    monkeypatch.delenv(CODEX.variable, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", "/nowhere")
    found = find_cli(CODEX)
    assert (found.path, found.source, version_of(found)) == (str(program(PYPI)), "package", PYPI)


def test_the_engine_has_every_method_that_is_offered() -> None:
    host = Host(Codex())
    assert host.capabilities.load_session and host.also_takes == ("audio",)


# The one server.


async def test_it_is_started_before_a_session_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    program = script(tmp_path, f'echo > "{begun}"; exec cat > /dev/null')
    for name, value in environment(tmp_path, program).items():
        monkeypatch.setenv(name, value)
    async with asyncio.timeout(30), playing(Host(Codex())):
        assert await asyncio.to_thread(begun.read_text, encoding="utf-8") == "\n"  # as soon as it says so


async def test_sessions_that_are_opened_at_once_share_one_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_EXECUTABLE", str(script(tmp_path, "exit 1")))
    codex = Codex()
    first, second = await asyncio.gather(codex._shared(), codex._shared())
    assert first is second
    await codex.close()
    assert await codex._shared() is not first  # for the next client


async def test_a_program_that_is_installed_after_the_first_try_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_EXECUTABLE", str(tmp_path / "codex"))
    codex = Codex()
    with pytest.raises(RequestError, match="cannot be started"):
        await codex._shared()
    script(tmp_path, "exit 1")
    assert (await codex._shared()).program.path == str(tmp_path / "codex")


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_the_server_is_gone_when_the_last_client_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str
) -> None:
    """Also where no session was ever opened: listing them starts it."""
    wrapper = script(tmp_path, f'echo $$ >> "{tmp_path}/pids"; exec "{real(installed)}" "$@"')
    for name, value in environment(tmp_path, wrapper).items():
        monkeypatch.setenv(name, value)
    host = Host(Codex())
    async with playing(host) as first:
        assert (await first.connection.request(m.LIST_SESSIONS, v1.ListSessions())).sessions == []
        async with playing(host) as second:
            await second.connection.request(m.LIST_SESSIONS, v1.ListSessions())
        assert is_there(tmp_path, 0)
        await first.connection.request(m.LIST_SESSIONS, v1.ListSessions())
    assert not is_there(tmp_path, 0)
    async with playing(host) as third:
        await third.connection.request(m.LIST_SESSIONS, v1.ListSessions())
        assert is_there(tmp_path, 1)
    assert not is_there(tmp_path, 1)


def is_there(tmp_path: Path, which: int) -> bool:
    pid = int((tmp_path / "pids").read_text(encoding="utf-8").split()[which])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
