"""The journal of one machine. Its events are the history in the store; its claim is the lock on a session.

The kernel holds the lock for the process, so a process that ends, however that happens, has no lease any more; and a process that is
only stopped keeps its lease, because nothing else can claim the session meanwhile. Within the process the table of leases has which
one is valid. So no lease has to be stored, and a home of an earlier version opens unchanged.
"""

import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from antiphon.journal.base import PAGE, Feed, JournalEntry, Lease, StaleLease
from antiphon.store.errors import NoSuchSession
from antiphon.store.locks import SessionLock
from antiphon.store.sessions import SessionStore

__all__ = ["SqliteJournal"]


class SqliteJournal:
    """The sessions of a store, claimed by locks in the state directory."""

    def __init__(self, store: SessionStore, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._held: dict[str, tuple[Lease, SessionLock]] = {}
        """The valid lease of each session that is claimed here."""
        self._feed = Feed(self.read)
        self._epoch = 0

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        if previous is None:
            lock = await SessionLock.take_async(self._directory, session, by)
        else:
            held = self._held.get(session)
            if held is None or held[0].epoch != previous:
                raise StaleLease(session)
            lock = held[1]
        # The time, so that a lease of another process has another number; and never twice the same.
        self._epoch = max(self._epoch + 1, time.time_ns())
        lease = Lease(session, self._epoch)
        self._held[session] = lease, lock
        return lease

    async def release(self, lease: Lease) -> None:
        held = self._held.get(lease.session)
        if held is not None and held[0] == lease:
            del self._held[lease.session]
            held[1].release()

    async def append(self, lease: Lease, events: Sequence[bytes]) -> int:
        held = self._held.get(lease.session)
        if held is None or held[0] != lease:
            raise StaleLease(lease.session)
        events = tuple(events)
        last = await self._store.append(lease.session, events)
        if lease.session in self._feed.followed:
            self._feed.publish(lease.session, last, events)
        return last

    async def read(self, session: str, after: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        try:
            found = await self._store.read(session, after, limit)
        except NoSuchSession:
            return []
        return [JournalEntry(*each) for each in found]

    def tail(self, session: str, after: int = 0) -> AsyncIterator[JournalEntry]:
        return self._feed.tail(session, after)
