"""The workers of a fleet: each sends a heartbeat, and every other process judges from these which workers live.

Rules:

1. A worker is taken for dead when no beat of it came for the length of a lease, by the clock of the process that judges, and only if that
   process could have received one all that time: after a lost connection, and after this process itself stood still, every worker has a
   fresh lease. The clocks of machines never matter, and no time is ever sent.
2. Death is a guess. It costs a session its process if it is wrong; what a worker may store is decided by the broker (`fleet.journal`).
3. A worker that leaves in order says so with its last beat. One that was started again names the start before it, whose data it has
   locked: that one has ended for certain.
4. A beat has the versions of its sender. Fields that this version does not know are ignored: neighbouring versions run side by side.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import msgspec

from antiphon import __version__
from antiphon.fleet.broker import Broker, CoreMessage
from antiphon.gateway.base import EXTENSION
from antiphon.journal.owner import SessionWorker, worker_title
from antiphon.protocol.base import BAD_INPUT

__all__ = ["BEAT", "FORMAT", "INTERVAL", "LEASE", "WHO", "Heartbeat", "Members", "WorkerState"]

BEAT: Final = "acp.beat."
"""The subject of the beats of a worker, without its name."""

WHO: Final = "acp.who"
"""The subject that asks all workers to send a beat, and their live summaries, now."""

LEASE: Final = 3.0
"""Seconds without a beat after which a worker is taken for dead."""

INTERVAL: Final = 1.0
"""Seconds between two beats."""

FORMAT: Final = 1
"""Version of the messages between the processes of a fleet. Neighbouring ones understand each other."""

LOOKS: Final = 20
"""How often in a lease the workers are looked at."""

UNCONFIRMED: Final = 100
"""Beats that are remembered while none of them comes back."""

GONE: Final = 1000
"""Names of workers that are known to have ended. They are new with each start, so the oldest are not asked for any more."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
"""A number in a beat that others calculate with. With negative ones a worker could seem free without a slot, and a placement would fail.

The load of one with a number that no float can have could not be calculated, and no client would find any worker.
"""

_Lease: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=10**6)]

_log = logging.getLogger(__name__)


class WorkerState(SessionWorker, frozen=True):
    """A worker as it describes itself in a beat. `alive` is false in its last one."""

    host: str = ""
    """The machine that it runs on: workers of one machine have the same directories."""
    version: str = ""
    extension: int = EXTENSION
    format: int = FORMAT
    agents: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    workspaces: dict[str, str] = msgspec.field(default_factory=dict)
    """Directories that several machines share: the name of each, and where it is on this one."""
    slots: _Count = 0
    """Sessions that may be in use at the same time."""
    used: _Count = 0
    """Sessions that are in use: a client follows them, or something goes on in them."""
    turns: _Count = 0
    draining: bool = False
    """Whether it takes no sessions any more, because it is about to end."""
    replaces: str = ""
    """The name of the start before this one, which has ended; empty if there was none."""
    problem: str = ""
    """Why it cannot store what happens in its sessions; empty if it can."""
    beat: int = 0
    """The number of this beat."""
    pid: int = 0
    """The number of its process, for people on its machine."""
    lease: _Lease = 0.0
    """Seconds for which it is to be waited for, if that is longer than the lease of the one who waits; 0: its version does not say."""

    @property
    def is_compatible(self) -> bool:
        """Whether it has this version of the messages, or the one before or behind it."""
        return abs(self.format - FORMAT) <= 1


Changed: TypeAlias = Callable[[WorkerState, bool], None]
"""Takes a worker as it is now, and whether it lives."""

_state = msgspec.json.Decoder(WorkerState).decode


class Members:
    """The workers that live, as far as this process can know."""

    def __init__(self, broker: Broker, lease: float = LEASE, interval: float = INTERVAL) -> None:
        self.lease = lease
        self.workers: dict[str, WorkerState] = {}
        """The living, by their names."""
        self.changed: list[Changed] = []
        """Called with a worker that is new, that has changed, or that lives no longer."""
        self._broker = broker
        self._interval = interval
        self._received: dict[str, float] = {}
        """When the last beat of each came, by our clock."""
        self._gone: dict[str, None] = {}
        """Workers that are known to have ended, the oldest first."""
        self._looked = broker.clock()
        self._awake_since = self._looked
        """Since when this process has looked at its messages without standing still."""
        self._known = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._subscription = broker.subscribe(f"{BEAT}>", self._take)
        broker.on_reconnect(self._ask)
        self._look_again()
        if broker.is_connected:
            self._ask()

    def is_alive(self, name: str) -> bool:
        """Whether a worker lives, or may: one that is not known gets the length of a lease to be known."""
        if name in self.workers:
            return True
        if not name or name in self._gone:
            return False
        since = self._listening_since()
        return since is None or self._broker.clock() - since <= self.lease

    def received(self, name: str) -> float | None:
        """Return when the last beat of a worker came, by our clock; None: it is not known, or not any more."""
        return self._received.get(name)

    async def known(self) -> None:
        """Wait until the first round of beats is in: every worker that lives has had the time to send one."""
        await self._known.wait()

    def close(self) -> None:
        """Look no more."""
        self._is_closed = True
        self._subscription.end()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # Beats.

    def _ask(self) -> None:
        """Ask all workers for a beat: messages may have been missed, or none came yet."""
        if self._is_closed:
            return
        self._broker.publish(WHO, b"")
        if not self._known.is_set():
            self._set_timer("known", self._interval, self._known.set)

    def _take(self, message: CoreMessage) -> None:
        try:
            state = _state(message.data)
        except BAD_INPUT as error:
            _log.warning("a heartbeat on `%s` cannot be read: %s", message.subject, error)
            return
        if message.subject != BEAT + state.name or state.name in self._gone:
            return
        if worker_title(state.replaces) == worker_title(state.name):  # a key speaks for no other name than its own
            self.ended(state.replaces, "it was started again")
        if not state.alive:
            self.ended(state.name, "it has left")
            return
        before = self.workers.get(state.name)
        self.workers[state.name] = state
        self._received[state.name] = self._broker.clock()
        if before is None:
            _log.info("worker `%s` on `%s` is there", state.name, state.host)
            if not state.is_compatible:
                _log.warning("worker `%s` has version %s, which this one does not know", state.name, state.version)
        if before is None or msgspec.structs.replace(before, beat=state.beat) != state:
            self._report(state, alive=True)

    # Death.

    def look(self) -> None:
        """Take those for dead of which nothing came for the length of a lease."""
        now = self._broker.clock()
        if now - self._looked > self.lease / 2:  # we stood still: what came meanwhile waits to be read
            self._awake_since = now
        self._looked = now
        since = self._listening_since()
        if since is None:
            return
        for name, received in (*self._received.items(),):
            lease = max(self.lease, self.workers[name].lease)  # a worker with a longer one may send beats less often
            if now - max(received, since) > lease:
                self._remove(name, f"nothing came from it for {lease:g} seconds")

    def _listening_since(self) -> float | None:
        """Since when a beat would have been received; None: none would be now."""
        since = self._broker.connected_since
        return None if since is None else max(since, self._awake_since)

    def ended(self, name: str, why: str = "it has ended") -> None:
        """Note for ever that a worker has ended: that is known for certain."""
        self._gone[name] = None
        while len(self._gone) > GONE:
            del self._gone[next(iter(self._gone))]
        self._remove(name, why)

    def _remove(self, name: str, why: str) -> None:
        state = self.workers.pop(name, None)
        self._received.pop(name, None)
        if state is not None:
            _log.info("worker `%s` is gone: %s", name, why)
            self._report(msgspec.structs.replace(state, alive=False), alive=False)

    def _report(self, state: WorkerState, *, alive: bool) -> None:
        for call in (*self.changed,):
            call(state, alive)

    def _look_again(self) -> None:
        self.look()
        self._set_timer("look", self.lease / LOOKS, self._look_again)

    def _set_timer(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, call)


class Heartbeat:
    """The beats of one worker, from `start` to `leave`."""

    def __init__(self, broker: Broker, state: Callable[[], WorkerState], interval: float = INTERVAL) -> None:
        """`state` returns how the worker is now, without the number of the beat."""
        self._broker = broker
        self._state = state
        self.interval = interval
        self._count = 0
        self._times: deque[float] = deque([broker.clock()], UNCONFIRMED)
        """When the last beats were sent; the first is when this began."""
        self._sent: dict[int, float] = {}
        """When each beat was sent that has not come back yet."""
        self.confirmed = broker.clock()
        """When the last beat was sent that came back. The server that this worker is connected to has received it; others may be cut off from that."""
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._has_left = False
        self._subscriptions = [
            broker.subscribe(BEAT + state().name, self._take),
            broker.subscribe(WHO, lambda _: self.beat_soon()),
        ]
        broker.on_reconnect(self.beat_soon)

    def start(self) -> None:
        """Send beats from now on."""
        self._beat()

    def sent_before(self, time: float) -> float:
        """Return when the last beat was sent up to a time; the oldest that is known if none was."""
        return next((each for each in reversed(self._times) if each <= time), self._times[0])

    def beat_soon(self) -> None:
        """Send a beat in this turn of the loop, out of turn: something has changed, or another process asks."""
        if self._soon is None and self._timer is not None and not self._has_left:
            self._soon = asyncio.get_running_loop().call_soon(self._beat)

    def beat_now(self) -> None:
        """Send a beat before anything else that is sent from now on."""
        if self._timer is not None and not self._has_left:
            self._beat()

    def leave(self) -> None:
        """Send the last beat. Nothing is sent after it."""
        if self._has_left:
            return
        self._has_left = True
        was_there = self._timer is not None
        for timer in (self._timer, self._soon):
            if timer is not None:
                timer.cancel()
        for subscription in self._subscriptions:
            subscription.end()
        if was_there:
            self._publish(alive=False)

    def _beat(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self.interval, self._beat)
        self._publish(alive=True)

    def _publish(self, *, alive: bool) -> None:
        self._count += 1
        state = msgspec.structs.replace(self._state(), beat=self._count, alive=alive, version=__version__)
        if self._broker.is_connected:
            self._sent[self._count] = self._broker.clock()
            self._times.append(self._sent[self._count])
            self._sent.pop(self._count - UNCONFIRMED, None)
        self._broker.publish(BEAT + state.name, msgspec.json.encode(state))

    def _take(self, message: CoreMessage) -> None:
        try:
            number = _state(message.data).beat
        except BAD_INPUT:
            return
        sent = self._sent.get(number)
        if sent is not None:
            self.confirmed = max(self.confirmed, sent)
            self._sent = {each: at for each, at in self._sent.items() if each > number}
