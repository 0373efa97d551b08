"""What a link in a prompt points to: a file or a folder, perhaps some lines of it, or something elsewhere. Pure; reads nothing.

Editors write the lines in many ways: `#L42`, `#L42:50`, `#L42-50`, `#L42-L50`, with columns (`#L42C3-L50C1`), or `?line=42`. Lines are
counted from 1 and both ends belong to it.
"""

import os
import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

__all__ = ["Place", "place_of"]

_LINES: Final = re.compile(r"^L?(\d{1,9})(?:C\d+)?(?:(?::|-|\.\.)L?(\d{1,9})(?:C\d+)?)?$")
_WINDOWS: Final = re.compile(r"^/?([A-Za-z]:[\\/].*|\\\\.+)$")
"""A path with a drive or a share: it means something to the client, and nothing here."""


class Place(msgspec.Struct, frozen=True):
    """Where a link leads on the client's machine."""

    path: str
    first: int | None = None
    last: int | None = None
    symbol: str | None = None
    """What stands in those lines, where the editor says so."""

    @property
    def is_folder(self) -> bool:
        """Whether the link itself says that it is one."""
        return self.path.endswith(("/", "\\"))

    @property
    def count(self) -> int | None:
        """How many lines; None for all."""
        return None if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def lines(self) -> str:
        """The lines in words, or nothing."""
        if self.first is None:
            return ""
        return f"line {self.first}" if self.last == self.first else f"lines {self.first}-{self.last}"


def place_of(uri: str, cwd: str) -> Place | None:
    """What a link means as a file or folder; None if it leads anywhere else."""
    if _WINDOWS.match(uri):  # its drive would read as a scheme
        path, _, fragment = uri.partition("#")
        return _place(path, fragment, {}, cwd)
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    query = parse_qs(parts.query)
    match parts.scheme:
        case "file" if parts.netloc in ("", "localhost"):
            return _place(unquote(parts.path), parts.fragment, query, cwd)
        case "" if not parts.netloc:
            return _place(unquote(parts.path), parts.fragment, query, cwd)
        case "zed" if "path" in query:  # zed:///agent/selection?path=…#L5:15
            return _place(query["path"][0], parts.fragment, query, cwd)
        case _:
            return None


def _place(path: str, fragment: str, query: dict[str, list[str]], cwd: str) -> Place | None:
    if not path or "\0" in path:
        return None
    first, last = _lines(fragment) or _lines(query.get("line", [""])[0]) or (None, None)
    return Place(_absolute(path, cwd), first, last, query.get("symbol", [None])[0])


def _lines(words: str) -> tuple[int, int] | None:
    if (found := _LINES.match(words)) is None:
        return None
    first = int(found[1])
    ends = sorted((max(first, 1), max(int(found[2] or first), 1)))
    return ends[0], ends[1]


def _absolute(path: str, cwd: str) -> str:
    if windows := _WINDOWS.match(path):
        return windows[1]
    folder = "/" if path.endswith("/") else ""
    return os.path.normpath(os.path.join(cwd, path)).rstrip("/") + folder or "/"
