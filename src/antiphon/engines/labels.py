"""How things are put into words: paths as the user knows them, titles on one line, sizes that people read."""

import posixpath
import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec import UNSET

from antiphon import text as texts
from antiphon.protocol import v1
from antiphon.text import exact, strip_ansi

__all__ = [
    "LONGEST_TITLE",
    "TITLE_LENGTH",
    "absolute_path",
    "as_object",
    "exact",
    "free_name",
    "line_number",
    "one_line",
    "prose",
    "sentence",
    "shown_path",
    "shown_text",
    "title",
    "title_of",
]

LONGEST_TITLE: Final = 200
"""Characters of a title; what is longer ends in an ellipsis."""

LAST_LINE: Final = 0xFFFF_FFFF
"""The largest number of a line that every client can read: the protocol gives it 32 bits."""

_GAPS: Final = re.compile(r"[ \t\n]+")
_SPACES: Final = re.compile(r"\s+")


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """A command, a path or an address on one line, cut if it is long, with nothing in it that is invisible."""
    return _cut(_GAPS.sub(" ", exact(text[: longest * 8])).strip(), longest, more=len(text) > longest * 8)


def sentence(text: str, longest: int = LONGEST_TITLE) -> str:
    """Words on one line, cut if they are long. Their spaces and joiners are a matter of language."""
    return _cut(_SPACES.sub(" ", prose(text[: longest * 8])).strip(), longest, more=len(text) > longest * 8)


def prose(text: str) -> str:
    """Words of a program, without colours and without anything that turns them around."""
    return texts.prose(strip_ansi(text).encode("utf-8", "replace").decode("utf-8"))


def _cut(line: str, longest: int, *, more: bool) -> str:
    return line[: longest - 1].rstrip() + "…" if len(line) > longest or (more and line) else line


def title(verb: str, what: str | None, *more: str) -> str:
    """`Read src/a.py (from line 3)`: what it is about may be long, and what follows still gets its place."""
    tail = "".join(f" {word}" for word in more if word)
    room = max(LONGEST_TITLE - len(verb) - len(tail) - 1, 40)
    return one_line(f"{verb} {one_line(what, room)}{tail}" if what else f"{verb}{tail}")


def as_object(raw: Any, name: str = "output") -> Any:
    """A raw output as an object: clients of an older schema drop an update in which it is text or a list."""
    if raw is None or raw is UNSET:
        return UNSET
    return raw if isinstance(raw, dict) else {name: raw}


def absolute_path(path: str, cwd: str) -> str:
    """Where a path leads, seen from the session's directory."""
    return posixpath.normpath(posixpath.join(cwd, path))


def shown_path(path: str, cwd: str) -> str:
    """A path as the user knows it: relative where it is inside the session's directory."""
    full = absolute_path(path, cwd)
    home = posixpath.normpath(cwd) if cwd else ""
    if home and full == home:
        return "."
    inside = home if home.endswith("/") else f"{home}/"
    return full[len(inside) :] if home not in ("", "/") and full.startswith(inside) else full


def line_number(line: int | None) -> int | None:
    """A line of a file, if there can be one with this number."""
    return None if line is None or line > LAST_LINE else max(line, 1)


def shown_text(text: str) -> v1.ContentItem:
    """Text as content of a call."""
    return v1.ContentItem(content=v1.TextBlock(text=text))


# --- The title of a session, as long as nobody gives it a better one: the first thing that the user said, in one line

TITLE_LENGTH: Final = 80


def title_of(text: str) -> str | None:
    """One line of it; None if there are no words."""
    return sentence(text, TITLE_LENGTH) or None


# --- Names of MCP servers, which become parts of the names of tools

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def free_name(name: str, taken: Iterable[str]) -> str:
    """A name that programs and models can say, and that nobody else has."""
    safe = _UNSAFE.sub("_", name).strip("_") or "server"
    used, number, free = set(taken), 2, safe
    while free in used:
        free, number = f"{safe}-{number}", number + 1
    return free
