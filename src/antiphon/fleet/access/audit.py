"""What workers have to add to the audit log: they send it to one of the gateways, which has such a log.

Any gateway will do: an entry names the token and the address of the client, and logs are read together. A worker keeps entries until a
gateway has confirmed them. Those that it cannot keep any longer go to its own log, and the reason with them. An entry whose confirmation
was lost may be in the logs of two gateways.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from secrets import token_hex
from typing import Annotated, Final

import msgspec

from antiphon.errors import AcpError
from antiphon.fleet.broker import Broker, CoreMessage
from antiphon.gateway.access.audit import DETAIL_LIMIT, AccessLog
from antiphon.gateway.base import HubAudit, Principal
from antiphon.protocol.base import BAD_INPUT
from antiphon.store.database import utc_now

__all__ = ["AUDIT_SUBJECT", "AuditReceiver", "AuditSender"]

AUDIT_SUBJECT: Final = "acp.audit"
QUEUE: Final = "gateways"

ENTRIES: Final = 10_000
"""Entries that a worker keeps while no gateway takes them: a few megabytes."""

BATCH_CHARACTERS: Final = 64 * 1024
"""Characters of the entries of one message, or those of one entry: each may take six bytes, and any broker takes 1 MiB."""

ENTRIES_AT_ONCE: Final = 200
"""Entries of one message, however short they are."""

ANSWER_LIMIT: Final = 5.0
"""Seconds for a gateway to confirm entries."""

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
"""Seconds before another try: doubled each time, up to the longest."""

CLOSE_LIMIT: Final = 3.0
"""Seconds for what is left when a worker ends."""

BATCHES: Final = 1000
"""Messages that a gateway remembers, not to store one twice that was sent again."""

STORED, UNREADABLE = b"stored", b"unreadable"
"""The answers of a gateway."""

_log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry, as it is sent. `age` is how many seconds ago it was: clocks may differ."""

    actor: str
    token: str
    address: str
    action: str
    session: str
    detail: str
    age: Annotated[float, msgspec.Meta(ge=0, le=10**9)] = 0.0


class _Batch(msgspec.Struct, frozen=True):
    """Entries in their order, with a name by which a second try is known."""

    name: str
    entries: tuple[_Entry, ...]


class AuditSender:
    """The audit of a worker's hub. Call it as any `HubAudit`."""

    def __init__(self, broker: Broker, otherwise: HubAudit | None = None) -> None:
        """`otherwise` takes what no gateway has taken; without it such entries are logged."""
        self._broker = broker
        self._otherwise = otherwise
        self._entries: deque[tuple[float, _Entry]] = deque()
        self._first = 0
        """The number of the first of them, counted from the start of this worker."""
        self._batch: tuple[str, int, int] | None = None
        """The message that is being sent: its name, and the numbers from and to which it has entries. Another try has the same."""
        self._sending: asyncio.Task[None] | None = None

    def __call__(self, principal: Principal, action: str, key: str, detail: str) -> None:
        entry = _Entry(principal.name, principal.token_id, principal.address, action, key, detail[:DETAIL_LIMIT])
        self._entries.append((self._broker.clock(), entry))
        if len(self._entries) > ENTRIES:
            self._give_up(1, f"more than {ENTRIES} wait for a gateway")
        self._send_soon()

    @property
    def waiting(self) -> int:
        """Entries that no gateway has confirmed."""
        return len(self._entries)

    async def close(self) -> None:
        """Send what is left within a limit; the rest is kept here."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_LIMIT):
                while (sending := self._send_soon()) is not None:
                    await asyncio.shield(sending)
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        self._give_up(len(self._entries), "the worker ends, and no gateway has taken it")

    def _send_soon(self) -> "asyncio.Task[None] | None":
        if self._entries and (self._sending is None or self._sending.done()):
            self._sending = asyncio.get_running_loop().create_task(self._send())
        return self._sending if self._entries else None

    async def _send(self) -> None:
        delay = FIRST_DELAY
        while self._entries:
            if self._batch is None or self._batch[1] != self._first:
                self._batch = token_hex(8), self._first, self._first + _fitting(entry for _, entry in self._entries)
            name, _, end = self._batch
            try:
                answer = await self._broker.request(AUDIT_SUBJECT, self._encoded(name, end - self._first), ANSWER_LIMIT)
            except AcpError as error:
                _log.debug("no gateway takes entries of the audit log: %s", error)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_DELAY)
                continue
            delay = FIRST_DELAY
            if answer != STORED:
                self._give_up(end - self._first, "a gateway could not read it")
            while self._first < end:  # some of them may have been given up meanwhile
                self._take_first()

    def _encoded(self, name: str, count: int) -> bytes:
        now = self._broker.clock()
        entries = islice(self._entries, count)
        aged = (msgspec.structs.replace(entry, age=max(0.0, now - at)) for at, entry in entries)
        return msgspec.json.encode(_Batch(name, tuple(aged)))

    def _take_first(self) -> _Entry:
        self._first += 1
        return self._entries.popleft()[1]

    def _give_up(self, count: int, why: str) -> None:
        """Write the oldest entries down here."""
        for _ in range(count):
            entry = self._take_first()
            principal = Principal(entry.actor, token_id=entry.token, address=entry.address)
            if self._otherwise is not None:
                self._otherwise(principal, entry.action, entry.session, entry.detail)
            else:
                _log.warning("an entry of the audit log stays here, since %s: %s", why, entry)


def _fitting(entries: Iterable[_Entry]) -> int:
    """Return how many of these entries fit into one message, one at least."""
    count = size = 0
    for entry in entries:
        size += sum(map(len, (entry.actor, entry.address, entry.action, entry.session, entry.detail)))
        if count and (size > BATCH_CHARACTERS or count == ENTRIES_AT_ONCE):
            break
        count += 1
    return count


class AuditReceiver:
    """Takes entries of workers into the audit log of a gateway."""

    def __init__(self, broker: Broker, audit: AccessLog) -> None:
        self._broker = broker
        self._audit = audit
        self._names: OrderedDict[str, None] = OrderedDict()
        self._subscription = broker.subscribe(AUDIT_SUBJECT, self._take, QUEUE)

    def close(self) -> None:
        """Take no more."""
        self._subscription.end()

    def _take(self, message: CoreMessage) -> None:
        try:
            batch = msgspec.json.decode(message.data, type=_Batch)
        except BAD_INPUT as error:
            _log.error("entries of a worker for the audit log cannot be read: %s", error)
            self._answer(message, UNREADABLE)
            return
        if batch.name not in self._names:
            self._names[batch.name] = None
            while len(self._names) > BATCHES:
                self._names.popitem(last=False)
            for each in batch.entries:
                self._audit.add(
                    each.action,
                    actor=each.actor,
                    token=each.token,
                    address=each.address,
                    session=each.session,
                    detail=each.detail,
                    at=utc_now() - timedelta(seconds=each.age),
                )
        self._answer(message, STORED)

    def _answer(self, message: CoreMessage, answer: bytes) -> None:
        if message.reply:
            self._broker.publish(message.reply, answer)
