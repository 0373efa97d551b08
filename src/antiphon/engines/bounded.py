"""Books that do not grow for ever: a session may live for weeks, and what is long over is forgotten."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections import Counter

__all__ = ["MOST_KEPT", "MOST_TOKENS", "Recent", "tally", "tokens", "trim"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_KEPT: Final = 1024
"""Things that are remembered at once. What comes late comes within a few lines, or not at all."""

MOST_SORTS: Final = 100
"""Sorts of unknown things that are counted apart. They are for a log."""

LONGEST_SORT: Final = 80


class Recent(Generic[K]):
    """A set of the last things that were put in."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: dict[K, None] = {}

    def __contains__(self, one: object) -> bool:
        return one in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, one: K) -> None:
        """It is one of them now, and the latest."""
        self._known.pop(one, None)
        self._known[one] = None
        trim(self._known, self._most)

    def discard(self, one: K) -> None:
        """It is none of them any more."""
        self._known.pop(one, None)


def trim(kept: dict[K, V], most: int = MOST_KEPT) -> None:
    """Forget what was put in first, until there are no more than `most`."""
    while len(kept) > most:
        del kept[next(iter(kept))]


def tally(counts: "Counter[str]", sort: str) -> None:
    """One more of this sort; sorts beyond a number are counted as one."""
    sort = sort[:LONGEST_SORT]
    counts[sort if sort in counts or len(counts) < MOST_SORTS else "others"] += 1


# --- Numbers that programs tell, as everybody can read them

MOST_TOKENS: Final = 2**53 - 1
"""The most that everybody can count to. What is more is a slip of the pen."""


def tokens(count: int | None) -> int:
    """A number of tokens."""
    return min(max(count or 0, 0), MOST_TOKENS)
