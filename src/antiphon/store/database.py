"""One SQLite file, one thread of ours that uses it, and group commit. Knows no tables: those come with the migrations.

Jobs are plain functions of the connection, done in the order in which they were given. Those that wait together share one
transaction, and so one wait for the disk; each has a savepoint of its own, so one that fails takes nothing of its neighbours along.
A job has its result after the commit: then it is on the disk. A job touches nothing but the connection: what
SQLite has undone is done again.
"""

import asyncio
import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

from antiphon.errors import AcpError, fresh
from antiphon.store.errors import StoreError, explained
from antiphon.store.file import DirectoryLock, Migration, begin, commit, open_file

__all__ = ["Database"]

T = TypeVar("T")
_log = logging.getLogger(__name__)

MAX_GROUP: Final = 1000
"""Jobs that share a transaction. Beyond this the wait for the disk is a small part of the whole, and others want the lock."""


EXIT_LIMIT: Final = 2.0
"""Seconds that a thread may take at the exit of the program to finish what waits."""

_open: "weakref.WeakSet[Database]" = weakref.WeakSet()


class _Job(Generic[T]):
    """Something to do, and what came of it. Without `call` it only marks a place in the queue."""

    __slots__ = ("call", "error", "future", "last", "result", "writes")

    def __init__(
        self, call: Callable[[Connection], T] | None, future: "asyncio.Future[T] | None", *, writes: bool, last: bool
    ) -> None:
        self.call = call
        self.future = future
        self.writes = writes
        self.last = last
        self.result: Any = None
        self.error: Exception | None = None

    def settle(self) -> None:
        """Give the result to the future. On the loop's thread."""
        if self.future is None or self.future.done():
            return  # not waited for, or not any more
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


_AnyJob: TypeAlias = _Job[Any]


class Database:
    """A file of tables, shared with other processes. Opened with the first job; `async with` opens it at once and closes it.

    It belongs to one event loop: call it from there. With the `lock` of its directory no other process opens it, and it has a
    write-ahead log: commits are faster, and readers do not wait for them.
    """

    def __init__(self, path: Path | str, migrations: Sequence[Migration], *, lock: DirectoryLock | None = None) -> None:
        self._lock = lock
        self.path = Path(path)
        self._migrations = migrations
        self._queue: SimpleQueue[_AnyJob] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None  # the thread's alone
        self._lost: Exception | None = None  # the first failure of a posted job that was not raised yet
        self._closed = False

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

    async def run(self, job: Callable[[Connection], T]) -> T:
        """Do a job that writes. It is on the disk when this returns; a caller that stops waiting does not undo it.

        Raises:
            StoreError: the file cannot be used, with a hint; or whatever the job raised.
        """
        return await self._ask(job, writes=True)

    async def read(self, job: Callable[[Connection], T]) -> T:
        """Do a job that only reads: it sees every job given before it, and does not wait for writers elsewhere."""
        return await self._ask(job, writes=False)

    def post(self, job: Callable[[Connection], object]) -> None:
        """Do a job that writes without waiting for it. If it fails that is logged, and raised by the next `flush`."""
        self._put(_Job(job, None, writes=True, last=False))

    async def flush(self) -> None:
        """Wait until everything given so far is on the disk; raise the first failure of what was posted."""
        if self._thread is not None and not self._closed:
            await self._ask(None, writes=False)
        self._raise_lost()

    async def close(self) -> None:
        """Finish what waits and let the file go. Raises like `flush`."""
        thread = self._thread
        if thread is not None and not self._closed:
            end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._put(_Job(None, end, writes=False, last=True))
            self._closed = True
            await end
            thread.join()  # the job above was its last
        self._closed = True
        self._raise_lost()

    async def _ask(self, call: Callable[[Connection], T] | None, *, writes: bool) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(call, future, writes=writes, last=False))
        return await future

    def _put(self, job: _AnyJob) -> None:
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
            self._queue.put(_Job(None, None, writes=False, last=True))
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

    def _next_group(self) -> list[_AnyJob]:
        """Wait for a job, and take along what waits behind it."""
        group = [self._queue.get()]
        try:
            while len(group) < MAX_GROUP and not group[-1].last:
                group.append(self._queue.get_nowait())
        except Empty:
            pass
        return group

    def _transact(self, jobs: Sequence[_AnyJob]) -> None:
        if not jobs:
            return
        try:
            connection = self._connection = self._connection or open_file(self.path, self._migrations, self._lock)
            writes = any(job.writes for job in jobs)
            begin(connection, writes=writes, path=self.path, version=len(self._migrations))
            if all(self._do(connection, job) for job in jobs):
                commit(connection)
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

    def _do(self, connection: Connection, job: _AnyJob) -> bool:
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

    def _let_go(self) -> None:
        """After a failure of the file start afresh: closing undoes what was begun and frees every lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _resolve(self, group: Sequence[_AnyJob]) -> None:
        waiting: dict[asyncio.AbstractEventLoop, list[_AnyJob]] = {}
        for job in group:
            if job.future is not None:
                waiting.setdefault(job.future.get_loop(), []).append(job)
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


def _settle(jobs: Sequence[_AnyJob]) -> None:
    for job in jobs:
        job.settle()
