"""Finding Claude Code, and starting it in time."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from antiphon.errors import RequestRefused
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import STAND_IN, on_versions, proves
from tests.engines.claude.stand_in_lines import RESULT, stand_in_says
from tests.engines.claude.versions import BOTH, NEW, OLD, program
from tests.engines.driving import Client, connected


def link(at: Place, folder: Path) -> Path:
    """Claude Code under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "claude"
    made.symlink_to(at.program)
    return made


async def starts(client: Client) -> None:
    await client.open()
    await client.until(lambda: client.session.commands)


@proves("find.variable", "find.config", "find.path", "find.order")
async def test_the_variable_wins_over_the_configuration_and_that_over_the_path(at: Place, tmp_path: Path) -> None:
    by_variable, by_config = link(at, tmp_path / "a"), link(at, tmp_path / "b")
    on_path = link(at, at.tools)
    at.environment["CLAUDE_CODE_EXECUTABLE"] = str(by_variable)
    at.configure(f'[engines.claude]\nexecutable = "{by_config}"\n')
    for wanted in (by_variable, by_config, on_path):
        async with connected(at) as client:
            await client.open()
            await at.runs(1)
            assert at.names() == [str(wanted)]
        at.environment.pop("CLAUDE_CODE_EXECUTABLE", None)
        if wanted is by_config:
            at.configure("")


@proves("find.package", "find.order")
async def test_the_program_of_the_package_comes_last_and_the_package_is_not_imported(at: Place) -> None:
    del at.environment["CLAUDE_CODE_EXECUTABLE"]
    watched = (
        "import atexit, sys; from antiphon.cli.main import main; "
        "atexit.register(lambda: sys.stderr.write('imported' if 'claude_agent_sdk' in sys.modules else 'untouched')); "
        "main(['agent', '--engine', 'claude'])"
    )
    async with connected(at, command=(sys.executable, "-P", "-c", watched)) as client:
        await starts(client)
        await at.runs(1)
        assert at.names() == [str(at.program)]
        agent = client.agent
    assert agent.stderr.endswith("untouched")


@proves("find.missing")
async def test_no_claude_code_at_all_is_a_clear_error_with_a_hint(at: Place, tmp_path: Path) -> None:
    del at.environment["CLAUDE_CODE_EXECUTABLE"]
    code = (
        "import sys; sys.path[:] = [{paths}]; from antiphon.cli.main import main; main(['agent', '--engine', 'claude'])"
    )
    command = (sys.executable, "-P", "-S", "-c", code.format(paths=", ".join(map(repr, without_the_package(tmp_path)))))
    async with connected(at, command=command) as client:
        error = await refused(client)
    assert "Claude Code" in str(error) and "not installed" in str(error)
    assert "hint: " in str(error) and "pip install" in str(error)


def without_the_package(folder: Path) -> list[str]:
    """Where Python finds all that we need, and no Claude Code."""
    packages = folder / "packages"
    packages.mkdir()
    for name in ("msgspec",):
        spec = __import__(name).__file__
        assert spec is not None
        (packages / name).symlink_to(Path(spec).parent)
    ours = __import__("antiphon").__file__
    assert ours is not None
    standard = [path for path in sys.path if path and "site-packages" not in path and Path(path) != Path.cwd()]
    return [str(packages), str(Path(ours).parents[1]), *standard]


async def refused(client: Client) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await client.open()
    return caught.value


@proves("find.too-old", on=[STAND_IN])
async def test_a_claude_code_that_is_too_old_is_a_clear_error_with_a_hint(at: Place) -> None:
    at.environment["STAND_IN_VERSION"] = "1.0.3"
    stand_in_says(at, RESULT)
    async with connected(at) as client:
        error = await refused(client)
    assert "1.0.3" in str(error) and "too old" in str(error) and "hint: " in str(error)


@proves("find.missing")
async def test_a_variable_that_names_no_program_is_a_clear_error_with_a_hint(at: Place) -> None:
    at.environment["CLAUDE_CODE_EXECUTABLE"] = "/nowhere/claude"
    async with connected(at) as client:
        error = await refused(client)
    assert "CLAUDE_CODE_EXECUTABLE" in str(error) and "/nowhere/claude" in str(error) and "hint: " in str(error)


@proves("find.one-process", "find.ahead")
async def test_every_session_has_a_process_that_is_there_before_the_first_prompt(at: Place) -> None:
    async with connected(at) as client:
        await starts(client)  # the first time the program is asked for its version
        first = client.session
        for _ in range(2):
            await client.open()
        before = set(await at.runs(3))
        assert at.model.asked == []
        assert (await client.say("hello")).text == "echo: hello"
        assert (await client.say("hello there", first)).text == "echo: hello there"
        assert set(await at.runs(3)) == before  # each was used, and none was added
        await first.close()
        await at.runs(2)


@proves("find.fast", on=[STAND_IN])
async def test_a_session_does_not_wait_for_a_program_that_says_nothing(at: Place, tmp_path: Path) -> None:
    mute = tmp_path / "claude"
    mute.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit\nexec cat > /dev/null\n',
        encoding="utf-8",
    )
    mute.chmod(0o755)
    at.environment["CLAUDE_CODE_EXECUTABLE"] = str(mute)
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.option("model").current_value == "default"


@on_versions(*BOTH)
async def test_the_versions_are_the_ones_that_the_tests_say(at: Place) -> None:
    assert at.run("--version").stdout.startswith(f"{at.version} ")
    assert program(NEW) != program(OLD) and shutil.which(str(at.program)) and os.access(at.program, os.X_OK)
