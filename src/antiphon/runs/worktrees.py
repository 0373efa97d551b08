"""Git worktrees for runs: each is new, outside of the project, on a branch of its own that begins at HEAD.

What was not committed in the project stays there. Hooks of the repository are not run.
"""

import fcntl
import os
import re
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from antiphon.config.directories import make_private_directory, state_dir
from antiphon.errors import AcpError
from antiphon.snapshots.git import absolute_path, program, repository_of

__all__ = ["Worktree", "WorktreeError", "last_commit", "make_worktree"]

PREFIX: Final = "antiphon"
"""What the names of branches begin with."""

LOCK: Final = ".lock"
"""The file, beside the worktrees, that is locked while one is made or removed."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class WorktreeError(AcpError):
    """A worktree could not be made, looked at or removed."""


@dataclass(frozen=True)
class Worktree:
    """A git worktree of a run."""

    path: str
    branch: str
    base: str
    """The commit that it began at."""
    repository: str
    """The top of the tree that it was made from."""
    cwd: str
    """The directory in it that corresponds to the one it was made for."""

    def changed(self) -> bool:
        """Whether it has commits, or files that are not as in its base.

        Raises:
            WorktreeError: git fails.
        """
        return bool(_git(self.path, "status", "--porcelain")) or _git(self.path, "rev-parse", "HEAD") != self.base

    def remove(self) -> None:
        """Remove it with its branch, whatever is in it.

        Raises:
            WorktreeError: git fails.
        """
        with _alone():
            _git(self.repository, "worktree", "remove", "--force", self.path)
            _git(self.repository, "branch", "-D", self.branch)


def last_commit(cwd: str) -> tuple[str, str]:
    """Return the top of the repository that a directory is in, and the commit that its worktrees begin at.

    Raises:
        WorktreeError: the directory is in no repository, or the repository has no commit.
    """
    try:
        top = _git(cwd, "rev-parse", "--show-toplevel")
    except WorktreeError as error:
        if "dubious ownership" in error.sentence:  # in a container whose user does not own the checkout
            found = repository_of(os.path.realpath(cwd))
            directory = os.path.realpath(cwd) if found is None else found.top
            raise WorktreeError(
                f"git refuses the repository `{directory}`: it belongs to another user",
                hint=f"`git config --global --add safe.directory {shlex.quote(directory)}` lets git use it",
            ) from error
        if "not a git repository" not in error.sentence:
            raise
        raise WorktreeError(f"`{cwd}` is in no git repository", hint="`git init`, and commit once") from error
    try:
        base = _git(top, "rev-parse", "--verify", "HEAD^{commit}")
    except WorktreeError as error:
        raise WorktreeError(f"the repository `{top}` has no commit yet", hint="commit once") from error
    return top, base


def make_worktree(cwd: str, label: str = "run") -> Worktree:
    """Make a worktree of the repository that a directory is in. `label` is a part of its name.

    Raises:
        WorktreeError: the directory is in no repository, or the repository has no commit.
    """
    top, base = last_commit(cwd)
    label = _UNSAFE.sub("-", label).strip("-.")[:40] or "run"
    name = f"{label}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    path, branch = _directory() / f"{_UNSAFE.sub('-', Path(top).name)}-{name}", f"{PREFIX}/{name}"
    try:
        with _alone():
            _git(top, "worktree", "add", "--quiet", "-b", branch, str(path), base)
    except WorktreeError:
        with suppress(WorktreeError):  # git removes the files that it had made, and leaves the branch
            _git(top, "branch", "-D", branch)
        raise
    inside = os.path.relpath(os.path.realpath(cwd), os.path.realpath(top))
    made = Worktree(str(path), branch, base, top, os.path.normpath(path / inside))
    if not os.path.isdir(made.cwd):
        made.remove()
        raise WorktreeError(f"`{inside}` is not in the last commit", hint="commit it, or start in another directory")
    return made


def _directory() -> Path:
    directory = state_dir() / "worktrees"
    make_private_directory(directory)
    return directory


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for other runs that make or remove a worktree: git reads all of them then, and fails at one that is half made or half gone."""
    descriptor = os.open(_directory() / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _git(cwd: str, *words: str) -> str:
    git = program("git")
    if git is None:
        raise WorktreeError("git is not on the PATH", hint="install git")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [git, "-c", "core.hooksPath=/dev/null", *words],
        cwd=cwd,
        env={**environment, "PATH": absolute_path(), "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise WorktreeError(f"`git {words[0]}` failed: {why[-500:]}", hint="see what git reports")
    return os.fsdecode(done.stdout).strip("\n")
