"""The version of the program behind an engine: asked once, known as long as the program is the same."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.engines.cli_program import (
    CLAUDE,
    FRESH,
    CliMissing,
    CliTooOld,
    FoundProgram,
    check_version,
    known_version,
    run_cli,
    version_of,
)
from antiphon.errors import Code


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], FoundProgram]:
    def write(line: str) -> FoundProgram:
        path = tmp_path / "claude"
        path.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n{line}\n", encoding="utf-8")
        path.chmod(0o755)
        return FoundProgram(CLAUDE, str(path), "path")

    return write


def asked(tmp_path: Path) -> int:
    return len((tmp_path / "asked").read_text(encoding="utf-8").splitlines())


def test_a_version_is_asked_once(program: Callable[[str], FoundProgram], tmp_path: Path) -> None:
    found = program("echo '2.1.325 (Claude Code)'")
    assert known_version(found) is None
    assert [version_of(found) for _ in range(3)] == ["2.1.325"] * 3
    assert known_version(found) == "2.1.325" and asked(tmp_path) == 1


def test_a_program_that_has_changed_is_asked_again(program: Callable[[str], FoundProgram], tmp_path: Path) -> None:
    assert version_of(program("echo 2.1.325")) == "2.1.325"
    found = program("echo 2.1.400 # newer")
    assert version_of(found) == "2.1.400" and asked(tmp_path) == 2
    os.utime(found.path, (0, 0))
    assert known_version(found) is None


def test_an_answer_is_not_believed_for_ever(
    program: Callable[[str], FoundProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program("echo 2.1.325")
    version_of(found)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + FRESH + 1)
    assert known_version(found) is None
    assert version_of(found) == "2.1.325" and asked(tmp_path) == 2


def test_a_program_that_is_gone_is_forgotten(program: Callable[[str], FoundProgram], tmp_path: Path) -> None:
    found = program("echo 2.1.325")
    version_of(found)
    other = tmp_path / "other"
    Path(found.path).rename(other)
    assert known_version(found) is None
    version_of(FoundProgram(CLAUDE, str(other), "path"))
    notes = (tmp_path / "state" / "engines" / "claude-versions.json").read_text(encoding="utf-8")
    assert f'"{other}"' in notes and f'"{found.path}"' not in notes


@pytest.mark.parametrize("notes", ["", "{", "[]", '{"PATH": 7}', '{"PATH": {"sign": [], "version": 2, "at": "now"}}'])
def test_notes_that_are_damaged_count_as_none(
    program: Callable[[str], FoundProgram], tmp_path: Path, notes: str
) -> None:
    found = program("echo 2.1.325")
    kept = tmp_path / "state" / "engines" / "claude-versions.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(notes.replace("PATH", found.path), encoding="utf-8")
    assert known_version(found) is None and version_of(found) == "2.1.325"


def test_one_that_is_too_old_is_refused_with_what_to_do(program: Callable[[str], FoundProgram]) -> None:
    found = program("echo 1.0.128")
    for _ in range(2):  # asked, and known
        with pytest.raises(CliTooOld) as caught:
            version_of(found)
        assert caught.value.code == Code.INTERNAL_ERROR
        assert "1.0.128 is too old" in caught.value.message and found.path in caught.value.message
        assert "antiphon[claude]" in caught.value.hint and CLAUDE.variable in caught.value.hint


@pytest.mark.parametrize(
    ("version", "enough"),
    [("2.1.41", True), ("2.1.40", False), ("2.1.197", True), ("2.2", True), ("10.0.0-beta.1", True), ("2.1", False)],
)
def test_versions_are_compared_by_their_numbers(version: str, enough: bool) -> None:
    found = FoundProgram(CLAUDE, "/claude", "path")
    if enough:
        assert check_version(found, version) == version
    else:
        with pytest.raises(CliTooOld):
            check_version(found, version)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("echo 'Error: binary not installed.' >&2; exit 1", "Error: binary not installed."),
        ("echo hello", "hello"),
        ("exit 3", "it ended with 3"),
        ("kill -9 $$", "it ended with -9"),
    ],
    ids=["a stub", "another program", "silent", "killed"],
)
def test_a_program_that_does_not_work_is_refused_with_its_output(
    program: Callable[[str], FoundProgram], line: str, text: str
) -> None:
    found = program(line)
    with pytest.raises(CliMissing) as caught:
        version_of(found)
    assert f"--version` printed: {text}" in caught.value.message and caught.value.hint
    assert known_version(found) is None


def test_one_that_cannot_even_be_started_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "claude"
    path.write_bytes(b"\x7fELF of another machine")
    path.chmod(0o755)
    with pytest.raises(CliMissing, match="cannot be started: "):
        version_of(FoundProgram(CLAUDE, str(path), "variable"))


def test_one_that_hangs_is_killed_with_all_it_started(program: Callable[[str], FoundProgram]) -> None:
    found = program("sleep 1000 & sleep 1000")
    with pytest.raises(CliMissing, match=r"took more than 0\.2 s"):
        run_cli(found, "--version", limit=0.2)  # what it started holds its output open: we would wait for that, too


def test_it_is_asked_with_nothing_to_read_and_not_in_the_project(
    program: Callable[[str], FoundProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = program("cat; pwd >&2; pwd > ../where; echo 2.1.325")
    assert version_of(found) == "2.1.325"
    assert (tmp_path / "where").read_text(encoding="utf-8").strip() == str(tmp_path / "home")
