"""`antiphon agent` as an editor and as a person meets it."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.limits import limit

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'


def agent(*words: str, line: bytes = b"", state: Path | None = None) -> "subprocess.CompletedProcess[bytes]":
    env = {"ANTIPHON_STATE_DIR": str(state)} if state is not None else None
    command = [sys.executable, "-m", "antiphon", "agent", *words]
    return subprocess.run(command, input=line, capture_output=True, check=False, timeout=limit(), env=env)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--engine", "demo"), "antiphon-demo"),
        (("--engine=demo",), "antiphon-demo"),
        (("--engine", "demo", "--engine", "/bin/cat -u"), "antiphon"),
    ],
    ids=["named", "joined", "several"],
)
def test_it_answers_initialize_and_ends_with_its_input(words: tuple[str, ...], name: str) -> None:
    done = agent(*words, line=INITIALIZE)
    answer = msgspec.json.decode(done.stdout)["result"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert (answer["protocolVersion"], answer["agentInfo"]["name"]) == (1, name)
    offered = answer["agentCapabilities"]
    assert offered["loadSession"] and offered["promptCapabilities"] == {
        "image": True,
        "audio": True,
        "embeddedContext": True,
    }
    assert set(offered["sessionCapabilities"]) == {
        "additionalDirectories", "close", "delete", "fork", "list", "resume"
    }  # fmt: skip


@pytest.mark.parametrize(("asked", "spoken"), [(1, 1), (2, 2), (99, 2)])
def test_it_speaks_the_highest_version_that_it_has_up_to_the_one_asked_for(asked: int, spoken: int) -> None:
    info = b'"protocolVersion":%d,"info":{"name":"c","version":"1"},"capabilities":{}' % asked
    line = INITIALIZE.replace(b'"protocolVersion":1', info)
    answer = msgspec.json.decode(agent("--engine", "demo", line=line).stdout)["result"]
    assert (answer["protocolVersion"], "info" in answer, "agentInfo" in answer) == (spoken, spoken == 2, spoken == 1)


def test_a_version_that_never_was_is_refused_with_those_that_there_are() -> None:
    done = agent("--engine", "demo", line=INITIALIZE.replace(b'"protocolVersion":1', b'"protocolVersion":0'))
    error = msgspec.json.decode(done.stdout)["error"]
    assert (error["code"], error["data"]) == (-32022, {"requested": 0, "supported": [1, 2]})


def test_without_a_word_every_engine_that_is_installed_answers() -> None:
    done = agent(line=INITIALIZE)
    answer = msgspec.json.decode(done.stdout)["result"]
    assert (done.returncode, done.stderr, answer["agentInfo"]["name"]) == (0, b"", "antiphon")


@pytest.mark.parametrize("words", [["--engine", "demo"], ["--engine", "/bin/cat -u"], []], ids=str)
def test_initialize_is_answered_before_anything_heavy_is_imported(words: list[str]) -> None:
    script = (
        "import os, sys\n"
        "from antiphon.cli.agent import run\n"
        "plain = os.write\n"
        "def write(fd, data):\n"
        "    os.write = plain\n"
        "    sys.stderr.write(' '.join(sorted({'asyncio', 'ssl', 'sqlite3', 'argparse'} & set(sys.modules))))\n"
        "    return plain(fd, data)\n"
        "os.write = write\n"
        f"run({words!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=INITIALIZE, capture_output=True, check=True, timeout=limit()
    )
    assert done.stdout.startswith(b'{"jsonrpc":"2.0","id":1,"result"')
    assert done.stderr == b""


def test_help_lists_what_there_is() -> None:
    done = agent("--help")
    assert done.returncode == 0 and b"--engine" in done.stdout and b"demo" in done.stdout and done.stderr == b""


@pytest.mark.parametrize("words", [("--engine", "lute"), ("--engine",), ("now",), ("--loud",)])
def test_words_it_does_not_know_end_in_a_hint(words: tuple[str, ...]) -> None:
    done = agent(*words)
    assert done.returncode == 2 and done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("error: ") and lines[-1].startswith("hint: ")


@pytest.mark.parametrize(
    ("engine", "status", "says"),
    [
        ("lute", 2, "there is no engine `lute`"),
        ("gemnii", 2, "did you mean `gemini`?"),
        ("opencode", 1, "the agent `opencode` is not installed"),
        ("lute --acp", 2, "there is no program `lute`"),
        ("./lute", 2, "there is no program `./lute`"),
        ("lute 'acp", 2, "No closing quotation"),
    ],
)
def test_an_engine_that_is_not_there_is_an_error_with_a_hint(
    engine: str, status: int, says: str, tmp_path: Path
) -> None:
    env = {"PATH": str(tmp_path), "ANTIPHON_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "antiphon", "agent", "--engine", engine]
    done = subprocess.run(command, capture_output=True, check=False, timeout=limit(), env=env, encoding="utf-8")
    assert done.returncode == status and done.stdout == "" and says in done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ") and lines[-1].startswith("hint: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["a name", "a command"])
def test_any_agent_is_an_engine_that_is_introduced_without_being_asked(how: str, tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    env = {"PATH": str(tmp_path), "ANTIPHON_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    engine = "gemini" if how == "a name" else f"{program} --acp"
    command = [sys.executable, "-m", "antiphon", "agent", "--engine", engine]
    done = subprocess.run(command, input=INITIALIZE, capture_output=True, check=False, timeout=limit(), env=env)
    answer = msgspec.json.decode(done.stdout)["result"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert answer["agentInfo"]["name"] == "antiphon-gemini" and answer["_meta"] == {"steering": {"supported": True}}
    assert answer["agentInfo"]["title"] == ("Gemini CLI" if how == "a name" else "gemini")


def test_a_login_is_for_one_engine() -> None:
    done = agent("--engine", "claude", "--engine", "codex", "--login")
    assert done.returncode == 2 and b"one engine at a time" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", "</dev/null >&-"])
def test_a_closed_stdin_or_stdout_leaves_no_traceback(closed: str) -> None:
    command = f"exec {sys.executable} -m antiphon agent {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False, timeout=limit())
    assert done.returncode == 1 and b"Traceback" not in done.stderr and b"hint: " in done.stderr
