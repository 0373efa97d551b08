"""Finding the CLI of an engine."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from antiphon.errors import RequestRefused
from tests.engines.client import Client, connected
from tests.engines.places import Place
from tests.engines.proofs import STAND_IN
from tests.engines.subjects import SUBJECTS, proves

PACKAGES = {"claude": "claude_agent_sdk", "codex": "codex_cli_bin"}
"""The PyPI packages that the CLIs come in."""
OLD = {"claude": "1.0.3", "codex": "0.40.0"}
"""Versions that do not work."""


def link(at: Place, folder: Path) -> Path:
    """Give the CLI another name."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / at.engine
    made.symlink_to(at.program)
    return made


def started(engine: str, code: str) -> tuple[str, ...]:
    """Return the command of an agent that does something else first."""
    return (
        sys.executable,
        "-P",
        "-c",
        f"{code}; from antiphon.cli.main import main; main(['agent', '--engine', '{engine}'])",
    )


async def refused(client: Client) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await client.open()
    return caught.value


@proves("find.variable", "find.config", "find.path", "find.package", "find.order", every_version=False)
async def test_the_variable_counts_before_the_configuration_that_before_the_path_and_the_package_last(
    at: Place, tmp_path: Path
) -> None:
    by_variable, by_config, on_path = link(at, tmp_path / "a"), link(at, tmp_path / "b"), link(at, at.tools)
    log = tmp_path / "imported"
    note = f"open({str(log)!r}, 'a', encoding='utf-8').write(about[0] + '\\n') if event == 'import' else None"
    watched = started(at.engine, f"import sys; sys.addaudithook(lambda event, about: {note})")
    at.environment[at.variable] = str(by_variable)
    at.configure(f'[engines.{at.engine}]\nexecutable = "{by_config}"\n')
    for wanted in (by_variable, by_config, on_path, at.program):
        async with connected(at, command=watched) as client:
            await client.open()
            await at.runs(1)
            assert at.names() == [str(wanted)]
        at.environment.pop(at.variable, None)
        if wanted == by_config:
            at.configure("")
        if wanted == on_path:
            on_path.unlink()
    imported = {each.partition(".")[0] for each in log.read_text(encoding="utf-8").splitlines()}
    assert "antiphon" in imported and PACKAGES[at.engine] not in imported  # looking for it does not import its package


@proves("find.missing", every_version=False)
async def test_no_cli_at_all_is_a_clear_error_with_a_hint(at: Place, tmp_path: Path) -> None:
    at.environment[at.variable] = "/nowhere/cli"
    async with connected(at) as client:
        error = str(await refused(client))
    assert at.variable in error and "/nowhere/cli" in error and "hint: " in error
    del at.environment[at.variable]
    command = started(at.engine, f"import sys; sys.path[:] = {without_packages(tmp_path)!r}")
    async with connected(at, command=(command[0], "-S", *command[1:])) as client:
        error = str(await refused(client))
    assert at.title in error and "not installed" in error and "hint: " in error and "pip install" in error


def without_packages(folder: Path) -> list[str]:
    """Return where Python finds all that we need, and no CLI."""
    packages = folder / "packages"
    packages.mkdir()
    spec, ours = __import__("msgspec").__file__, __import__("antiphon").__file__
    assert spec is not None and ours is not None
    (packages / "msgspec").symlink_to(Path(spec).parent)
    standard = [path for path in sys.path if path and "site-packages" not in path and Path(path) != Path.cwd()]
    return [str(packages), str(Path(ours).parents[1]), *standard]


@proves("find.too-old", on=[STAND_IN])
async def test_a_cli_that_is_too_old_is_a_clear_error_with_a_hint(at: Place) -> None:
    at.environment |= {"STAND_IN_VERSION": OLD[at.engine], "STAND_IN_LINES": os.devnull}
    async with connected(at) as client:
        error = str(await refused(client))
    assert OLD[at.engine] in error and "too old" in error and "hint: " in error


@proves("find.package")
async def test_the_versions_are_the_ones_that_the_tests_name(at: Place) -> None:
    assert at.version in at.run("--version").stdout.split() and shutil.which(str(at.program))
    program = SUBJECTS[at.engine].program
    assert len({program(version) for version in SUBJECTS[at.engine].versions}) == len(SUBJECTS[at.engine].versions)
