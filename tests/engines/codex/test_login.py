"""Signing in and out: asked of the real program, which is given a home of its own and no network."""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import antiphon
from antiphon.client.agent import ConnectedAgent
from antiphon.engines.codex.login import sign_in_needed
from antiphon.errors import Code, RequestRefused
from tests.engines.codex.alone import AGENT, SETTINGS, environment, real, script
from tests.engines.codex.versions import EACH

KEY = "a-key-of-no-account"


def login(env: Mapping[str, str], *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [*AGENT, "--login", *words]
    return subprocess.run(command, input=text, env=env, capture_output=True, encoding="utf-8", timeout=30)


# In the terminal.


@pytest.mark.parametrize(
    ("words", "shown"),
    [((), "login"), (("chatgpt",), "login"), (("device",), "login --device-auth")],
    ids=["default", "chatgpt", "device"],
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
    env = environment(tmp_path, "")
    done = subprocess.run([real(installed), "login", "--help"], env=env, capture_output=True, timeout=30)
    assert done.returncode == 0 and b"--device-auth" in done.stdout


@pytest.mark.parametrize("words", [("bank",), ("--loud",)])
def test_a_login_that_there_is_not_ends_in_a_hint(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = login(environment(tmp_path, script(tmp_path, "echo started")), *words)
    assert done.returncode in (1, 2) and done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: ") and lines[-1].startswith("hint: ")


def test_a_login_without_the_program_has_a_hint_how_to_get_it(tmp_path: Path) -> None:
    done = login(environment(tmp_path, "/nowhere/codex"))
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("error: Codex cannot be started: ")
    assert done.stderr.splitlines()[-1].startswith("hint: ") and "-32603" not in done.stderr


# Asked by a client.


async def refusal(agent: ConnectedAgent, method: str) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await agent.authenticate(method)
    assert caught.value.code == Code.AUTH_REQUIRED
    return caught.value


def sign_in_elsewhere(installed: str, env: Mapping[str, str]) -> None:
    """What a terminal does meanwhile."""
    command = [str(real(installed)), "login", "--with-api-key"]
    subprocess.run(command, input=KEY.encode(), env=env, capture_output=True, check=True, timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_user_that_is_not_signed_in_learns_what_to_do(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        for method in ("chatgpt-login", "device-login"):
            assert "run `antiphon agent --engine codex --login`" in (await refusal(agent, method)).reason
        assert "set CODEX_API_KEY or OPENAI_API_KEY" in (await refusal(agent, "api-key")).reason
        with pytest.raises(RequestRefused, match="Codex is not signed in") as caught:
            await agent.new_session(tmp_path)
        assert caught.value.code == Code.AUTH_REQUIRED and isinstance(caught.value.data, dict)
        assert caught.value.data["authMethods"] == ["chatgpt-login", "device-login", "api-key"]


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_key_in_the_environment_is_stored_when_the_user_chooses_so(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed), OPENAI_API_KEY=KEY)
    kept = tmp_path / "codex-home" / "auth.json"
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        with pytest.raises(RequestRefused, match="not signed in"):  # it may be meant for another program
            await agent.new_session(tmp_path)
        assert not kept.exists()
        await agent.authenticate("api-key")
        assert json.loads(kept.read_text(encoding="utf-8"))["OPENAI_API_KEY"] == KEY
        await agent.new_session(tmp_path)
        await agent.logout()
        assert not kept.exists()
        with pytest.raises(RequestRefused, match="not signed in"):
            await agent.new_session(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_key_for_codex_alone_is_used_without_a_login_and_never_stored(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed), CODEX_API_KEY=KEY, OPENAI_API_KEY="another")
    kept = tmp_path / "codex-home" / "auth.json"
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        await agent.new_session(tmp_path)
        await agent.authenticate("api-key")  # it is used already
        assert not kept.exists()
        await agent.logout()
        with pytest.raises(RequestRefused, match="not signed in"):
            await agent.new_session(tmp_path)
        await agent.authenticate("api-key")  # now it is chosen
        assert json.loads(kept.read_text(encoding="utf-8"))["OPENAI_API_KEY"] == KEY
        await agent.new_session(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_stored_login_comes_before_a_key_for_codex(tmp_path: Path, installed: str) -> None:
    env = environment(tmp_path, real(installed), CODEX_API_KEY="another")
    await asyncio.to_thread(sign_in_elsewhere, installed, env)
    kept = tmp_path / "codex-home" / "auth.json"
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        await agent.new_session(tmp_path)
        await agent.logout()
    assert not kept.exists()  # it was that login


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_login_in_a_terminal_counts_in_the_server_that_runs_already(tmp_path: Path, installed: str) -> None:
    """The server reads its login when it starts, and never again."""
    env = environment(tmp_path, real(installed))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        await refusal(agent, "chatgpt-login")
        await asyncio.to_thread(sign_in_elsewhere, installed, env)
        await agent.authenticate("chatgpt-login")
        await agent.logout()
        await asyncio.to_thread(sign_in_elsewhere, installed, env)
        # Without a request: many clients just try again, and some at once for all that was open.
        await asyncio.gather(*(agent.new_session(tmp_path) for _ in range(3)))


@pytest.mark.slow
@pytest.mark.parametrize("installed", EACH)
async def test_a_provider_that_wants_no_login_needs_none(tmp_path: Path, installed: str) -> None:
    provider = (
        'model_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'wire_api = "responses"\n'
    )
    env = environment(tmp_path, real(installed), SETTINGS.replace("[analytics]", f"{provider}[analytics]", 1))
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        await agent.new_session(tmp_path)
        await agent.authenticate("chatgpt-login")


async def test_a_server_that_does_not_report_its_login_counts_as_signed_out(tmp_path: Path) -> None:
    answers = 'read line; echo \'{"id":1,"result":{}}\'; read line; n=1; while read line; do n=$((n+1)); '
    answers += 'echo "{\\"id\\":$n,\\"error\\":{\\"code\\":-32600,\\"message\\":\\"unknown variant\\"}}"; done'
    env = environment(tmp_path, script(tmp_path, answers), OPENAI_API_KEY=KEY)
    async with asyncio.timeout(30), antiphon.connect(AGENT, env=env, terminal_login=True) as agent:
        with pytest.raises(
            RequestRefused, match="does not report whether you are signed in: unknown variant"
        ) as caught:
            await agent.authenticate("device-login")
        assert caught.value.code == Code.INTERNAL_ERROR
        with pytest.raises(RequestRefused, match="could not sign you in: unknown variant"):
            await agent.authenticate("api-key")
        with pytest.raises(RequestRefused, match="could not sign you out: unknown variant"):
            await agent.logout()


def test_the_refusal_names_the_ways_there_are() -> None:
    error = sign_in_needed("Login expired")
    assert error.code == Code.AUTH_REQUIRED and "(Login expired)" in error.reason
    assert isinstance(error.data, dict)
    assert error.data["authMethods"] == ["chatgpt-login", "device-login", "api-key"]
