"""What a simulated broker stores: messages in one sequence, their names, and the states of a moment ago for stale reads."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Final

from antiphon.fleet.broker import StoredMessage
from antiphon.fleet.streams import fits

__all__ = ["SimulatedStore"]

DUPLICATE_WINDOW: Final = 300.0
"""Seconds for which the name of a message is remembered."""

STALE_LIMIT: Final = 1.0
"""Seconds that a stale read is behind at most."""


class _Entry:
    """A message in the store: `added` and `removed` number the changes of the store, so that an older state can be read."""

    __slots__ = ("added", "message", "removed")

    def __init__(self, message: StoredMessage, added: int) -> None:
        self.message, self.added, self.removed = message, added, 0


class SimulatedStore:
    """Stored messages, and how they were a moment ago."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._by_subject: dict[str, list[_Entry]] = {}
        self._below: dict[str, dict[str, None]] = {}
        """The subjects with messages, by all of their words but the last."""
        self._removed: deque[tuple[float, _Entry]] = deque()
        self._names: dict[tuple[str, str], tuple[int, float]] = {}
        self._changes: deque[tuple[int, float]] = deque()
        self._change = 0
        self._forgotten = 0
        """Messages that were removed longer ago than any stale read sees, and are still in the list."""
        self.sequence = 0

    def known(self, stream: str, name: str, now: float) -> int | None:
        """Return the number of the message that was stored under a name in the last minutes."""
        found = self._names.get((stream, name)) if name else None
        return found[0] if found and now - found[1] <= DUPLICATE_WINDOW else None

    def last(self, subject: str) -> StoredMessage | None:
        """Return the last message of a subject."""
        entries = self._by_subject.get(subject)
        return entries[-1].message if entries else None

    def add(self, message: StoredMessage, stream: str, name: str, now: float, *, replaces: bool) -> None:
        """Store a message."""
        change = self._next_change(now)
        if replaces:
            self._remove(message.subject, change, now)
        entry = _Entry(message, change)
        self._entries.append(entry)
        self._by_subject.setdefault(message.subject, []).append(entry)
        self._below.setdefault(message.subject.rpartition(".")[0], {})[message.subject] = None
        self.sequence = message.sequence
        if name:
            self._names[stream, name] = (message.sequence, now)

    def remove(self, pattern: str, now: float) -> None:
        """Remove the messages whose subject fits."""
        change = self._next_change(now)
        for subject in [each for each in self._by_subject if fits(pattern, each)]:
            self._remove(subject, change, now)

    def state(self, draw: Random | None, now: float) -> int:
        """Return the number of the last change, or of a random one of the last moment."""
        while self._changes and self._changes[0][1] < now - STALE_LIMIT:
            self._changes.popleft()
        if draw is None or not self._changes:
            return self._change
        return draw.randint(self._changes[0][0] - 1, self._change)

    def read(self, pattern: str, change: int, after: int = 0) -> Iterator[StoredMessage]:
        """Give the messages whose subject fits and whose number is greater, as they were after a change."""
        entries = self._entries if change != self._change else self._candidates(pattern)
        for at in range(bisect_right(entries, after, key=lambda entry: entry.message.sequence), len(entries)):
            entry = entries[at]
            there = entry.added <= change and (not entry.removed or entry.removed > change)
            if there and fits(pattern, entry.message.subject):
                yield entry.message

    def _candidates(self, pattern: str) -> "list[_Entry]":
        """Return messages that are stored now, among them all whose subject fits; few where the pattern is of one subject or session."""
        if "*" not in pattern and ">" not in pattern:
            return self._by_subject.get(pattern, [])
        above, _, word = pattern.rpartition(".")
        if word != "*" or "*" in above:
            return self._entries
        found = [entry for subject in self._below.get(above, ()) for entry in self._by_subject.get(subject, ())]
        return sorted(found, key=lambda entry: entry.message.sequence)

    def _next_change(self, now: float) -> int:
        self._change += 1
        self._changes.append((self._change, now))
        while self._removed and self._removed[0][0] < now - STALE_LIMIT:
            self._removed.popleft()
            self._forgotten += 1
        if self._forgotten > 64 and self._forgotten > len(self._entries) // 4:
            kept = {id(entry) for _, entry in self._removed}
            self._entries = [entry for entry in self._entries if not entry.removed or id(entry) in kept]
            self._forgotten = 0
        return self._change

    def _remove(self, subject: str, change: int, now: float) -> None:
        for entry in self._by_subject.pop(subject, ()):
            entry.removed = change
            self._removed.append((now, entry))
        above = subject.rpartition(".")[0]
        below = self._below.get(above, {})
        below.pop(subject, None)
        if not below:
            self._below.pop(above, None)
