"""Worktrees of one repository that several runs make and remove at the same time."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.runs.worktrees import make_worktree

RUNS, TIMES = 4, 5

GIT = """#!/bin/sh
case "$*" in
*"worktree add"*|*"worktree remove"*)
    mkdir {busy} || echo "$*" >> {overlaps}
    {git} "$@"
    status=$?
    rmdir {busy}
    exit $status ;;
*) exec {git} "$@" ;;
esac
"""
"""A git that notes when two commands change the worktrees at once: where they do, about one in fifty fails."""


@pytest.mark.slow
def test_runs_that_make_and_remove_worktrees_at_once_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, overlaps, programs = tmp_path / "song", tmp_path / "overlaps", tmp_path / "bin"
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "Start"], cwd=repository, check=True)
    programs.mkdir()
    watched = GIT.format(git=shutil.which("git"), busy=tmp_path / "busy", overlaps=overlaps)
    (programs / "git").write_text(watched, encoding="utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(_: int) -> None:
        for _ in range(TIMES):
            make_worktree(str(repository)).remove()

    with ThreadPoolExecutor(RUNS) as pool:
        list(pool.map(run, range(RUNS)))
    assert not overlaps.exists(), overlaps.read_text(encoding="utf-8")
    assert not (repository / ".git" / "worktrees").exists()
