"""The adapters of others for the CLIs, kept to version 2 of ACP: claude-agent-acp by its own switch, codex-acp by `pinned.py`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.engines.claude import place as claude
from tests.engines.claude import versions as claude_versions
from tests.engines.claude.model.steps import Call as ClaudeCall
from tests.engines.claude.model.steps import Fail as ClaudeFail
from tests.engines.codex import place as codex
from tests.engines.codex import versions as codex_versions
from tests.engines.codex.model.steps import Call as CodexCall
from tests.engines.codex.model.steps import Fail as CodexFail
from tests.engines.places import Place
from tests.thirdparty.agents import BINARIES, BRIDGE, HERE, NODE

__all__ = ["NAMES", "Adapter", "adapter"]

NAMES: Final = ("claude-agent-acp", "codex-acp")
PINNED: Final = (sys.executable, str(HERE / "pinned.py"), "2")
CHOICES: Final = [{"label": "Alto", "description": "low"}, {"label": "Soprano", "description": "high"}]
QUESTION: Final = {"question": "Which voice?", "header": "Voice", "options": CHOICES}
WRONG: Final = (400, "invalid_request_error", "no such chord")


class Adapter:
    """An adapter behind a bridge, in a place with its CLI and a model."""

    def __init__(self, name: str, at: Place, question: object, failure: object) -> None:
        self.name = name
        self.at = at
        self.question = question
        """Makes the CLI ask the user `Which voice?`, Alto or Soprano."""
        self.failure = failure
        """An error of the model that is not tried again."""
        self._script: dict[str, tuple[Any, ...]] = {}
        at.model.choose = self._choose

    def script(self, prompt: str, *steps: Any) -> None:
        """Set the answer to a prompt. An adapter asks the model for things of its own too, so it is found by the prompt."""
        self._script[prompt] = steps

    def _choose(self, asked: Any) -> tuple[Any, ...] | None:
        return self._script.get(asked.prompt) if asked.is_prompt else None


@contextmanager
def adapter(name: str, path: Path) -> Iterator[Adapter]:
    """One of them, which an editor of version 1 can start."""
    versions = claude_versions if name == "claude-agent-acp" else codex_versions
    version = claude_versions.NEW if name == "claude-agent-acp" else codex_versions.PYPI
    program, cli = BINARIES / name, versions.program(version)
    if not program.exists() or cli is None:
        pytest.skip(f"{name} is not installed: npm could not install the agents of tests/thirdparty")
    if name == "claude-agent-acp":
        with claude.place(path, cli, version) as at:
            at.agent = (*BRIDGE, str(NODE), str(program))
            at.environment |= {"CLAUDE_AGENT_ACP_PROTOCOL": "v2"}
            question = ClaudeCall("AskUserQuestion", {"questions": [{**QUESTION, "multiSelect": False}]})
            yield Adapter(name, at, question, ClaudeFail(*WRONG))
    else:
        with codex.place(path, cli, version) as there:
            there.agent = (*BRIDGE, *PINNED, str(NODE), str(program))
            there.environment |= {"CODEX_PATH": str(cli)}
            asks = CodexCall("request_user_input", {"questions": [{**QUESTION, "id": "voice"}]})
            yield Adapter(name, there, asks, CodexFail(*WRONG))
