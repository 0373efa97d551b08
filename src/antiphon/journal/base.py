"""The interface of a journal: what was appended to a session, in order, each event with a number.

Rules that every implementation keeps, and that one test-suite checks for each of them:

1. The numbers of a session begin with 1 and have no gap. A session that is begun afresh under its id begins with 1 again; a tail of
   what was before sees none of it.
2. Events are appended with a lease. A session has one valid lease at most; a lease whose place was taken, or that was released, is
   stale for ever, and appends nothing.
3. What `append` returned for is stored. Several appends may share one wait for the disk.
4. `read` gives what is stored after a number. `tail` gives the same, and then what is appended from then on: every event once, in
   order, whatever is appended while the tail begins, and however slowly it is read.

An event is bytes here: it is stored and given back, never decoded.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from antiphon.errors import AcpError

__all__ = ["PAGE", "Feed", "Journal", "JournalEntry", "Lease", "StaleLease"]

PAGE: Final = 1000
"""Most entries of one `read`, unless the caller gives another limit."""

FEED_LIMIT: Final = 1024 * 1024
"""Bytes that wait in memory for one slow tail. Beyond them it reads from the store, which has all of it."""

SILENCE: Final = 2.0
"""Seconds without an event after which a tail looks into the store: another process may have appended."""


class JournalEntry(NamedTuple):
    """An event in a journal."""

    number: int
    data: bytes
    time: float = 0.0
    """Seconds since 1970 at its commit; 0 where that is not known."""


class Lease(msgspec.Struct, frozen=True):
    """The right to append to one session."""

    session: str
    epoch: int
    """Number of the lease among those of the session: no two have the same."""


class StaleLease(AcpError):
    """A lease that is not valid any more: it was released, or another one took its place."""

    def __init__(self, session: str) -> None:
        super().__init__(
            f"the lease of session `{session}` is not valid any more: the session was released or claimed anew",
            hint="open the session again",
        )
        self.session = session


class Journal(Protocol):
    """The log of every session."""

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        """Take the right to append. `previous` is the epoch of the lease that it replaces; `by` names the owner, for people.

        Raises:
            LiveElsewhere: the session has a valid lease, and `previous` was not given.
            StaleLease: `previous` is not the epoch of the valid lease.
        """

    async def release(self, lease: Lease) -> None:
        """Give the right back. A lease that is stale stays stale."""

    def append(self, lease: Lease, events: Sequence[bytes]) -> Awaitable[int]:
        """Store events, and return the number of the last one. None of them is stored if it raises.

        Raises:
            StaleLease: the lease is not valid.
            NoSuchSession: nothing is stored under this id, or nothing any more.
        """

    async def read(self, session: str, after: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """The entries after a number, `limit` of them at most. Empty: there are no more, or there is no such session."""

    def tail(self, session: str, after: int = 0) -> AsyncIterator[JournalEntry]:
        """The entries after a number, and then every one that is appended. Any number of subscribers may do so at the same time."""


Read: TypeAlias = Callable[[str, int, int], Awaitable[list[JournalEntry]]]


class Feed:
    """What is appended now, for the tails of one process. An implementation calls `publish` for each append that is stored."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.followed: dict[str, set[_Subscriber]] = {}
        """The sessions that have tails: events of all others need not be published."""

    def publish(self, session: str, last: int, events: Sequence[bytes]) -> None:
        """Give events that are stored to all tails of their session; `last` is the number of the last one."""
        for subscriber in self.followed.get(session, ()):
            subscriber.put(last - len(events) + 1, events)

    async def tail(self, session: str, after: int) -> AsyncIterator[JournalEntry]:
        """Implement `Journal.tail`: the store first, then what is published; whatever leaves a gap is read from the store."""
        subscriber = _Subscriber()
        self.followed.setdefault(session, set()).add(subscriber)
        try:
            while True:
                while page := await self._read(session, after, PAGE):
                    for entry in page:
                        after = entry.number
                        yield entry
                # Published while the page was read: known already, the next one, or later than one that is missing.
                while (published := await subscriber.next(after)) is not None:
                    after = published.number
                    yield published
        finally:
            subscribers = self.followed[session]
            subscribers.discard(subscriber)
            if not subscribers:
                del self.followed[session]


class _Subscriber:
    """The events that wait for one tail."""

    def __init__(self) -> None:
        self._waiting: deque[JournalEntry] = deque()
        self._size = 0
        self._overflowed = False
        self._published = asyncio.Event()

    def put(self, first: int, events: Sequence[bytes]) -> None:
        self._published.set()
        self._size += sum(map(len, events))
        if self._size > FEED_LIMIT:
            self._waiting.clear()
            self._size, self._overflowed = 0, True
        else:
            self._waiting.extend(map(JournalEntry, range(first, first + len(events)), events))

    async def next(self, after: int) -> JournalEntry | None:
        """The entry with the next number; None: look into the store, because something is missing or nothing happened for a while."""
        while not self._overflowed:
            while self._waiting:
                entry = self._waiting.popleft()
                self._size -= len(entry.data)
                if entry.number == after + 1:
                    return entry
                if entry.number > after:
                    return None
            self._published.clear()
            try:
                async with asyncio.timeout(SILENCE):
                    await self._published.wait()
            except TimeoutError:
                return None
        self._overflowed = False
        return None
