"""Where Claude Code works in a test: a place of its own, and a model on loopback."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.engines.claude.model.server import Model, listening
from tests.engines.claude.model.steps import ClaudeCalls
from tests.engines.places import Ground, agent_command, comes, is_gone, kept_clean
from tests.engines.places import Place as AnyPlace

__all__ = ["AGENT", "BY_SUBSCRIPTION", "HERMETIC", "Place", "is_gone", "place"]

AGENT: Final = agent_command("claude")

HERMETIC: Final = {
    "ANTHROPIC_API_KEY": "a-key-of-no-account",
    "BUN_JSC_useGC": "0",  # its runtime collects garbage for a sixth of the start, and no session here lasts long enough to need it
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
"""Loopback only, no telemetry, and short timeouts for a model that fails."""

BY_SUBSCRIPTION: Final = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "a-token-of-no-account"}
"""Instead of a key: as a user with a subscription, which has limits."""


class Place(AnyPlace):
    """A place, with Claude Code and its model."""

    engine, title, variable = "claude", "Claude Code", "CLAUDE_CODE_EXECUTABLE"
    calls = ClaudeCalls()
    model: Model

    def __init__(self, path: Path, model: Model, program: Path, version: str, beside: Ground | None = None) -> None:
        super().__init__(path, program, version, beside)
        self.model = model
        self.environment |= {"ANTHROPIC_BASE_URL": model.address, **HERMETIC}

    def settings(self, **settings: Any) -> None:
        """What the user wrote into the settings of Claude Code."""
        folder = self.home / ".claude"
        folder.mkdir(exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def own_command(self, name: str, description: str, prompt: str) -> None:
        """Add a slash command of the user's own."""
        file = self.home / ".claude" / "commands" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ndescription: {description}\n---\n{prompt}\n", encoding="utf-8")

    def trust(self) -> None:
        """The user has confirmed that the folder can be trusted: before that, older versions go by no rules of a project."""
        trusted = {"projects": {str(self.folder): {"hasTrustDialogAccepted": True}}}
        (self.home / ".claude.json").write_text(json.dumps(trusted), encoding="utf-8")

    def make_repository(self) -> None:
        """Turn the folder into a git repository."""
        self.git("init", "--quiet")

    def results(self) -> list[str]:
        return self.model.last.result_texts

    def lets_everything_run(self) -> None:
        self.environment["IS_SANDBOX"] = "1"  # where also root may do without questions
        self.settings(permissions={"defaultMode": "bypassPermissions"})

    def signs_out(self) -> None:
        del self.environment["ANTHROPIC_API_KEY"]

    def talks_in_a_terminal(self, words: str) -> None:
        done = self.run("-p", words)
        assert done.returncode == 0 and f"echo: {words}" in done.stdout, done.stderr

    @property
    def projects(self) -> Path:
        """Where Claude Code keeps its sessions."""
        return self.home / ".claude" / "projects"

    async def keeps(self, words: str) -> None:
        """Wait until Claude Code has written these words down, which it does a little later."""
        assert await asyncio.to_thread(comes, lambda: any(words in text for text in self._written())), words

    def _written(self) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self.projects.rglob("*.jsonl")]


@contextmanager
def place(path: Path, program: Path, version: str) -> Iterator[Place]:
    """A place in which nothing is left when the block is."""
    with listening() as model, kept_clean(Place(path, model, program, version)) as made:
        yield made
