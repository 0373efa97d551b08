"""What `antiphon setup` has done, so that it can be undone: for each change the text before it, in files that only the user can read."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from antiphon.config.directories import make_private_directory, state_dir
from antiphon.errors import AcpError

__all__ = ["Record", "digest", "forget", "keep", "records"]

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Record(msgspec.Struct, frozen=True):
    """One change that setup has made."""

    editor: str
    name: str
    """The name of our entry there."""
    file: str
    before: str | None
    """The whole text before; None if there was no file."""
    after: str
    """The digest of the text after it."""
    made_group: bool = False
    replaced: str | None = None
    folders: tuple[str, ...] = ()
    """Directories that had to be made, the outermost first."""


def digest(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def keep(record: Record) -> Path:
    """Write a record, before the change is made.

    Raises:
        AcpError: it cannot be written.
    """
    folder = _folder()
    path = folder / f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
    try:
        make_private_directory(folder)
        with open(os.open(path, _NEW, 0o600), "wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise AcpError(
            f"{path} cannot be written, and without it nothing could be undone: {error.strerror or error}\n"
            "hint: check its permissions"
        ) from error
    return path


def records(editor: str) -> Iterator[tuple[Path, Record]]:
    """Yield the changes for an editor, the latest first. Unreadable records are skipped."""
    try:
        paths = sorted(_folder().glob("*.json"), reverse=True)
    except OSError:
        return
    for path in paths:
        with suppress(OSError, msgspec.DecodeError, ValueError):
            record = msgspec.json.decode(path.read_bytes(), type=Record)
            if record.editor == editor:
                yield path, record


def forget(path: Path) -> None:
    """Delete the record of a change."""
    path.unlink(missing_ok=True)


def _folder() -> Path:
    return state_dir() / "setup"
