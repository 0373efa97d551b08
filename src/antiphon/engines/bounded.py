"""Collections and numbers within bounds: a session may live for weeks, and what is long over is forgotten."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections import Counter

__all__ = ["MOST_KEPT", "MOST_TOKENS", "Recent", "SessionIds", "tally", "tokens", "trim"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_KEPT: Final = 1024
"""Entries that are kept at once. What comes late comes within a few lines, or not at all."""

MOST_KINDS: Final = 100
"""Kinds of unknown messages that are counted apart. They are for a log."""

LONGEST_KIND: Final = 80


class Recent(Generic[K]):
    """A set that holds the last entries that were added."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: dict[K, None] = {}

    def __contains__(self, one: object) -> bool:
        return one in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, one: K) -> None:
        """Add an entry, or make it the latest one."""
        self._known.pop(one, None)
        self._known[one] = None
        trim(self._known, self._most)

    def discard(self, one: K) -> None:
        """Remove an entry."""
        self._known.pop(one, None)


def trim(kept: dict[K, V], most: int = MOST_KEPT) -> None:
    """Remove the oldest entries, until there are no more than `most`."""
    while len(kept) > most:
        del kept[next(iter(kept))]


def tally(counts: "Counter[str]", kind: str) -> None:
    """Count one more of this kind; kinds beyond a number are counted as one."""
    kind = kind[:LONGEST_KIND]
    counts[kind if kind in counts or len(counts) < MOST_KINDS else "others"] += 1


class SessionIds:
    """The engine's own id of each session that goes on under another one than ours. The two are kept nowhere else.

    A session has the engine's id, unless the engine had to begin it again under a new one while the client knew it already.
    """

    def __init__(self) -> None:
        self._own: dict[str, str] = {}

    def move(self, session_id: str, own_id: str) -> None:
        """A session goes on under this id of the engine."""
        self._own[session_id] = own_id
        trim(self._own)

    def forget(self, session_id: str) -> None:
        """A session has the engine's id again, or is gone."""
        self._own.pop(session_id, None)

    def own_id(self, session_id: str) -> str:
        """The engine's id of a session."""
        return self._own.get(session_id, session_id)

    def session_id(self, own_id: str) -> str:
        """The id by which the client knows a session of the engine."""
        return next((session for session, own in self._own.items() if own == own_id), own_id)


MOST_TOKENS: Final = 2**53 - 1
"""The largest number that every JSON reader can hold. A larger count is a mistake of the CLI."""


def tokens(count: int | None) -> int:
    """A number of tokens that every client can read."""
    return min(max(count or 0, 0), MOST_TOKENS)
