"""Addresses that a terminal opens when they are clicked (OSC 8). Terminals that do not know them show the text alone."""

import os
import re
import socket
from functools import cache
from typing import Final
from urllib.parse import quote

from rich.errors import StyleSyntaxError
from rich.style import Style

__all__ = ["file_link", "file_uri", "is_safe", "without_links"]

_SAFE: Final = re.compile(r"(?:https?|mailto|file):[!-~]+", re.IGNORECASE)
"""Addresses that become links: of schemes that a browser or a mail program opens, and of visible ASCII alone."""

_LINK: Final = re.compile("\x1b\\]8;[^\x07\x1b]*\x1b\\\\")


@cache
def _host() -> str:
    return socket.gethostname()


def file_uri(path: str, cwd: str) -> str:
    """Return the address of a file. It names the host: over ssh a terminal knows then that the file is not its own."""
    return f"file://{quote(_host())}{quote(os.path.normpath(os.path.join(cwd or '/', path)), errors='replace')}"


def file_link(path: str, cwd: str, style: str = "") -> Style:
    """Return the style of a path that can be clicked."""
    return _parsed(style) + Style(link=file_uri(path, cwd))


def is_safe(url: str) -> bool:
    """Whether an address may become a link."""
    return _SAFE.fullmatch(url) is not None


def _parsed(style: str) -> Style:
    try:
        return Style.parse(style)
    except StyleSyntaxError:
        return Style.null()


def without_links(line: str) -> str:
    """Return a painted line without its links: where lines are drawn again and again, cells cannot carry them."""
    return _LINK.sub("", line) if "\x1b]8" in line else line
