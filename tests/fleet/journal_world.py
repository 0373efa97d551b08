"""A small world of journals for random schedules: workers that claim sessions and append to them, readers, and faults of all kinds.

Each event that is appended has a text of its own, so that the checks at the end can find every one: where it is, and where it must not be.
"""

import asyncio
from contextlib import aclosing, suppress
from random import Random
from typing import NamedTuple

from antiphon.fleet.broker import BrokerAway
from antiphon.fleet.journal import FleetJournal
from antiphon.fleet.records.formats import RowRecord, RunHeader, events_subject, row_subject
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from antiphon.gateway.base import GatewaySession
from antiphon.journal.base import JournalEntry, Lease, StaleLease
from antiphon.store.errors import NoSuchSession
from antiphon.store.locks import LiveElsewhere

__all__ = ["JournalWorld"]

SESSIONS = ("a", "b")
ROUNDS = 8
FAULTS = 14
LIMIT = 900.0
"""Seconds of a virtual clock for one schedule."""


class Given(NamedTuple):
    """An event that was appended: when, and with which lease."""

    session: str
    epoch: int
    moment: int


class JournalWorld:
    """The server, the workers that live now, and what is known of every event and lease."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.server = SimulatedServer(
            seed=random.getrandbits(32), max_payload=1024 + random.choice([200, 2000, 100_000])
        )
        self.server.delay = random.choice([(0.0, 0.0), (0.0, 0.02), (0.0, 1.0)])
        self.server.unsure = random.choice([0.0, 0.05, 0.3])
        self.server.stale = random.choice([0.0, 0.3])
        self.trust = random.choice([1.0, 0.8, 0.4])
        self.dead: set[str] = set()
        """The workers that all others take for dead, rightly or not."""
        self.given: dict[bytes, Given] = {}
        self.stored: dict[bytes, int] = {}
        """The events that were acknowledged, with their numbers."""
        self.claims: dict[str, list[tuple[int, int]]] = {session: [] for session in SESSIONS}
        """Of each session the epochs that were claimed, with the moment at which the claim was known."""
        self.seen: list[tuple[str, list[JournalEntry]]] = []
        """What each tail has given."""
        self.lost: list[str] = []
        self._moment = 0
        self._names = 0
        self._living: list[tuple[SimulatedBroker, asyncio.Task[None]]] = []

    def moment(self) -> int:
        self._moment += 1
        return self._moment

    async def play(self) -> None:
        """Let workers and readers do their work under faults, then without any until everything has come to its end."""
        first = self.server.connect("first")
        for session in SESSIONS:
            row = RowRecord(GatewaySession(session, "demo", session, "/w"))
            unsure, self.server.unsure = self.server.unsure, 0.0
            await first.append(row_subject(session), row.encode())
            self.server.unsure = unsure
        tails = [asyncio.create_task(self._follow(session)) for session in SESSIONS for _ in range(2)]
        try:
            for _ in range(2):
                self._start()
            for _ in range(FAULTS):
                await asyncio.sleep(self.random.random() * 2)
                await self._fault()
            self._heal()
            await _ended([task for _, task in self._living])
            logs = {session: await self._log(session) for session in SESSIONS}
            await self._until_seen(logs)
        finally:
            for task in (*tails, *(task for _, task in self._living)):
                task.cancel()
            await _ended([*tails, *(task for _, task in self._living)])
        self.check(logs)
        await self._check_epochs()
        await first.close()

    # Workers.

    def _start(self) -> None:
        self._names += 1
        name = f"worker-{self._names}"
        broker = self.server.connect(name)
        self._living.append((broker, asyncio.create_task(self._work(broker, name), name=name)))

    async def _work(self, broker: SimulatedBroker, name: str) -> None:
        journal = FleetJournal(broker, name, self._is_alive)
        journal.lost = self.lost.append
        try:
            for _ in range(ROUNDS):
                await asyncio.sleep(self.random.random())
                await self._own(journal, self.random.choice(SESSIONS))
            await journal.close(LIMIT)
        finally:
            self.dead.add(name)
            await journal.close(0)
            await broker.close()

    def _is_alive(self, worker: str) -> bool:
        """Guess whether a worker lives: often wrongly, because what may be stored must not depend on it."""
        return worker not in self.dead and self.random.random() < self.trust

    async def _own(self, journal: FleetJournal, session: str) -> None:
        try:
            lease = await journal.claim(session)
        except (LiveElsewhere, StaleLease, BrokerAway):
            return
        self.claims[session].append((lease.epoch, self.moment()))
        waiting: list[asyncio.Future[int]] = []
        try:
            for _ in range(self.random.randint(0, 10)):
                waiting.append(self._append(journal, lease))
                if self.random.random() < 0.6:
                    await asyncio.sleep(self.random.random() * 0.5)
        except (StaleLease, NoSuchSession):
            pass
        if self.random.random() < 0.8:
            await journal.release(lease)
        else:
            await journal.flush()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _append(self, journal: FleetJournal, lease: Lease) -> "asyncio.Future[int]":
        moment = self.moment()
        sizes = [self.random.choice([0, 3, 3, 900]) for _ in range(self.random.choice([1, 1, 2, 7]))]
        events = [b"%d.%d.%d%s" % (lease.epoch, moment, place, b"\n" * size) for place, size in enumerate(sizes)]
        future = journal.append(lease, events, float(self.random.randint(0, 1)))
        for event in events:
            self.given[event] = Given(lease.session, lease.epoch, moment)

        def done(future: "asyncio.Future[int]") -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None:
                last = future.result()
                self.stored.update((event, last - len(events) + 1 + place) for place, event in enumerate(events))
            else:
                assert isinstance(error, StaleLease), error

        future.add_done_callback(done)
        return future

    # Readers.

    async def _follow(self, session: str) -> None:
        broker = self.server.connect("reader")
        journal = FleetJournal(broker, "")
        entries: list[JournalEntry] = []
        self.seen.append((session, entries))
        try:
            while True:
                after = entries[-1].number if entries else 0
                with suppress(BrokerAway):
                    async with aclosing(journal.tail(session, after)) as tail:  # type: ignore[type-var]
                        async for entry in tail:
                            entries.append(entry)  # noqa: PERF401
                await asyncio.sleep(0.1)
        finally:
            await journal.close(0)
            await broker.close()

    async def _until_seen(self, logs: dict[str, list[JournalEntry]]) -> None:
        async with asyncio.timeout(LIMIT):
            while any(len(entries) < len(logs[session]) for session, entries in self.seen):  # noqa: ASYNC110
                await asyncio.sleep(1.0)  # of a virtual clock

    async def _log(self, session: str) -> list[JournalEntry]:
        """Read all of a session, in pages of random sizes."""
        broker = self.server.connect("last reader")
        journal = FleetJournal(broker, "")
        found: list[JournalEntry] = []
        while page := await journal.read(session, len(found), self.random.randint(1, 20)):
            found += page
        assert await journal.length(session) == len(found)
        await journal.close(0)
        await broker.close()
        return found

    # Faults.

    async def _fault(self) -> None:
        kinds = [
            "cut",
            "mend",
            "freeze",
            "thaw",
            "die",
            "guess",
            "trust",
            "stop",
            "start",
            "full",
            "empty",
            "cancel",
            "none",
        ]
        kind = self.random.choice(kinds)
        broker, task = self.random.choice(self._living)
        if kind == "die":  # and another one is started
            task.cancel()
            self.server.mend(broker)
            self._start()
        elif kind == "guess":
            self.dead.add(broker.name)
        elif kind == "trust" and not task.done():
            self.dead.discard(broker.name)
        elif kind in ("full", "empty"):
            self.server.is_full = kind == "full"
        elif kind in ("stop", "start"):
            getattr(self.server, kind)()
        elif kind in ("cut", "mend", "freeze", "thaw"):
            getattr(self.server, kind)(broker)

    def _heal(self) -> None:
        self.server.unsure = 0.0
        self.server.is_full = False
        self.server.start()
        for broker, _ in self._living:
            self.server.thaw(broker)
            self.server.mend(broker)

    # Checks.

    def check(self, logs: dict[str, list[JournalEntry]]) -> None:
        """Compare the logs with what was given and acknowledged."""
        for session, log in logs.items():
            assert [entry.number for entry in log] == list(range(1, len(log) + 1)), "numbers have a gap"
            places = {entry.data: entry.number for entry in log}
            assert len(places) == len(log), "an event is stored twice"
            for data, number in places.items():
                self._check_event(session, data, number)
            ours = {data: number for data, number in self.stored.items() if self.given[data].session == session}
            missing = ours.keys() - places.keys()
            assert not missing, f"{len(missing)} acknowledged events are lost"
            for seen_of, seen in self.seen:
                if seen_of == session:
                    shown = [(entry.number, entry.data) for entry in seen]
                    assert shown == [(entry.number, entry.data) for entry in log], "a tail has given something else"

    def _check_event(self, session: str, data: bytes, number: int) -> None:
        given = self.given[data]
        assert given.session == session
        assert self.stored.get(data, number) == number, "an event has another number than was acknowledged"
        for epoch, moment in self.claims[session]:
            assert epoch <= given.epoch or given.moment < moment, f"a stale lease has stored {data[:20]!r}"

    async def _check_epochs(self) -> None:
        """Look at the messages themselves: a lease has stored nothing behind a later one."""
        broker = self.server.connect("last look")
        stale, self.server.stale = self.server.stale, 0.0
        for session in SESSIONS:
            messages = await broker.read(events_subject(session), 0, 1_000_000)
            epochs = [int(RunHeader.of(message).name.partition(".")[0]) for message in messages]
            assert epochs == sorted(epochs), "a stale lease has stored behind a later one"
        self.server.stale = stale
        await broker.close()


async def _ended(tasks: "list[asyncio.Task[None]]") -> None:
    """Wait until tasks have ended, with success or because they were cancelled."""
    _, waiting = await asyncio.wait(tasks, timeout=LIMIT)
    assert not waiting, f"these never end: {waiting}"
    for task in tasks:
        if not task.cancelled():
            task.result()
