"""Environment variables that change how programs show things, and not what they run: an allow-list of names and plain values."""

import re
from typing import Final

__all__ = ["is_harmless", "is_local"]

_HARMLESS: Final = frozenset({
    "CARGO_TERM_COLOR", "CGO_ENABLED", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "DEBIAN_FRONTEND", "DEBUG", "FORCE_COLOR",
    "GIT_TERMINAL_PROMPT", "GOARCH", "GOOS", "LANG", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LINES", "LOG_LEVEL", "NODE_ENV",
    "NO_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8", "RUST_BACKTRACE", "RUST_LOG", "TERM",
    "TZ", "VERBOSE",
})  # fmt: skip
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:=+@ *-]*")

_USUAL_SHELLS: Final = frozenset({"/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh"})
"""What `SHELL` may be set to: those are where a program would look by itself."""

_PAGERS: Final = frozenset({"GIT_PAGER", "PAGER"})

_LOCAL: Final = re.compile(r"[a-z][a-z0-9_]*")
_TIED: Final = frozenset(
    {
        "cdpath",
        "fignore",
        "fpath",
        "histchars",
        "mailpath",
        "manpath",
        "module_path",
        "path",
        "prompt",
        "psvar",
        "watch",
    }
)
"""Names in small letters that mean something to zsh."""


def is_harmless(name: str, value: str) -> bool:
    """Whether a program runs the same things with this variable as without it."""
    if name == "SHELL":
        return value in _USUAL_SHELLS
    if name in _PAGERS:
        return value in ("", "cat")
    return name in _HARMLESS and _PLAIN.fullmatch(value) is not None


def is_local(name: str) -> bool:
    """Whether this is a name as scripts use for variables of their own. Programs obey names in capitals."""
    return _LOCAL.fullmatch(name) is not None and name not in _TIED
