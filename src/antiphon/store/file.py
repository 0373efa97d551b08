"""Opens the file: who may read it, how durable it is, and its tables brought up to date. Runs on the database's own thread.

Several processes of ours may open, migrate and write one file at the same moment. What makes that safe: a rollback journal (not WAL),
every writing transaction takes its lock at the start, and whoever finds the file locked waits its turn.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias, TypeVar

from antiphon.config.places import make_private_directory
from antiphon.store.errors import StoreError

__all__ = ["Migration", "begin", "commit", "copy_of", "open_file"]

T = TypeVar("T")
Migration: TypeAlias = Sequence[str]
"""Statements that bring a file from one version to the next. Its place in the list is the version it starts from."""

BUSY_TIMEOUT: Final = 0.02
"""Seconds that SQLite itself waits for a lock. Short, because its pauses grow to 100 ms and whoever sleeps long is overtaken by those
who do not; we ask again until `LOCK_PATIENCE` is used up."""

LOCK_PATIENCE: Final = 30.0
"""Seconds until a locked file is an error. A commit takes milliseconds, so by then somebody is stopped or stuck."""

_creating = threading.Lock()


def open_file(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """A connection to a file whose tables are those of `migrations`. The caller begins and ends its transactions."""
    try:
        _make_private(path)
    except OSError as error:
        hint = "check the permissions, or choose another directory with ANTIPHON_STATE_DIR"
        raise StoreError(f"`{path}` cannot be made: {error.strerror}", hint=hint) from error
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
    try:
        # TRUNCATE: the emptied journal is synced, so a commit survives a power cut; with DELETE the directory would have to be, too.
        _patiently(lambda: connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone())
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection, path, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def begin(connection: sqlite3.Connection, *, writes: bool, path: Path, version: int | None) -> int:
    """Begin a transaction with the lock it needs, and return the file's version. Another one than expected is an error."""

    def attempt() -> int:
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            return version_of(connection)  # reading is what takes a reader's lock
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise

    found = _patiently(attempt)
    if version is not None and found != version:
        connection.execute("ROLLBACK")
        raise _newer(path, found, version)
    return found


def commit(connection: sqlite3.Connection) -> None:
    """End the transaction; it is on the disk when this returns. Readers may hold it up for a moment."""
    _patiently(lambda: connection.execute("COMMIT"))


def version_of(connection: sqlite3.Connection) -> int:
    """How many migrations the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    newest = len(migrations)
    if _patiently(lambda: version_of(connection)) == newest:
        return
    # Only under the lock is it known what is left to do: another process may be doing it now.
    found = begin(connection, writes=True, path=path, version=None)
    try:
        if found > newest:
            raise _newer(path, found, newest)
        if 0 < found < newest:
            _keep_copy(path, found)
        for migration in migrations[found:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        commit(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def copy_of(path: Path, version: int) -> Path:
    """Return where the copy of a file is kept that had its tables in `version`."""
    return path.with_name(f"{path.stem}-version-{version}{path.suffix}")


def _keep_copy(path: Path, version: int) -> None:
    """Copy the file as it is, beside itself. Runs under the lock of a migration, which lets others read and nobody write."""
    copy = copy_of(path, version)
    half = copy.with_name(f"{copy.name}.half")  # a copy that was cut short never has the name of a whole one
    try:
        half.unlink(missing_ok=True)
        os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(half)) as target:
            source.backup(target)
        half.replace(copy)
    except (OSError, sqlite3.Error) as error:
        hint = "make room on its disk, or choose another directory with ANTIPHON_STATE_DIR"
        raise StoreError(
            f"`{path}` cannot be brought up to date: no copy could be made ({error})", hint=hint
        ) from error


def _newer(path: Path, found: int, known: int) -> StoreError:
    hint = "update this Antiphon and start it again, or give it a directory of its own with ANTIPHON_STATE_DIR"
    return StoreError(
        f"`{path}` was written by a newer Antiphon (its tables are version {found}, we know {known})", hint=hint
    )


def _make_private(path: Path) -> None:
    """Make directory and file for the user alone."""
    make_private_directory(path.parent)
    # One thread at a time: closing a descriptor of the file would drop the locks of a connection that this process has to it.
    with _creating:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            if path.is_file() and path.stat().st_mode & 0o077:
                with suppress(PermissionError):  # somebody else's, who lets us write
                    path.chmod(0o600)


def _patiently(attempt: Callable[[], T]) -> T:
    """Try until nobody else holds the lock, or patience is used up."""
    give_up = monotonic() + LOCK_PATIENCE
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > give_up:
                raise
