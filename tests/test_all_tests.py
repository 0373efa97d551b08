"""`tools/all_tests.py` runs every test of a little project once, and tells whether one of them failed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
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

LONG = """
import pathlib, pytest, threading

@pytest.fixture
def singing(request):
    name = request.function.__name__.removeprefix("test_")
    yield pathlib.Path(name)
    with pathlib.Path("sung").open("a", encoding="utf-8") as file:
        file.write(f"{name}\\n")

def stay(pipe):
    pipe.write_text("here", encoding="utf-8")
    threading.Event().wait()

@pytest.mark.slow
def test_slow(singing): stay(singing)

@pytest.mark.slow
@pytest.mark.together
def test_together(singing): stay(singing)
"""
"""Both stay until they are interrupted, and clear up then."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  together\n", encoding="utf-8")
    (tmp_path / "test_choir.py").write_text(PROJECT, encoding="utf-8")
    return tmp_path


def start(project: Path, *words: str) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the little project needs none
    return subprocess.Popen(
        [sys.executable, TOOL, "0", *words], cwd=project, env=own, encoding="utf-8", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    running = start(project, *words)
    said, _ = running.communicate(timeout=50)
    return subprocess.CompletedProcess(running.args, running.returncode, said)


def sung(project: Path) -> list[str]:
    return sorted((project / "sung").read_text(encoding="utf-8").split())


def test_a_wish_for_marks_chooses_among_the_parts(project: Path) -> None:
    done = run(project, "-m", "slow")
    assert done.returncode == 0 and sung(project) == ["slow", "together"]
    assert "not slow: none selected; slow and not together: passed; slow and together: passed" in done.stdout


def test_what_is_no_number_of_processes_is_said(project: Path) -> None:
    wrong = subprocess.run([sys.executable, TOOL, "-k", "fast"], cwd=project, capture_output=True, encoding="utf-8")
    assert wrong.returncode == 1 and "hint: " in wrong.stderr and not wrong.stdout


@pytest.mark.parametrize(
    ("tell", "number", "status"),
    [(os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGTERM, 143)],
    ids=["ctrl-c", "terminated"],
)
def test_who_is_interrupted_clears_up_and_nobody_is_left(
    project: Path, tell: Callable[[int, int], None], number: int, status: int
) -> None:
    for name in ("slow", "together"):
        os.mkfifo(project / name)
    (project / "test_choir.py").write_text(LONG, encoding="utf-8")
    running = start(project)
    for name in ("slow", "together"):
        assert (project / name).read_text(encoding="utf-8") == "here"  # both are at work
    tell(running.pid, number)
    said, _ = running.communicate(timeout=50)  # and its output is closed, so nobody is left
    assert running.returncode == status
    assert sung(project) == ["slow", "together"] and said.count("KeyboardInterrupt !") == 2


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
