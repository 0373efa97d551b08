"""Where a bridge and its CLI work: a new home, and no network but to the model."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bridges.clis import Cli
from benchmarks.commands import ROOT


@contextmanager
def model() -> Iterator[str]:
    """Start the model; what comes out is its address. A process of its own: it must not share a lock with who measures."""
    command = [sys.executable, "-m", "benchmarks.bridges.model"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.kill()


class Place:
    """A home and a folder to work in."""

    def __init__(self, path: Path, address: str, cli: Cli, program: Path) -> None:
        self.folder = path / "work"
        home = path / "home"
        for folder in (home, path / "tmp", self.folder):
            folder.mkdir()
        self.environment = {
            "HOME": str(home),
            "TMPDIR": str(path / "tmp"),
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            **dict.fromkeys(cli.named, str(program)),
            **cli.furnish(home, address),
        }


@contextmanager
def place(address: str, cli: Cli, program: Path) -> Iterator[Place]:
    """Make one, and leave nothing of it."""
    with TemporaryDirectory(prefix="antiphon-bench-", ignore_cleanup_errors=True) as path:
        yield Place(Path(path), address, cli, program)
