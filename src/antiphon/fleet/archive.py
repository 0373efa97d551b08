"""The archive of a fleet: each gateway keeps the events of finished turns in its own file, for the time when the broker has forgotten them.

Rule 1: events are copied in the order of their numbers and from the first on, so the copy of a session never has a gap. What the broker has
forgotten before it was copied here is asked of the other gateways; a session whose beginning none of them has is not copied.
Rule 2: a session is copied when its turn has ended, when the gateway starts, and from time to time while a turn runs or waits for a person:
that may take longer than the broker keeps events. Several events share one commit.
Rule 3: workers have no archive. They ask the gateways, of which one gets the question (`acp.archive`). Not all have the same: one that has
nothing after that number hands the question to another one. An event that is larger than a message of the broker is given in parts.
A deleted session leaves with its row: the tables have its events below the row.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway, CoreMessage, NoResponder, Subscription
from antiphon.fleet.errors import MessageTooLarge
from antiphon.gateway.base import GatewaySession
from antiphon.gateway.data import GatewayData
from antiphon.journal.base import JournalEntry
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.errors import NoSuchSession

__all__ = ["ARCHIVE", "FleetArchive", "read_archive"]

ARCHIVE: Final = "acp.archive"
"""The subject of requests for events that the broker has forgotten."""

PAGE: Final = 500
"""Events that are copied in one commit."""

ANSWER_TIMEOUT: Final = 5.0
"""Seconds for a gateway to answer."""

ANSWER_BYTES: Final = 512 * 1024
"""Bytes of the events of one answer."""

MOST_HANDED: Final = 24
"""How often a question is handed on. The broker chooses who gets it by chance, also the same gateway again: each time takes a millisecond."""

ENTRY_ROOM: Final = 64
"""Bytes of an answer, at most, that each event takes besides its own."""

RUNNING_INTERVAL: Final = 600.0
"""Seconds between two copies of sessions in which a turn runs: a fraction of the shortest time for which the broker keeps events."""

PAUSE: Final = 30.0
"""Seconds before a session that could not be copied is tried again."""

_log = logging.getLogger(__name__)


_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Question(msgspec.Struct, array_like=True):
    session: str
    after: _Size
    limit: int
    at: _Size | None = None
    """How many bytes of the first event are there already; None: the version of the one who asks takes no parts."""
    handed: _Size = 0
    """How often it was handed on."""


class _Entry(msgspec.Struct, array_like=True):
    number: int
    data: bytes
    time: float
    left: _Size = 0
    """How many bytes of it are missing behind `data`: they are asked for."""
    at: _Size = 0
    """How many are missing before it."""


async def read_archive(broker: Broker, session: str, after: int, limit: int) -> list[JournalEntry]:
    """Ask the gateways for events; empty if none of them answers, or none has any.

    Raises:
        BrokerAway: the broker does not answer.
    """
    data = bytearray()
    try:
        while True:
            question = msgspec.msgpack.encode(_Question(session, after, limit, len(data)))
            answer = await broker.request(ARCHIVE, question, ANSWER_TIMEOUT)
            entries = msgspec.msgpack.decode(answer, type=list[_Entry])
            if not any(each.left or each.at for each in entries):  # also of a gateway that knows no parts
                return [JournalEntry(each.number, each.data, each.time) for each in entries]
            first = entries[0]
            if first.at != len(data) or not first.data:
                raise BrokerAway("a part of an archived event is missing", hint="reading again may help")
            data += first.data
            if not first.left:
                return [JournalEntry(first.number, bytes(data), first.time)]
    except NoResponder:
        return []
    except msgspec.DecodeError as error:
        raise BrokerAway(f"the archive's answer cannot be read: {error}") from error


class FleetArchive:
    """The finished turns of all sessions, in the file of one gateway."""

    def __init__(
        self, broker: Broker, data: GatewayData, read: Callable[[str, int, int], Awaitable[list[JournalEntry]]]
    ) -> None:
        """`read` reads the journal of the fleet: what the broker has, and what other gateways have of the rest."""
        self._broker = broker
        self._data = data
        self._read = read
        self._waiting: dict[str, None] = {}
        self._copying = asyncio.Lock()
        self._wakes = asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[object]] = set()
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        """Copy what is new since this file was used last, and answer requests, from now on.

        Raises:
            StoreError: the file cannot be used.
        """
        self._subscription = self._broker.subscribe(ARCHIVE, self._asked, queue="archive")
        for row in await self._data.all():
            self.note(row)
        self._start(self._keep_copying())
        self._start(self._keep_noting())

    async def close(self) -> None:
        """Copy and answer no more."""
        if self._subscription is not None:
            self._subscription.end()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def note(self, row: GatewaySession) -> None:
        """Copy the events of a session if no turn runs in it."""
        if not row.turn:
            self._waiting[row.key] = None
            self._idle.clear()
            self._wakes.set()

    async def idle(self) -> None:
        """Wait until nothing waits to be copied."""
        await self._idle.wait()

    def _start(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_copying(self) -> None:
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                try:
                    await self.copy(key)
                except AcpError as error:
                    _log.warning("session `%s` is not archived yet: %s", key, error)
                    self._later(key)
                except Exception:  # the sessions behind it are to be copied all the same
                    _log.exception("session `%s` is not archived yet", key)
                    self._later(key)
            self._wakes.clear()
            self._idle.set()
            await self._wakes.wait()

    async def _keep_noting(self) -> None:
        """Copy the sessions in which a turn runs, from time to time."""
        while True:
            await asyncio.sleep(RUNNING_INTERVAL)
            try:
                for row in await self._data.interrupted():
                    self._again(row.key)
            except AcpError as error:
                _log.warning("sessions with a turn are not archived now: %s", error)

    def _later(self, key: str) -> None:
        asyncio.get_running_loop().call_later(PAUSE, self._again, key)

    def _again(self, key: str) -> None:
        self._waiting[key] = None
        self._wakes.set()

    async def copy(self, key: str) -> None:
        """Copy the events of a session that are not copied yet.

        Raises:
            AcpError: the broker or the file cannot be used now.
        """
        async with self._copying:
            await self._copy(key)

    async def _copy(self, key: str) -> None:
        journal = self._data.journal
        lease = await journal.claim(key, by="archive")
        try:
            after = await journal.length(key)
            while page := await self._read(key, after, PAGE):
                if page[0].number != after + 1:
                    _log.warning("session `%s` is not archived: its events before %d are gone", key, page[0].number)
                    return
                begin = 0
                while begin < len(page):  # events of one time are one append
                    end = begin + 1
                    while end < len(page) and page[end].time == page[begin].time:
                        end += 1
                    run = page[begin:end]
                    after = await journal.append(lease, [each.data for each in run], run[0].time)
                    begin = end
        except NoSuchSession:
            return  # it was deleted meanwhile
        finally:
            await journal.release(lease)

    async def read(self, session: str, after: int, limit: int) -> list[JournalEntry]:
        """Return what is archived here of a session after a number; what is not is asked of the other gateways."""
        found = await self._data.journal.read(session, after, limit)
        if found or not await self._may_be_more(session, after):
            return found
        return await read_archive(self._broker, session, after, limit)

    async def _may_be_more(self, session: str, after: int) -> bool:
        """Whether a session may have events after a number. The row of one in which a turn ran to no end may be older than its events."""
        query = "SELECT last_number > ? OR turn != '' FROM session WHERE key = ?"
        row = await self._data.database.read(lambda connection: connection.execute(query, (after, session)).fetchone())
        return row is None or bool(row[0])

    # Requests.

    def _asked(self, message: CoreMessage) -> None:
        if message.reply:
            self._start(self._answer(message))

    async def _answer(self, message: CoreMessage) -> None:
        found: list[JournalEntry] = []
        asked: _Question | None = None
        try:
            asked = msgspec.msgpack.decode(message.data, type=_Question)
            found = await self._data.journal.read(asked.session, asked.after, min(max(asked.limit, 0), PAGE))
        except (AcpError, *BAD_INPUT) as error:
            _log.warning("a request for archived events failed: %s", error)
        if asked is not None and not found and asked.handed < MOST_HANDED:
            question = msgspec.structs.replace(asked, handed=asked.handed + 1)
            self._broker.publish(ARCHIVE, msgspec.msgpack.encode(question), message.reply)
            return
        room = min(ANSWER_BYTES, self._broker.max_payload - ENTRY_ROOM)
        answer = msgspec.msgpack.encode(_fitting(found, None if asked is None else asked.at, room))
        try:
            self._broker.publish(message.reply, answer)
        except MessageTooLarge as error:
            _log.warning("an archived event cannot be given to an older version: %s", error)


def _fitting(found: Sequence[JournalEntry], at: int | None, room: int) -> list[_Entry]:
    """Return entries for one message: as many as fit, or the first one from a place on if it is larger than that."""
    if found and at is not None and (at or len(found[0].data) > room):
        number, data, time = found[0]
        return [_Entry(number, data[at : at + room], time, max(0, len(data) - at - room), at)]
    entries: list[_Entry] = []
    size = 0
    for each in found:
        size += len(each.data) + ENTRY_ROOM
        if entries and size > room:
            break
        entries.append(_Entry(each.number, each.data, each.time))
    return entries
