"""How Codex's own things are put into words: command lines without the shell around them, addresses of files."""

import re
import shlex
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

__all__ = ["command_line", "file_uri", "seconds", "shell_line"]

_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_WINDOWS_SHELLS: Final = frozenset({"cmd", "powershell", "pwsh"})
_RUN_THIS: Final = frozenset({"-c", "-lc", "-cl", "-ic", "-ilc", "-lic", "-command", "/c"})


def file_uri(path: str) -> str:
    """The address of a file."""
    return path if "://" in path else "file://" + quote(path if path.startswith("/") else f"/{path}", errors="replace")


def command_line(command: str) -> str:
    """What was really asked for: `/bin/bash -lc 'ls -l'` → `ls -l`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return _inner(words) or command


def shell_line(words: Sequence[str]) -> str:
    """The same of a command that comes word by word."""
    return _inner(words) or shlex.join(words)


def _inner(words: Sequence[str]) -> str | None:
    if len(words) < 3:
        return None
    program = re.split(r"[/\\]", words[0])[-1].lower().removesuffix(".exe")
    if program in _SHELLS:
        return words[2] if len(words) == 3 and words[1] in _RUN_THIS else None
    if program in _WINDOWS_SHELLS and words[-2].lower() in _RUN_THIS:
        return words[-1]
    return None


def seconds(milliseconds: int) -> str:
    """`1.5 s`."""
    return f"{milliseconds // 1000} s" if milliseconds >= 100_000 else f"{milliseconds / 1000:.3g} s"
