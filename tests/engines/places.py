"""Where a program that an engine drives works in a test: a folder, a home, a place for temporary files, all its own.

Nothing of the machine's environment reaches it but the way to the programs, and nothing may be left running there.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Final, TypeVar

from antiphon.transports import tree
from tests.engines.model.server import Model
from tests.engines.model.steps import Calls, wait_limit
from tests.waits import wait_until_gone

__all__ = ["JOINT", "Ground", "Place", "agent_command", "comes", "is_gone", "kept_clean"]

JOINT: Final = (sys.executable, "-P", "-m", "antiphon", "agent")
"""How the agent over all engines is started."""


def agent_command(engine: str) -> tuple[str, ...]:
    """How an engine is started, as its users start it."""
    return (*JOINT, "--engine", engine)


class Ground:
    """A directory, a home and the rest of an environment. Several programs may: a place that is made beside another has all of it in common."""

    def __init__(self, path: Path, agent: tuple[str, ...], beside: "Ground | None" = None) -> None:
        self.agent = agent
        self.mark: str = token_hex() if beside is None else beside.mark
        self.home, self.folder, self.tools = path / "home", path / "work", path / "tools"
        for folder in (self.home, self.folder, self.tools, path / "tmp"):
            folder.mkdir(exist_ok=beside is not None)
        self.environment: dict[str, str] = _environment(self, path) if beside is None else beside.environment

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return Path(self.environment["TMPDIR"])

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def pipe(self, name: str = "pipe") -> Path:
        """A named pipe: a reader waits until something is written."""
        path = self.temporary / name
        os.mkfifo(path)
        return path

    def configure(self, text: str) -> None:
        """The user's own `config.toml` for Antiphon."""
        folder = Path(self.environment["ANTIPHON_CONFIG_DIR"])
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text, encoding="utf-8")

    def git(self, *words: str) -> None:
        """A command of git in the folder."""
        git = shutil.which("git")
        assert git is not None
        who = ["-c", "user.name=A Singer", "-c", "user.email=singer@example.org"]
        subprocess.run(
            [git, "-C", str(self.folder), *who, *words], env=self.environment, check=True, capture_output=True
        )


def _environment(at: Ground, path: Path) -> dict[str, str]:
    return tree.marked(
        {
            "PATH": f"{at.tools}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(at.home),
            "TMPDIR": str(path / "tmp"),
            "LANG": "C.UTF-8",
            "GIT_CEILING_DIRECTORIES": str(path),  # a repository around the temporary files of the machine is not ours
            "ANTIPHON_STATE_DIR": str(path / "state"),
            "ANTIPHON_CONFIG_DIR": str(path / "config"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        at.mark,
    )


class Place(Ground):
    """A place with the CLI of an engine and its model. What every engine has is here; how each has it, its own place knows."""

    engine: ClassVar[str]
    title: ClassVar[str]
    """The name of the CLI, as users know it."""
    variable: ClassVar[str]
    """The variable that names the CLI to the engine."""
    calls: ClassVar[Calls]
    model: Model[Any, Any]

    def __init__(self, path: Path, program: Path, version: str, beside: Ground | None = None) -> None:
        super().__init__(path, agent_command(self.engine), beside)
        self.version = version
        self.program = program
        self.environment[self.variable] = str(program)

    def results(self) -> list[str]:
        """What the model was sent of the tools that it used last."""
        raise NotImplementedError

    def lets_everything_run(self) -> None:
        """The user's own settings let the CLI do everything, and ask nothing."""
        raise NotImplementedError

    def signs_out(self) -> None:
        """The user is not signed in to anything."""
        raise NotImplementedError

    async def keeps(self, words: str) -> None:
        """Wait until the CLI has written these words down."""
        raise NotImplementedError

    def talks_in_a_terminal(self, words: str) -> None:
        """A user uses the CLI in a terminal, and is answered."""
        raise NotImplementedError

    def processes(self) -> list[int]:
        """The ids of the programs that run. One that is only asked for its version is none: it is gone in a moment."""
        return [
            pid for pid in tree.processes_with(self.mark) if _is(pid, self.program) and "--version" not in _words(pid)
        ]

    async def runs(self, number: int) -> list[int]:
        """Wait until so many are running: their ids."""
        assert await asyncio.to_thread(comes, lambda: len(self.processes()) == number), self.processes()
        return self.processes()

    def names(self) -> list[str]:
        """The programs that run, by the names that they were started with."""
        return [_words(pid)[0] for pid in self.processes()]

    def run(self, *words: str, seconds: float = 0) -> subprocess.CompletedProcess[str]:
        """The program itself, as a user starts it in a terminal."""
        return subprocess.run(
            [self.program, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", timeout=seconds or wait_limit(),
        )  # fmt: skip


def _is(pid: int, program: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program)
    except OSError:  # gone, or not ours
        return False


def _words(pid: int) -> list[str]:
    """The words that a process was started with."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:  # gone meanwhile
        return [""]


async def is_gone(pid: int) -> None:
    """Wait until a process is no more."""
    assert await asyncio.to_thread(comes, lambda: not _lives(pid)), f"{pid} still runs"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def comes(holds: Callable[[], bool]) -> bool:
    """Wait until something holds that is not reported to us."""
    deadline = time.monotonic() + wait_limit()
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


G = TypeVar("G", bound=Ground)


@contextmanager
def kept_clean(made: G) -> Iterator[G]:
    """A place in which nothing is left when the block is."""
    try:
        yield made
        assert wait_until_gone(made.mark, wait_limit()), f"still running: {tree.processes_with(made.mark)}"
    finally:
        tree.kill_tree(0, made.mark)
