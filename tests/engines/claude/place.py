"""Where Claude Code works in a test: a folder, a home, a place for temporary files, all its own, and a model on loopback.

Nothing of the machine's environment reaches it but the way to the programs, and nothing may be left running there.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from antiphon.transports import tree
from tests.engines.claude.model.server import Model, listening

__all__ = ["AGENT", "BY_SUBSCRIPTION", "Place", "is_gone", "place"]

AGENT: Final = (sys.executable, "-P", "-m", "antiphon", "agent", "--engine", "claude")

GRACE: Final = 10.0
"""Seconds in which everything has to be gone by itself. What is still there then is ended, and the test has failed."""

HERMETIC: Final = {
    "ANTHROPIC_API_KEY": "a-key-of-no-account",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
"""Loopback only, nothing told to anybody, and no long patience with a model that fails."""

BY_SUBSCRIPTION: Final = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "a-token-of-no-account"}
"""Instead of a key: as somebody with a subscription, whose use has limits."""


class Place:
    """A place, with the program that works there."""

    def __init__(self, path: Path, model: Model, program: Path, version: str) -> None:
        self.model = model
        self.version = version
        self.program = program
        self.mark = token_hex()
        self.home, self.folder, self.tools = path / "home", path / "work", path / "tools"
        for folder in (self.home, self.folder, self.tools, path / "tmp"):
            folder.mkdir()
        self.environment = tree.marked(
            {
                "PATH": f"{self.tools}:/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self.home),
                "TMPDIR": str(path / "tmp"),
                "LANG": "C.UTF-8",
                "ANTHROPIC_BASE_URL": model.address,
                "CLAUDE_CODE_EXECUTABLE": str(program),
                "ANTIPHON_STATE_DIR": str(path / "state"),
                "ANTIPHON_CONFIG_DIR": str(path / "config"),
                "PYTHONDONTWRITEBYTECODE": "1",
                **HERMETIC,
            },
            self.mark,
        )

    # What is there.

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def configure(self, text: str) -> None:
        """The user's `config.toml`."""
        folder = Path(self.environment["ANTIPHON_CONFIG_DIR"])
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text, encoding="utf-8")

    def settings(self, **settings: Any) -> None:
        """What the user wrote into the settings of Claude Code."""
        folder = self.home / ".claude"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def trust(self) -> None:
        """The user has said that the folder can be trusted: before that, older versions go by no rules of a project."""
        trusted = {"projects": {str(self.folder): {"hasTrustDialogAccepted": True}}}
        (self.home / ".claude.json").write_text(json.dumps(trusted), encoding="utf-8")

    def make_repository(self) -> None:
        """Turn the folder into a git repository."""
        git = shutil.which("git")
        assert git is not None
        subprocess.run([git, "init", "--quiet", str(self.folder)], env=self.environment, check=True)

    @property
    def projects(self) -> Path:
        """Where Claude Code keeps its sessions."""
        return self.home / ".claude" / "projects"

    async def keeps(self, words: str) -> None:
        """Wait until Claude Code has written these words down, which it does a little later."""
        assert await asyncio.to_thread(_comes, lambda: any(words in text for text in self._written())), words

    def _written(self) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self.projects.rglob("*.jsonl")]

    # Who runs there.

    def processes(self) -> list[int]:
        """The ids of the running Claude Codes."""
        return [pid for pid in tree.processes_with(self.mark) if _is(pid, self.program)]

    async def runs(self, number: int) -> list[int]:
        """Wait until so many Claude Codes are running: their ids."""
        assert await asyncio.to_thread(_comes, lambda: len(self.processes()) == number), self.processes()
        return self.processes()

    def run(self, *words: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
        """Claude Code itself, as somebody uses it in a terminal."""
        return subprocess.run(
            [self.program, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", timeout=seconds,
        )  # fmt: skip


def _is(pid: int, program: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program)
    except OSError:  # gone, or not ours
        return False


async def is_gone(pid: int) -> None:
    """Wait until a process is no more."""
    assert await asyncio.to_thread(_comes, lambda: not _lives(pid)), f"{pid} still runs"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _comes(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold that nobody tells us of."""
    deadline = time.monotonic() + GRACE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def place(path: Path, program: Path, version: str) -> Iterator[Place]:
    """A place in which nothing is left when the block is."""
    with listening() as model:
        made = Place(path, model, program, version)
        try:
            yield made
            assert tree.wait_until_gone(made.mark, GRACE), f"still running: {tree.processes_with(made.mark)}"
        finally:
            tree.kill_tree(0, made.mark)
