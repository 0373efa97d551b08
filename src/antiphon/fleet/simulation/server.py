"""A broker in memory, for tests: the interface of `fleet.broker` with a clock and faults of its own, repeatable from a seed.

    server = SimulatedServer(seed=7)
    broker = server.connect("worker")     # as many as there are processes
    server.cut(broker); server.mend(broker)     # its connection is lost, and there again
    server.stop(); server.start()               # all of them; what is stored stays
    server.freeze(broker); server.thaw(broker)  # nothing moves, nothing is lost: a stopped process, a slow network
    server.lose_answer(broker, stored=True)     # the next append raises `Unsure`, and is stored
    server.unsure = server.stale = 0.1          # the same at random; reads that are a moment old
    server.missed = 0.01                        # messages that one who follows does not get
    server.delay = (0.0, 0.02)                  # seconds each way, drawn for each message

A connection is two queues, one each way, and each keeps its order as a socket does. What is under way when a connection is lost has
arrived at the server up to a random point; everything behind it is lost. Nothing here starts a task or a thread, so it can be used in the
schedules of any event loop, also one with a virtual clock.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from antiphon.fleet.broker import (
    READ_LIMIT,
    BrokerAway,
    CoreMessage,
    Fence,
    Fenced,
    NoResponder,
    StoredMessage,
    Take,
    TakeCore,
    Unsure,
)
from antiphon.fleet.errors import BrokerFull, MessageTooLarge
from antiphon.fleet.simulation.store import SimulatedStore
from antiphon.fleet.streams import check_condition, fits, stream_of

__all__ = ["SimulatedBroker", "SimulatedServer"]

ANSWER_LIMIT: Final = 5.0
"""Seconds after which an append is unsure and any other call fails."""

MAX_PAYLOAD: Final = 8 << 20

EPOCH: Final = 1_750_000_000.0
"""What the clock of the server shows when the other clock shows 0."""

_INBOX: Final = "_INBOX."


class _Link:
    """One direction of a connection: what is sent arrives in order, after a delay."""

    def __init__(self, loop: asyncio.AbstractEventLoop, delay: Callable[[], float]) -> None:
        self._loop, self._delay = loop, delay
        self._queue: deque[tuple[float, int, Callable[[], None]]] = deque()
        self._timer: asyncio.Handle | None = None
        self._frozen = False
        self.size = 0

    def send(self, arrive: Callable[[], None], size: int = 0) -> None:
        """Call a function at the other end, after everything that was sent before."""
        when = self._loop.time() + self._delay()
        if self._queue:
            when = max(when, self._queue[-1][0])
        self._queue.append((when, size, arrive))
        self.size += size
        self._schedule()

    def drop(self, arrived: int = 0) -> None:
        """Lose what is under way, but for the first messages."""
        for _ in range(min(arrived, len(self._queue))):
            self._arrive()
        self._queue.clear()
        self.size = 0

    def freeze(self, frozen: bool) -> None:
        """Hold everything, or let it go on."""
        self._frozen = frozen
        self._schedule()

    def __len__(self) -> int:
        return len(self._queue)

    def _schedule(self) -> None:
        if self._timer is not None or not self._queue or self._frozen:
            return
        wait = self._queue[0][0] - self._loop.time()
        self._timer = self._loop.call_later(wait, self._pump) if wait > 0 else self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._timer = None
        try:
            if self._queue and not self._frozen and self._queue[0][0] <= self._loop.time():
                self._arrive()
        finally:
            self._schedule()

    def _arrive(self) -> None:
        _, size, arrive = self._queue.popleft()
        self.size -= size
        arrive()


class _Follower:
    """A pattern that a connection takes messages of."""

    def __init__(
        self, broker: "SimulatedBroker", pattern: str, take: Callable[[Any], None], queue: str, stored: bool
    ) -> None:
        self.broker, self.pattern, self.queue, self.stored = broker, pattern, queue, stored
        self._take: Callable[[Any], None] | None = take

    def give(self, message: StoredMessage | CoreMessage) -> None:
        """Call the function of this subscription, unless it has ended."""
        if self._take is None:
            return
        try:
            self._take(message)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"a subscription to {self.pattern} failed", "exception": error}
            )

    def end(self) -> None:
        """Take no more messages."""
        self._take = None
        self.broker._ended(self)


class _Append(NamedTuple):
    """A message that is to be stored, and its conditions."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    name: str
    fence: Fence | None
    expects: int | None
    replaces: bool


class SimulatedServer:
    """A broker in memory, with its connections and faults."""

    def __init__(
        self, clock: Callable[[], float] | None = None, *, seed: int = 0, max_payload: int = MAX_PAYLOAD
    ) -> None:
        self._clock = clock
        self.random = Random(seed)  # noqa: S311
        self.max_payload = max_payload
        self.delay = (0.0, 0.0)
        """Seconds that a message takes each way: from, to."""
        self.unsure = 0.0
        """The share of appends whose answer is lost; half of them are stored."""
        self.stale = 0.0
        """The share of reads that see the state of a moment ago."""
        self.stale_leader = 0.0
        """The share of reads of a last message that do, because the one that answers is the leader no more and does not know it."""
        self.missed = 0.0
        """The share of stored messages that one who follows does not get, though the connection stays."""
        self.checks_conditions = True
        """Whether fences are checked. A test of a protocol sets this to False, and has to fail then."""
        self.is_full = False
        """Whether there is no room to store a message."""
        self.is_up = True
        self._store = SimulatedStore()
        self._brokers: list[SimulatedBroker] = []
        self._exact: dict[str, list[_Follower]] = {}
        self._wide: list[_Follower] = []
        """Subscriptions that the server knows of: to one subject, and to a pattern."""

    def clock(self) -> float:
        """Seconds of the clock that was given, or of the event loop."""
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()

    def connect(self, name: str = "") -> "SimulatedBroker":
        """Return a new connection."""
        broker = SimulatedBroker(self, name or f"connection-{len(self._brokers)}")
        self._brokers.append(broker)
        if self.is_up:
            broker._connect(again=False)
        return broker

    # Faults.

    def cut(self, broker: "SimulatedBroker", arrived: int | None = None) -> None:
        """Lose a connection until `mend`. `arrived`: how many of the messages under way reach the server; random if None."""
        broker._cut = True
        broker._disconnect(arrived)

    def mend(self, broker: "SimulatedBroker") -> None:
        """Make a connection that was lost again."""
        broker._cut = False
        if self.is_up:
            broker._connect(again=True)

    def stop(self) -> None:
        """Stop the server: all connections are lost, what is stored stays."""
        self.is_up = False
        for broker in self._brokers:
            broker._disconnect(None)

    def start(self) -> None:
        """Start the server again: connections that are not cut come back, in random order."""
        self.is_up = True
        waiting = [broker for broker in self._brokers if not broker._cut]
        self.random.shuffle(waiting)
        for broker in waiting:
            broker._connect(again=True)

    def freeze(self, broker: "SimulatedBroker") -> None:
        """Hold all that a connection sends and receives, without losing it."""
        broker._up.freeze(True)
        broker._down.freeze(True)

    def thaw(self, broker: "SimulatedBroker") -> None:
        """Let a held connection go on."""
        broker._up.freeze(False)
        broker._down.freeze(False)

    def lose_answer(self, broker: "SimulatedBroker", *, stored: bool, count: int = 1) -> None:
        """Make the next appends of a connection raise `Unsure`, whether they are stored or not."""
        broker._lost_answers.extend([stored] * count)

    # What connections ask for.

    def _store_message(self, append: _Append) -> int:
        now, stream = self.clock(), stream_of(append.subject).name
        known = self._store.known(stream, append.name, now)
        if known is not None:
            return known
        if self.is_full:
            raise BrokerFull("the broker has no room left", hint="free space on the broker's disk")
        condition = append.fence or (None if append.expects is None else Fence(append.subject, append.expects))
        if condition is not None and self.checks_conditions:
            last = self._store.last(condition.subject)
            if (last.sequence if last else 0) != condition.sequence:
                raise Fenced(f"another message came first: {last.sequence if last else 0}")
        message = StoredMessage(append.subject, self._store.sequence + 1, append.data, append.headers, EPOCH + now)
        self._store.add(message, stream, append.name, now, replaces=append.replaces)
        for follower in self._followers(append.subject, stored=True):
            if not self.missed or self.random.random() >= self.missed:
                follower.broker._deliver(follower, message)
        return message.sequence

    def _read(self, pattern: str, after: int, limit: int) -> list[StoredMessage]:
        found = []
        for message in self._store.read(pattern, self._state(self.stale), after):
            found.append(message)
            if len(found) >= limit:
                break
        return found

    def _last(self, subject: str) -> StoredMessage | None:
        if not self.stale_leader:
            return self._store.last(subject)
        found = [*self._store.read(subject, self._state(self.stale_leader))]
        return found[-1] if found else None

    def _lasts(self, pattern: str) -> list[StoredMessage]:
        found = {message.subject: message for message in self._store.read(pattern, self._state(self.stale))}
        return sorted(found.values(), key=lambda message: message.sequence)

    def _state(self, stale: float) -> int:
        draw = self.random if stale and self.random.random() < stale else None
        return self._store.state(draw, self.clock())

    def _followers(self, subject: str, *, stored: bool) -> list[_Follower]:
        found = [*self._exact.get(subject, ()), *(each for each in self._wide if fits(each.pattern, subject))]
        return [follower for follower in found if follower.stored is stored]

    def _activate(self, follower: _Follower) -> None:
        """Deliver messages to a subscription from now on."""
        known = self._known(follower.pattern)
        if follower not in known:
            known.append(follower)

    def _deactivate(self, follower: _Follower) -> None:
        known = self._known(follower.pattern)
        if follower in known:
            known.remove(follower)
        if not known:
            self._exact.pop(follower.pattern, None)

    def _known(self, pattern: str) -> list[_Follower]:
        return self._wide if "*" in pattern or ">" in pattern else self._exact.setdefault(pattern, [])

    def _route(self, message: CoreMessage) -> bool:
        """Deliver a message that is not stored; say whether there was anything to deliver it to."""
        if message.subject.startswith(_INBOX):
            for broker in self._brokers:
                broker._deliver_answer(message.subject, message.data)
            return True
        groups: dict[str, list[_Follower]] = {}
        chosen: list[_Follower] = []
        for follower in self._followers(message.subject, stored=False):
            groups.setdefault(follower.queue, []).append(follower)
        for queue, members in groups.items():
            chosen.extend([self.random.choice(members)] if queue else members)
        for follower in chosen:
            follower.broker._deliver(follower, message)
        return bool(chosen)

    def _forget(self, broker: "SimulatedBroker") -> None:
        if broker in self._brokers:
            self._brokers.remove(broker)


class SimulatedBroker:
    """One connection to a `SimulatedServer`."""

    def __init__(self, server: SimulatedServer, name: str) -> None:
        self.name = name
        self.max_payload = server.max_payload
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._up = _Link(self._loop, self._draw_delay)
        self._down = _Link(self._loop, self._draw_delay)
        self._since: float | None = None
        self._cut = self._closed = False
        self._calls: list[Callable[[], None]] = []
        self._lost_answers: list[bool] = []
        self._subscriptions: dict[_Follower, None] = {}
        self._waiting: dict[str, tuple[asyncio.Future[Any], type[BrokerAway]]] = {}
        self._count = 0

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._since is not None

    @property
    def connected_since(self) -> float | None:
        """The time of `clock` at which the connection was made; None without one."""
        return self._since

    @property
    def unsent(self) -> int:
        """Bytes that have not arrived at the server."""
        return self._up.size

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the connection: that there is none."""
        return () if self.is_connected else ("there is no connection to the broker",)

    def clock(self) -> float:
        """Seconds of the server's clock, which all connections share."""
        return self._server.clock()

    def on_reconnect(self, call: Callable[[], None]) -> None:
        """Call a function whenever a lost connection is there again."""
        self._calls.append(call)

    # Stored messages.

    async def append(
        self,
        subject: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        name: str = "",
        fence: Fence | None = None,
        expects: int | None = None,
        replaces: bool = False,
    ) -> int:
        """Store a message and return its sequence number, as `Broker.append` does."""
        check_condition(subject, fence, expects)
        self._check_size(data)
        append = _Append(subject, data, dict(headers or {}), name, fence, expects, replaces)
        sequence: int = await self._call(lambda: self._append_there(append), len(data), Unsure)
        return sequence

    def _append_there(self, append: _Append) -> int:
        lost: bool | None = None
        if self._lost_answers:
            lost = self._lost_answers.pop(0)
        elif self._server.unsure and self._server.random.random() < self._server.unsure:
            lost = self._server.random.random() < 0.5
        if lost is None:
            return self._server._store_message(append)
        if lost:
            self._server._store_message(append)
        raise Unsure("the broker did not answer in time")

    async def last(self, subject: str) -> StoredMessage | None:
        """Return the last message of a subject."""
        stream_of(subject)
        found: StoredMessage | None = await self._call(lambda: self._server._last(subject))
        return found

    async def read(self, pattern: str, after: int = 0, limit: int = READ_LIMIT) -> list[StoredMessage]:
        """Return messages whose subject fits and whose number is greater."""
        stream_of(pattern)
        found: list[StoredMessage] = await self._call(lambda: self._server._read(pattern, after, limit))
        return found

    async def lasts(self, pattern: str) -> list[StoredMessage]:
        """Return the last message of each subject that fits."""
        stream_of(pattern)
        found: list[StoredMessage] = await self._call(lambda: self._server._lasts(pattern))
        return found

    async def remove(self, pattern: str) -> None:
        """Remove all messages whose subject fits."""
        stream_of(pattern)
        await self._call(lambda: self._server._store.remove(pattern, self._server.clock()))

    def follow(self, pattern: str, take: Take) -> _Follower:
        """Call `take` with messages whose subject fits, when they are stored from now on."""
        stream_of(pattern)
        return self._subscribe(_Follower(self, pattern, take, "", stored=True))

    # Messages that are not stored.

    def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message to all that subscribe to its subject now."""
        self._check_size(data)
        if self.is_connected:
            self._up.send(lambda: void(self._server._route(CoreMessage(subject, data, reply))), len(data))

    def subscribe(self, pattern: str, take: TakeCore, queue: str = "") -> _Follower:
        """Call `take` with messages whose subject fits; of the subscribers with the same `queue` one gets each message."""
        return self._subscribe(_Follower(self, pattern, take, queue, stored=False))

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        """Send a message and return the answer."""
        self._check_size(data)
        inbox, future = self._expect(BrokerAway)

        def arrive() -> None:
            if not self._server._route(CoreMessage(subject, data, inbox)):
                self._down.send(lambda: _fail(future, NoResponder(f"no process takes requests for {subject}")))

        self._up.send(arrive, len(data))
        answer: bytes = await self._wait(inbox, future, timeout)
        return answer

    async def close(self) -> None:
        """End the connection."""
        self._closed = self._cut = True
        self._disconnect(len(self._up))
        self._subscriptions.clear()
        self._server._forget(self)

    # The connection.

    def _connect(self, *, again: bool) -> None:
        if self._closed or self.is_connected:
            return
        self._since = self.clock()
        for follower in self._subscriptions:
            self._server._activate(follower)
        if again:
            for call in self._calls:
                self._down.send(call)

    def _disconnect(self, arrived: int | None) -> None:
        if not self.is_connected:
            return
        self._up.drop(self._server.random.randint(0, len(self._up)) if arrived is None else arrived)
        self._since = None
        for follower in self._subscriptions:
            self._server._deactivate(follower)
        self._down.drop()
        for future, error in self._waiting.values():
            _fail(future, error("the connection to the broker was lost"))
        self._waiting.clear()

    def _subscribe(self, follower: _Follower) -> _Follower:
        self._subscriptions[follower] = None
        if self.is_connected:
            self._up.send(lambda: self._activate(follower))
        return follower

    def _activate(self, follower: _Follower) -> None:
        if follower in self._subscriptions:
            self._server._activate(follower)

    def _ended(self, follower: _Follower) -> None:
        self._subscriptions.pop(follower, None)
        self._server._deactivate(follower)

    def _deliver(self, follower: _Follower, message: StoredMessage | CoreMessage) -> None:
        self._down.send(lambda: follower.give(message))

    def _deliver_answer(self, inbox: str, data: bytes) -> None:
        if inbox in self._waiting:
            future = self._waiting[inbox][0]
            self._down.send(lambda: _answer(future, data))

    # Calls that wait for an answer.

    async def _call(self, there: Callable[[], Any], size: int = 0, lost: type[BrokerAway] = BrokerAway) -> Any:
        """Call a function at the server and return its result. `lost`: the error when no answer comes."""
        inbox, future = self._expect(lost)

        def arrive() -> None:
            try:
                result = there()
            except Exception as error:
                failure = error
                self._down.send(lambda: _fail(future, failure))
            else:
                self._down.send(lambda: _answer(future, result))

        self._up.send(arrive, size)
        return await self._wait(inbox, future, ANSWER_LIMIT)

    def _expect(self, lost: type[BrokerAway]) -> tuple[str, asyncio.Future[Any]]:
        if not self.is_connected:
            raise BrokerAway("there is no connection to the broker")
        self._count += 1
        inbox, future = f"{_INBOX}{id(self)}.{self._count}", self._loop.create_future()
        self._waiting[inbox] = (future, lost)
        return inbox, future

    async def _wait(self, inbox: str, future: asyncio.Future[Any], limit: float) -> Any:
        lost = self._waiting[inbox][1]
        try:
            async with asyncio.timeout(limit):
                return await future
        except TimeoutError:
            raise lost(f"the broker did not answer within {limit:g} seconds") from None
        finally:
            self._waiting.pop(inbox, None)

    def _check_size(self, data: bytes) -> None:
        if len(data) > self.max_payload:
            raise MessageTooLarge(len(data), self.max_payload)

    def _draw_delay(self) -> float:
        least, most = self._server.delay
        return self._server.random.uniform(least, most) if most else 0.0


def void(_: object) -> None:
    """Ignore a result."""


def _answer(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
