"""Signing in and out: asked of the real program, which is given a home of its own and no network."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import antiphon
from antiphon.client.agent import ConnectedAgent
from antiphon.engines.claude.login import sign_in_needed
from antiphon.errors import Code, RequestRefused
from tests.engines.claude.place import AGENT, HERMETIC
from tests.engines.claude.versions import EACH, program


def environment(tmp_path: Path, claude: Path | str, **more: str) -> dict[str, str]:
    quiet = {name: value for name, value in HERMETIC.items() if name != "ANTHROPIC_API_KEY"}
    return {
        "PATH": os.defpath,
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",  # no server listens there
        "ANTIPHON_STATE_DIR": str(tmp_path / "state"),
        "ANTIPHON_CONFIG_DIR": str(tmp_path / "config"),
        "CLAUDE_CODE_EXECUTABLE": str(claude),
        **quiet,
        **more,
    }


def real(version: str) -> Path:
    found = program(version)
    if found is None:
        pytest.skip(f"Claude Code {version} is not installed")
    return found


def script(tmp_path: Path, lines: str) -> Path:
    """A program that sends its version and otherwise does what the lines say."""
    path = tmp_path / "claude"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo 2.1.325 && exit\n{lines}\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def login(env: Mapping[str, str], *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [*AGENT, "--login", *words]
    return subprocess.run(command, input=text, env=env, capture_output=True, encoding="utf-8", timeout=30)


# In the terminal.


@pytest.mark.parametrize(
    ("words", "shown"),
    [((), "auth login"), (("subscription",), "auth login"), (("console",), "auth login --console")],
    ids=["default", "subscription", "console"],
)
def test_the_login_becomes_that_of_the_program_with_the_users_terminal(
    tmp_path: Path, words: tuple[str, ...], shown: str
) -> None:
    env = environment(tmp_path, script(tmp_path, 'read word; echo "$word: $@"; echo $$ >&2; exit 7'))
    done = login(env, *words, text="the code\n")
    assert (done.returncode, done.stdout) == (7, f"the code: {shown}\n")


@pytest.mark.slow  # needs the real program
@pytest.mark.parametrize("installed", EACH)
def test_the_real_program_has_the_login_that_is_run(tmp_path: Path, installed: str) -> None:
    done = subprocess.run(
        [real(installed), "auth", "login", "--help"], env=environment(tmp_path, ""), capture_output=True, timeout=30
    )
    assert done.returncode == 0 and b"--console" in done.stdout


@pytest.mark.parametrize("words", [("bank",), ("--loud",)])
def test_a_login_that_there_is_not_ends_in_a_hint(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = login(environment(tmp_path, script(tmp_path, "echo started")), *words)
    assert done.returncode in (1, 2) and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ") and lines[-1].startswith("hint: ")


def test_a_login_without_the_program_has_a_hint_how_to_get_it(tmp_path: Path) -> None:
    done = login(environment(tmp_path, "/nowhere/claude"))
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith(
        "error: Claude Code cannot be started: "
    )
    assert done.stderr.splitlines()[-1].startswith("hint: ") and "-32603" not in done.stderr


def test_the_demo_has_no_login(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antiphon", "agent", "--engine", "demo", "--login"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30)
    assert done.returncode == 1 and "the engine `demo` has no login" in done.stderr


# Asked by a client.


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_user_who_is_signed_in_gets_no_error(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed), ANTHROPIC_API_KEY="a-key-of-no-account")
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        for method in ("claude-ai-login", "console-login", "api-key"):
            await agent.authenticate(method)


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_user_that_is_not_signed_in_learns_what_to_do(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        assert "run `antiphon agent --engine claude --login`" in (await refusal(agent, "claude-ai-login")).reason
        assert "set ANTHROPIC_API_KEY" in (await refusal(agent, "api-key")).reason


async def refusal(agent: ConnectedAgent, method: str) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await agent.authenticate(method)
    assert caught.value.code == Code.AUTH_REQUIRED
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_signing_out_makes_the_program_forget(tmp_path: Path, installed: str) -> None:
    kept = tmp_path / ".claude" / ".credentials.json"
    kept.parent.mkdir()
    # Without a token to renew it: that one would be revoked over the network.
    login = '{"claudeAiOauth":{"accessToken":"a","refreshToken":null,"expiresAt":null,"scopes":["user:inference"]}}'
    kept.write_text(login, encoding="utf-8")
    env = environment(tmp_path, real(installed))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        await agent.authenticate("claude-ai-login")
        await agent.logout()
        await refusal(agent, "claude-ai-login")


async def test_a_program_that_does_not_report_its_login_counts_as_signed_out(tmp_path: Path) -> None:
    env = environment(tmp_path, script(tmp_path, "echo 'unknown command: auth' >&2; exit 1"))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env) as agent:
        with pytest.raises(
            RequestRefused, match="does not report whether you are signed in: unknown command"
        ) as caught:
            await agent.authenticate("api-key")
        assert caught.value.code == Code.INTERNAL_ERROR
        with pytest.raises(RequestRefused, match="could not sign you out: unknown command"):
            await agent.logout()


def test_the_refusal_names_the_ways_there_are() -> None:
    error = sign_in_needed(details="Login expired")
    assert error.code == Code.AUTH_REQUIRED and "(Login expired)" in error.reason
    assert isinstance(error.data, dict)
    assert error.data["authMethods"] == ["claude-ai-login", "console-login", "api-key"]
