"""The programs that our engines drive: where each is looked for, in which order, and the error when it is not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, FoundProgram, find_cli
from antiphon.errors import Code, RequestError
from tests.catalogue.programs import own, program
from tests.limits import limit


@pytest.fixture(autouse=True)
def nowhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package that brings it, and no variable that names it."""
    monkeypatch.setattr(sys, "path", ["first", str(place / "packages")])
    for cli in (CLAUDE, CODEX):
        monkeypatch.delenv(cli.variable, raising=False)


def in_package(folder: Path, cli: Cli = CLAUDE) -> Path:
    program(folder / cli.package, "__init__.py", "raise SystemExit('imported')\n")
    inside = folder / cli.package / cli.inside
    return program(inside.parent, inside.name)


@pytest.mark.parametrize("cli", [CLAUDE, CODEX], ids=lambda cli: cli.name)
def test_the_variable_counts_before_the_config_file_before_the_path_before_the_package(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = in_package(place / "packages", cli)
    assert find_cli(cli) == FoundProgram(cli, str(packaged), "package")
    on_path = program(place / "bin", cli.program)
    assert find_cli(cli) == FoundProgram(cli, str(on_path), "path")
    configured = program(place / "mine", "configured")
    own(place, f'[engines.{cli.name}]\nexecutable = "{configured}"\n')
    assert find_cli(cli) == FoundProgram(cli, str(configured), "config")
    named = program(place / "mine", "named")
    monkeypatch.setenv(cli.variable, str(named))
    assert find_cli(cli) == FoundProgram(cli, str(named), "variable")


def test_a_name_without_a_path_is_looked_for_on_the_path(place: Path) -> None:
    path = program(place / "bin", "claude-next")
    own(place, '[engines.claude]\nexecutable = "claude-next"\n')
    assert find_cli(CLAUDE).path == str(path)


def test_a_home_in_the_variable_is_the_users(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(place / "home", "claude")
    monkeypatch.setenv(CLAUDE.variable, "~/claude")
    assert find_cli(CLAUDE).path == str(path)


@pytest.mark.parametrize("cli", [CLAUDE, CODEX], ids=lambda cli: cli.name)
def test_what_is_nowhere_is_refused_with_how_to_get_it(cli: Cli, place: Path) -> None:
    with pytest.raises(RequestError) as caught:
        find_cli(cli)
    assert isinstance(caught.value, CliMissing) and caught.value.code == Code.INTERNAL_ERROR
    assert caught.value.message.startswith(f"{cli.title} is not installed: ")
    for word in (f"antiphon[{cli.name}]", "npm install", cli.variable, f"engines.{cli.name}.executable"):
        assert word in caught.value.hint


@pytest.mark.parametrize("chosen", ["/nowhere/claude", "gone", "work/claude", "./claude", "~/work", ""])
def test_what_was_named_and_cannot_be_run_is_not_replaced_by_another(
    place: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    in_package(place / "packages")
    program(place / "work", "claude")  # where we are: not what a relative path means in the next directory
    program(place / "home" / "work", "claude")
    monkeypatch.setenv(CLAUDE.variable, chosen)
    if not chosen:  # set to nothing is not set
        assert find_cli(CLAUDE).source == "package"
        return
    with pytest.raises(CliMissing, match=rf"{CLAUDE.variable} names `{chosen}`"):
        find_cli(CLAUDE)


def test_a_file_that_may_not_be_run_is_not_found(place: Path) -> None:
    program(place / "bin", "claude").chmod(0o644)
    in_package(place / "packages").chmod(0o644)
    with pytest.raises(CliMissing, match="not installed"):
        find_cli(CLAUDE)


def test_nothing_of_the_directory_we_are_in_is_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(place / "work", "claude")
    in_package(place / "work")
    monkeypatch.setenv("PATH", ":.:bin")
    monkeypatch.setattr(sys, "path", [str(place / "work"), "", "."])  # as `python -m` makes it
    with pytest.raises(CliMissing):
        find_cli(CLAUDE)


def test_mistakes_in_a_config_file_are_logged_and_its_other_values_count(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = program(place / "bin", "claude")
    own(place, "[engines.claude]\nexecutable = 7\n")
    assert find_cli(CLAUDE).path == str(path)
    assert "config.toml, line 2: `engines.claude.executable` must be" in caplog.text


def test_the_package_is_found_without_being_imported(place: Path) -> None:
    packaged = in_package(place / "packages")
    code = (
        "import sys\nfrom antiphon.catalogue.programs import CLAUDE, find_cli\n"
        f"sys.path[:] = [sys.path[0], {str(place / 'packages')!r}]\n"
        "print(find_cli(CLAUDE).path, 'asyncio' in sys.modules, CLAUDE.package in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8", timeout=limit()
    )
    assert done.stdout.split() == [str(packaged), "False", "False"]
