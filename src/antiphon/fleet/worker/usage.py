"""What each token uses in the whole fleet: its prompts of the last minute, and its open sessions. Its limits hold for all workers together.

The last message of `acp.s.TOKEN.use` is the record of a token, under a hash of its number. Rules:

1. A prompt goes to an agent, and a session is opened, when a record that counts it is stored, under the condition that the record it was
   made from is still the last. Of two workers that count at the same time one counts again: there are never more than the limit in total.
2. No clocks are compared. A record has the age of each prompt when it was made, and a worker adds the time since it received the record. One that
   is older than this start of the worker counts as new at the start.
3. Each worker counts its own sessions. Those of a worker that lives no longer do not count.
4. Without the broker nothing is counted, and nothing is refused: clients come over the broker too, so this is only what was on its way.
5. A worker that finds no room for a session asks the others by its record to close what the token does not use.
"""

import asyncio
import hashlib
import logging
import random
from collections import Counter
from collections.abc import Callable
from secrets import token_hex
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from antiphon.fleet.broker import Broker, BrokerAway, Fenced, StoredMessage
from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import NAME
from antiphon.gateway.access.quotas import MINUTE, key_of, too_many_prompts
from antiphon.gateway.base import Principal
from antiphon.gateway.hub import Hub
from antiphon.protocol.base import BAD_INPUT

__all__ = ["FleetUsage"]

ALL_USES: Final = "acp.s.*.use"

ENTRIES: Final = 128
"""Entries for prompts in a record. Above that, neighbours become one entry with the age of the younger."""

STORE_TIMEOUT: Final = 5.0
"""Seconds for a record to be stored."""

TRIES: Final = 64
"""How often a record is made anew while other workers store theirs."""

PAUSE: Final = 0.02
"""Seconds before another try, at most: at random, so that not all try together."""

GATHER: Final = 0.2
"""Seconds for which closed sessions are gathered before they are counted no more."""

_log = logging.getLogger(__name__)


class _Prompts(NamedTuple):
    age: float
    """Seconds since the youngest of them, when the record was made."""
    number: int


class _UsageRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token uses."""

    prompts: tuple[_Prompts, ...] = ()
    """Those of the last minute, the oldest first."""
    sessions: dict[str, int] = {}
    """Open sessions, by the names of the workers."""
    full: bool = False
    """Whether the worker that made it found no room for a session."""


class _Known(NamedTuple):
    sequence: int
    record: _UsageRecord
    at: float
    """When it was received, by our clock."""


class FleetUsage:
    """Counts what tokens use at the hub of one worker, on top of what they use at the others."""

    def __init__(self, broker: Broker, worker: str, hub: Hub, is_alive: Callable[[str], bool]) -> None:
        self._broker = broker
        self._worker = worker
        self._hub = hub
        self._is_alive = is_alive
        self._appends = CertainAppends(broker)
        self._known: dict[str, _Known] = {}
        """The last record of each token that was seen, by its subject."""
        self._opening: Counter[str] = Counter()
        """Sessions that are being counted and are not open yet."""
        self._closing: set[str] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._subscription = broker.follow(ALL_USES, self._take)

    async def start(self) -> None:
        """Read what was used before this worker was there.

        Raises:
            BrokerAway: the broker does not answer.
        """
        for message in await self._broker.lasts(ALL_USES):
            self._received(message)

    async def close(self) -> None:
        """Count no more."""
        self._subscription.end()

    # Prompts.

    async def refuse_prompt(self, principal: Principal) -> str:
        """Count a prompt that is about to be sent to an agent, and return why it is refused; empty if it is not."""
        most = self._hub.limits.prompts_per_minute

        def one_more(record: _UsageRecord) -> _UsageRecord | None:
            if sum(each.number for each in record.prompts) >= most:
                return None
            return msgspec.structs.replace(record, prompts=(*record.prompts, _Prompts(0.0, 1)))

        return "" if await self._change(key_of(principal), one_more) else too_many_prompts(most)

    # Sessions.

    async def refuse_session(self, token: str, more: int = 0) -> str:
        """Count the sessions that a token has open here and `more`, and return why they are too many; empty if they are not."""
        if not token:
            return ""
        self._opening[token] += more
        try:
            if await self._change(token, lambda record: self._with_sessions(record, token)):
                return ""
            self._make_room(token)
            if await self._change(token, lambda record: self._with_sessions(record, token)):
                return ""
            await self._change(token, lambda record: msgspec.structs.replace(record, full=True))
            most = self._hub.limits.token_sessions
            return f"this token has {most} sessions open in the fleet, as many as it may"
        finally:
            self._opening[token] -= more
            if not self._opening[token]:
                del self._opening[token]

    def _with_sessions(self, record: _UsageRecord, token: str, *, always: bool = False) -> _UsageRecord | None:
        """Return a record with the sessions that are here now; None: they are too many."""
        others = {worker: count for worker, count in record.sessions.items() if worker != self._worker}
        here = self._hub.opened.get(token, 0) + self._opening.get(token, 0)
        if not always and sum(others.values()) + here > self._hub.limits.token_sessions:
            return None
        return msgspec.structs.replace(record, sessions={**others, self._worker: here} if here else others)

    def _make_room(self, token: str) -> None:
        """Close sessions of a token that are not used."""
        for agent in self._hub.agents.values():
            agent.close_idle(max(1, self._hub.limits.token_sessions // 16), token)

    def closed(self, token: str) -> None:
        """Count a session of a token no more, in a moment."""
        if token and token not in self._closing and not self._hub.is_draining:
            self._closing.add(token)
            self._hub.run(self._count_closed(token), after=lambda: self._closing.discard(token))

    async def _count_closed(self, token: str) -> None:
        await asyncio.sleep(GATHER)
        self._closing.discard(token)  # before they are counted: another may be closed meanwhile
        await self._change(token, lambda record: self._with_sessions(record, token, always=True))

    def sessions_of(self, token: str) -> dict[str, int]:
        """Return how many sessions a token has open at each living worker, as far as this one knows."""
        known = self._known.get(_subject(token))
        return {} if known is None else self._current(known, self._broker.clock()).sessions

    async def forget(self, token: str) -> None:
        """Remove the record of a token that is good no longer."""
        try:
            await self._broker.remove(_subject(token))
        except BrokerAway as error:
            _log.warning("what a revoked token used stays stored: %s", error.sentence)

    # Records.

    async def _change(self, token: str, change: Callable[[_UsageRecord], _UsageRecord | None]) -> bool:
        """Store a record that was made from the last one. False: `change` made none, or others were faster each time."""
        subject = _subject(token)
        lock = self._locks.get(subject)
        if lock is None:
            lock = self._locks[subject] = asyncio.Lock()
        try:
            async with lock:
                for _ in range(TRIES):
                    known = self._known.get(subject) or await self._read(subject)
                    now = self._broker.clock()
                    changed = change(self._current(known, now))
                    if changed is None:
                        return False
                    if await self._store(subject, known.sequence, changed, now):
                        return True
                    await asyncio.sleep(random.random() * PAUSE)  # noqa: S311 - no secret
                    await self._read(subject)
        except BrokerAway as error:
            _log.warning("what a token uses is not counted now: %s", error.sentence)
            return True
        return False

    async def _store(self, subject: str, sequence: int, record: _UsageRecord, now: float) -> bool:
        """Store a record behind another one. False: that is not the last any more."""
        name = token_hex(8)
        try:
            stored = await self._appends.append(
                subject,
                msgspec.json.encode(record),
                name=name,
                headers={NAME: name},
                expects=sequence,
                replaces=True,
                after=sequence,
                limit=STORE_TIMEOUT,
            )
        except Fenced:
            return False
        self._note(subject, _Known(stored, record, now))
        return True

    async def _read(self, subject: str) -> _Known:
        """Return the last record as the leader has it."""
        message = await self._broker.last(subject)
        if message is None:
            self._known.pop(subject, None)
            return _Known(0, _UsageRecord(), self._broker.clock())
        self._received(message)
        return self._known[subject]

    def _received(self, message: StoredMessage) -> None:
        self._note(message.subject, _Known(message.sequence, _record_of(message), self._broker.clock()))

    def _note(self, subject: str, known: _Known) -> None:
        before = self._known.get(subject)
        if before is None or before.sequence < known.sequence:
            self._known[subject] = known

    def _take(self, message: StoredMessage) -> None:
        self._received(message)
        if _record_of(message).full:
            for token in (*self._hub.opened,):
                if token and _subject(token) == message.subject:
                    self._make_room(token)

    def _current(self, known: _Known, now: float) -> _UsageRecord:
        """Return a record as it is now: without old prompts, and without the sessions of workers that live no longer."""
        waited = now - known.at
        prompts = [_Prompts(round(age + waited, 3), number) for age, number in known.record.prompts]
        recent = [each for each in prompts if each.age < MINUTE]
        if len(recent) >= ENTRIES:
            pairs = [recent[at : at + 2] for at in range(0, len(recent), 2)]
            recent = [_Prompts(pair[-1].age, sum(each.number for each in pair)) for pair in pairs]
        living = {name: count for name, count in known.record.sessions.items() if self._is_alive(name)}
        return _UsageRecord(tuple(recent), living)


def _record_of(message: StoredMessage) -> _UsageRecord:
    try:
        return msgspec.json.decode(message.data, type=_UsageRecord)
    except BAD_INPUT as error:
        _log.warning("what a token uses cannot be read: %s", error)
        return _UsageRecord()


def _subject(token: str) -> str:
    return f"acp.s.{hashlib.sha256(token.encode()).hexdigest()[:32]}.use"
