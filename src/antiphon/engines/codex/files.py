"""What was in a file before Codex changes it: its diffs hold the changed lines alone."""

import os
import stat
from typing import Final

__all__ = ["LARGEST", "text_before"]

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file that is shown whole. Of a larger one only the changed lines are."""


_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def text_before(path: str) -> str | None:
    """The text of a file; None if it cannot be read, is too large, or is none. Never waits: the path is the model's, and may be a pipe."""
    try:
        descriptor = os.open(path, _OPEN)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                found = file.read(LARGEST + 1)  # what it says of its size need not be true
        finally:
            os.close(descriptor)
        return found.decode() if len(found) <= LARGEST else None
    except (OSError, ValueError):
        return None
