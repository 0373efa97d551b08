"""Finding Codex."""

import sys
from pathlib import Path

import pytest

from antiphon.errors import RequestRefused
from tests.engines.codex.bullets import proves
from tests.engines.codex.driving import Client, connected
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import stand_in_says
from tests.engines.codex.versions import BOTH, NPM, PYPI, program
from tests.engines.proofs import STAND_IN


def link(at: Place, folder: Path) -> Path:
    """Codex under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "codex"
    made.symlink_to(at.program)
    return made


async def refused(client: Client) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await client.open()
    return caught.value


@proves("find.variable", "find.config", "find.path", "find.order")
async def test_the_variable_wins_over_the_configuration_and_that_over_the_path(at: Place, tmp_path: Path) -> None:
    by_variable, by_config = link(at, tmp_path / "a"), link(at, tmp_path / "b")
    on_path = link(at, at.tools)
    at.environment["CODEX_EXECUTABLE"] = str(by_variable)
    at.configure(f'[engines.codex]\nexecutable = "{by_config}"\n')
    for wanted in (by_variable, by_config, on_path):
        async with connected(at) as client:
            await client.open()
            assert at.names() == [str(wanted)]
        at.environment.pop("CODEX_EXECUTABLE", None)
        if wanted is by_config:
            at.configure("")


@proves("find.package", "find.order")
async def test_the_program_of_the_package_comes_last_and_the_package_is_not_imported(at: Place) -> None:
    del at.environment["CODEX_EXECUTABLE"]
    watched = (
        "import atexit, sys; from antiphon.cli.main import main; "
        "atexit.register(lambda: sys.stderr.write('imported' if 'codex_cli_bin' in sys.modules else 'untouched')); "
        "main(['agent', '--engine', 'codex'])"
    )
    async with connected(at, command=(sys.executable, "-P", "-c", watched)) as client:
        await client.open()
        assert at.names() == [str(at.program)]
        agent = client.agent
    assert agent.stderr.endswith("untouched")


@proves("find.missing")
async def test_no_codex_at_all_is_a_clear_error_with_a_hint(at: Place, tmp_path: Path) -> None:
    del at.environment["CODEX_EXECUTABLE"]
    code = (
        f"import sys; sys.path[:] = {without_the_package(tmp_path)!r}; "
        "from antiphon.cli.main import main; main(['agent', '--engine', 'codex'])"
    )
    async with connected(at, command=(sys.executable, "-P", "-S", "-c", code)) as client:
        error = await refused(client)
    assert "Codex" in str(error) and "not installed" in str(error)
    assert "hint: " in str(error) and "pip install" in str(error)


def without_the_package(folder: Path) -> list[str]:
    """Where Python finds all that we need, and no Codex."""
    packages = folder / "packages"
    packages.mkdir()
    spec, ours = __import__("msgspec").__file__, __import__("antiphon").__file__
    assert spec is not None and ours is not None
    (packages / "msgspec").symlink_to(Path(spec).parent)
    standard = [path for path in sys.path if path and "site-packages" not in path and Path(path) != Path.cwd()]
    return [str(packages), str(Path(ours).parents[1]), *standard]


@proves("find.missing")
async def test_a_variable_that_names_no_program_is_a_clear_error_with_a_hint(at: Place) -> None:
    at.environment["CODEX_EXECUTABLE"] = "/nowhere/codex"
    async with connected(at) as client:
        error = await refused(client)
    assert "CODEX_EXECUTABLE" in str(error) and "/nowhere/codex" in str(error) and "hint: " in str(error)


@proves("find.too-old", on=[STAND_IN])
async def test_a_codex_that_is_too_old_is_a_clear_error_with_a_hint(at: Place) -> None:
    at.environment["STAND_IN_VERSION"] = "0.40.0"
    stand_in_says(at)
    async with connected(at) as client:
        error = await refused(client)
    assert "0.40.0" in str(error) and "too old" in str(error) and "hint: " in str(error)


@proves("find.package", on=BOTH)
async def test_the_versions_are_the_ones_that_the_tests_say(at: Place) -> None:
    assert at.run("--version").stdout.strip() == f"codex-cli {at.version}" and program(PYPI) != program(NPM)
