"""Names of MCP servers, which become parts of the names of tools."""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["free_name"]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def free_name(name: str, taken: Iterable[str]) -> str:
    """A name that programs and models can say, and that nobody else has."""
    safe = _UNSAFE.sub("_", name).strip("_") or "server"
    used, number, free = set(taken), 2, safe
    while free in used:
        free, number = f"{safe}-{number}", number + 1
    return free
