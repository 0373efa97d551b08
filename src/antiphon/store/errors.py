"""What can go wrong with stored things, each with what to do about it."""

import sqlite3
from pathlib import Path
from typing import Final

from antiphon.errors import AcpError

__all__ = ["UNSAVED", "BadCursor", "DirectoryInUse", "NoSuchSession", "SessionExists", "StoreError", "explained"]


UNSAVED: Final = {"antiphon": {"unsaved": True}}
"""In `_meta` of a notice that a session is not stored, or stored again: `antiphon run --quiet` shows those, too."""


class StoreError(AcpError):
    """Something could not be stored or read."""


class NoSuchSession(StoreError):
    """Nothing is stored under this id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"there is no stored session `{id}`")
        self.id = id


class SessionExists(StoreError):
    """The id is taken."""

    def __init__(self, id: str) -> None:
        super().__init__(f"there is a stored session `{id}` already")
        self.id = id


class DirectoryInUse(StoreError):
    """Another process works in this directory, and one of the two wants it for itself alone."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"`{directory}` is in use by another Antiphon",
            hint=f"end it (`fuser {directory}` names it), or choose another directory",
        )
        self.directory = directory


class BadCursor(StoreError):
    """A cursor that we did not give."""


_REASONS: Final = {
    sqlite3.SQLITE_NOTADB: ("is not a database", "move it away, and a new one is made; nothing here deletes it"),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "`sqlite3 FILE .recover` may save what is in it; moved away, a new one is made",
    ),
    sqlite3.SQLITE_BUSY: (
        "is locked by another program",
        "end the program that holds it (`fuser FILE` names it), then try again",
    ),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "free some space on that disk"),
    sqlite3.SQLITE_READONLY: ("cannot be written", "check the permissions of the file and of its directory"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "check the permissions of the file and of its directory"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check the permissions of the file and of its directory"),
    sqlite3.SQLITE_IOERR: ("cannot be read or written: the disk gave an error", "check the disk, then try again"),
}


def explained(error: Exception, path: Path) -> Exception:
    """An error of SQLite about the file or the machine, as a sentence with a hint. Mistakes of the caller stay as they are."""
    code = getattr(error, "sqlite_errorcode", None)
    reason = _REASONS.get(code & 0xFF) if isinstance(code, int) else None  # the low byte: the rest is detail
    if reason is None:
        return error
    what, hint = reason
    better = StoreError(f"`{path}` {what} ({error})", hint=f"{hint.replace('FILE', str(path))}")
    better.__cause__ = error
    return better
