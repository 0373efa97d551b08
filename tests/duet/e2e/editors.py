"""Where the joint agent works in a test: one folder and one home with both Claude Code and Codex, each with a model of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.engines.claude import versions as claude_versions
from tests.engines.claude.model.server import listening
from tests.engines.claude.place import Place as ClaudePlace
from tests.engines.codex import versions as codex_versions
from tests.engines.codex.model.server import serving
from tests.engines.codex.place import Place as CodexPlace
from tests.engines.model.server import Model
from tests.engines.model.steps import Text
from tests.engines.places import JOINT, Ground, kept_clean

__all__ = ["CLAUDE", "CODEX", "Place", "missing", "place", "plain_place"]

CLAUDE: Final = claude_versions.NEW
CODEX: Final = codex_versions.PYPI


class Place(Ground):
    """Both of them. `claude` and `codex` are the place as each sees it: their models, their programs, their files.

    Every session is a new one unless a test has it otherwise: what the last one in the folder was does not count.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, JOINT)
        self.environment["ANTIPHON_AUTO_RESUME"] = "false"
        self.claude: ClaudePlace
        self.codex: CodexPlace

    def answer(self, claude: str, codex: str) -> None:
        """What each model says next."""
        self.claude.model.answers(Text(claude))
        self.codex.model.answers(Text(codex))

    def model(self, engine: str) -> Model[Any, Any]:
        """The model behind an engine."""
        models: dict[str, Model[Any, Any]] = {"claude": self.claude.model, "codex": self.codex.model}
        return models[engine]

    def resumes(self) -> None:
        """A new session goes on where the last one in the folder ended, as it does for users."""
        del self.environment["ANTIPHON_AUTO_RESUME"]

    def program(self, name: str, text: str) -> Path:
        """A program on the PATH, written as a shell script."""
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        os.chmod(path, 0o755)
        return path

    @property
    def state(self) -> Path:
        """Where Antiphon keeps what it has to remember."""
        return Path(self.environment["ANTIPHON_STATE_DIR"])


def missing() -> str:
    """What of it is not installed, in words; nothing if all is."""
    programs = {
        f"Claude Code {CLAUDE}": claude_versions.program(CLAUDE),
        f"Codex {CODEX}": codex_versions.program(CODEX),
    }
    return ", ".join(name for name, program in programs.items() if program is None)


@contextmanager
def place(path: Path) -> Iterator[Place]:
    """A place with both, in which nothing is left when the block is."""
    claude, codex = claude_versions.program(CLAUDE), codex_versions.program(CODEX)
    assert claude is not None and codex is not None
    with listening() as claude_model, serving() as codex_model, kept_clean(Place(path)) as made:
        made.claude = ClaudePlace(path, claude_model, claude, CLAUDE, made)
        made.codex = CodexPlace(path, codex_model, codex, CODEX, made)
        yield made


@contextmanager
def plain_place(path: Path) -> Iterator[Place]:
    """A place with neither: the joint agent has the demo behind it."""
    with kept_clean(Place(path)) as made:
        made.configure('[duet]\nengines = ["demo"]\n')
        yield made
