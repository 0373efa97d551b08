"""The events of a stream over HTTP: their ids, those that wait, and those that are kept for a client that comes back."""

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Final

from antiphon.transports.sse import KEEP_ALIVE, encode_event

__all__ = ["REPLAY_LIMIT", "EventStream", "event_place", "forget_some", "opening"]

STREAM_REPLAY: Final = 1024 * 1024
"""Bytes of sent events that a stream keeps for a client that comes back."""

REPLAY_LIMIT: Final = 4 * 1024 * 1024
"""The same for all streams of a connection."""

CHUNK: Final = 256 * 1024
"""Bytes of events that leave in one piece."""


class EventStream:
    """The events of a session or of the connection: those that wait, and those that were sent last.

    The `id:` of an event is the number that its sender gave it. What has no number of its own comes after the event before it: `7.1`
    and `7.2` are the first two after event 7. A stream without numbers of its sender counts its events.
    """

    def __init__(self, *, numbered: bool = False) -> None:
        self.changed = asyncio.Event()
        self.reader: object | None = None
        """The request that reads it; another one takes its place."""
        self._numbered = numbered
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._again: deque[tuple[int, bytes]] = deque()
        """Frames without a number that a client has missed, each with the number of the event that it comes after."""
        self._has_caught_up = False
        self._sent: deque[tuple[int, int, bytes]] = deque()
        """Number, place after it, and frame, of those that are kept for a client that comes back."""
        self.kept = 0
        """Bytes of frames that are kept."""
        self._forgotten = (0, 0)
        """The last event that was sent and is kept no more."""
        self._was_used = False
        self._number = 0
        self._place = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and nothing was ever sent."""
        return not (self._waiting or self._again or self._was_used)

    def put(self, frame: bytes, number: int = 0) -> None:
        """Add a frame; `number` is that of its event, 0 if it has none."""
        self._waiting.append((frame.replace(b"\r", b" ") if frame.find(b"\r") >= 0 else frame, number))
        self.changed.set()

    def take(self) -> tuple[bytes, int]:
        """Return some of what waits as events in one piece, and the bytes of their frames."""
        parts, size = [], 0
        while size < CHUNK:
            if self._is_due():
                frame, number = self._again.popleft()[1], 0
            elif self._waiting:
                frame, number = self._waiting.popleft()
            else:
                break
            if number:
                self._number, self._place = number, 0
            elif self._numbered:
                self._place += 1
            else:
                self._number += 1
            parts.append(self._event(self._number, self._place, frame))
            self._remember(frame)
            size += len(frame) + 1
        return b"".join(parts), size

    def _is_due(self) -> bool:
        """Whether a frame that was missed comes next: its event was sent, or is not sent again."""
        if not self._again:
            return False
        at = self._again[0][0]
        return at <= self._number or (self._waiting[0][1] > at if self._waiting else self._has_caught_up)

    @staticmethod
    def _event(number: int, place: int, frame: bytes) -> bytes:
        return encode_event(frame, f"{number}.{place}" if place else str(number))

    def _remember(self, frame: bytes) -> None:
        self._was_used = True
        if self._numbered and not self._place:
            return  # its sender has it, and puts it again
        self._sent.append((self._number, self._place, frame))
        self.kept += len(frame)
        while self.kept > STREAM_REPLAY and len(self._sent) > 1:
            self.forget()

    def forget(self) -> int:
        """Forget the oldest event that was kept, and return how many bytes that were."""
        number, place, frame = self._sent.popleft()
        self._forgotten = number, place
        self.kept -= len(frame)
        return len(frame)

    def misses(self, last_id: str) -> bool:
        """Whether a client that comes back with this id has missed an event that is kept no more."""
        seen = event_place(last_id)
        return seen is not None and not self._numbered and seen < self._forgotten

    @property
    def here(self) -> str:
        """The id of the last event that was sent; `0` before the first."""
        return f"{self._number}.{self._place}" if self._place else str(self._number)

    def after(self, last_id: str) -> bytes:
        """Return what was sent after the event that a client has seen last; nothing for a client that names none."""
        seen = event_place(last_id)
        if seen is None:
            return b""
        return b"".join(self._event(*event) for event in self._sent if event[:2] > seen)

    def rewind(self, last_id: str) -> int:
        """Go back to an event: what has a number will be put again by its sender, the rest follows where it belongs.

        Return how many bytes more wait now.
        """
        number, place = event_place(last_id) or (0, 0)
        before = sum(len(frame) + 1 for frame, _ in self._waiting) + sum(len(frame) + 1 for _, frame in self._again)
        again = [(at, frame) for at, after, frame in self._sent if after and (at, after) > (number, place)]
        again += self._again
        at = self._number
        for frame, its in self._waiting:
            at = its or at
            if not its:
                again.append((at, frame))
        self._waiting.clear()
        self._has_caught_up = False
        self._again = deque(sorted(again, key=lambda each: each[0]))
        self._number, self._place = number, place
        self._sent = deque(event for event in self._sent if event[:2] <= (number, place))
        self.kept = sum(len(frame) for _, _, frame in self._sent)
        return sum(len(frame) + 1 for _, frame in self._again) - before

    def caught_up(self) -> None:
        """Send what was missed behind all that waits: the event before it is not sent again, as a request that was answered."""
        self._has_caught_up = True
        self.changed.set()


def event_place(last_id: str) -> tuple[int, int] | None:
    """Return what a `Last-Event-ID` names: the number of an event, and how many without a number came after it."""
    number, dot, place = last_id[:40].partition(".")
    if not (number.isascii() and number.isdecimal() and (not dot or (place.isascii() and place.isdecimal()))):
        return None
    return int(number[:18]), int(place[:18] or 0)


def opening(stream: EventStream, last_id: str) -> bytes:
    """Return the first bytes of a stream: where it begins. A client that gets no event before it is cut comes back with that."""
    seen = event_place(last_id)
    here = stream.here if seen is None else f"{seen[0]}.{seen[1]}" if seen[1] else str(seen[0])
    return KEEP_ALIVE + b"id: %b\n\n" % here.encode()


def forget_some(streams: Collection[EventStream]) -> None:
    """Keep no more of all these streams than a connection may, and most of those that are small."""
    kept = sum(stream.kept for stream in streams)
    while kept > REPLAY_LIMIT:
        kept -= max(streams, key=lambda stream: stream.kept).forget()
