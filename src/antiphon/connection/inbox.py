"""How much may wait to be read, and when reading pauses."""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.connection.stream import AnyBacklog
    from antiphon.transports.base import Transport

__all__ = ["INBOX_LIMIT", "MAX_OPEN_REQUESTS", "Inbox"]

INBOX_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of updates that may wait for slow consumers of one connection before reading pauses."""

MAX_OPEN_REQUESTS: Final = 1000
"""Requests of the peer that may be at work at once before reading pauses."""


CHOKED_FOR: Final = 5.0
"""Seconds after which we read again from a peer that does not read, in case it does not read because it waits for us."""


class Inbox:
    """The streams of a connection and the bytes that wait in them.

    Pausing is only safe while no response is waited for here, because the response may be behind the updates.
    """

    def __init__(self, transport: "Transport", limit: int = INBOX_LIMIT) -> None:
        self.limit = limit
        self.buffered = 0
        self.streams: dict[str, deque[AnyBacklog]] = {}
        self.before_change: Callable[[], None] | None = None
        """Called before a stream is added or removed: what has come by then belongs to those that are there."""
        self.transport = transport
        self._waiting = 0  # how many responses are waited for that are not a stream's
        self._open_requests = 0
        self.paused = False
        """Whether reading is paused."""
        self._choked = False  # the peer does not read what we send
        self._chokes = 0
        self._wide_open = False

    def add(self, session_id: str, backlog: "AnyBacklog") -> None:
        """Updates of this session go to this turn, after those that were there before."""
        if self.before_change is not None:
            self.before_change()
        self.streams.setdefault(session_id, deque()).append(backlog)

    def remove(self, session_id: str, backlog: "AnyBacklog") -> None:
        """Remove a turn: it takes no more updates."""
        if self.before_change is not None:
            self.before_change()
        queue = self.streams.get(session_id)
        if queue is not None and backlog in queue:
            queue.remove(backlog)
            if not queue:
                del self.streams[session_id]

    def take(self, size: int) -> None:
        """Count bytes that wait to be read by a handler."""
        self.buffered += size
        if self.buffered > self.limit:
            self.decide()

    def release(self, size: int) -> None:
        """Count bytes that were read by a handler."""
        self.buffered -= size
        if self.paused:
            self.decide()

    def wait_begins(self) -> None:
        """A response is waited for."""
        self._waiting += 1
        if self.paused:
            self.decide()

    def wait_ends(self) -> None:
        """The response is here."""
        self._waiting -= 1
        if self.buffered > self.limit:
            self.decide()

    def requests_open(self, count: int) -> None:
        """How many requests of the peer are at work."""
        self._open_requests = count
        if count >= MAX_OPEN_REQUESTS or self.paused:
            self.decide()

    def choke(self) -> None:
        """Stop reading until the peer has read some of what we send. Not for ever: it may be waiting for us in turn."""
        if not self._choked and not self._wide_open:
            self._choked = True
            self._chokes += 1
            self.decide()
            release = partial(self._unchoke, self._chokes)
            self.transport.when_drained(release)
            self.transport.loop.call_later(CHOKED_FOR, release)

    def _unchoke(self, choke: int) -> None:
        if (
            choke == self._chokes
        ):  # each is released by what comes first; what comes second must not release a later one
            self._choked = False
            self.decide()

    def open_wide(self) -> None:
        """The end: nothing pauses any more, so that the last frames get through."""
        self._wide_open = True
        self.decide()

    def decide(self) -> None:
        """Pause or resume, as what waits demands."""
        # Half the limit before reading goes on: pausing and resuming for each update would cost more than reading.
        bound = self.limit // 2 if self.paused else self.limit
        full = self.buffered > bound or self._open_requests >= MAX_OPEN_REQUESTS
        if not self._wide_open and (self._choked or (full and not self._waiting)):
            if not self.paused:
                self.paused = True
                self.transport.pause()
        elif self.paused:
            self.paused = False
            self.transport.resume()
