"""Files that Codex changes: their text before, because its diffs hold the changed lines alone, and the directories that they need."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

__all__ = ["LARGEST", "NewDirectories", "text_before"]

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of a file that is shown whole. Of a larger one only the changed lines are."""


_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def text_before(path: str) -> str | None:
    """Return the text of a file; None if it cannot be read, is too large, or is no text. Never waits: the path is the model's, and may be a pipe."""
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


class NewDirectories:
    """Directories of files that an allowed change adds.

    Codex applies a change that was allowed in a sandbox which may write the directories of the files, and makes none: in a read-only
    sandbox a file in a new directory fails (0.163 and 0.166), in the user's `default` mode too. So they are made here.
    """

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, files: Iterable[str]) -> None:
        """Make the missing directories of these files."""
        for file in files:
            missing = []
            directory = os.path.dirname(file)
            while directory and not os.path.lexists(directory):
                missing.append(directory)
                directory = os.path.dirname(directory)
            for each in reversed(missing):
                try:
                    os.mkdir(each)
                except (OSError, ValueError):  # the change fails, and says why
                    break
                self._made.append(each)

    def remove_empty(self) -> None:
        """Remove the directories in which no file was made."""
        for directory in reversed(self._made):
            with suppress(OSError):  # it has something in it
                os.rmdir(directory)
        self._made.clear()
