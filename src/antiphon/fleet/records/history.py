"""Read the events of a session from any number on, without reading those before it.

Every message has the number of its first event. So the place of a number is found by looking at a few messages, and the places that were
seen are kept, a few for each session: pages that follow each other need no search.

Between the entries of a page there is never a gap. A reader may be given a state of the stream that is a moment old, which ends too
early and lacks nothing before: so an end is believed when the leader of the stream has the same one. Events that the stream has
forgotten come from the archive; without one a history begins with what is left.
"""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import repeat
from typing import Final, NamedTuple, TypeAlias

from antiphon.fleet.broker import READ_LIMIT, Broker, BrokerAway, StoredMessage
from antiphon.fleet.records.formats import RowRecord, RunAssembler, RunHeader, StoredRun, events_subject, row_subject
from antiphon.journal.base import JournalEntry

__all__ = ["Archive", "SessionHistory"]

PAGE_BYTES: Final = 1024 * 1024
"""Size at which a page ends, however few entries it has."""

FIRST_READ: Final = 16
"""Messages of the first request to a session. How large they are is not known before; later requests are for about a page."""

NEAR: Final = 256
"""Events, or numbers of the stream, that are read over rather than searched."""

STALE_TIMEOUT: Final = 5.0
"""Seconds for a copy of the stream to have what its leader has."""

STALE_DELAY: Final = 0.02
"""Seconds before a copy is asked again, doubled each time."""

SESSIONS_KEPT: Final = 1024
PLACES_KEPT: Final = 64
"""Sessions whose places are kept, and places of each."""

Archive: TypeAlias = Callable[[str, int, int], Awaitable[list[JournalEntry]]]
"""Returns entries of a session after a number, at most so many: those that the stream has forgotten."""


class _Place(NamedTuple):
    """The message with event `number` is the first one of its session behind `sequence`."""

    number: int
    sequence: int


_BEGIN: Final = _Place(1, 0)


class _Places:
    """Places of one session, in order and at least `_step` events apart."""

    def __init__(self) -> None:
        self._places: list[_Place] = [_BEGIN]
        self._step = 1
        self.newest = _BEGIN
        """The one that was noted last: the next page begins there."""
        self.run_bytes = PAGE_BYTES // FIRST_READ
        self.run_events = 0
        """The size of the messages that were read last, and how many events they have; 0: not known."""

    def note(self, place: _Place) -> None:
        self.newest = place
        at = bisect_right(self._places, place)
        if place.number - self._places[at - 1].number < self._step:
            return
        if at < len(self._places) and self._places[at].number - place.number < self._step:
            return
        self._places.insert(at, place)
        if len(self._places) > PLACES_KEPT:
            self._step *= 2
            kept = [_BEGIN]
            for each in self._places[1:]:
                if each.number - kept[-1].number >= self._step:
                    kept.append(each)
            self._places = kept

    def before(self, number: int) -> _Place:
        found = self._places[bisect_right(self._places, number, key=lambda each: each.number) - 1]
        return max(found, self.newest) if self.newest.number <= number else found

    def behind(self, number: int) -> _Place | None:
        at = bisect_right(self._places, number, key=lambda each: each.number)
        return self._places[at] if at < len(self._places) else None


class SessionHistory:
    """Reads the events of all sessions."""

    def __init__(self, broker: Broker, archive: Archive | None = None) -> None:
        self.archive = archive
        self._broker = broker
        self._places: OrderedDict[str, _Places] = OrderedDict()

    async def read(self, session: str, after: int, limit: int, known: int | None = None) -> list[JournalEntry]:
        """Return the entries after a number. `known` is the number of the last event, where it is known.

        Raises:
            BrokerAway: the broker does not answer, or its copies are too old for too long.
            StoreError: events are damaged.
        """
        if limit <= 0 or (known is not None and known <= after):
            return []
        delay, until = STALE_DELAY, asyncio.get_running_loop().time() + STALE_TIMEOUT
        while True:
            page = await self._page(session, after, limit)
            if page:
                return page
            last = await self._broker.last(events_subject(session))
            if last is None:
                return await self._archived(session, after, limit)
            is_end = RunHeader.of(last).last <= after
            if is_end and known is None:
                return []
            if asyncio.get_running_loop().time() + delay > until:
                if is_end:  # the newer ones were kept for a shorter time, and are forgotten
                    return await self._archived(session, after, limit)
                raise BrokerAway(
                    f"events of session `{session}` after {after} cannot be read: the copies of the stream are too old",
                    hint="look at the servers of the broker",
                )
            await asyncio.sleep(delay)
            delay *= 2

    async def length(self, session: str) -> int:
        """Return the number of the last event, as the leader of the stream has it.

        Raises:
            BrokerAway: the broker does not answer.
        """
        last = await self._broker.last(events_subject(session))
        if last is not None:
            return RunHeader.of(last).last
        row = await self._broker.last(row_subject(session))
        return 0 if row is None else RowRecord.of(row).number

    def note(self, session: str, number: int, sequence: int) -> None:
        """Note that the message with this sequence number begins with this event."""
        places = self._places.get(session)
        if places is None:
            places = self._places[session] = _Places()
            if len(self._places) > SESSIONS_KEPT:
                self._places.popitem(last=False)
        places.note(_Place(number, sequence - 1))

    def forget(self, session: str) -> None:
        """Forget the places of a session."""
        self._places.pop(session, None)

    # A page.

    async def _page(self, session: str, after: int, limit: int, place: _Place | None = None) -> list[JournalEntry]:
        place = place or await self._find(session, after + 1)
        page = _Page(after, limit)
        assembler = RunAssembler()
        sequence = place.sequence
        while messages := await self._broker.read(events_subject(session), sequence, self._count(session, page)):
            for message in messages:
                sequence = message.sequence
                run = assembler.take(message)
                if run is None:
                    continue
                if run.header.first > page.next:
                    return await self._behind_gap(session, page, place, run)
                self.note(session, run.header.first, run.sequence)
                if page.add(run):
                    self._measure(session, messages)
                    return page.entries
            self._measure(session, messages)
        return page.entries

    def _measure(self, session: str, messages: list[StoredMessage]) -> None:
        places = self._places.get(session)
        if places is not None:
            headers = [RunHeader.of(message) for message in messages]
            places.run_bytes = sum(len(message.data) for message in messages) // len(messages) + 1
            places.run_events = sum(header.length for header in headers if header.part == 1) // len(headers)

    def _count(self, session: str, page: "_Page") -> int:
        """Return how many messages to read: what the rest of a page has, if they are as those before."""
        places = self._places.get(session)
        if places is None:
            return FIRST_READ
        count = PAGE_BYTES // places.run_bytes + 1
        if places.run_events:
            count = min(count, (page.limit - len(page.entries)) // places.run_events + 2)
        return min(max(count, 2), READ_LIMIT)

    async def _behind_gap(self, session: str, page: "_Page", place: _Place, run: StoredRun) -> list[JournalEntry]:
        """Return a page where a run was found that begins too late."""
        if page.entries:
            return page.entries
        after = page.next - 1
        if place != _BEGIN:  # the place is of a session before, that had the same key
            self.forget(session)
            return await self._page(session, after, page.limit, _BEGIN)
        archived = await self._archived(session, after, min(page.limit, run.header.first - page.next))
        if archived:
            return archived
        page.next = run.header.first
        page.add(run)
        return page.entries

    async def _archived(self, session: str, after: int, limit: int) -> list[JournalEntry]:
        """Return what the archive has of it, up to a gap."""
        entries = [] if self.archive is None else await self.archive(session, after, limit)
        return [entry for place, entry in enumerate(entries[:limit]) if entry.number == after + 1 + place]

    # The place of a number.

    async def _find(self, session: str, number: int) -> _Place:
        """Return a place that is at or before a number, and not far from it."""
        places = self._places.get(session)
        if places is not None:
            self._places.move_to_end(session)
        low = _BEGIN if places is None else places.before(number)
        if number - low.number <= NEAR:
            return low
        high = None if places is None else places.behind(number)
        if high is None:
            last = await self._broker.last(events_subject(session))
            if last is None:
                return _BEGIN
            high = _place_of(last)
            if high.number <= number:
                return high
        halves = False
        while high.number - low.number > NEAR and high.sequence - low.sequence > NEAR:
            share = 0.5 if halves else (number - low.number) / (high.number - low.number)
            halves = not halves  # sessions are not evenly spread over the stream: every second look halves what is left
            width = high.sequence - low.sequence
            middle = low.sequence + min(max(int(width * share), 1), width - 1)
            found = await self._broker.read(events_subject(session), middle, 1)
            place = _place_of(found[0]) if found else None
            if place is None or place.number > number:
                high = _Place(high.number if place is None else place.number, middle)
            elif place.sequence > low.sequence:
                low = place
            else:
                break
        return low


class _Page:
    """Entries that are put together until there are enough."""

    def __init__(self, after: int, limit: int) -> None:
        self.next = after + 1
        """The number of the entry that is to come next."""
        self.limit = limit
        self.entries: list[JournalEntry] = []
        self._size = 0

    def add(self, run: StoredRun) -> bool:
        """Add the entries of a run that are new. Return whether the page is full."""
        start = self.next - run.header.first
        if start < run.header.length:
            wanted = run.events[start : start + self.limit - len(self.entries)]
            numbers = range(self.next, self.next + len(wanted))
            self.entries += map(JournalEntry, numbers, wanted, repeat(run.header.time))
            self.next += len(wanted)
            self._size += sum(map(len, wanted))
        return len(self.entries) >= self.limit or self._size >= PAGE_BYTES


def _place_of(message: StoredMessage) -> _Place:
    header = RunHeader.of(message)
    return _Place(header.first, (header.begin or message.sequence) - 1)
