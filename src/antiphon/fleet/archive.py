"""The archive of a fleet: each gateway keeps the events of finished turns in its own file, for the time when the broker has forgotten them.

Rule 1: events are copied in the order of their numbers and from the first on, so the copy of a session never has a gap. What the broker has
forgotten before it was copied here is asked of the other gateways; a session whose beginning none of them has is not copied.
Rule 2: a session is copied when its turn has ended and when the gateway starts. Several events share one commit.
Rule 3: workers have no archive. They ask the gateways, of which one answers (`acp.archive`).
A deleted session leaves with its row: the tables have its events below the row.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Final

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, BrokerAway, CoreMessage, NoResponder, Subscription
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

PAUSE: Final = 30.0
"""Seconds before a session that could not be copied is tried again."""

_log = logging.getLogger(__name__)


class _Question(msgspec.Struct, array_like=True):
    session: str
    after: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    limit: int


class _Entry(msgspec.Struct, array_like=True):
    number: int
    data: bytes
    time: float


async def read_archive(broker: Broker, session: str, after: int, limit: int) -> list[JournalEntry]:
    """Ask the gateways for events; empty if none of them answers, or none has any.

    Raises:
        BrokerAway: the broker does not answer.
    """
    question = msgspec.msgpack.encode(_Question(session, after, limit))
    try:
        answer = await broker.request(ARCHIVE, question, ANSWER_TIMEOUT)
        entries = msgspec.msgpack.decode(answer, type=list[_Entry])
    except NoResponder:
        return []
    except msgspec.DecodeError as error:
        raise BrokerAway(f"the archive's answer cannot be read: {error}") from error
    return [JournalEntry(each.number, each.data, each.time) for each in entries]


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
        return found or await read_archive(self._broker, session, after, limit)

    # Requests.

    def _asked(self, message: CoreMessage) -> None:
        if message.reply:
            self._start(self._answer(message))

    async def _answer(self, message: CoreMessage) -> None:
        found: list[JournalEntry] = []
        try:
            asked = msgspec.msgpack.decode(message.data, type=_Question)
            found = await self._data.journal.read(asked.session, asked.after, min(max(asked.limit, 0), PAGE))
        except (AcpError, *BAD_INPUT) as error:
            _log.warning("a request for archived events failed: %s", error)
        entries: list[_Entry] = []
        size = 0
        for each in found:
            size += len(each.data)
            if entries and size > ANSWER_BYTES:
                break
            entries.append(_Entry(each.number, each.data, each.time))
        self._broker.publish(message.reply, msgspec.msgpack.encode(entries))
