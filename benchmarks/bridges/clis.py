"""The CLIs behind the bridges: where they are, and what limits their network to the model."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Final

from benchmarks.workloads import Engine

_KEY: Final = "a-key-of-no-account"


@dataclass(frozen=True, slots=True)
class Cli:
    """One of them."""

    package: str
    """What brings it along: the name to import."""
    inside: str
    """Where it is in there."""
    chosen: str
    """The variable that names another one."""
    named: tuple[str, ...]
    """The variables by which the bridges are given which one to drive."""
    furnish: Callable[[Path, str], dict[str, str]]
    """Given its home and the model's address: make it ready, and say what belongs into its environment."""

    def program(self) -> Path | None:
        """Find the one that both bridges are to drive."""
        if chosen := os.environ.get(self.chosen):
            return Path(chosen)
        spec = util.find_spec(self.package)
        program = Path(spec.origin).parent / self.inside if spec is not None and spec.origin else None
        return program if program is not None and program.exists() else None


def _for_claude(home: Path, address: str) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": _KEY,
        "ANTHROPIC_BASE_URL": address,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


_CODEX_SETTINGS: Final = """\
model = "gpt-5.5"
model_provider = "bench"
check_for_update_on_startup = false

[model_providers.bench]
name = "bench"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "BENCH_API_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[features]
plugins = false
apps = false
remote_plugin = false
tool_suggest = false
"""


def _for_codex(home: Path, address: str) -> dict[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(_CODEX_SETTINGS.format(address=address), encoding="utf-8")
    return {"CODEX_HOME": str(folder), "BENCH_API_KEY": _KEY}


CLIS: Final[dict[Engine, Cli]] = {
    "claude": Cli("claude_agent_sdk", "_bundled/claude", "BENCH_CLAUDE", ("CLAUDE_CODE_EXECUTABLE",), _for_claude),
    "codex": Cli("codex_cli_bin", "bin/codex", "BENCH_CODEX", ("CODEX_EXECUTABLE", "CODEX_PATH"), _for_codex),
}
"""By the name of our engine for it."""
