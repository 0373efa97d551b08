"""Trees of files that tests look at, and a place for temporary directories that has to be empty afterwards."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["commit", "git", "nothing_is_left", "tree", "write"]


@pytest.fixture
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary directories are gone after every test."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with two files, one of them changed since its commit."""
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init", "--quiet")
    write(folder, "song.txt", "do\nre\nmi\n")
    write(folder, "src/sing.py", "print('la')\n")
    write(folder, ".gitignore", "*.log\nbuild/\n")
    git(folder, "add", "-A")
    commit(folder)
    write(folder, "song.txt", "do\nre\nmi\nfa\n")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "a song")


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
