"""What waits to be stored in one session, under one lease.

Rule 1: one message is under way at a time, in the order of the calls. What is given meanwhile shares the next message, if it has the
same time and there is room.
Rule 2: rows stand in the same queue, because a row has that a turn runs: it is stored before the events that were given behind it.
Rule 3: an append in doubt is never reported as failed. The hub stores the events of a failed append once more, with later ones.
Rule 4: a lease that is found stale ends the queue: all that waits in it fails, and nothing more can be given.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, ParamSpec, Protocol, TypeAlias

from antiphon.errors import AcpError, fresh
from antiphon.fleet.broker import Broker, Fence, Fenced
from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import (
    NAME,
    RUN,
    RunHeader,
    encode_run,
    events_subject,
    fitted_row,
    owner_subject,
    row_subject,
)
from antiphon.gateway.base import GatewaySession
from antiphon.journal.base import Lease, StaleLease
from antiphon.store.errors import NoSuchSession

__all__ = ["RowChange", "RowSource", "SessionQueue", "Then"]

RUN_BYTES: Final = 256 * 1024
"""Bytes from which no more events share a message: a reader of a page has to read whole messages."""

HEADER_ROOM: Final = 1024
"""Bytes of a message that are left for its headers, those of the client of the broker included."""

Then: TypeAlias = Callable[[int, BaseException | None], None]
"""Takes the number of the last event that is stored; or the error."""

_P = ParamSpec("_P")
_log = logging.getLogger(__name__)


class RowChange:
    """A row that is to be stored: the fields that the hub has, whether it is to be shown now, or only its number."""

    __slots__ = ("row", "show", "thens")

    def __init__(self, row: GatewaySession | None = None, *, show: bool = False, then: Then | None = None) -> None:
        self.row = row
        """None: as it is stored."""
        self.show = show
        self.thens = [] if then is None else [then]

    def add(self, later: "RowChange") -> None:
        """Take a change along that was given behind this one."""
        self.row = self.row if later.row is None else later.row
        self.show |= later.show
        self.thens += later.thens


class RowSource(Protocol):
    """Makes the messages of rows, and takes them when they are stored."""

    async def message(self, key: str, change: RowChange, number: int) -> bytes | None:
        """Return the data of the message; None if there is no such row any more."""

    def stored(self, key: str, sequence: int, data: bytes) -> None:
        """Take a message that is stored now."""


class _Append:
    """Events that wait to be stored. Without events it marks a place in the queue."""

    __slots__ = ("at", "events", "size", "then")

    def __init__(self, events: tuple[bytes, ...], then: Then, at: float) -> None:
        self.events = events
        self.then = then
        self.at = at
        self.size = sum(map(len, events))


_Item: TypeAlias = "_Append | RowChange"


class SessionQueue:
    """The queue of one session. `over` is called once with the error when its lease is found stale."""

    def __init__(
        self,
        broker: Broker,
        appends: CertainAppends,
        lease: Lease,
        last: int,
        sequence: int,
        *,
        rows: RowSource | None,
        published: Callable[[str, int, list[bytes], int], None],
        over: Callable[["SessionQueue", AcpError], None],
    ) -> None:
        self.key = lease.session
        self.lease = lease
        self.last = last
        """The number of the last event that is stored."""
        self.row_number: int | None = None
        """The number that the last row has which was stored here; None: none was."""
        self.unstored = 0
        """Bytes of events that wait."""
        self._broker = broker
        self._appends = appends
        self._fence = Fence(owner_subject(self.key), lease.epoch)
        self._sequence = sequence
        """The number of the last message with events."""
        self._rows = rows
        self._published = published
        self._over = over
        self._waiting: deque[_Item] = deque()
        self._sending: list[_Item] = []
        self._task: asyncio.Task[None] | None = None
        self._count = 0
        self._error: AcpError | None = None
        self._doubt: AcpError | None = None
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting and not self._sending

    # Giving.

    def store(self, events: Sequence[bytes], then: Then, at: float) -> None:
        """Store events of a time, and call `then` when it is known what became of them.

        Raises:
            AcpError: the queue has ended.
        """
        append = _Append(tuple(events), then, at)
        self._check()
        self.unstored += append.size
        self._put(append)

    def save(self, change: RowChange) -> None:
        """Store a row.

        Raises:
            AcpError: the queue has ended.
        """
        self._check()
        if self._waiting and isinstance(before := self._waiting[-1], RowChange):
            before.add(change)
        else:
            self._put(change)

    def close(self) -> None:
        """Take no more from callers. What was given is stored, and then the row with the number of the last event."""
        self._is_closed = True

    async def settled(self) -> None:
        """Wait until everything that was given so far is stored, or has failed."""
        if self._error is not None:
            return
        if not self.is_idle:
            await self._marker()
        if self._is_closed and self.last != self.row_number and self._error is None:
            self._put(RowChange())
            await self._marker()

    async def _marker(self) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(_Append((), lambda number, error: None if done.done() else done.set_result(None), 0.0))
        await done

    def end(self, error: AcpError) -> None:
        """Take nothing more, and report an error to all that wait. What is under way may be stored or not."""
        if self._error is not None:
            return
        self._error = error
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        sending, self._sending = self._sending, []
        waiting, self._waiting = self._waiting, deque()
        self._fail((*sending, *waiting), error)

    def replaced(self, error: AcpError) -> None:
        """End the queue: the lease was taken. What is under way may have come first, so it is waited for, and nothing behind it is stored."""
        if self._error is None and not self.is_idle:
            self._doubt = error
        elif self._error is None:
            self._over(self, error)
            self.end(error)

    async def ended(self) -> None:
        """Wait until nothing is under way any more."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _check(self) -> None:
        if self._error is not None:
            raise fresh(self._error)
        if self._is_closed:
            raise StaleLease(self.key)

    def _put(self, item: _Item) -> None:
        self._waiting.append(item)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name=f"journal of session {self.key}")

    # Storing.

    async def _work(self) -> None:
        try:
            while self._waiting:
                self._sending = self._next()
                try:
                    await self._send(self._sending)
                except Fenced:
                    reason = await self._reason()
                    self._over(self, reason)  # first: what waits is reported to a session that has ended
                    self.end(reason)
                    return
                except Exception as error:  # it is known that nothing is stored: the caller tries again
                    _log.error("session `%s` cannot be stored on the broker: %s", self.key, error)
                    self._failed(error)
                if (
                    self._doubt is not None
                ):  # it came before the claim that took the lease; what waits would come behind it
                    self._over(self, self._doubt)
                    self.end(self._doubt)
        finally:
            self._task = None

    def _failed(self, error: Exception) -> None:
        """Report that what was under way is not stored. Events take those behind them along, so that none is stored behind a gap."""
        failed, self._sending = self._sending, []
        if isinstance(failed[0], _Append):
            failed += [each for each in self._waiting if isinstance(each, _Append)]
            self._waiting = deque(each for each in self._waiting if isinstance(each, RowChange))
        self._fail(failed, error)

    def _next(self) -> list[_Item]:
        """Take what the next message is made of: a row, or all events that have one time and fit."""
        first = self._waiting.popleft()
        batch: list[_Item] = [first]
        if isinstance(first, RowChange):
            return batch
        size = first.size
        while self._waiting:
            following = self._waiting[0]
            if isinstance(following, RowChange) or following.at != first.at or size + following.size > RUN_BYTES:
                break
            size += following.size
            batch.append(following)
            self._waiting.popleft()
        return batch

    async def _send(self, batch: list[_Item]) -> None:
        if isinstance(batch[0], RowChange):
            await self._store_row(batch[0])
            self._sending = []
            self._done(batch[0].thens, self.last)
            return
        appends = [each for each in batch if isinstance(each, _Append)]
        events = [event for append in appends for event in append.events]
        number = self.last
        if events:
            await self._store_events(events, appends[0].at)
        self._sending = []
        for append in appends:
            number += len(append.events)
            self.unstored -= append.size
            self._done((append.then,), number)

    async def _store_events(self, events: list[bytes], at: float) -> None:
        data = encode_run(events)
        room = max(1, self._broker.max_payload - HEADER_ROOM)
        parts = max(1, -(-len(data) // room))
        first, begin = self.last + 1, 0
        for part in range(1, parts + 1):
            name = self._name()
            header = RunHeader(first, len(events), at, name, part, parts, begin)
            self._sequence = await self._appends.append(
                events_subject(self.key),
                data if parts == 1 else data[(part - 1) * room : part * room],
                name=name,
                headers={RUN: header.encode()},
                fence=self._fence,
                after=self._sequence,
            )
            begin = begin or self._sequence
        self.last += len(events)
        self._call(self._published, self.key, self.last, events, begin)

    async def _store_row(self, change: RowChange) -> None:
        data = None if self._rows is None else await self._rows.message(self.key, change, self.last)
        if data is None or self._rows is None:
            return
        size, data = len(data), fitted_row(data, self._broker.max_payload)
        if len(data) < size:  # without the row it would not be known that a turn runs
            _log.warning("the largest settings of session `%s` are not stored: its row has %d bytes", self.key, size)
        name, number = self._name(), self.last
        sequence = await self._appends.append(
            row_subject(self.key), data, name=name, headers={NAME: name}, fence=self._fence, replaces=True
        )
        self.row_number = number
        self._call(self._rows.stored, self.key, sequence, data)

    def _name(self) -> str:
        """Return a name that no other message of the stream has, as no other lease has the epoch. It is short: a broker keeps all for minutes.

        It is not made of the numbers of events: after an error they are given again.
        """
        self._count += 1
        return f"{self.lease.epoch}.{self._count}"

    # Reporting.

    def _done(self, thens: Iterable[Then], number: int) -> None:
        for then in thens:
            self._call(then, number, None)

    def _fail(self, items: Iterable[_Item], error: Exception) -> None:
        for item in items:
            if isinstance(item, _Append):
                self.unstored -= item.size
            for then in item.thens if isinstance(item, RowChange) else (item.then,):
                self._call(then, 0, fresh(error) if isinstance(error, AcpError) else error)

    def _call(self, call: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call a function behind an append. What it raises is no failure of the append: that is stored, or was reported."""
        try:
            call(*args, **kwargs)
        except Exception:
            _log.exception("what follows an append to session `%s` failed", self.key)

    async def _reason(self) -> AcpError:
        """Return why the lease is stale: another has claimed the session, or it was deleted."""
        try:
            found = await self._broker.last(owner_subject(self.key))
        except AcpError:  # whatever it is: the lease is not ours
            return StaleLease(self.key)
        return NoSuchSession(self.key) if found is None else StaleLease(self.key)
