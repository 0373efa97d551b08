"""The journal of a fleet: events on the broker, and leases that the broker itself enforces.

Rule 1: the owner of a session is named by the last message of `acp.s.KEY.own`. Its sequence number is the epoch of the lease. Everything
else of the session is stored under the condition that this message is still the last: a worker whose place was taken stores nothing.
Rule 2: a claim is stored under the condition that the record which was looked at is still the last. Of two that claim at the same time
one gets the session. A claim whose answer was lost is known by its nonce.
Rule 3: behind a claim the row and the last event are read, from a state of the stream that has the claim, and the row is handed to the copy
of the rows: what the owner before has stored is known before anything is stored here. A session whose row was deleted cannot be claimed.
Rule 4: a lease that another has taken is noticed by the next append, and without one too: records of owners are followed, and looked at
when a lost connection is there again, and when a row comes that another worker has written.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from secrets import token_hex
from typing import Final
from weakref import WeakValueDictionary

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway, Fenced, StoredMessage, Subscription
from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import (
    ALL_OWNERS,
    NAME,
    OwnerRecord,
    RowRecord,
    RunAssembler,
    RunHeader,
    all_subjects,
    events_subject,
    key_of,
    owner_of,
    owner_subject,
    row_subject,
)
from antiphon.fleet.records.history import Archive, SessionHistory
from antiphon.fleet.records.queue import RowChange, RowSource, SessionQueue, Then
from antiphon.journal.base import PAGE, Feed, JournalEntry, Lease, StaleLease
from antiphon.store.errors import NoSuchSession, StoreError
from antiphon.store.locks import Holder, LiveElsewhere

__all__ = ["FleetJournal"]

CLAIM_TIMEOUT: Final = 10.0
"""Seconds for a claim to be stored, or a release."""

CLAIM_TRIES: Final = 8
"""How often a claim is tried while others claim and release the same session."""

BEHIND_TIMEOUT: Final = 5.0
"""Seconds for a server to have the record of a claim that was stored."""

BEHIND_DELAY: Final = 0.01
"""Seconds before a server is asked again, doubled each time."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that the end of the journal waits for what is not stored yet, unless the caller gives another time."""

_log = logging.getLogger(__name__)


class _LiveMessages:
    """The live messages of one session that has tails here."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.tails = 0


class FleetJournal:
    """The sessions of a fleet, as one worker or gateway sees them."""

    def __init__(
        self,
        broker: Broker,
        worker: str,
        is_alive: Callable[[str], bool] = lambda worker: True,
        archive: Archive | None = None,
    ) -> None:
        self.worker = worker
        self.is_alive = is_alive
        """Whether a worker may still have the sessions that its records name."""
        self.lost: Callable[[str], None] | None = None
        """Called with the key of a session whose lease was found stale: another claimed it, or it was deleted."""
        self.rows: RowSource | None = None
        self.row_read: Callable[[StoredMessage], Awaitable[None]] | None = None
        """Takes the row of a session that is being claimed."""
        self.appends = CertainAppends(broker)
        self._broker = broker
        self._history = SessionHistory(broker, archive)
        self._feed = Feed(self.read)
        self._queues: dict[str, SessionQueue] = {}
        """The queues of the valid leases."""
        self._holders: dict[str, Holder] = {}
        self._releasing: dict[str, int] = {}
        """Leases whose release is not stored yet."""
        self._claiming: dict[str, int] = {}
        """The last record that was seen of sessions that are being claimed."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._live: dict[str, _LiveMessages] = {}
        self._owners: Subscription | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        broker.on_reconnect(self._reconnected)

    # Leases.

    async def claim(self, session: str, previous: int | None = None, *, by: str = "") -> Lease:
        """Take the right to append. A session of a worker that lives no longer needs no `previous`.

        Raises:
            LiveElsewhere: a worker that lives has the session, and `previous` was not given.
            StaleLease: `previous` is not the epoch of the valid lease.
            NoSuchSession: the session has no row, or none any more.
            BrokerAway: the broker does not answer in time.
        """
        async with self._lock(session):
            if self._is_closed:
                raise StoreError("the journal is closed", hint="open the session at another worker")
            held = self._queues.get(session)
            if previous is None and held is not None:
                raise LiveElsewhere(session, self._holders[session])
            if previous is not None and held is not None and held.lease.epoch != previous:
                raise StaleLease(session)
            self._owners = self._owners or self._broker.follow(ALL_OWNERS, self._owner_changed)
            self._claiming[session] = 0
            try:
                record = OwnerRecord(self.worker, token_hex(8), by, round(time.time(), 3))
                epoch = await self._take(session, previous, record)
                self._releasing.pop(session, None)
                if held is not None and self._queues.get(session) is held:
                    self._drop(held)
                    held.end(StaleLease(session))
                queue = await self._begun(Lease(session, epoch))
                if self._claiming[session] > epoch or self._is_closed:
                    raise StaleLease(session)
            finally:
                del self._claiming[session]
            self._queues[session] = queue
            self._holders[session] = Holder(session, os.getpid(), by, record.since)
            return queue.lease

    async def _take(self, session: str, previous: int | None, record: OwnerRecord) -> int:
        """Store the record of the owner, and return its number."""
        subject = owner_subject(session)
        found: StoredMessage | None = None
        for _ in range(CLAIM_TRIES):
            found = await self._broker.last(subject)
            self._check_free(session, found, previous)
            try:
                return await self._store_owner(session, record, 0 if found is None else found.sequence)
            except Fenced:
                if previous is not None:
                    raise StaleLease(session) from None
        raise LiveElsewhere(session, _holder(session, owner_of(found)))

    async def _store_owner(self, session: str, record: OwnerRecord, expects: int) -> int:
        return await self.appends.append(
            owner_subject(session),
            record.encode(),
            name=record.nonce,
            headers={NAME: record.nonce},
            expects=expects,
            replaces=True,
            after=expects,
            limit=CLAIM_TIMEOUT,
        )

    def _check_free(self, session: str, found: StoredMessage | None, previous: int | None) -> None:
        owner = owner_of(found)
        if previous is not None:
            if found is None or not owner.worker or found.sequence != previous:
                raise StaleLease(session)
        elif owner.worker and owner.worker != self.worker and self.is_alive(owner.worker):
            raise LiveElsewhere(session, _holder(session, owner))
        # A record with our own name and no lease here is of a claim that was given up before its answer came.

    async def _begun(self, lease: Lease) -> SessionQueue:
        try:
            return await self._begin(lease)
        except NoSuchSession:
            raise
        except BaseException:  # a record without a lease would keep others from the session
            self._releasing[lease.session] = lease.epoch
            self._look_soon()
            raise

    async def _begin(self, lease: Lease) -> SessionQueue:
        """Return the queue of a lease that begins, behind everything that earlier ones have stored."""
        stored = await self._stored_before(lease)
        row, last = stored.get(row_subject(lease.session)), stored.get(events_subject(lease.session))
        record = None if row is None else RowRecord.of(row)
        if row is None or record is None or record.deleted:
            with suppress(BrokerAway):
                await self._broker.remove(owner_subject(lease.session))
            raise NoSuchSession(lease.session)
        if self.row_read is not None:
            await self.row_read(row)
        number = record.number if last is None else max(record.number, RunHeader.of(last).last)
        if last is None and (number or record.row.turn):  # all were forgotten, also those behind the row
            while page := await self._history.read(lease.session, number, PAGE):
                number = page[-1].number
        queue = SessionQueue(
            self._broker,
            self.appends,
            lease,
            number,
            0 if last is None else last.sequence,
            rows=self.rows,
            published=self._published,
            over=self._lost,
        )
        queue.row_number = record.number
        return queue

    async def _stored_before(self, lease: Lease) -> dict[str, StoredMessage]:
        """Return the last messages of a session, of a state that has the record of its lease.

        Such a state has all that the owner before could store. Any other may lack some: that of a server which is behind, or of a leader
        that was frozen and does not know yet that there is another one. A lease that began there would give numbers of events again.

        Raises:
            StaleLease: another has claimed the session meanwhile.
            BrokerAway: no server has such a state in time.
        """
        delay, until = BEHIND_DELAY, asyncio.get_running_loop().time() + BEHIND_TIMEOUT
        while True:
            stored = {each.subject: each for each in await self._broker.lasts(all_subjects(lease.session))}
            found = stored.get(owner_subject(lease.session))
            if found is not None and found.sequence == lease.epoch:
                return stored
            if found is not None and found.sequence > lease.epoch:
                raise StaleLease(lease.session)
            if asyncio.get_running_loop().time() + delay > until:
                raise BrokerAway(
                    f"session `{lease.session}` cannot be claimed: the copies of the stream are too old",
                    hint="look at the servers of the broker",
                )
            await asyncio.sleep(delay)
            delay *= 2

    async def release(self, lease: Lease) -> None:
        """Give the right back, behind everything that was given with it. Others can claim the session at once."""
        queue = self._queues.get(lease.session)
        if queue is None or queue.lease != lease:
            return
        queue.close()
        async with self._lock(lease.session):
            await queue.settled()
            if self._queues.get(lease.session) is not queue:
                return  # it was lost meanwhile
            self._drop(queue)
            queue.end(StaleLease(lease.session))
            self._releasing[lease.session] = lease.epoch
            await self._store_release(lease.session, lease.epoch)

    async def _store_release(self, session: str, epoch: int) -> None:
        try:
            await self._store_owner(session, OwnerRecord("", token_hex(8)), epoch)
        except BrokerAway as error:
            _log.warning("session `%s` is released when the broker is there again: %s", session, error.sentence)
            return
        except Fenced:
            pass  # another has claimed it, or it was deleted
        if self._releasing.get(session) == epoch:
            del self._releasing[session]

    @property
    def claimed(self) -> Collection[str]:
        """The sessions that have a valid lease here."""
        return self._queues.keys()

    def end(self, session: str) -> None:
        """End the lease of a session that is being deleted from here: nothing that waits is stored."""
        queue = self._queues.get(session)
        if queue is not None:
            self._drop(queue)
            queue.end(NoSuchSession(session))

    def deleted(self, session: str) -> None:
        """End the lease of a session that was deleted elsewhere."""
        queue = self._queues.get(session)
        if queue is not None:
            self._lost(queue, NoSuchSession(session))
            queue.end(NoSuchSession(session))

    def _drop(self, queue: SessionQueue) -> None:
        del self._queues[queue.key]
        del self._holders[queue.key]

    def _lock(self, session: str) -> asyncio.Lock:
        """Return the lock of a session: its claims and releases here wait for each other."""
        lock = self._locks.get(session)
        if lock is None:
            lock = self._locks[session] = asyncio.Lock()
        return lock

    # Leases that are lost.

    def _lost(self, queue: SessionQueue, error: AcpError) -> None:
        if self._queues.get(queue.key) is not queue:
            return
        self._drop(queue)
        _log.warning("session `%s` is not ours any more: %s", queue.key, error.sentence)
        if self.lost is not None:
            try:
                self.lost(queue.key)
            except Exception:  # what waits is to be reported all the same
                _log.exception("what follows the loss of session `%s` failed", queue.key)

    def _owner_changed(self, message: StoredMessage) -> None:
        key = key_of(message.subject)
        if key in self._claiming:
            self._claiming[key] = max(self._claiming[key], message.sequence)
        elif (queue := self._queues.get(key)) is not None and message.sequence > queue.lease.epoch:
            self._stale(queue, StaleLease(key))

    def _stale(self, queue: SessionQueue, error: AcpError) -> None:
        """End a lease whose place was taken."""
        if self._queues.get(queue.key) is queue and queue.key not in self._claiming:
            queue.replaced(error)

    def look_at(self, session: str) -> None:
        """Look soon whether the lease of a session is still valid: something was stored of it that was not stored from here."""
        if session in self._queues:
            self._look_soon(session)

    def _reconnected(self) -> None:
        if self._queues or self._releasing:
            self._look_soon()

    def _look_soon(self, session: str = "") -> None:
        if not self._is_closed:
            task = asyncio.get_running_loop().create_task(self._look_at_leases(session))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _look_at_leases(self, session: str = "") -> None:
        """Look whether others have taken sessions while there was no connection, and store the releases that could not be.

        With a `session`: only its lease is looked at.
        """
        with suppress(BrokerAway):  # the next connection looks again
            for queue in [each for each in self._queues.values() if session in ("", each.key)]:
                found = await self._broker.last(owner_subject(queue.key))
                if found is None:
                    self._stale(queue, NoSuchSession(queue.key))
                elif found.sequence != queue.lease.epoch:
                    self._stale(queue, StaleLease(queue.key))
            for released in (*self._releasing,):
                async with self._lock(released):
                    if (epoch := self._releasing.get(released)) is not None:
                        await self._store_release(released, epoch)

    # Append.

    def append(self, lease: Lease, events: Sequence[bytes], at: float = 0.0) -> "asyncio.Future[int]":
        """Store events of a time. The result is the number of the last one, when it is stored; nothing has to wait for it.

        Raises:
            StaleLease: the lease is not valid.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def then(number: int, error: BaseException | None) -> None:
            if not future.done():
                future.set_result(number) if error is None else future.set_exception(error)

        self.store(lease, events, then, at)
        return future

    def store(self, lease: Lease, events: Sequence[bytes], then: Then, at: float = 0.0) -> None:
        """Store events of a time, and call `then` when they are stored, in the order of the calls.

        A broker that is away is waited for: `then` gets an error only if none of the events is stored, or the lease is stale.

        Raises:
            StaleLease: the lease is not valid.
        """
        queue = self._queues.get(lease.session)
        if queue is None or queue.lease != lease:
            raise StaleLease(lease.session)
        queue.store(events, then, at)

    def save(self, key: str, change: RowChange) -> bool:
        """Store a row behind everything that was given for its session so far. False: there is no lease for it here."""
        queue = self._queues.get(key)
        try:
            if queue is not None:
                queue.save(change)
        except (StaleLease, NoSuchSession):  # it is being released, or its end is being reported
            return False
        return queue is not None

    @property
    def unstored(self) -> int:
        """Bytes that were appended and are not stored yet."""
        return sum(queue.unstored for queue in self._queues.values())

    async def flush(self) -> None:
        """Wait until everything that was given so far is stored, or has failed."""
        await asyncio.gather(*(queue.settled() for queue in self._queues.values()))

    async def close(self, timeout: float = CLOSE_TIMEOUT) -> None:
        """Wait for what is not stored yet, then take nothing more. What could not be stored in time is reported as stale.

        Leases that were not released stay in their records: others claim these sessions when this worker is known to have ended.
        """
        self._is_closed = True
        try:
            async with asyncio.timeout(timeout):
                await self.flush()
        except TimeoutError:
            if self.unstored:
                _log.error("%d bytes of events could not be stored on the broker before the end", self.unstored)
        ending = [*self._queues.values()]
        for queue in ending:
            self._drop(queue)
            queue.end(StaleLease(queue.key))
        for task in self._tasks:
            task.cancel()
        if self._owners is not None:
            self._owners.end()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for queue in ending:
            await queue.ended()

    def _published(self, session: str, last: int, events: list[bytes], sequence: int) -> None:
        self._history.note(session, last - len(events) + 1, sequence)
        if session in self._feed.followed:
            self._feed.publish(session, last, events)

    # Read.

    async def read(self, session: str, after: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """Return the entries after a number, `limit` of them at most, and fewer where they are large.

        Raises:
            BrokerAway: the broker does not answer.
        """
        queue = self._queues.get(session)
        return await self._history.read(session, after, limit, None if queue is None else queue.last)

    async def length(self, session: str) -> int:
        """Return the number of the last event; 0 if there is none.

        Raises:
            BrokerAway: the broker does not answer.
        """
        queue = self._queues.get(session)
        return await self._history.length(session) if queue is None else queue.last

    async def tail(self, session: str, after: int = 0) -> AsyncIterator[JournalEntry]:
        """Yield the entries after a number, and then every one that is appended here or elsewhere.

        Raises:
            BrokerAway: the broker does not answer.
        """
        live = self._live.get(session)
        if live is None:
            live = self._live[session] = _LiveMessages(self._follow(session))
        live.tails += 1
        try:
            async with aclosing(self._feed.tail(session, after)) as entries:  # type: ignore[type-var]
                async for entry in entries:
                    yield entry
        finally:
            live.tails -= 1
            if not live.tails:
                live.subscription.end()
                del self._live[session]

    def _follow(self, session: str) -> Subscription:
        assembler = RunAssembler()

        def take(message: StoredMessage) -> None:
            if session in self._queues:
                return  # what is appended here is published already
            try:
                run = assembler.take(message)
            except StoreError as error:
                _log.error("a message that was just stored cannot be read: %s", error)
                return
            if run is not None:
                self._feed.publish(session, run.last, run.events)

        return self._broker.follow(events_subject(session), take)


def _holder(session: str, owner: OwnerRecord) -> Holder:
    return Holder(session, who=f"worker {owner.worker}", since=owner.since)
