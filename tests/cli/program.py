"""`antiphon run` as a real program: in a directory of its own, with its own state and settings, in a pipe or on a terminal."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from tests import prepared
from tests.cli.terminal import Terminal
from tests.client.script import Agent
from tests.limits import limit

ROOT = Path(__file__).resolve().parents[2]
NO_ENGINES = {"CLAUDE_CODE_EXECUTABLE": "/not/here/claude", "CODEX_EXECUTABLE": "/not/here/codex"}
"""A machine without Claude Code and Codex, whatever is installed beside the tests: who names no agent gets the demo."""


@dataclass(frozen=True)
class Done:
    """How it ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.out.splitlines()]

    @property
    def result(self) -> dict[str, Any]:
        *_, last = self.events
        assert last["type"] == "result"
        return last

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


class Place:
    """A directory to run in."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        (self.cwd / "README.md").write_text("# A place to sing\n", encoding="utf-8")
        self.log = folder / "heard.log"
        self.state = folder / "state"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "ANTIPHON_STATE_DIR": str(self.state),
            "ANTIPHON_CONFIG_DIR": str(folder / "config"),
            **NO_ENGINES,
        }

    def configure(self, text: str) -> None:
        """Write the user's config file."""
        path = Path(self.env["ANTIPHON_CONFIG_DIR"]) / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "antiphon", "run", *words]

    def policy(self, *words: str) -> str:
        """What `antiphon policy` prints here."""
        done = prepared.run("policy", *words, cwd=self.cwd, env=self.env, timeout=limit())
        done.check_returncode()
        return done.stdout.decode()

    def agent(self, kind: type[Agent]) -> str:
        """The command of a scripted agent, as `--agent` takes it."""
        return shlex.join([sys.executable, "-S", "-m", kind.__module__, kind.__name__, str(self.log)])

    @property
    def received(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()

    def run(self, *words: str, line: str | bytes | None = None, env: dict[str, str] | None = None) -> Done:
        """Run it in a pipe, to its end."""
        data = line.encode() if isinstance(line, str) else line
        done = prepared.run("run", *words, cwd=self.cwd, env={**self.env, **(env or {})}, input=data, timeout=limit())
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str, stdin: int | IO[bytes] = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """Start it in a pipe."""
        return subprocess.Popen(
            self.words(*words), cwd=self.cwd, env=self.env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def terminal(self, *words: str, env: dict[str, str] | None = None, **streams: int) -> Terminal:
        """Start it on a terminal."""
        return Terminal(self.words(*words), cwd=self.cwd, env={**self.env, **(env or {})}, **streams)


def ended(program: "subprocess.Popen[bytes]") -> Done:
    """Wait for its end."""
    out, err = program.communicate(timeout=limit())
    return Done(program.returncode, out.decode(), err.decode())
