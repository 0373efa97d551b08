"""The rows of a fleet: written to the broker, read from a copy in a file of this process.

Rule 1: a row is written by the owner of its session, in the queue of the session (`records.queue`), under its lease. It is in the copy
when it is stored. A new row has no owner yet.
Rule 2: rows of others come as they are stored. Some may be lost, so the stream is also read from time to time and whenever a lost
connection is there again, from the last number that was read before: what came in between is applied again, which changes nothing.
Rule 3: a session is deleted by taking its lease away, storing a message that says so in the place of its row, and removing the rest.
These messages are forgotten after days. The stream has a record of up to which number: a copy that was not kept up that far is made anew.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Final

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import READ_LIMIT, Broker, BrokerAway, Fence, Fenced, StoredMessage, Subscription
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.records.formats import (
    ALL_ROWS,
    NAME,
    NOW,
    STREAM_SUBJECT,
    OwnerRecord,
    RowRecord,
    StreamRecord,
    events_subject,
    key_of,
    owner_subject,
    row_subject,
)
from antiphon.fleet.records.queue import RowChange
from antiphon.fleet.records.replica import AppliedRow, RowReplica
from antiphon.gateway.base import FoundText, GatewaySession, ListedRow, SearchableText, SessionQuery
from antiphon.gateway.data import GatewayData
from antiphon.gateway.settings import HubSettings
from antiphon.journal.base import StaleLease
from antiphon.store.errors import StoreError

__all__ = ["FleetRows"]

WRITE_TIMEOUT: Final = 10.0
"""Seconds for a row to be stored by a caller that waits for it."""

DELETE_TRIES: Final = 20
"""How often a deletion is tried while others claim the session, or delete it too: each of them may come between its two messages."""

FIRST_DELAY: Final = 0.01
LONGEST_DELAY: Final = 0.3
"""Seconds before another try, at most, doubled each time. They are random: two that delete in step would keep each other from it."""

READ_AGAIN: Final = 2.0
"""Seconds after a start or a new connection until the stream is read once more: the first time it may have been a moment old."""

READ_INTERVAL: Final = 20.0
"""Seconds between two reads of what is new, beside what comes by itself."""

LOOK_TIMEOUT: Final = 2.0
"""Seconds to look for a session at the broker that the copy does not have."""

DELETED_KEPT: Final = 7 * 24 * 3600.0
"""Seconds for which it is kept on the broker that a session was deleted."""

FORGET_INTERVAL: Final = 3600.0
"""Seconds between two looks for deleted sessions that can be forgotten."""

_log = logging.getLogger(__name__)


class FleetRows:
    """The rows of all sessions of a fleet: `gateway.base.GatewaySessions`."""

    def __init__(self, broker: Broker, journal: FleetJournal, data: GatewayData) -> None:
        self.removed: Callable[[str, str, str], None] | None = None
        self.changed: Callable[[GatewaySession | None, str], None] | None = None
        """Called with each row that has changed and its key, whichever process changed it; None: the session was deleted."""
        self._broker = broker
        self._journal = journal
        self._data = data
        self._replica = RowReplica(data, self._applied)
        self._position = 0
        """The number up to which the stream was read."""
        self._reading = asyncio.Lock()
        self._wakes = asyncio.Event()
        self._followed: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._unwanted: set[str] = set()
        """Sessions that are to be deleted when the broker is there again: it is not known whether their rows were stored."""
        self._unremoved: set[str] = set()
        """Sessions that were deleted, and whose other messages could not be removed yet."""
        self._forgot = time.monotonic() + FORGET_INTERVAL * random.random()  # noqa: S311
        journal.rows = self._replica
        journal.row_read = self._row_read
        broker.on_reconnect(self._wakes.set)

    async def start(self) -> None:
        """Read all rows that are new since this file was used last, then follow them.

        Raises:
            BrokerAway: the broker does not answer.
            StoreError: the file cannot be used.
        """
        self._followed = self._broker.follow(ALL_ROWS, self._take)
        await self._read(is_begin=True)
        self._task = asyncio.get_running_loop().create_task(self._keep_reading())

    async def close(self) -> None:
        """Follow no more."""
        if self._followed is not None:
            self._followed.end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # Writing.

    async def create(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        """Store a new row under a random key.

        Raises:
            BrokerAway: the broker does not answer in time. If the row is stored after all, it is deleted again.
        """
        row = GatewaySession(token_hex(16), agent, session_id, cwd, directories, created=time.time(), owner=owner)
        data, name = RowRecord(row, 0 if hidden else NOW).encode(), token_hex(8)
        try:
            sequence = await self._append(row_subject(row.key), data, name, expects=0)
            await self._replica.apply([StoredMessage(row_subject(row.key), sequence, data, {}, time.time())])
        except BaseException:
            self._unwanted.add(row.key)
            self._wakes.set()
            raise
        return row

    async def show(self, key: str) -> None:
        """Show a hidden row. Beside a later one with the same agent and id it stays hidden.

        Raises:
            StaleLease: the session is not ours.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(number: int, error: BaseException | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        if not self._journal.save(key, RowChange(show=True, then=then)):
            raise StaleLease(key)
        await done

    def save(self, row: GatewaySession) -> None:
        """Store a row in the place of the one with its key, before the events that are appended from now on."""
        if not self._journal.save(row.key, RowChange(row)):
            _log.debug("the row of session `%s` is not stored: the session is not ours any more", row.key)

    async def delete(self, key: str) -> None:
        """Delete a session with its events, wherever it is open.

        Raises:
            BrokerAway: the broker does not answer in time. The session may be deleted or not.
        """
        self._journal.end(key)
        for tries in range(DELETE_TRIES):
            record = OwnerRecord("", token_hex(8))
            epoch = await self._append(owner_subject(key), record.encode(), record.nonce, replaces=True)
            row = await self._broker.last(row_subject(key))
            found = None if row is None else RowRecord.of(row)
            if found is None or found.deleted:
                break
            data, name = found._replace(deleted=True).encode(), token_hex(8)
            fence = Fence(owner_subject(key), epoch)
            try:
                sequence = await self._append(row_subject(key), data, name, fence=fence, replaces=True)
            except Fenced:
                await asyncio.sleep(min(FIRST_DELAY * 2**tries, LONGEST_DELAY) * random.random())  # noqa: S311
                continue
            await self._replica.apply([StoredMessage(row_subject(key), sequence, data, {}, time.time())])
            break
        else:
            raise StoreError(f"session `{key}` is claimed again and again", hint="close it, then delete it")
        self._unwanted.discard(key)
        self._unremoved.add(key)
        try:
            await self._remove_rest(key)
        except BrokerAway:
            self._wakes.set()

    async def _remove_rest(self, key: str) -> None:
        """Remove what is stored of a deleted session besides its row."""
        await self._broker.remove(events_subject(key))
        await self._broker.remove(owner_subject(key))
        self._unremoved.discard(key)

    async def _append(
        self,
        subject: str,
        data: bytes,
        name: str,
        *,
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
    ) -> int:
        return await self._journal.appends.append(
            subject,
            data,
            name=name,
            headers={NAME: name},
            fence=fence,
            expects=expects,
            replaces=replaces,
            limit=WRITE_TIMEOUT,
        )

    # Reading.

    async def get(self, key: str) -> GatewaySession | None:
        """Return the row with this key. One that the copy does not have is looked for at the broker."""
        row = await self._data.get(key)
        if row is None and self._broker.is_connected:
            with suppress(BrokerAway, TimeoutError):
                async with asyncio.timeout(LOOK_TIMEOUT):
                    message = await self._broker.last(row_subject(key))
                if message is not None:
                    await self._replica.apply([message])
                    row = await self._data.get(key)
        return row

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        """Return the row of a session that is not archived. One that the copy does not have may have been begun just now elsewhere."""
        row = await self._data.find(agent, session_id)
        if row is None and self._broker.is_connected:
            with suppress(BrokerAway, TimeoutError):
                position = self._position
                while row is None:
                    async with asyncio.timeout(LOOK_TIMEOUT):
                        messages = await self._broker.read(ALL_ROWS, position)
                    if not messages:
                        break
                    position = messages[-1].sequence
                    await self._replica.apply(messages)
                    row = await self._data.find(agent, session_id)
        return row

    async def list(self, agent: str, *, cwd: str | None = None) -> list[GatewaySession]:
        """Return the rows that are not archived, those used last first."""
        return await self._data.list(agent, cwd=cwd)

    async def all(self) -> Sequence[GatewaySession]:
        """Return every row, the archived ones too, those used last first."""
        return await self._data.all()

    async def listed(self, query: SessionQuery) -> Sequence[ListedRow]:
        """Return the rows that a list shows."""
        return await self._data.listed(query)

    async def settings(self, agent: str) -> bytes:
        """Return the settings of the session of an agent that was used last."""
        return await self._data.settings(agent)

    async def interrupted(self) -> Sequence[GatewaySession]:
        """Return nothing: turns of other workers run on. Those of a dead worker are found by `running`, by the worker that adopts them."""
        return ()

    async def running(self) -> Sequence[GatewaySession]:
        """Return the rows in which a turn runs, or ran when their owner ended."""
        return await self._data.interrupted()

    # The search.

    async def unread(self, key: str, *, only: bool = False) -> tuple[str, int] | None:
        """Return a session of which events were not read for the search here yet."""
        return await self._data.unread(key, only=only)

    async def add_text(self, key: str, texts: Sequence[SearchableText], number: int) -> None:
        """Store the text of messages for the search here."""
        await self._data.add_text(key, texts, number)

    async def search(
        self, words: Sequence[str], keys: frozenset[str] | None, agents: tuple[str, ...], limit: int
    ) -> Sequence[FoundText]:
        """Return messages with all of these words."""
        return await self._data.search(words, keys, agents, limit)

    # The copy.

    def _take(self, message: StoredMessage) -> None:
        self._replica.apply_soon(message)

    async def _row_read(self, message: StoredMessage) -> None:
        await self._replica.apply([message])

    def _applied(self, applied: AppliedRow) -> None:
        try:
            if applied.row is None:
                self._journal.deleted(applied.key)
            elif applied.key in self._journal.claimed and self._is_of_another(applied.row):
                self._journal.look_at(applied.key)
            if self.changed is not None:
                self.changed(applied.row, applied.key)
            if applied.row is None and applied.agent and self.removed is not None:
                self.removed(applied.key, applied.agent, applied.session_id)
        except Exception:  # the row is stored, and others are to be seen
            _log.exception("what follows a change of session `%s` failed", applied.key)

    def _is_of_another(self, row: GatewaySession) -> bool:
        """Whether another worker has written a row: one that claims a session writes its name into it."""
        return HubSettings(row.state).home.worker not in ("", self._journal.worker)

    async def _keep_reading(self) -> None:
        """Read what is new from time to time, and finish what could not be done without the broker."""
        wait = READ_AGAIN
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._wakes.wait()
            except TimeoutError:
                pass
            is_new = self._wakes.is_set()
            self._wakes.clear()
            wait = READ_AGAIN if is_new else READ_INTERVAL
            try:
                await self._read(is_begin=is_new)
                for key in (*self._unwanted,):
                    await self.delete(key)
                for key in (*self._unremoved,):
                    await self._remove_rest(key)
                if time.monotonic() >= self._forgot:
                    self._forgot = time.monotonic() + FORGET_INTERVAL
                    await self.forget_deleted()
            except BrokerAway:
                continue
            except AcpError as error:
                _log.error("the rows of the fleet cannot be copied now: %s", error)
            except Exception:  # what comes later is to be copied all the same
                _log.exception("the rows of the fleet cannot be copied now")

    async def _read(self, *, is_begin: bool) -> None:
        """Read what is new in the stream; all of it, if this is no copy of the stream, or one that is too old."""
        async with self._reading:
            stream, position = await self._replica.position()
            record, _ = await self._stream_record()
            is_kept_up = record.id == stream and record.forgotten <= position
            if record.id != stream or (is_kept_up and is_begin and not await self._is_same()):
                await self._replica.begin_anew(record.id)
            elif is_kept_up:
                await self._read_after(position)
                if (await self._stream_record())[0].forgotten <= position:
                    return  # else what was read may lack deletions that were forgotten meanwhile
            await self._read_all()

    async def _stream_record(self) -> tuple[StreamRecord, int]:
        """Return the record about the stream, which the first process that needs it makes, and its number."""
        found = await self._broker.last(STREAM_SUBJECT)
        if found is None:
            record = StreamRecord(token_hex(16))
            with suppress(Fenced):
                return record, await self._append(STREAM_SUBJECT, msgspec.json.encode(record), record.id, expects=0)
            found = await self._broker.last(STREAM_SUBJECT)
        if found is None:
            raise BrokerAway("the record about the stream of the fleet was removed", hint="start the fleet again")
        return msgspec.json.decode(found.data, type=StreamRecord), found.sequence

    async def _is_same(self) -> bool:
        """Whether the stream still has the newest message of this copy. One that was restored from a backup does not."""
        newest = await self._replica.newest()
        if newest is None:
            return True
        found = await self._broker.last(row_subject(newest[0]))
        return found is not None and found.sequence >= newest[1]

    async def _read_after(self, position: int) -> None:
        while messages := await self._broker.read(ALL_ROWS, position, READ_LIMIT):
            position = messages[-1].sequence
            await self._replica.apply(messages, position)
            self._position = position
        self._position = position

    async def _read_all(self) -> None:
        """Read every row, and drop those that the stream does not have any more."""
        position = 0
        seen: set[str] = set()
        while messages := await self._broker.read(ALL_ROWS, position, READ_LIMIT):
            position = messages[-1].sequence
            seen.update(key_of(message.subject) for message in messages)
            await self._replica.apply(messages)
        for key in await self._replica.absent(seen, position):
            found = await self._broker.last(
                row_subject(key)
            )  # it may have been written anew while the others were read
            if found is None:
                await self._replica.drop(key)
            else:
                await self._replica.apply([found])
        await self._replica.apply([], position)
        self._position = position

    async def forget_deleted(self, before: float | None = None) -> None:
        """Remove from the broker that sessions were deleted before a time, in seconds since 1970; by default `DELETED_KEPT` ago.

        Raises:
            BrokerAway: the broker does not answer.
        """
        found = await self._replica.forgettable(time.time() - DELETED_KEPT if before is None else before)
        if not found:
            return
        record, expected = await self._stream_record()
        newest = max(sequence for _, sequence in found)
        if record.forgotten < newest:
            data = msgspec.json.encode(msgspec.structs.replace(record, forgotten=newest))
            try:
                await self._append(STREAM_SUBJECT, data, token_hex(8), expects=expected, replaces=True)
            except Fenced:
                return  # another process forgets them just now
        for key, _ in found:
            await self._remove_rest(key)
            await self._broker.remove(row_subject(key))
            await self._replica.drop(key)
