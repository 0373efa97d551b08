"""What was in a file before Codex changes it: its diffs hold the changed lines alone."""

import os
from typing import Final

__all__ = ["LARGEST", "text_before"]

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file that is shown whole. Of a larger one only the changed lines are."""


def text_before(path: str) -> str | None:
    """The text of a file; None if it cannot be read, is too large, or is none."""
    try:
        if os.stat(path).st_size > LARGEST:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None
