"""How `claude` is started: its command line and its environment, as values. No I/O."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from antiphon.config.environment import environment_for, harmless_git
from antiphon.engines.claude.history.records import VARIABLE, config_dir

__all__ = ["EDIT_HOOKS", "HOOKS", "Launch", "command_of", "environment_of", "may_bypass"]

STREAMING: Final = (
    "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json",
    "--include-partial-messages", "--permission-prompt-tool", "stdio",
)  # fmt: skip
"""A conversation in JSON lines, with every token as it comes, and with questions instead of refusals."""

UNTRUSTED: Final = ("--setting-sources", "user", "--strict-mcp-config")
"""In a project that is not trusted: no settings, hooks, commands, agents or skills of the project or a directory above it, and no MCP
servers but those of the session."""

HOOKS: Final = {"PreToolUse": [{"matcher": "*", "hookCallbackIds": ["antiphon-rules"]}]}
"""What it is told once it runs, where a policy has to be kept: ask us before each tool."""

EDIT_HOOKS: Final = {
    "PreToolUse": [{"matcher": "Bash|Edit|MultiEdit|NotebookEdit|Write", "hookCallbackIds": ["antiphon-rules"]}]
}
"""The same where there is no policy: ask us before each tool that may write a file which names programs to run."""

_NESTED: Final = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID")
"""What Claude Code tells its own children. We may be one of them; the program that we start is not."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is started for. None means: as the user's own settings have it."""

    program: str
    cwd: str = ""
    """Where it works."""
    conversation: str
    """The id that it writes under."""
    source: str | None = None
    """The conversation that it goes on with, if any: the same one, or another that it then copies."""
    directories: Sequence[str] = ()
    servers: str | None = None
    """The file that names the MCP servers."""
    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    settings: str | None = None
    """More settings, as JSON: they count beside the user's own."""
    trusted: bool = False
    """Whether the settings, hooks and MCP servers of the project count. Without that, only the user's own do."""
    bypass: bool = False
    """Whether the mode without questions may be chosen later."""


def command_of(launch: Launch) -> list[str]:
    """The words of the command line."""
    words = [launch.program, *STREAMING]
    if launch.source is None:
        words += ["--session-id", launch.conversation]
    else:
        words += ["--resume", launch.source]
        if launch.source != launch.conversation:
            words += ["--fork-session", "--session-id", launch.conversation]
    if launch.bypass:
        words.append("--allow-dangerously-skip-permissions")
    for flag, value in (
        ("--mcp-config", launch.servers),
        ("--settings", launch.settings),
        ("--permission-mode", launch.mode),
        ("--model", launch.model),
        ("--effort", launch.effort),
    ):
        if value is not None:
            words += [flag, value]
    directories = list(launch.directories)
    if not launch.trusted:
        words += UNTRUSTED
        # Named as one more directory, its CLAUDE.md is read as text; the settings beside it are not.
        directories = list(dict.fromkeys([*directories, launch.cwd])) if launch.cwd else directories
    if directories:
        words += ["--add-dir", *directories]
    return words


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's own, so that keys, proxies and settings are where they are in a terminal, without the keys of other engines."""
    theirs = harmless_git(environment_for("claude", environment))
    ours = {name: value for name, value in theirs.items() if name not in _NESTED}
    ours.setdefault("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1")
    ours.setdefault("CLAUDE_CODE_ENABLE_TODO_TOOLS", "1")  # without them there is no plan to show
    if ours.get(VARIABLE):  # the child works elsewhere, and a name without a root would mean another directory there
        ours[VARIABLE] = str(config_dir(ours))
    return ours


def may_bypass(environment: Mapping[str, str]) -> bool:
    """Whether the CLI would start at all with that mode on offer: as root only inside a sandbox."""
    return os.geteuid() != 0 or environment.get("IS_SANDBOX") == "1"  # the one word that it takes for yes
