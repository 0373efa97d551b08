"""What a CLI told us last time, so that a session can be offered before the CLI has started. A hint, never the truth.

It may be missing, old or damaged at any time, and nothing here fails because of that: who uses it is corrected by the CLI itself.
"""

import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.config.places import make_private_directory, state_dir

__all__ = ["Remembered", "SessionSettings", "notes_folder", "read_notes", "write_notes"]

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of notes that are read. What a CLI tells of itself has some kilobytes."""

VERSIONS: Final = 8
"""Versions of one CLI that are remembered. Some programs have a new one every day."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_log = logging.getLogger(__name__)


class Remembered:
    """What one version of a CLI told: a JSON object, in a file of its own."""

    def __init__(self, name: str, version: str, folder: Path | None = None) -> None:
        self._folder = folder or notes_folder()
        self._family = f"{_safe(name)}-told-"
        self.path = self._folder / f"{self._family}{_safe(version)}.json"

    def load(self) -> dict[str, Any] | None:
        """What was told, if we know it."""
        return read_notes(self.path)

    def save(self, told: Mapping[str, Any]) -> None:
        """Remember this instead of what was told before. Nothing is written if it is the same."""
        if read_notes(self.path) != told and write_notes(self.path, told):
            self._forget_old()

    def _forget_old(self) -> None:
        with suppress(OSError):
            mine = [path for path in self._folder.iterdir() if path.name.startswith(self._family)]
            mine.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in mine[:-VERSIONS]:
                path.unlink()


class SessionSettings:
    """What was chosen in one session of a CLI that forgets it: setting → value."""

    def __init__(self, session_id: str, folder: Path | None = None) -> None:
        self.path = (folder or notes_folder()) / "sessions" / f"{_safe(session_id)}.json"

    def load(self) -> dict[str, str]:
        """What was chosen, as far as we know."""
        notes = read_notes(self.path) or {}
        return {name: value for name, value in notes.items() if isinstance(value, str)}

    def save(self, chosen: Mapping[str, str]) -> None:
        """Remember this instead."""
        write_notes(self.path, chosen)

    def forget(self) -> None:
        """Remember nothing."""
        with suppress(OSError):
            self.path.unlink()


def notes_folder() -> Path:
    """Where the notes about CLIs are."""
    return state_dir() / "engines"


def read_notes(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is none that can be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
        notes = msgspec.json.decode(data) if len(data) <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    return notes if isinstance(notes, dict) else None


def write_notes(path: Path, notes: Mapping[str, Any]) -> bool:
    """Put a JSON object into a file that only the user can read, at one stroke. False: it could not be written."""
    beside = path.with_name(f".{os.urandom(8).hex()}")
    try:
        data = msgspec.json.encode(dict(notes))
        make_private_directory(path.parent)
        fd = os.open(beside, _NEW, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        _log.debug("%s cannot be written: %s", path, error)
        return False
    return True


def _safe(word: str) -> str:
    """A part of a file's name, whatever a program calls its version."""
    return re.sub(r"[^A-Za-z0-9.+_-]", "-", word)[:80]
