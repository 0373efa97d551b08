"""The file of a database: its permissions, its durability, its tables brought up to date, and the lock of its directory.

Rule 1: several processes of ours may open, migrate and write one file at the same moment. What makes that safe: a rollback journal
(not WAL), every writing transaction takes its lock at the start, and a process that finds the file locked waits its turn.
Rule 2: a process that is to be the only one has the directory locked for itself alone (`DirectoryLock`), and its files use a
write-ahead log: a commit is one sync instead of three. Others share the lock of the directory, so neither can begin beside the other.
With two writing processes a write-ahead log can lose pages in SQLite before 3.51.3 (sqlite.org/wal.html, the WAL-reset bug).
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias, TypeVar

from antiphon.config.places import make_private_directory
from antiphon.errors import LocalProtocolError
from antiphon.store.errors import DirectoryInUse, StoreError

__all__ = ["DirectoryLock", "Migration", "begin", "commit", "copy_of", "open_file"]

T = TypeVar("T")
Migration: TypeAlias = Sequence[str]
"""Statements that bring a file from one version to the next. Its place in the list is the version it starts from."""

BUSY_TIMEOUT: Final = 0.02
"""Seconds that SQLite itself waits for a lock. Short, because its pauses grow to 100 ms and a process that sleeps long is overtaken by
others; we ask again until `LOCK_PATIENCE` is used up."""

LOCK_PATIENCE: Final = 30.0
"""Seconds until a locked file is an error. A commit takes milliseconds, so by then another process is stopped or stuck."""

WAL_KEPT: Final = 64 * 1024 * 1024
"""Bytes that the write-ahead log may keep on the disk after its pages went into the file."""

_creating = threading.Lock()


class DirectoryLock:
    """A directory whose databases only this process opens. It is released by `release`, or when the process ends.

    Raises:
        DirectoryInUse: another process has it, or a database in it is open.
        StoreError: it cannot be made or locked.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            make_private_directory(directory)
            self._descriptor = _locked(directory, fcntl.LOCK_EX)
        except BlockingIOError:
            raise DirectoryInUse(directory) from None
        except OSError as error:
            raise StoreError(f"`{directory}` cannot be locked: {error.strerror}", hint=_ELSEWHERE) from error

    @property
    def held(self) -> bool:
        """Whether it was not released yet."""
        return self._descriptor >= 0

    def release(self) -> None:
        """Let others open it. Close its databases first."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def check(self, path: Path) -> None:
        """Raise if it does not cover this file."""
        if not self.held or path.parent.resolve() != self.directory.resolve():
            raise LocalProtocolError(f"the lock of `{self.directory}` does not cover `{path}`, or was released")

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_ELSEWHERE: Final = "check the permissions, or choose another directory"


def _locked(directory: Path, how: int) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class _FileConnection(sqlite3.Connection):
    """A connection to a database, and the share in the lock of its directory that it holds as long as it is open."""

    descriptor = -1

    def close(self) -> None:
        """Close the file, then release the share."""
        super().close()
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _share(connection: _FileConnection, directory: Path) -> None:
    try:
        connection.descriptor = _locked(directory, fcntl.LOCK_SH)
    except BlockingIOError:
        raise DirectoryInUse(directory) from None
    except (
        OSError
    ):  # a directory that cannot be read, or a file system without such locks: then no process can have it alone
        pass


def open_file(path: Path, migrations: Sequence[Migration], lock: DirectoryLock | None = None) -> sqlite3.Connection:
    """Return a connection to a file whose tables are those of `migrations`. The caller begins and ends its transactions.

    With the lock of its directory the file has a write-ahead log.

    Raises:
        DirectoryInUse: another process has the directory for itself alone.
        StoreError: it cannot be made, or was written by a newer version.
    """
    if lock is not None:
        lock.check(path)
    try:
        _make_private(path)
    except OSError as error:
        hint = "check the permissions, or choose another directory with ANTIPHON_STATE_DIR"
        raise StoreError(f"`{path}` cannot be made: {error.strerror}", hint=hint) from error
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, factory=_FileConnection)
    try:
        if lock is None:
            _share(connection, path.parent)
        # TRUNCATE: the emptied journal is synced, so a commit survives a power cut; with DELETE the directory would have to be, too.
        mode = "TRUNCATE" if lock is None else "WAL"
        _patiently(lambda: connection.execute(f"PRAGMA journal_mode = {mode}").fetchone())
        if lock is not None:
            connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT}")
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
    """Copy the file as it is, beside itself. Runs under the lock of a migration, which lets others read and not write."""
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
                with suppress(PermissionError):  # it belongs to another user, who lets us write
                    path.chmod(0o600)


def _patiently(attempt: Callable[[], T]) -> T:
    """Try until the lock is free, or `LOCK_PATIENCE` is used up."""
    give_up = monotonic() + LOCK_PATIENCE
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > give_up:
                raise
