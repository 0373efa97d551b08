"""Titles, paths and names as users and models read them: on one line, short, and with nothing invisible in them."""

import posixpath
import re
from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from antiphon import text as texts
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import exact, strip_ansi

__all__ = [
    "DENIED",
    "LONGEST_TITLE",
    "TITLE_LENGTH",
    "absolute_path",
    "as_object",
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
    """Put a command, a path or an address on one line, cut if it is long, with nothing in it that is invisible."""
    return _cut(_GAPS.sub(" ", exact(text[: longest * 8])).strip(), longest, more=len(text) > longest * 8)


def sentence(text: str, longest: int = LONGEST_TITLE) -> str:
    """Put prose on one line, cut if it is long. Its spaces and joiners are a matter of language."""
    return _cut(_SPACES.sub(" ", prose(text[: longest * 8])).strip(), longest, more=len(text) > longest * 8)


def prose(text: str) -> str:
    """Return the text of a program without colours and without signs that change the direction of writing."""
    return texts.prose(strip_ansi(text).encode("utf-8", "replace").decode("utf-8"))


def _cut(line: str, longest: int, *, more: bool) -> str:
    return line[: longest - 1].rstrip() + "…" if len(line) > longest or (more and line) else line


def title(verb: str, what: str | None, *more: str) -> str:
    """Return a title like `Read src/a.py (from line 3)`, in which a long middle part leaves room for the end."""
    tail = "".join(f" {word}" for word in more if word)
    space = max(LONGEST_TITLE - len(verb) - len(tail) - 1, 40)
    return one_line(f"{verb} {one_line(what, space)}{tail}" if what else f"{verb}{tail}")


def as_object(raw: object, name: str = "output") -> object:
    """Return a raw output as an object: clients of an older schema drop an update in which it is text or a list."""
    if raw is None or raw is UNSET:
        return UNSET
    return raw if isinstance(raw, dict) else {name: raw}


def absolute_path(path: str, cwd: str) -> str:
    """Return the absolute path of one that is relative to the session's directory."""
    return posixpath.normpath(posixpath.join(cwd, path))


def shown_path(path: str, cwd: str) -> str:
    """Return a path as the user knows it: relative where it is inside the session's directory."""
    full = absolute_path(path, cwd)
    home = posixpath.normpath(cwd) if cwd else ""
    if home and full == home:
        return "."
    inside = home if home.endswith("/") else f"{home}/"
    return full[len(inside) :] if home not in ("", "/") and full.startswith(inside) else full


def line_number(line: int | None) -> int | None:
    """Return the number of a line, if there can be one with this number."""
    return None if line is None or line > LAST_LINE else max(line, 1)


DENIED: Final[JsonObject] = {"antiphon": {"denied": True}}
"""In `_meta` of a failed call: it was not allowed. A client shows that, also when the session is loaded again."""


def shown_text(text: str) -> v1.ContentItem:
    """Return text as content of a tool call."""
    return v1.ContentItem(content=v1.TextBlock(text=text))


TITLE_LENGTH: Final = 80
"""Characters of the title of a session."""


def title_of(text: str) -> str | None:
    """Return the title of a session that begins with this text; None if there are no words."""
    return sentence(text, TITLE_LENGTH) or None


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for an MCP server that can be part of the name of a tool, and that no other server has."""
    safe = _UNSAFE.sub("_", name).strip("_") or "server"
    used, number, free = set(taken), 2, safe
    while free in used:
        free, number = f"{safe}-{number}", number + 1
    return free
