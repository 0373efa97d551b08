"""`tools/all_tests.py` runs every test of a little project once, and tells whether one of them failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each starts pytest several times

TOOL = Path(__file__).resolve().parent.parent / "tools" / "all_tests.py"
PROJECT = """
import pathlib, pytest

def sing(name):
    with pathlib.Path("sung").open("a", encoding="utf-8") as file:
        file.write(f"{name}\\n")

def test_fast(): sing("fast")

@pytest.mark.slow
def test_slow(): sing("slow")

@pytest.mark.slow
@pytest.mark.together
def test_together(): sing("together")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  together\n", encoding="utf-8")
    (tmp_path / "test_choir.py").write_text(PROJECT, encoding="utf-8")
    return tmp_path


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the little project needs none
    return subprocess.run(
        [sys.executable, TOOL, "0", *words], cwd=project, env=own, capture_output=True, encoding="utf-8", timeout=50
    )


def sung(project: Path) -> list[str]:
    return sorted((project / "sung").read_text(encoding="utf-8").split())


def test_a_part_without_tests_is_fine_and_a_selection_without_any_is_not(project: Path) -> None:
    assert run(project, "-k", "together").returncode == 0
    assert sung(project) == ["together"]
    assert run(project, "-k", "silence").returncode == 5


@pytest.mark.parametrize("part", ["slow", "together"])
def test_a_failure_in_any_part_is_the_end_of_it_and_is_shown(project: Path, part: str) -> None:
    (project / "test_choir.py").write_text(PROJECT.replace(f'sing("{part}")', "assert False"), encoding="utf-8")
    done = run(project)
    assert done.returncode == 1
    assert f"test_choir.py::test_{part}" in done.stdout
    assert sung(project) == sorted({"fast", "slow", "together"} - {part})


def test_what_is_slow_does_not_run_when_something_fast_has_failed(project: Path) -> None:
    (project / "test_choir.py").write_text(PROJECT.replace('sing("fast")', "assert False"), encoding="utf-8")
    assert run(project).returncode == 1
    assert not (project / "sung").exists()
