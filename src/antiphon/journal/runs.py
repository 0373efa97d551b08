"""The journal of a gateway: one row holds a run of events, and appends need not wait for each other.

One process has the file for itself alone (`store.database.DirectoryLock`), so the table of leases is in memory: with the process all of
them end. Its table of events belongs beside a table `session` that has `id` and `key`; a session of the journal is a `key` there.

Rule 1: one commit is under way at a time. What is appended meanwhile waits in memory and shares the next one, in which all events of
a session become one row, or several of about `RUN_BYTES`. Appends are done in the order of the calls.
Rule 2: the numbers are given by the thread that stores, from what is stored. An append that fails takes those behind it along that
were given for the same session before the failure was known: nothing is stored behind a gap.
Rule 3: the events of a row are joined by line ends. An event that has one itself gets a row of its own, which is never split.
Rule 4: the events of a row have one time, which their caller gave. Events of another time begin another row.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, repeat
from sqlite3 import SQLITE_CONSTRAINT_FOREIGNKEY, Connection, IntegrityError
from typing import Final, NamedTuple, TypeAlias

from antiphon.errors import AcpError, fresh
from antiphon.journal.base import PAGE, Feed, JournalEntry, Lease, StaleLease
from antiphon.store.database import Database, Migration
from antiphon.store.errors import NoSuchSession, StoreError
from antiphon.store.locks import Holder, LiveElsewhere

__all__ = ["EVENTS", "EVENT_TIMES", "RunJournal"]

RUN_BYTES: Final = 256 * 1024
"""Size from which a run is not extended: a reader of a page has to read whole runs."""

COMMIT_BYTES: Final = 8 * 1024 * 1024
"""Bytes that share a commit. The wait for the disk is a small part of it by then, and the next append waits for all of it."""

PAGE_BYTES: Final = 1024 * 1024
"""Size at which a page of `read` ends, however few entries it has."""

ROWS: Final = 64
"""Rows of one statement. The thread that stores gives the loop its turn with every statement and waits to get it back, so a statement
for each row costs more than the rows; and SQLite keeps 128 statements prepared."""

EVENTS: Final[Migration] = (
    """
    CREATE TABLE event (
        session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (session, first)
    )
    """,
)
"""The table of this journal, for the migrations of the file that it is in."""

EVENT_TIMES: Final[Migration] = ("ALTER TABLE event ADD COLUMN time REAL NOT NULL DEFAULT 0",)
"""The time of the events of a row, in seconds since 1970; 0 in rows of files that are older than this column."""

_log = logging.getLogger(__name__)

_LAST: Final = "SELECT last FROM event WHERE session = session.id ORDER BY first DESC LIMIT 1"
_FIND: Final = f"SELECT id, ({_LAST}) FROM session WHERE key = ?"  # noqa: S608
_INSERT: Final = "INSERT INTO event (session, first, last, data, time) VALUES (?, ?, ?, ?, ?)"
_INSERTS: Final = [_INSERT + ", (?, ?, ?, ?, ?)" * more for more in range(ROWS)]
"""By the number of rows, less one."""
_READ: Final = """
    SELECT first, last, data, time FROM event WHERE session = :session
    AND first >= ifnull((SELECT max(first) FROM event WHERE session = :session AND first <= :number), 0) ORDER BY first
"""


class _Stored(NamedTuple):
    """What is stored of a session: its row, and the number of the last event."""

    id: int
    last: int


Then: TypeAlias = Callable[[int, BaseException | None], None]
"""Takes the number of the last event that is stored; or the error, and then no event is."""

_Row: TypeAlias = tuple[int, int, int, bytes, float]
"""Session, number of the first event, number of the last one, data, time."""

_Times: TypeAlias = list[tuple[int, float]]
"""From which of some events on which time is theirs."""


class _Append:
    """Events that wait to be stored, and the function that their caller gave; or a job that waits its turn among them."""

    __slots__ = ("at", "events", "job", "session", "size", "then")

    def __init__(self, session: str, events: tuple[bytes, ...], then: Then, at: float = 0.0) -> None:
        self.session = session
        self.events = events
        self.then = then
        self.at = at
        self.size = sum(map(len, events))
        self.job: Callable[[Connection], object] | None = None

    def done(self, number: int, error: BaseException | None) -> None:
        """Inform the caller."""
        try:
            self.then(number, error)
        except Exception:  # those of other callers are as good as stored
            _log.exception("what follows an append to session `%s` failed", self.session)


def _into(future: "asyncio.Future[int]") -> Then:
    """Return the function that makes a future done."""

    def then(number: int, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(number)
        else:
            future.set_exception(error)

    return then


class RunJournal:
    """The sessions of one file that this process has for itself alone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: dict[str, tuple[Lease, Holder]] = {}
        self._feed = Feed(self.read)
        self._epoch = 0
        self._waiting: deque[_Append] = deque()
        self._committing = False
        self._known: dict[str, _Stored] = {}
        """What the last commit has left of each session. Nothing else writes events, so it need not be read again."""
        self._scheduled = False
        self.unstored = 0
        """Bytes that were appended and are not stored yet. A caller that reads from a fast source stops while there are many."""

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs. To ask for it is a system call each time, before Python 3.12."""
        return asyncio.get_running_loop()

    # Leases.

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        held = self._held.get(session)
        if previous is None:
            if held is not None:
                raise LiveElsewhere(session, held[1])
        elif held is None or held[0].epoch != previous:
            raise StaleLease(session)
        # The time, so that a lease of the process before has another number; and never twice the same.
        self._epoch = max(self._epoch + 1, time.time_ns())
        lease = Lease(session, self._epoch)
        self._held[session] = lease, Holder(session, who=by, since=time.time())
        return lease

    async def release(self, lease: Lease) -> None:
        held = self._held.get(lease.session)
        if held is not None and held[0] == lease:
            del self._held[lease.session]
            self._known.pop(lease.session, None)  # it is read again for the next lease

    @property
    def claimed(self) -> Collection[str]:
        """The sessions that have a valid lease."""
        return self._held.keys()

    # Append.

    def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> "asyncio.Future[int]":
        """Store events of a time. The result is the number of the last one, after the commit; nothing has to wait for it.

        Raises:
            StaleLease: the lease is not valid.
        """
        future = self._loop.create_future()
        self.store(lease, events, _into(future), at)
        return future

    def store(self, lease: Lease, events: Sequence[bytes], then: Then, at: float = 0.0) -> None:
        """Store events of a time, and call `then` after the commit, in the order of the calls.

        Raises:
            StaleLease: the lease is not valid.
        """
        held = self._held.get(lease.session)
        if held is None or held[0] != lease:
            raise StaleLease(lease.session)
        append = _Append(lease.session, tuple(events), then, at)
        self.unstored += append.size
        self._put(append)

    def post(self, job: Callable[[Connection], object]) -> None:
        """Do a job that writes behind everything that was appended so far, in the same commit as the last of it."""
        self._post(job, lambda number, error: None)

    async def flush(self) -> None:
        """Wait until everything that was given so far is stored, or has failed."""
        if self._waiting or self._committing:
            done = self._loop.create_future()
            self._post(lambda _: None, _into(done))
            await asyncio.wait([done])
            done.exception()  # those whose events are not stored were informed

    def _post(self, job: Callable[[Connection], object], then: Then) -> None:
        append = _Append("", (), then)
        append.job = job
        self._put(append)

    def _put(self, append: _Append) -> None:
        self._waiting.append(append)
        if not self._committing and not self._scheduled:
            self._scheduled = True
            # What else is given in this turn of the loop shares the commit.
            self._loop.call_soon(self._commit)

    def _commit(self) -> None:
        self._scheduled = False
        if self._committing:
            return
        batch: list[_Append] = []
        size = 0
        while self._waiting and size < COMMIT_BYTES:
            append = self._waiting.popleft()
            size += append.size
            batch.append(append)
        if not batch:
            return
        events: dict[str, list[bytes]] = {}
        times: dict[str, _Times] = {}
        jobs = []
        for append in batch:
            if append.job is not None:
                jobs.append(append.job)
                continue
            given = events.setdefault(append.session, [])
            known = times.setdefault(append.session, [(0, append.at)])
            if known[-1][1] != append.at:
                known.append((len(given), append.at))
            given.extend(append.events)
        alone = None if jobs else self._stored_alone(events, times)
        self._committing = True
        try:
            self._database.submit_then(
                lambda connection: _store(connection, events, times, self._known, jobs),
                lambda stored, error: self._committed(batch, events, stored, error),
                alone=alone,
            )
        except StoreError as error:  # it was closed
            self._committing = False
            self._fail(batch, error)

    def _stored_alone(
        self, events: dict[str, list[bytes]], times: dict[str, _Times]
    ) -> "Callable[[Connection], dict[str, _Stored]] | None":
        """Return a job that stores these events and reads nothing before; None if what is stored of one of the sessions is not known."""
        rows: list[_Row] = []
        stored: dict[str, _Stored] = {}
        for session, appended in events.items():
            before = self._known.get(session)
            if before is None:
                return None
            rows += _rows(before, appended, times[session])
            stored[session] = _Stored(before.id, before.last + len(appended))

        def store(connection: Connection) -> dict[str, _Stored]:
            _insert(connection, rows)
            return stored

        return store if rows else None

    def _committed(
        self,
        batch: list[_Append],
        events: dict[str, list[bytes]],
        stored: dict[str, _Stored] | None,
        error: Exception | None,
    ) -> None:
        self._committing = False
        done: list[tuple[_Append, int]] = []
        if error is not None or stored is None:
            stored = {}
            self._fail(batch, error)
        else:
            self._known.update(stored)
            numbers = {session: each.last - len(events[session]) for session, each in stored.items()}
            missing = []
            for append in batch:
                if append.job is None and append.session not in numbers:
                    missing.append(append)
                    continue
                self.unstored -= append.size
                number = numbers[append.session] = numbers.get(append.session, 0) + len(append.events)
                done.append((append, number))
            if missing:
                self._fail(missing, None)
        if self._waiting:
            self._commit()  # first: the disk works while these are shown
        for append, number in done:
            append.done(number, None)
        for session in stored.keys() & self._feed.followed.keys():
            self._feed.publish(session, stored[session].last, events[session])

    def _fail(self, batch: list[_Append], error: BaseException | None) -> None:
        """Report a failure to these appends and to those that wait behind them for the same sessions (rule 2)."""
        sessions = {append.session for append in batch if append.job is None}
        behind = [append for append in self._waiting if append.session in sessions]
        self._waiting = deque(append for append in self._waiting if append.session not in sessions)
        for session in sessions:
            self._known.pop(session, None)
        for append in (*batch, *behind):
            self.unstored -= append.size
            if append.job is not None:
                _log.error("a row could not be stored: %s", error)
            reason = NoSuchSession(append.session) if error is None else error
            append.done(0, fresh(reason) if isinstance(reason, AcpError) else reason)

    # Read.

    async def read(self, session: str, after: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        return await self._database.read(lambda connection: _read(connection, session, after, limit))

    async def length(self, session: str) -> int:
        """The number of the last event; 0 if there is none."""

        def length(connection: Connection) -> int:
            found = connection.execute(_FIND, (session,)).fetchone()
            return 0 if found is None else found[1] or 0

        return await self._database.read(length)

    def tail(self, session: str, after: int = 0) -> AsyncIterator[JournalEntry]:
        return self._feed.tail(session, after)


def _runs(events: Iterable[bytes]) -> "Iterable[list[bytes]]":
    """Cut events into the runs that become rows."""
    run: list[bytes] = []
    size = 0
    for event in events:
        if b"\n" in event:
            if run:
                yield run
            yield [event]
            run, size = [], 0
            continue
        run.append(event)
        size += len(event)
        if size >= RUN_BYTES:
            yield run
            run, size = [], 0
    if run:
        yield run


def _store(
    connection: Connection,
    events: dict[str, list[bytes]],
    times: dict[str, _Times],
    known: dict[str, _Stored],
    jobs: Sequence[Callable[[Connection], object]],
) -> dict[str, _Stored]:
    """Store the events of some sessions, and return what is stored of each then. A session that is not there is left out."""
    stored: dict[str, _Stored] = {}
    for session, appended in events.items():
        before = known.get(session)
        try:
            if before is not None:
                stored[session] = _store_runs(connection, before, appended, times[session])
                continue
        except IntegrityError as error:
            if error.sqlite_errorcode != SQLITE_CONSTRAINT_FOREIGNKEY:
                raise
        # Not known yet; or its row is gone, and there may be another one under the key.
        found = connection.execute(_FIND, (session,)).fetchone()
        if found is not None:
            stored[session] = _store_runs(connection, _Stored(found[0], found[1] or 0), appended, times[session])
    for job in jobs:
        job(connection)
    return stored


def _store_runs(connection: Connection, before: _Stored, events: list[bytes], times: _Times) -> _Stored:
    for row in _rows(before, events, times):
        connection.execute(_INSERT, row)
    return _Stored(before.id, before.last + len(events))


def _rows(before: _Stored, events: list[bytes], times: _Times) -> Iterator[_Row]:
    id, last = before
    for place, (begin, at) in enumerate(times):
        end = times[place + 1][0] if place + 1 < len(times) else len(events)
        for run in _runs(events if len(times) == 1 else events[begin:end]):
            yield id, last + 1, last + len(run), b"\n".join(run), at
            last += len(run)


def _insert(connection: Connection, rows: Sequence[_Row]) -> None:
    """Store rows in a transaction of their own: one statement is one."""
    if len(rows) <= ROWS:
        connection.execute(_INSERTS[len(rows) - 1], (*chain.from_iterable(rows),))
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for at in range(0, len(rows), ROWS):
            some = rows[at : at + ROWS]
            connection.execute(_INSERTS[len(some) - 1], (*chain.from_iterable(some),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _read(connection: Connection, session: str, after: int, limit: int) -> list[JournalEntry]:
    row = connection.execute("SELECT id FROM session WHERE key = ?", (session,)).fetchone()
    if row is None:
        return []
    found: list[JournalEntry] = []
    size = 0
    for first, last, data, at in connection.execute(_READ, {"session": row[0], "number": after + 1}):
        events = [data] if first == last else data.split(b"\n")
        if len(events) != last - first + 1:
            raise StoreError(
                f"events {first} to {last} of session `{session}` are damaged", hint="restore the file from a backup"
            )
        start = max(0, after + 1 - first)
        found.extend(map(JournalEntry, range(first + start, last + 1), events[start:], repeat(at)))
        size += len(data)
        if len(found) >= limit or size >= PAGE_BYTES:
            break
    return found[:limit]
