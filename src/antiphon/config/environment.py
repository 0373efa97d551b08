"""The environment of the programs that we start: the user's own, without the keys of other engines. The one table of these keys.

A key in the environment is readable by every program in it and by all that these start. So an engine gets its own keys, and an agent
that is not known gets those of no engine: the user's config file may give them to it (`[agents.NAME] env`).
"""

import os
from collections.abc import Collection, Mapping
from typing import Final

__all__ = ["AUTO_RESUME", "GIT_SAFETY", "OWNERS", "TOKEN", "environment_for", "harmless_git", "owner_of", "sets_auto_resume", "with_new_sessions"]  # fmt: skip

AUTO_RESUME: Final = "ANTIPHON_AUTO_RESUME"
"""The variable that decides whether the first `session/new` of a client goes on with its last session. Also read as `BANJO_AUTO_RESUME`."""

TOKEN: Final = "ANTIPHON_TOKEN"  # noqa: S105 - its name
"""The variable with the token for a remote agent. No program that we start gets it."""

OWNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("ANTHROPIC_", "CLAUDE_", "CLAUDECODE"),
    "codex": ("OPENAI_", "CODEX_", "AZURE_OPENAI_"),
    "gemini": ("GEMINI_",),
    "mistral": ("MISTRAL_",),
    "moonshot": ("MOONSHOT_", "KIMI_"),
    "qwen": ("DASHSCOPE_", "QWEN_"),
    "github": ("GITHUB_COPILOT_", "COPILOT_"),
    "remote": (TOKEN,),
}
"""The owner of the variables that begin with these prefixes."""

GIT_SAFETY: Final = {"core.fsmonitor": "false", "safe.bareRepository": "explicit"}
"""Settings of git under which looking at a repository runs nothing that the repository names. Claude Code and Codex ask git how
things stand when they start, before the user has trusted anything."""


HOMES: Final = ("CLAUDE_CONFIG_DIR", "CODEX_HOME")
"""Variables that name a directory of an engine's own."""


def sets_auto_resume(environment: Mapping[str, str]) -> bool:
    """Whether an environment sets auto-resume."""
    return any(environment.get(name, "").strip() for name in (AUTO_RESUME, AUTO_RESUME.replace("ANTIPHON_", "BANJO_")))


def with_new_sessions(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return an environment with auto-resume turned off, unless the user has set it."""
    return {**environment} if sets_auto_resume(environment) else {**environment, AUTO_RESUME: "false"}


def owner_of(variable: str) -> str | None:
    """Return the engine that a variable belongs to; None if it belongs to none."""
    return next((owner for owner, words in OWNERS.items() if variable.startswith(words)), None)


def environment_for(
    owners: str | Collection[str], environment: Mapping[str, str] = os.environ, own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a program with the keys of these owners, and its own variables."""
    owners = (owners,) if isinstance(owners, str) else owners
    kept = {name: value for name, value in environment.items() if (owner_of(name) or "") in ("", *owners)}
    # Programs are started in the home directory or in a session's, where a relative path would mean another directory.
    kept |= {name: os.path.abspath(os.path.expanduser(kept[name])) for name in HOMES if kept.get(name)}
    return {**kept, **(own or {})}


def harmless_git(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with safe settings for git, which override git's own files."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdigit() else 0
    changed = dict(environment)
    for number, (key, value) in enumerate(GIT_SAFETY.items(), first):
        changed |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return changed | {"GIT_CONFIG_COUNT": str(first + len(GIT_SAFETY))}
