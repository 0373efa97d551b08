"""Start a client program with an agent behind a tap, in a home of its own, and end all of it afterwards."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from antiphon.transports import tree
from tests.interop import scenario
from tests.interop.programs import COMPILED, PROGRAMS, PeerProgram

TIMEOUT = 50.0
"""Seconds for a whole scenario: it takes two or three, and a step gives up after twenty."""


class Environment:
    """A folder to work in, a home, and an environment that is its own."""

    def __init__(self, place: Path) -> None:
        self.mark = token_hex()
        self.folder, self.home, self.log = place / "work", place / "home", place / "traffic.log"
        for folder in (self.folder, self.home, place / "tmp"):
            folder.mkdir()
        (self.folder / "notes.txt").write_text("first line\nsecond line\n", encoding="utf-8")
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
        own = {"HOME": str(self.home), "TMPDIR": str(place / "tmp"), **COMPILED}
        self.environment = tree.marked(kept | own, self.mark)

    def tapped(self, agent: tuple[str, ...]) -> list[str]:
        return [sys.executable, str(PROGRAMS / "tap.py"), str(self.log), *agent]

    def run(self, command: list[str], seconds: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", timeout=seconds, start_new_session=True,
        )  # fmt: skip

    def traffic(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


@contextmanager
def environment(place: Path) -> Iterator[Environment]:
    """Nothing that was started on it is left when it ends."""
    made = Environment(place)
    try:
        yield made
    finally:
        tree.kill_tree(0, made.mark)


class Played(NamedTuple):
    """What came of one pair."""

    seen: list[scenario.Seen]
    traffic: str
    logged: str


def play(on: Environment, client: PeerProgram, agent: PeerProgram) -> Played:
    done = on.run([*client.client, str(on.folder), *on.tapped(agent.agent)])
    return Played(scenario.read(done.stdout), on.traffic(), done.stderr)
