"""How things are put into words: paths as the user knows them and titles on one line."""

import posixpath
import re
from typing import Final

from antiphon.protocol import v1

__all__ = [
    "LONGEST_TITLE",
    "absolute",
    "bytes_in_words",
    "one_line",
    "shown",
    "shown_text",
    "title",
    "without_colours",
]

LONGEST_TITLE: Final = 200
"""Characters of a title; what is longer ends in an ellipsis."""

_SPACES: Final = re.compile(r"[\s\x00-\x1f\x7f]+")
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[ -/]*[0-~]"
)


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """The text on one line, cut if it is long. A half of a surrogate pair, which no message can carry, becomes a `?`."""
    line = _SPACES.sub(" ", text[: longest * 8]).strip()
    if len(line) > longest or (len(text) > longest * 8 and line):
        line = line[: longest - 1].rstrip() + "…"
    return line.encode("utf-8", "replace").decode("utf-8")


def title(verb: str, what: str | None, *more: str) -> str:
    """`Read src/a.py (from line 3)`: what it is about may be long, and what follows still gets its place."""
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


def without_colours(text: str) -> str:
    """The text without what only a terminal understands."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def bytes_in_words(count: int) -> str:
    """`39.1 kB`."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def shown_text(text: str) -> v1.ContentItem:
    """Text as content of a call."""
    return v1.ContentItem(content=v1.TextBlock(text=text))
