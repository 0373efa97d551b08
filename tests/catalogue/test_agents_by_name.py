"""Agents by name: which command each is, here and now."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon.catalogue.agents import (
    AgentMissing,
    FoundAgent,
    MissingAgent,
    UnknownAgent,
    find,
    find_all,
    names,
    start_of,
)
from antiphon.catalogue.known import KNOWN
from antiphon.config.shapes import OwnAgent, Settings
from antiphon.errors import AcpError
from tests.catalogue.programs import own, program
from tests.limits import limit

COMMANDS = {
    "claude-acp": ["claude-agent-acp"],
    "codex-acp": ["codex-acp"],
    "gemini": ["gemini", "--acp"],
    "opencode": ["opencode", "acp"],
    "kimi": ["kimi", "acp"],
    "qwen": ["qwen", "--acp"],
    "copilot": ["copilot", "--acp"],
    "vibe": ["vibe-acp"],
    "goose": ["goose", "acp"],
    "fast-agent": ["fast-agent-acp"],
}
"""Written a second time on purpose: a slip in either is a failure."""


def command_for(name: str, settings: Settings | None = None) -> list[str]:
    return list(start_of(name, settings).command)


def test_every_known_agent_is_found_by_its_command(place: Path) -> None:
    assert set(KNOWN) == {"antiphon", "claude", "codex", *COMMANDS}
    for name, (word, *arguments) in COMMANDS.items():
        path = program(place / "bin", word)
        assert command_for(name) == [str(path), *arguments]


def test_our_own_agent_is_always_there_unless_the_name_is_given_to_another(place: Path) -> None:
    assert command_for("antiphon") == [sys.executable, "-P", "-m", "antiphon", "agent"]
    mine = program(place / "bin", "other")
    own(place, f"[agents.antiphon]\ncommand = ['{mine}']\n")
    assert command_for("antiphon") == [str(mine)]


def test_the_older_adapter_is_taken_where_the_newer_is_not(place: Path) -> None:
    program(place / "bin", "claude-code-acp")
    assert command_for("claude-acp") == [str(place / "bin" / "claude-code-acp")]
    program(place / "bin", "claude-agent-acp")
    assert command_for("claude-acp") == [str(place / "bin" / "claude-agent-acp")]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_it_is_our_own_engine_where_the_program_that_it_drives_is(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    missing = find(name)
    assert isinstance(missing, MissingAgent) and f"antiphon[{name}]" in missing.hint
    path = program(place / "bin", name)
    found = find(name)
    assert isinstance(found, FoundAgent) and found.drives == str(path)
    assert found.command == (sys.executable, "-P", "-m", "antiphon", "agent", "--engine", name)
    assert isinstance(find(name, path="/nowhere"), MissingAgent)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_known_agent_that_is_not_here_comes_with_how_to_get_it(place: Path, name: str) -> None:
    found = find(name)
    assert isinstance(found, MissingAgent) and found.hint == KNOWN[name].install
    with pytest.raises(AgentMissing, match="not installed\nhint: ") as caught:
        command_for(name)
    assert KNOWN[name].install in str(caught.value) and "agents add" in str(caught.value)


def test_the_demo_needs_nothing(place: Path) -> None:
    assert command_for("demo") == [sys.executable, "-P", "-m", "antiphon", "agent", "--engine", "demo"]


def test_an_unknown_name_lists_what_there_is(place: Path) -> None:
    with pytest.raises(UnknownAgent) as caught:
        command_for("lute", Settings(agents={"mine": OwnAgent(("x",))}))
    assert all(name in str(caught.value) for name in ("`lute`", "demo", "mine", *KNOWN))
    with pytest.raises(UnknownAgent, match="did you mean `gemini`"):
        command_for("gemni")


def test_an_own_agent_counts_before_a_known_one(place: Path) -> None:
    program(place / "bin", "gemini")
    path = program(place / "elsewhere", "special")
    settings = Settings(agents={"gemini": OwnAgent((str(path), "--mine"))})
    assert command_for("gemini", settings) == [str(path), "--mine"]


def test_an_own_agent_is_looked_for_on_the_path_that_it_is_given(place: Path) -> None:
    path = program(place / "elsewhere", "special")
    settings = Settings(agents={"mine": OwnAgent(("special",), {"PATH": str(path.parent)})})
    assert command_for("mine", settings) == [str(path)]
    assert isinstance(find("mine", Settings(agents={"mine": OwnAgent(("special",))})), MissingAgent)


def test_a_file_that_may_not_be_run_is_not_found(place: Path) -> None:
    program(place / "bin", "gemini").chmod(0o644)
    assert isinstance(find("gemini"), MissingAgent)


def test_all_are_found_once_and_in_order(place: Path) -> None:
    settings = Settings(agents={"zebra": OwnAgent(("z",)), "qwen": OwnAgent(("q",))})
    listed = [agent.name for agent in find_all(settings)]
    assert listed == names(settings) == ["demo", "zebra", "qwen", *(name for name in KNOWN if name != "qwen")]


# Connecting by name.


async def hello(target: str, **options: object) -> str:
    async with asyncio.timeout(30), antiphon.connect(target, **options) as agent:  # type: ignore[arg-type]
        session = await agent.new_session()
        return f"{agent.name}: {await session.prompt('good morning').text()}"


async def test_connect_takes_the_name_of_a_known_agent(place: Path) -> None:
    program(place / "bin", "gemini")
    assert await hello("gemini") == "hello: Hello! You said: good morning"


async def test_connect_takes_the_name_of_an_own_agent_with_its_environment(place: Path) -> None:
    script = f"#!{sys.executable}\nimport os, sys\nsys.exit(os.environ['WORD'] + ' in ' + os.getcwd())\n"
    path = program(place / "elsewhere", "loud", script)
    own(place, f'[agents.loud]\ncommand = ["{path}"]\nenv = {{ WORD = "secret word" }}\ncwd = "{path.parent}"\n')
    with pytest.raises(AcpError, match=f"secret word in {path.parent}"):
        await hello("loud")
    with pytest.raises(AcpError, match=f"secret word in {place}"):
        await hello("loud", cwd=place, env={"WORD": "other"})


async def test_connect_has_a_hint_how_to_get_what_is_missing(place: Path) -> None:
    for name in ("gemini", "lute"):
        with pytest.raises(AcpError) as caught:
            await hello(name)
        assert f"`{name}`" in str(caught.value) and "a list of the words of its command" in str(caught.value)


async def test_a_config_file_with_mistakes_is_logged_and_does_not_stop_a_known_agent(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program(place / "bin", "gemini")
    own(place, "agents = [\n")
    with caplog.at_level(logging.WARNING):
        assert (await hello("gemini")).startswith("hello: ")
    assert "config.toml, line 1" in caplog.text


def test_the_demo_is_connected_without_the_catalogue() -> None:
    import subprocess

    code = (
        "import sys; from antiphon.client.link import target_of; target_of('demo', None, None); "
        "print([name for name in sys.modules if 'catalogue' in name or 'tomllib' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8", timeout=limit()
    )
    assert done.stdout == "[]\n"


def test_found_shows_what_a_user_would_type(place: Path) -> None:
    program(place / "bin", "gemini")
    found = find("gemini")
    assert isinstance(found, FoundAgent) and found.shown == "gemini --acp"
