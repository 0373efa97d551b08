"""The copy of all rows of a fleet in the tables of a gateway (`gateway.data`): lists, search and shares are the same code as on one machine.

Messages may be given in any order and more than once: of each row the one with the largest sequence number counts. Which rows are
archived follows from what is there, so that all copies agree: each row has the number of the message with which it was shown, and what
happened to the sessions of an agent with one id is played again in that order. A deleted session is kept for that: one that it has
archived stays archived.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from sqlite3 import Connection
from typing import NamedTuple

import msgspec
from msgspec import Raw

from antiphon.fleet.broker import StoredMessage
from antiphon.fleet.records.formats import NOW, STREAM_SUBJECT, RowRecord, row_subject
from antiphon.fleet.records.queue import RowChange
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.data import GatewayData, delete_row, put_row, row_in
from antiphon.store.errors import StoreError

__all__ = ["AppliedRow", "RowReplica"]

_log = logging.getLogger(__name__)


class AppliedRow(NamedTuple):
    """A row that is another one in the copy now."""

    key: str
    row: GatewaySession | None
    """None: it was deleted."""
    agent: str = ""
    session_id: str = ""
    """Of a deleted session that lists had; else empty."""


class _Change(NamedTuple):
    """A message with what is in it."""

    key: str
    sequence: int
    time: float
    record: RowRecord


class _Copied(NamedTuple):
    """What the copy has of a row besides the row."""

    sequence: int
    born: int
    shown: int
    deleted: float | None
    more: bytes


_more = msgspec.json.Decoder(dict[str, Raw]).decode


class RowReplica:
    """The copy in one file. What is applied to it is seen by everything that is read from the file afterwards."""

    def __init__(self, data: GatewayData, applied: Callable[[AppliedRow], None]) -> None:
        self._data = data
        self._applied = applied
        """Called with each change, when it is stored in the file."""

    # Applying.

    async def apply(self, messages: Iterable[StoredMessage], position: int | None = None) -> None:
        """Apply messages, and store how far the stream was read with that.

        Raises:
            StoreError: the file cannot be used.
        """
        changes = [*_changes(messages)]
        if not changes and position is None:
            return

        def apply(connection: Connection) -> list[AppliedRow]:
            if position is not None:
                connection.execute("UPDATE copied_stream SET sequence = max(sequence, ?)", (position,))
            return [each for change in changes if (each := _apply(connection, change)) is not None]

        empties_log = any(change.record.deleted for change in changes)
        for each in await self._data.database.run(apply, empties_log=empties_log):
            self._applied(each)

    def apply_soon(self, message: StoredMessage) -> None:
        """Apply a message. A failure is logged: the stream is read again from time to time."""

        def done(applied: asyncio.Future[AppliedRow | None]) -> None:
            if applied.cancelled():
                return
            if (error := applied.exception()) is not None:
                _log.error("a row that was stored on the broker cannot be copied: %s", error)
            elif (row := applied.result()) is not None:
                self._applied(row)

        for change in _changes([message]):
            self._data.database.submit(
                partial(_apply, change=change), empties_log=change.record.deleted
            ).add_done_callback(done)

    # The messages of rows: `queue.RowSource`.

    async def message(self, key: str, change: RowChange, number: int) -> bytes | None:
        """Return a row as it is to be stored, with all that this version does not know of it; None if it was deleted.

        Raises:
            StoreError: the file cannot be used.
        """

        def known(connection: Connection) -> tuple[_Copied | None, GatewaySession | None]:
            return _copied(connection, key), row_in(connection, key)

        copied, stored = await self._data.database.read(known)
        if copied is None or stored is None:
            return None
        row = stored if change.row is None else msgspec.structs.replace(change.row, owner=stored.owner)
        more = _more(copied.more)
        return RowRecord(row, NOW if change.show else copied.shown, number, copied.born, more=more).encode()

    def stored(self, key: str, sequence: int, data: bytes) -> None:
        """Apply a row that was stored from here."""
        self.apply_soon(StoredMessage(row_subject(key), sequence, data, {}, time.time()))

    # How far the stream was read.

    async def position(self) -> tuple[str, int]:
        """Return the id of the stream that this is a copy of, and up to which number it was read."""
        query = "SELECT id, sequence FROM copied_stream"
        found = await self._data.database.read(lambda connection: connection.execute(query).fetchone())
        return ("", 0) if found is None else (found[0], found[1])

    async def newest(self) -> tuple[str, int] | None:
        """Return the key of the row whose message has the largest number, and that number."""
        query = "SELECT key, sequence FROM copied ORDER BY sequence DESC LIMIT 1"
        found: tuple[str, int] | None = await self._data.database.read(
            lambda connection: connection.execute(query).fetchone()
        )
        return found

    async def begin_anew(self, stream: str) -> None:
        """Make this a copy of another stream: whatever that has of a row counts."""

        def begin(connection: Connection) -> None:
            connection.execute("UPDATE copied SET sequence = 0")
            connection.execute("DELETE FROM copied_stream")
            connection.execute("INSERT INTO copied_stream VALUES (?, 0)", (stream,))

        await self._data.database.run(begin)

    async def absent(self, seen: set[str], position: int) -> Sequence[str]:
        """Return the rows that a stream does not have which was read from its beginning up to a position."""
        query = "SELECT key FROM copied WHERE sequence <= ?"
        found = await self._data.database.read(lambda connection: connection.execute(query, (position,)).fetchall())
        return [key for (key,) in found if key not in seen]

    async def drop(self, key: str) -> None:
        """Remove a row that the stream does not have any more, and what was kept of a deleted one."""

        def drop(connection: Connection) -> AppliedRow | None:
            copied = _copied(connection, key)
            _, agent, session_id = delete_row(connection, key)
            connection.execute("DELETE FROM copied WHERE key = ?", (key,))
            return None if copied is None or copied.deleted else AppliedRow(key, None, agent, session_id)

        dropped = await self._data.database.run(drop, empties_log=True)
        if dropped is not None:
            self._applied(dropped)

    async def forgettable(self, before: float) -> Sequence[tuple[str, int]]:
        """Return sessions that were deleted before a time and that keep no other one archived: their keys and numbers."""
        query = """
            SELECT key, sequence FROM copied WHERE deleted < ? AND NOT EXISTS (
                SELECT 1 FROM copied AS older WHERE (older.agent, older.session_id) = (copied.agent, copied.session_id)
                AND older.born < copied.born AND older.deleted IS NULL
            )
        """
        found: list[tuple[str, int]] = await self._data.database.read(
            lambda connection: connection.execute(query, (before,)).fetchall()
        )
        return found


def _changes(messages: Iterable[StoredMessage]) -> Iterable[_Change]:
    for message in messages:
        if message.subject == STREAM_SUBJECT:
            continue
        try:
            record = RowRecord.of(message)
        except StoreError as error:  # of one row: the others are to be seen
            _log.error("a row is left out: %s", error)
            continue
        yield _Change(record.row.key, message.sequence, message.time, record)


def _copied(connection: Connection, key: str) -> _Copied | None:
    query = "SELECT sequence, born, shown, deleted, more FROM copied WHERE key = ?"
    found = connection.execute(query, (key,)).fetchone()
    return None if found is None else _Copied(*found)


def _apply(connection: Connection, change: _Change) -> AppliedRow | None:
    """Apply a message, and return what is another now; None if a later one of the same row was applied before."""
    key, sequence, at, record = change
    before = _copied(connection, key)
    if before is not None and before.sequence >= sequence:
        return None
    agent, session_id = record.row.agent, record.row.session_id
    values = (sequence, record.born, agent, session_id, record.shown, at if record.deleted else None)
    connection.execute(
        """
        INSERT INTO copied VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (key) DO UPDATE SET sequence = excluded.sequence, born = excluded.born, agent = excluded.agent,
        session_id = excluded.session_id, shown = excluded.shown, deleted = excluded.deleted, more = excluded.more
        """,
        (key, *values, msgspec.json.encode(record.more)),
    )
    if record.deleted:
        applied = AppliedRow(key, None, *delete_row(connection, key)[1:])
        _show_one(connection, agent, session_id)
        return applied
    put_row(connection, msgspec.structs.replace(record.row, archived=True), record.number)
    _show_one(connection, agent, session_id)
    return AppliedRow(key, row_in(connection, key))


def _show_one(connection: Connection, agent: str, session_id: str) -> None:
    """Show the one session with an id that is to be shown, and archive the others."""
    query = "SELECT key, born, shown, CASE WHEN deleted IS NULL THEN 0 ELSE sequence END FROM copied WHERE agent = ? AND session_id = ?"
    key = _shown_one(connection.execute(query, (agent, session_id)).fetchall())
    archives = "UPDATE session SET archived = 1 WHERE agent = ? AND session_id = ? AND archived = 0 AND key != ?"
    connection.execute(archives, (agent, session_id, key))
    connection.execute("UPDATE session SET archived = 0 WHERE key = ? AND archived = 1", (key,))


def _shown_one(sessions: Sequence[tuple[str, int, int, int]]) -> str:
    """Return the key of the session that is shown of those with one id: each is a key, and when it was begun, shown and deleted."""
    shown = [(moment, key, born) for key, born, moment, _ in sessions if moment]
    deleted = [(moment, key, 0) for key, _, _, moment in sessions if moment]
    now, since = "", 0
    for _, key, born in sorted(shown + deleted):
        if born > since:  # beside a later one it stays hidden
            now, since = key, born
        elif not born and key == now:
            now, since = "", 0
    return now
