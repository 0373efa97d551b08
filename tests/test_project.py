"""The project around the code keeps its promises: commands, locks, documents, public names, and the rule about skips."""

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon.protocol.v1.methods import BY_NAME
from tests.cli.terminal import Terminal
from tests.limits import limit
from tests.rows import each_row

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"argparse", "asyncio", "json", "logging", "msgspec", "re", "subprocess", "typing"}


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=limit(),
    )


def python(code: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", code)


# --- the program ---


@pytest.mark.parametrize("program", [(Path(sys.executable).with_name("antiphon"),), (sys.executable, "-m", "antiphon")])
def test_the_program_prints_its_version(program: tuple[str | Path, ...]) -> None:
    done = run(*program, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"antiphon {antiphon.__version__}\n", "")


def test_without_words_the_program_shows_its_help() -> None:
    done = run(sys.executable, "-m", "antiphon")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: antiphon")
    assert done.stdout == run(sys.executable, "-m", "antiphon", "--help").stdout


@pytest.mark.parametrize("words", [["sing"], ["--loud"], ["--version=2"], ["--ver"], ["sing", "--version-me"]])
def test_words_it_does_not_know_end_in_a_hint(words: list[str]) -> None:
    done = run(sys.executable, "-m", "antiphon", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.splitlines()[-1].startswith("hint: ")


def test_windows_is_refused_in_one_sentence() -> None:
    done = python("from antiphon.cli.main import main; raise SystemExit(main(['--version'], platform='win32'))")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: Antiphon does not run on Windows yet\nhint: use it inside WSL, or on Linux\n"


# A Windows Python has none of these; the refusal must come before anything asks for them.
def test_the_refusal_needs_nothing_that_only_posix_has() -> None:
    posix = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
    block = f"import sys; sys.modules |= dict.fromkeys({posix}); "
    done = python(f"{block}from antiphon.cli.main import main; raise SystemExit(main([], platform='win32'))")
    assert done.returncode == 1
    assert "Windows" in done.stderr


@pytest.mark.parametrize(
    "action", ["import antiphon", "from antiphon.cli.main import main; main(['--version'])"], ids=["import", "version"]
)
def test_starting_loads_nothing_heavy(action: str) -> None:
    done = python(f"import sys; before = set(sys.modules); {action}; print(*set(sys.modules) - before)")
    assert done.returncode == 0
    assert not HEAVY & set(done.stdout.split())


# --- public names ---


def test_an_agent_imports_no_event_loop_before_it_answers() -> None:
    done = python("import sys; from antiphon import Agent, AgentTurn, v1; print(*sys.modules)")
    assert done.returncode == 0 and "asyncio" not in done.stdout.split()


def test_every_public_name_exists() -> None:
    for info in pkgutil.walk_packages(antiphon.__path__, "antiphon."):
        if info.name == "antiphon.__main__":
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.{name}"


def test_the_extra_all_has_every_other_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"antiphon\[(.+)\]", everything)
    assert named is not None and set(named[1].split(",")) == set(extras) - {"all"}


# --- locks ---

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_names_versions_and_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==[^\s;]+( ; .+)? \\$", entry), entry
    for address in ("://", "file:", " @ ", "--index", "--extra-index", "--find-links"):
        assert address not in text


def test_every_lock_has_its_source_and_the_other_way_round() -> None:
    sources = {source.stem for source in (ROOT / "requirements").glob("*.in")}
    assert sources == {lock.stem for lock in LOCKS}


def test_the_locks_agree() -> None:
    versions: dict[str, set[str]] = {}
    for lock in LOCKS:
        if lock.stem.startswith("peers"):  # environments of their own, for other versions of the same package
            continue
        for name, version in re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_npm_lock_files_have_no_addresses() -> None:
    assert "omit-lockfile-registry-resolved=true" in (ROOT / ".npmrc").read_text(encoding="utf-8").split()
    for lock in ROOT.rglob("package-lock.json"):
        if "node_modules" in lock.parts:
            continue
        packages: dict[str, dict[str, object]] = json.loads(lock.read_text(encoding="utf-8"))["packages"]
        assert not [name for name, package in packages.items() if "resolved" in package], lock
        assert "://" not in lock.read_text(encoding="utf-8"), f"{lock}: npm adds `funding` addresses; take them out"


# --- documents ---

DOCUMENTS = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/adr/README.md", "docs/agents.md", "docs/clients.md", "docs/core.md",
    "docs/config.md", "docs/demo.md", "docs/doctor.md", "docs/editors.md", "docs/evidence/interop.md", "docs/sessions.md",
]  # fmt: skip
PATH = re.compile(r"[\w.*-]*(/[\w.*-]*)+|[\w*-]+\.(in|md|py|toml|txt)")


def code_in(document: str) -> list[str]:
    """Everything that a document sets as code: spans, and the lines of shell blocks without their comments."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|shell|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


@each_row("document", DOCUMENTS)
def test_every_make_target_that_a_document_names_exists(document: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE))
    for code in code_in(document):
        words = code.split()
        if words[:1] == ["make"]:
            assert next(word for word in words[1:] if "=" not in word) in targets, f"{document}: {code}"


def test_ctrl_c_ends_make_run_without_a_line_of_make(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    program = tmp_path / ".venv-run" / "bin" / "antiphon"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\ntrap 'echo closed; exit 0' INT\necho started\nread line\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / ".venv-run" / ".ready").touch()
    words = ("make", "--no-print-directory", "--old-file=.venv-run/.ready", "run")
    with Terminal(words, cwd=tmp_path, env={"PATH": os.environ["PATH"]}) as terminal:
        terminal.wait_for("started")
        terminal.type("\x03")
        _, shown = terminal.finish()
    assert "closed" in shown and "***" not in shown, shown


@each_row("document", DOCUMENTS)
def test_every_path_that_a_document_names_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    folder = (ROOT / document).parent
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (folder / link).exists(), f"{document}: {link}"
    for code in code_in(document):
        path = code.split()[0] if code.strip() else ""
        # What begins with a slash is a slash command, and methods have slashes too.
        if (
            PATH.fullmatch(path)
            and not path.startswith("/")
            and path not in BY_NAME
            and not path.startswith("_antiphon/")
        ):
            places = (folder, ROOT, ROOT / "src" / "antiphon")
            assert any(next(place.glob(path.strip("/")), None) for place in places), f"{document}: {path}"


def contract(name: str) -> dict[str, Any]:
    """An import contract of the project."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return next(one for one in contracts if one["name"] == name)


def test_the_readme_has_every_package_in_the_order_in_which_they_import_each_other() -> None:
    layers = contract("A package imports only packages below it")["layers"]
    order = [name.strip() for layer in layers for name in layer.split("|") if name != "__main__"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(/|\.py)` \|", readme.partition("## Layout")[2], re.MULTILINE)
    assert [name for name, _ in rows] == order
    kinds = {one.name: "/" if one.ispkg else ".py" for one in pkgutil.iter_modules(antiphon.__path__)}
    assert dict(rows).items() <= kinds.items()


def test_the_architecture_page_has_every_package_from_top_to_bottom() -> None:
    layers = contract("A package imports only packages below it")["layers"]
    levels = {name.strip(): number for number, layer in enumerate(layers) for name in layer.split("|")}
    table = (
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Packages")[2].partition("##")[0]
    )
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in row} == levels.keys() - {"__main__"}
    assert [levels[row[0]] for row in rows] == sorted(levels[row[0]] for row in rows)


def test_every_package_but_the_chat_may_not_import_the_packages_of_the_chat() -> None:
    sources = contract("Only the tui package imports the packages of the chat")["source_modules"]
    packages = {f"antiphon.{one.name}" for one in pkgutil.iter_modules(antiphon.__path__)}
    assert packages - {"antiphon.__main__", "antiphon.tui"} == set(sources)


def test_every_decision_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    for record in (ROOT / "docs" / "adr").glob("[0-9]*.md"):
        assert f"({record.name})" in index, record.name


def test_every_test_that_took_the_place_of_another_exists() -> None:
    page = (ROOT / "docs" / "evidence" / "moved-tests.md").read_text(encoding="utf-8")
    successors = re.findall(r"`(test_\w+)`", "".join(line.partition("→")[2] for line in page.splitlines()))
    files = (path for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts)
    there = set(re.findall(r"def (test_\w+)\(", "".join(path.read_text(encoding="utf-8") for path in files)))
    assert len(successors) > 1000
    assert set(successors) - there == set()


# --- the rule about skips ---

SKIPPING = """
import pytest

@pytest.mark.skip(reason="no harp here")
@pytest.mark.parametrize("string", [1, 2])
def test_harp(string): ...

@pytest.mark.xfail(reason="out of tune")
def test_lute(): assert False

def test_sender(): ...
"""


def skipping(folder: Path, in_ci: str, *allowed: str, source: str = SKIPPING) -> subprocess.CompletedProcess[str]:
    """Run our own conftest over a file of tests that skip."""
    tests = folder / "tests"
    tests.mkdir()
    for file in ("conftest.py", "rows.py"):
        shutil.copy(ROOT / "tests" / file, tests)
    (tests / "allowed_skips.txt").write_text("# none but these\n" + "\n".join(allowed), encoding="utf-8")
    (tests / "test_band.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    return run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", cwd=folder, ANTIPHON_CI=in_ci)


def test_at_home_a_skip_is_not_a_failure(tmp_path: Path) -> None:
    assert "1 passed, 2 skipped, 1 xfailed" in skipping(tmp_path, "").stdout


def test_in_ci_a_skip_is_a_failure(tmp_path: Path) -> None:
    done = skipping(tmp_path, "1")
    assert done.returncode == 1
    assert "tests/test_band.py::test_harp[1] may not be skipped in CI" in done.stdout
    assert "no harp here" in done.stdout
    assert "1 passed, 1 xfailed, 2 errors" in done.stdout


def test_in_ci_a_listed_skip_is_allowed(tmp_path: Path) -> None:
    done = skipping(tmp_path, "1", "tests/test_band.py::test_harp -- harps are rare")
    assert done.returncode == 0
    assert "1 passed, 2 skipped, 1 xfailed" in done.stdout


def test_a_listed_skip_needs_a_reason(tmp_path: Path) -> None:
    done = skipping(tmp_path, "1", "tests/test_band.py::test_harp")
    assert done.returncode != 0
    assert "no reason given for `tests/test_band.py::test_harp`" in done.stdout + done.stderr


def test_in_ci_a_file_that_skips_itself_is_a_failure(tmp_path: Path) -> None:
    done = skipping(tmp_path, "1", source="import pytest; pytest.importorskip('no_such_instrument')")
    assert done.returncode != 0
    assert "tests/test_band.py may not be skipped in CI" in done.stdout


def test_every_listed_skip_names_a_test_that_exists() -> None:
    for line in (ROOT / "tests" / "allowed_skips.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            path, _, name = line.partition(" -- ")[0].strip().partition("::")
            source = (ROOT / path).read_text(encoding="utf-8")
            assert not name or re.search(rf"def {re.escape(name)}\(", source), line
