"""Where Codex works in a test: a place and a home of its own, and a model on loopback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.engines.codex.model.server import Model, serving
from tests.engines.codex.model.steps import CodexCalls
from tests.engines.model.steps import Json
from tests.engines.places import Ground, kept_clean
from tests.engines.places import Place as AnyPlace

__all__ = ["KEY", "Place", "place"]

KEY: Final = "a-key-of-no-account"

SETTINGS: Final = """\
model = "{model}"
check_for_update_on_startup = false
{top}
[model_providers.choir]
name = "choir"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "CHOIR_API_KEY"
request_max_retries = {retries}
stream_max_retries = {retries}

[analytics]
enabled = false

[tools.update_plan]
enabled = true

[features]
plugins = false
apps = false
remote_plugin = false
tool_suggest = false
{features}

{tables}
"""
"""Loopback only, no telemetry, and short timeouts for a model that fails."""


SANDBOX: Final = "[sandbox_workspace_write]"
NOTHING_SHARED: Final = f"\n{SANDBOX}\nexclude_slash_tmp = true\n"
"""Else its sandbox makes a `.git` in `/tmp` to protect it, and for every directory below, that is a repository."""

USUAL: Final = {"model": "gpt-5.5", "top": 'model_provider = "choir"', "features": "", "tables": "", "retries": 1}


class Place(AnyPlace):
    """A place, with Codex and its model."""

    engine, title, variable = "codex", "Codex", "CODEX_EXECUTABLE"
    calls = CodexCalls()
    model: Model

    def __init__(self, path: Path, model: Model, program: Path, version: str, beside: Ground | None = None) -> None:
        super().__init__(path, program, version, beside)
        self.model = model
        self.codex_home = self.home / ".codex"
        self.codex_home.mkdir()
        self.environment |= {"CODEX_HOME": str(self.codex_home), "CHOIR_API_KEY": KEY}
        self.settings()

    def settings(self, **changed: object) -> None:
        """What the user wrote into Codex's own `config.toml`."""
        written = SETTINGS.format_map({**USUAL, "address": self.model.address, **changed})
        written += "" if SANDBOX in written else NOTHING_SHARED
        (self.codex_home / "config.toml").write_text(written, encoding="utf-8")

    def processes(self) -> list[int]:
        """The ids of the servers. Codex starts itself for other things too, and is for a moment what it forks."""
        found = super().processes()
        return [pid for pid in found if "app-server" in _words(pid) and _parent(pid) not in found]

    def contexts(self) -> dict[str, list[Json]]:
        """How each turn of each thread was set up, as Codex has written it down."""
        found: dict[str, list[Json]] = {}
        for path in sorted(self.codex_home.glob("sessions/*/*/*/rollout-*.jsonl")):
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            found[path.stem[-36:]] = [line["payload"] for line in lines if line["type"] == "turn_context"]
        return found

    def results(self) -> list[str]:
        return self.model.last.results

    def lets_everything_run(self) -> None:
        self.settings(top='model_provider = "choir"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"')

    def signs_out(self) -> None:
        self.wants_login()

    async def keeps(self, words: str) -> None:
        """Codex writes everything down before it answers."""

    def talks_in_a_terminal(self, words: str) -> None:
        done = self.run("exec", "--skip-git-repo-check", words)
        assert done.returncode == 0 and f"echo: {words}" in done.stdout, done.stderr

    def wants_login(self) -> None:
        """The model's provider is OpenAI itself, and there is no login."""
        self.settings(top=f'model_provider = "openai"\nopenai_base_url = "{self.model.address}/v1"')


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:  # gone
        return []


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:  # gone
        return None


@contextmanager
def place(path: Path, program: Path, version: str) -> Iterator[Place]:
    """A place in which nothing is left when the block is."""
    with serving() as model, kept_clean(Place(path, model, program, version)) as made:
        yield made
