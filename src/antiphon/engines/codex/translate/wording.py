"""How things are put into words: paths as the user knows them, titles on one line, command lines without the shell around them."""

import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from antiphon.protocol import v1

__all__ = [
    "LONGEST_TITLE", "absolute", "command_line", "file_uri", "one_line", "seconds", "shell_line", "shown", "shown_text", "title",
    "without_colours",
]  # fmt: skip

LONGEST_TITLE: Final = 200
"""Characters of a title; what is longer ends in an ellipsis."""

_SPACES: Final = re.compile(r"[\s\x00-\x1f\x7f]+")
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[ -/]*[0-~]"
)
_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_WINDOWS_SHELLS: Final = frozenset({"cmd", "powershell", "pwsh"})
_RUN_THIS: Final = frozenset({"-c", "-lc", "-cl", "-ic", "-ilc", "-lic", "-command", "/c"})


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """The text on one line, cut if it is long."""
    line = _SPACES.sub(" ", text[: longest * 8]).strip()
    if len(line) > longest or (len(text) > longest * 8 and line):
        line = line[: longest - 1].rstrip() + "…"
    return line.encode("utf-8", "replace").decode("utf-8")


def title(verb: str, what: str | None, *more: str) -> str:
    """`Edit src/a.py and 2 more files`: what it is about may be long, and what follows still gets its place."""
    tail = "".join(f" {word}" for word in more if word)
    room = max(LONGEST_TITLE - len(verb) - len(tail) - 1, 40)
    return one_line(f"{verb} {one_line(what, room)}{tail}" if what else f"{verb}{tail}")


def absolute(path: str, cwd: str) -> str:
    """Where a path leads, seen from the session's directory."""
    return posixpath.normpath(posixpath.join(cwd, path))


def shown(path: str, cwd: str) -> str:
    """A path as the user knows it: relative where it is inside the session's directory."""
    full = absolute(path, cwd)
    home = posixpath.normpath(cwd) if cwd else ""
    if home and full == home:
        return "."
    inside = home if home.endswith("/") else f"{home}/"
    return full[len(inside) :] if home not in ("", "/") and full.startswith(inside) else full


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


def without_colours(text: str) -> str:
    """The text without what only a terminal understands."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def seconds(milliseconds: int) -> str:
    """`1.5 s`."""
    return f"{milliseconds / 1000:.3g} s"


def shown_text(text: str) -> v1.ContentItem:
    """Text as content of a call."""
    return v1.ContentItem(content=v1.TextBlock(text=text))
