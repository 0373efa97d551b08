"""One SQLite file, one thread of ours that uses it, and group commit. Knows no tables: those come with the migrations.

Jobs are plain functions of the connection, done in the order in which they were given. Those that wait together share one
transaction, and so one wait for the disk; each has a savepoint of its own, so one that fails takes nothing of its neighbours along.
A job has its result after the commit: then it is on the disk. A job touches nothing but the connection: what
SQLite has undone is done again.

Rule 1: several processes of ours may open, migrate and write one file at the same moment. What makes that safe: a rollback journal
(not WAL), every writing transaction takes its lock at the start, and a process that finds the file locked waits its turn.
Rule 2: a process that is to be the only one has the directory locked for itself alone (`DirectoryLock`), and its files use a
write-ahead log: a commit is one sync instead of three. Others share the lock of the directory, so neither can begin beside the other.
With two writing processes a write-ahead log can lose pages in SQLite before 3.51.3 (sqlite.org/wal.html, the WAL-reset bug).
"""

import asyncio
import atexit
import fcntl
import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

import msgspec

from antiphon.config.directories import make_private_directory
from antiphon.errors import AcpError, LocalProtocolError, fresh
from antiphon.store.errors import DirectoryInUse, StoreError, explained

__all__ = ["Database", "DirectoryLock", "Migration", "copy_of", "stamp", "utc_now"]

T = TypeVar("T")
_log = logging.getLogger(__name__)

Migration: TypeAlias = Sequence[str]
"""Statements that bring a file from one version to the next. Its place in the list is the version it starts from."""

# Times as they are stored: UTC in ISO 8601, all of one width, so that the order of the texts is the order in time.


utc_now: Final = partial(datetime.now, UTC)
"""The time, with its zone."""


def stamp(moment: datetime) -> str:
    """A moment as text, such as `2026-01-02T03:04:05.000000Z`."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone, such as `datetime.now(UTC)`")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


# The file: its permissions, its durability, its tables brought up to date, and the lock of its directory.

BUSY_TIMEOUT: Final = 0.02
"""Seconds that SQLite itself waits for a lock. Short, because its pauses grow to 100 ms and a process that sleeps long is overtaken by
others; we ask again until `LOCK_TIMEOUT` is used up."""

LOCK_TIMEOUT: Final = 30.0
"""Seconds until a locked file is an error. A commit takes milliseconds, so by then another process is stopped or stuck."""

WAL_KEPT: Final = 64 * 1024 * 1024
"""Bytes that the write-ahead log may keep on the disk after its pages went into the file."""

WAL_PAGES: Final = 4096
"""Pages of the write-ahead log from which a commit moves them into the file, while what arrives has to wait. SQLite's own
1000 are reached several times a second by 200 busy sessions; four times as many hold a page that changes often four times, and move it once."""

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


def open_file(path: Path, migrations: Sequence[Migration], lock: DirectoryLock | None = None) -> Connection:
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
        hint = "check the permissions, or choose another directory: ANTIPHON_STATE_DIR, or `--data` of a gateway"
        raise StoreError(f"`{path}` cannot be made: {error.strerror}", hint=hint) from error
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, factory=_FileConnection)
    try:
        if lock is None:
            _share(connection, path.parent)
        # TRUNCATE: the emptied journal is synced, so a commit survives a power cut; with DELETE the directory would have to be, too.
        mode = "TRUNCATE" if lock is None else "WAL"
        _retry_while_locked(connection, f"PRAGMA journal_mode = {mode}")
        if lock is not None:
            connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection, path, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


VERSION: Final = "PRAGMA user_version"
"""How many migrations the file has seen. To read it is what takes a reader's lock."""


def _migrate(connection: Connection, path: Path, migrations: Sequence[Migration]) -> None:
    newest = len(migrations)
    if _retry_while_locked(connection, VERSION) == newest:
        return
    # Only under the lock is it known what is left to do: another process may be doing it now.
    found = _retry_while_locked(connection, "BEGIN IMMEDIATE", VERSION)
    try:
        if found > newest:
            raise _newer(path, found, newest)
        if 0 < found < newest:
            _keep_copy(path, found)
        for migration in migrations[found:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        _retry_while_locked(connection, "COMMIT")
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
        hint = "free some space on its disk, or choose another directory: ANTIPHON_STATE_DIR, or `--data` of a gateway"
        raise StoreError(
            f"`{path}` cannot be brought up to date: no copy could be made ({error})", hint=hint
        ) from error


def _newer(path: Path, found: int, known: int) -> StoreError:
    hint = "update this Antiphon and start it again, or give it a directory of its own: ANTIPHON_STATE_DIR, or `--data` of a gateway"
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


def _retry_while_locked(connection: Connection, *statements: str) -> Any:
    """Execute statements until the lock is free, or `LOCK_TIMEOUT` is used up; return what the last one gives. A try that fails undoes
    the transaction that it began."""
    give_up = monotonic() + LOCK_TIMEOUT
    outside = not connection.in_transaction
    while True:
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            row = cursor.fetchone()
            return row and row[0]
        except sqlite3.Error as error:
            if outside and connection.in_transaction:
                connection.execute("ROLLBACK")
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > give_up:
                raise


# The thread that uses it.

MAX_GROUP: Final = 1000
"""Jobs that share a transaction. Beyond this the wait for the disk is a small part of the whole, and others want the lock."""


EXIT_LIMIT: Final = 2.0
"""Seconds that a thread may take at the exit of the program to finish what waits."""

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()


class _Job(msgspec.Struct, eq=False):
    """Something to do, and what came of it. Without `call` it only marks a place in the queue."""

    call: "Callable[[Connection], Any] | None"
    alone: "Callable[[Connection], Any] | None" = None
    """Does the same in a transaction of its own."""
    future: "asyncio.Future[Any] | None" = None
    """Gets the result; None: nothing waits for it."""
    then: "Callable[[Any, Exception | None], None] | None" = None
    """Is called with the result, within the turn of the loop in which it is known."""
    writes: bool = False
    empties_log: bool = False
    last: bool = False
    result: Any = None
    error: Exception | None = None


class Database:
    """A file of tables, shared with other processes. Opened with the first job; `async with` opens it at once and closes it.

    It belongs to one event loop: call it from there. With the `lock` of its directory no other process opens it, and it has a
    write-ahead log: commits are faster, and readers do not wait for them.
    """

    def __init__(self, path: Path | str, migrations: Sequence[Migration], *, lock: DirectoryLock | None = None) -> None:
        self._lock = lock
        self.path = Path(path)
        self._migrations = migrations
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None  # the thread's alone
        self._lost: Exception | None = None  # the first failure of a posted job that was not raised yet
        self._log_is_to_be_emptied = False
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None  # of those that gave a function to call

    async def __aenter__(self) -> Self:
        try:
            await self.read(lambda _: None)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def run(self, job: Callable[[Connection], T], *, empties_log: bool = False) -> T:
        """Do a job that writes. It is on the disk when this returns; a caller that stops waiting does not undo it.

        `empties_log`: a write-ahead log is emptied then, so that what the job deleted is not in it any more.

        Raises:
            StoreError: the file cannot be used, with a hint; or whatever the job raised.
        """
        return await self.submit(job, empties_log=empties_log)

    def submit(self, job: Callable[[Connection], T], *, empties_log: bool = False) -> "asyncio.Future[T]":
        """Do a job that writes, like `run`. The future is done after the commit."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(job, future=future, writes=True, empties_log=empties_log))
        return future

    def submit_then(
        self,
        job: Callable[[Connection], T],
        then: Callable[[T | None, Exception | None], None],
        *,
        alone: Callable[[Connection], T] | None = None,
    ) -> None:
        """Do a job that writes, and call `then` with its result or its error after the commit. It must not raise.

        `alone` does the same in a transaction of its own, such as one statement, and is called instead where no other job waits and no
        other process has the file: each statement around it would be a change of threads. If a constraint fails or the file is locked
        it has done nothing, and the job is done.
        """
        self._loop = self._loop or asyncio.get_running_loop()
        self._put(_Job(job, alone, then=then, writes=True))

    async def read(self, job: Callable[[Connection], T]) -> T:
        """Do a job that only reads: it sees every job given before it, and does not wait for writers elsewhere."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(job, future=future))
        return await future

    def post(self, job: Callable[[Connection], object]) -> None:
        """Do a job that writes without waiting for it. If it fails that is logged, and raised by the next `flush`."""
        self._put(_Job(job, writes=True))

    async def flush(self) -> None:
        """Wait until everything given so far is on the disk; raise the first failure of what was posted."""
        if self._thread is not None and not self._closed:
            here: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._put(_Job(None, future=here))
            await here
        self._raise_lost()

    async def close(self) -> None:
        """Finish what waits and let the file go. Raises like `flush`."""
        thread = self._thread
        if thread is not None and not self._closed:
            end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._put(_Job(None, future=end, last=True))
            self._closed = True
            await end
            thread.join()  # the job above was its last
        self._closed = True
        self._raise_lost()

    def _put(self, job: _Job) -> None:
        if self._closed:
            raise StoreError(f"`{self.path}` was closed: open it again to use it")
        self._queue.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"store {self.path.name}", daemon=True)
            self._thread.start()
            _open.add(self)

    def _raise_lost(self) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            raise lost

    def _finish(self) -> None:
        """Have the thread end, for a program that exits without closing, or whose `close` was cancelled."""
        if self._thread is not None:
            self._queue.put(_Job(None, last=True))
            self._thread.join(EXIT_LIMIT)

    # The thread's side.

    def _work(self) -> None:
        last = False
        while not last:
            group = self._next_group()
            last = group[-1].last
            self._transact([job for job in group if job.call is not None])
            if last and self._connection is not None:
                self._connection.close()
            self._resolve(group)

    def _next_group(self) -> list[_Job]:
        """Wait for a job, and take along what waits behind it."""
        group = [self._queue.get()]
        try:
            while len(group) < MAX_GROUP and not group[-1].last:
                group.append(self._queue.get_nowait())
        except Empty:
            pass
        return group

    def _transact(self, jobs: Sequence[_Job]) -> None:
        if not jobs:
            return
        try:
            connection = self._connection = self._connection or open_file(self.path, self._migrations, self._lock)
            if self._done_alone(connection, jobs):
                self._empty_log(connection)
                return
            found = _retry_while_locked(
                connection, "BEGIN IMMEDIATE" if any(job.writes for job in jobs) else "BEGIN", VERSION
            )
            if found != len(self._migrations):
                raise _newer(self.path, found, len(self._migrations))
            if all(self._do(connection, job) for job in jobs):
                _retry_while_locked(connection, "COMMIT")  # on the disk then; readers may hold it up for a moment
                self._log_is_to_be_emptied |= any(job.empties_log for job in jobs)
                self._empty_log(connection)
                return
        except Exception as error:  # the error belongs to the callers that wait, and the thread goes on
            self._let_go()
            reason = explained(error, self.path)
            for job in jobs:
                if job.error is None:
                    job.error = fresh(reason) if isinstance(reason, AcpError) else reason
                    job.error.__cause__ = reason.__cause__
            return
        for job in jobs:  # SQLite has undone the neighbours of one that failed: each on its own, then
            if job.error is None:
                self._transact([job])

    def _done_alone(self, connection: Connection, jobs: Sequence[_Job]) -> bool:
        """Do a job in a transaction of its own. False: nothing is done, and the job is to be done among others."""
        if len(jobs) > 1 or jobs[0].alone is None or self._lock is None:
            return False
        try:
            jobs[0].result = jobs[0].alone(connection)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_BUSY):
                raise
            return False
        return True

    def _do(self, connection: Connection, job: _Job) -> bool:
        """Do one job in its savepoint. False: it failed, and SQLite has undone the whole transaction, as when the disk is full."""
        if job.call is None:
            return True
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.call(connection)
        except Exception as error:  # the job's own failure
            job.error = explained(error, self.path)
            if not connection.in_transaction:
                return False
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return True

    def _empty_log(self, connection: Connection) -> None:
        """Empty the write-ahead log, if it is to be. If a reader is in the way it is done after a later commit."""
        if self._log_is_to_be_emptied:
            try:
                self._log_is_to_be_emptied = bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            except sqlite3.Error as error:  # what was stored stays stored
                _log.warning("the log of `%s` could not be emptied: %s", self.path, error)

    def _let_go(self) -> None:
        """After a failure of the file start afresh: closing undoes what was begun and frees every lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _resolve(self, group: Sequence[_Job]) -> None:
        waiting: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in group:
            if job.future is not None:
                waiting.setdefault(job.future.get_loop(), []).append(job)
            elif job.then is not None and self._loop is not None:
                waiting.setdefault(self._loop, []).append(job)
            elif job.error is not None:
                _log.error("something could not be stored: %s", job.error)
                self._lost = self._lost or job.error
        for loop, jobs in waiting.items():
            try:
                loop.call_soon_threadsafe(_settle, jobs)  # once for all: each call wakes the loop through a pipe
            except RuntimeError:
                _log.debug("the loop was closed before %d jobs were done", len(jobs))


def _finish_all() -> None:
    """End every thread before the interpreter does: a daemon thread that is inside SQLite then crashes the program."""
    for database in list(_open):
        database._finish()


atexit.register(_finish_all)


def _settle(jobs: Sequence[_Job]) -> None:
    """Give the results to those that still wait. On the loop's thread."""
    for job in jobs:
        if job.then is not None:
            job.then(job.result if job.error is None else None, job.error)
        if job.future is None or job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
