"""Live summaries of sessions: which of them run or wait for people, and their last numbers, for the lists of gateways.

A worker sends what changed, gathered for a moment, and all of it when it is asked to. Sessions in which nothing goes on have no summary:
their rows say all that a list shows. Nothing is stored, and what was missed is asked for again when a lost connection is back.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from antiphon.fleet.broker import Broker, CoreMessage
from antiphon.fleet.membership import WHO, Members, WorkerState
from antiphon.gateway.hub import Hub
from antiphon.gateway.session import HubSession
from antiphon.protocol.base import BAD_INPUT

__all__ = ["STATE", "LiveSummary", "SessionSummaries", "SummarySender"]

STATE: Final = "acp.state."
"""The subject of the summaries of a worker, without its name."""

PAUSE: Final = 0.1
"""Seconds for which changes are gathered."""

LOOK: Final = 1.0
"""Seconds between two looks for sessions that have left memory."""

UNKNOWN_KEPT: Final = 100
"""Workers whose beats have not come yet and whose summaries are kept: they may come first."""

_log = logging.getLogger(__name__)


class LiveSummary(NamedTuple):
    """A session in which something goes on."""

    last: int
    """The number of its last event."""
    waiting: int
    """How many requests of the agent wait for people."""
    is_running: bool
    """Whether a turn runs."""


class StateMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker sends about its sessions."""

    worker: str
    active: dict[str, LiveSummary] = {}
    over: tuple[str, ...] = ()
    """Sessions that had a summary and have none any more."""
    whole: bool = False
    """Whether those that are not named have none."""


class SummarySender:
    """Sends the summaries of one worker."""

    def __init__(self, broker: Broker, worker: str, hub: Hub) -> None:
        self._broker = broker
        self._worker = worker
        self._hub = hub
        self._changed: dict[str, HubSession] = {}
        self._sent: dict[str, tuple[HubSession, LiveSummary]] = {}
        """What others know. Only these are looked at: a worker may have thousands of sessions in which nothing goes on."""
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._whole = False
        self._is_closed = False
        self._subscription = broker.subscribe(WHO, lambda _: self._send_all())
        broker.on_reconnect(self._send_all)
        hub.feed.observer = self._note
        self._look()

    def close(self) -> None:
        """Send nothing any more."""
        self._is_closed = True
        self._hub.feed.observer = None
        self._subscription.end()
        for timer in (self._timer, self._looking):
            if timer is not None:
                timer.cancel()

    def _note(self, session: HubSession) -> None:
        if session.key and not session.is_hidden:
            self._changed[session.key] = session
            self._send_soon()

    def _send_all(self) -> None:
        self._whole = True
        self._send_soon()

    def _send_soon(self) -> None:
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._send)

    def _look(self) -> None:
        """Look for sessions that have left memory without a change, and for numbers that have grown."""
        for session, before in (*self._sent.values(),):
            found = _in_memory(session)
            if found is None:
                self._send_soon()
            elif before != _summary(found):
                self._note(found)
        self._looking = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _sessions(self) -> Iterator[tuple[str, HubSession]]:
        for agent in self._hub.agents.values():
            for session in agent.sessions.values():
                if session.key and not session.is_hidden:
                    yield session.key, session

    def _send(self) -> None:
        self._timer = None
        whole, self._whole = self._whole, False
        looked_at = self._sessions() if whole else self._changed.items()
        changed = {key: each for key, each in looked_at if _in_memory(each) is each}
        self._changed = {}
        now = {key: found for key, each in changed.items() if (found := _summary(each)) is not None}
        over = tuple(
            key
            for key, (session, _) in self._sent.items()
            if (key in changed and key not in now) or _in_memory(session) is None
        )
        active = now if whole else {key: each for key, each in now.items() if self._known(key) != each}
        for key in over:
            del self._sent[key]
        self._sent |= {key: (changed[key], summary) for key, summary in now.items()}
        if whole or active or over:
            message = StateMessage(self._worker, active, over, whole)
            self._broker.publish(STATE + self._worker, msgspec.json.encode(message))

    def _known(self, key: str) -> LiveSummary | None:
        return self._sent[key][1] if key in self._sent else None


def _in_memory(session: HubSession) -> HubSession | None:
    """Return what is in memory now under the key of a session; None: nothing is, or it is hidden."""
    found = session.agent.session_of(session.id)
    return found if found is not None and found.key == session.key and not found.is_hidden else None


def _summary(session: HubSession) -> LiveSummary | None:
    waiting = sum(1 for _ in session.requests.waiting())
    is_running = session.turns.running is not None
    return LiveSummary(session.last, waiting, is_running) if waiting or is_running else None


class SessionSummaries:
    """The summaries of all workers, as a gateway has them."""

    def __init__(self, broker: Broker, members: Members) -> None:
        self.changed: Callable[[str], None] | None = None
        """Called with the key of each session whose summary is another one now, or that has none any more."""
        self._by_worker: dict[str, dict[str, LiveSummary]] = {}
        self._members = members
        self._subscription = broker.subscribe(f"{STATE}>", self._take)
        members.changed.append(self._member_changed)
        if broker.is_connected:
            broker.publish(WHO, b"")  # the members asked before this was subscribed

    def get(self, key: str) -> LiveSummary | None:
        """Return the summary of a session; None: nothing goes on in it."""
        return next((found[key] for found in self._by_worker.values() if key in found), None)

    def close(self) -> None:
        """Take no more of them."""
        self._subscription.end()
        self._members.changed.remove(self._member_changed)

    def _take(self, message: CoreMessage) -> None:
        try:
            found = msgspec.json.decode(message.data, type=StateMessage)
        except BAD_INPUT as error:
            _log.warning("summaries on `%s` cannot be read: %s", message.subject, error)
            return
        if message.subject != STATE + found.worker:
            return
        known = self._by_worker.setdefault(found.worker, {})
        if found.worker not in self._members.workers:
            self._drop_unknown()
        gone = set(known) - set(found.active) if found.whole else set(found.over) & set(known)
        for key in gone:
            del known[key]
        for worker, others in self._by_worker.items():  # a session that moved is where it was seen last
            if worker != found.worker:
                for key in found.active.keys() & others.keys():
                    del others[key]
        changed = gone | {key for key, summary in found.active.items() if known.get(key) != summary}
        known |= found.active
        self._report(changed)

    def _drop_unknown(self) -> None:
        """Keep the summaries of a few workers whose beats have not come yet: those that came last."""
        unknown = [name for name in self._by_worker if name not in self._members.workers]
        for name in unknown[:-UNKNOWN_KEPT]:
            self._report(set(self._by_worker.pop(name)))

    def _member_changed(self, state: WorkerState, alive: bool) -> None:
        if not alive:
            self._report(set(self._by_worker.pop(state.name, {})))

    def _report(self, keys: "set[str]") -> None:
        if self.changed is not None:
            for key in keys:
                self.changed(key)
