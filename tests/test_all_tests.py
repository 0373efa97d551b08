"""`tools/all_tests.py` runs every test of a small project once, in parts, and reports the part that failed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]  # each starts pytest several times

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
@pytest.mark.prove
def test_peers(): sing("peers")

@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.together
def test_tables(): sing("tables")

@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.checks
def test_checks(): sing("checks")
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

@pytest.mark.prove
def test_peers(singing): stay(singing)

@pytest.mark.prove
@pytest.mark.together
def test_tables(singing): stay(singing)
"""
"""Both run until they are interrupted, and clean up then."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  slow\n  prove\n  together\n  checks\n", encoding="utf-8"
    )
    (tmp_path / "test_choir.py").write_text(PROJECT, encoding="utf-8")
    return tmp_path


def start(project: Path, *words: str) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the small project needs none
    return subprocess.Popen(
        [sys.executable, TOOL, *words], cwd=project, env=own, encoding="utf-8", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    running = start(project, *words)
    output, _ = running.communicate(timeout=limit(150))
    return subprocess.CompletedProcess(running.args, running.returncode, output)


def sung(project: Path) -> list[str]:
    return sorted((project / "sung").read_text(encoding="utf-8").split())


def test_each_suite_runs_its_own_parts_and_reports_how_they_ended(project: Path) -> None:
    done = run(project, "test", "0")
    assert done.returncode == 0 and sung(project) == ["fast", "slow"]
    assert ">>> part 1 of 2: fast" in done.stdout and "fast: passed; slow: passed" in done.stdout
    done = run(project, "prove", "0")
    assert done.returncode == 0 and sung(project) == ["checks", "fast", "peers", "slow", "tables"]
    assert "slowest 10 durations" in done.stdout and "peers: passed; checks: passed; tables: passed" in done.stdout


def test_a_mark_of_the_user_selects_within_the_parts(project: Path) -> None:
    done = run(project, "test", "0", "-m", "slow")
    assert done.returncode == 0 and sung(project) == ["slow"]
    assert "fast: none selected; slow: passed" in done.stdout


@pytest.mark.parametrize("words", [["test", "-k", "fast"], ["0"], ["all", "0"]])
def test_wrong_arguments_get_an_error_with_a_hint(project: Path, words: list[str]) -> None:
    wrong = subprocess.run([sys.executable, TOOL, *words], cwd=project, capture_output=True, encoding="utf-8")
    assert wrong.returncode == 1 and "hint: " in wrong.stderr and not wrong.stdout


@pytest.mark.parametrize(
    ("tell", "number", "status"),
    [(os.killpg, signal.SIGINT, 130), (os.kill, signal.SIGTERM, 143)],
    ids=["ctrl-c", "terminated"],
)
def test_an_interrupted_run_cleans_up_and_leaves_no_process(
    project: Path, tell: Callable[[int, int], None], number: int, status: int
) -> None:
    for name in ("peers", "tables"):
        os.mkfifo(project / name)
    (project / "test_choir.py").write_text(LONG, encoding="utf-8")
    running = start(project, "prove", "0")
    for name in ("peers", "tables"):
        assert (project / name).read_text(encoding="utf-8") == "here"  # both run
    tell(running.pid, number)
    output, _ = running.communicate(timeout=limit(150))  # its output is closed, so no process is left
    assert running.returncode == status
    # The part that has no tests may have ended before.
    assert sung(project) == ["peers", "tables"] and output.count("KeyboardInterrupt !") >= 2


def test_a_part_without_tests_is_fine_and_a_selection_without_any_is_not(project: Path) -> None:
    assert run(project, "test", "0", "-k", "slow").returncode == 0
    assert sung(project) == ["slow"]
    assert run(project, "test", "0", "-k", "silence").returncode == 5


@pytest.mark.parametrize(
    ("suite", "part", "others"),
    [
        ("test", "fast", []),
        ("test", "slow", ["fast"]),
        ("prove", "peers", ["checks", "tables"]),
        ("prove", "tables", ["checks", "peers"]),
    ],
)
def test_a_failed_part_is_shown_with_the_command_to_repeat_it(
    project: Path, suite: str, part: str, others: list[str]
) -> None:
    (project / "sung").touch()
    (project / "test_choir.py").write_text(PROJECT.replace(f'sing("{part}")', "assert False"), encoding="utf-8")
    done = run(project, suite, "0")
    assert done.returncode == 1
    assert f"{part}: FAILED" in done.stdout and sung(project) == others
    repeat = next(line for line in done.stdout.splitlines() if line.startswith("repeat: "))
    assert repeat.endswith(f"-m pytest test_choir.py::test_{part}")


ONCE = PROJECT.replace('sing("fast")', 'there = pathlib.Path("sung").exists(); sing("fast"); assert there')
"""Its fast test fails the first time."""


def test_a_test_that_passes_alone_is_listed_and_the_run_goes_on(project: Path) -> None:
    (project / "test_choir.py").write_text(ONCE, encoding="utf-8")
    done = run(project, "test", "0")
    assert done.returncode == 0 and sung(project) == ["fast", "fast", "slow"]
    assert "UNSTEADY, failed once and passed alone: test_choir.py::test_fast" in done.stdout


def test_many_failures_are_not_tried_again(project: Path) -> None:
    more = "".join(f"\n\ndef test_{number}(): sing({number}); assert False" for number in range(4))
    (project / "test_choir.py").write_text(PROJECT + more, encoding="utf-8")
    done = run(project, "fast", "0")
    assert done.returncode == 1 and sung(project) == ["0", "1", "2", "3", "fast"]


def test_failures_of_an_earlier_run_are_neither_counted_nor_repeated(project: Path) -> None:
    more = "".join(f"\n\ndef test_{number}(): assert False" for number in range(4))
    (project / "test_choir.py").write_text(ONCE + more, encoding="utf-8")
    assert run(project, "fast", "0", "-k", "not fast").returncode == 1
    done = run(project, "fast", "0", "-k", "fast")
    assert done.returncode == 0 and "UNSTEADY, failed once and passed alone: test_choir.py::test_fast" in done.stdout


def test_new_tests_are_compiled_once_before_any_part_runs(project: Path) -> None:
    tests = project / "tests"
    for name in ("conftest.py", "test_alto.py", "choir/test_bass.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).write_text("def test_sings(): assert 'la'\n", encoding="utf-8")
    code = "import all_tests; all_tests.compile_tests(2, [])"
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {"PYTHONPATH": str(TOOL.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", code]
    said = [
        subprocess.run(command, cwd=project, env=own, check=True, capture_output=True, encoding="utf-8").stdout
        for _ in range(2)
    ]
    assert "compiling" in said[0] and said[1] == ""
    compiled = {path.name.partition(".")[0] for path in tests.rglob("*-pytest-*.pyc")}
    assert compiled == {"conftest", "test_alto", "test_bass"}
