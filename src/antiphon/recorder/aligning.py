"""Which of the updates that came are which of the recorded ones, when some may be missing, new or in another place. Pure."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from antiphon.traffic.entries import Entry

__all__ = ["Aligned", "align"]

LARGEST: Final = 2000
"""Lines that differ in kind up to which the best alignment is looked for: it takes the square of it."""


class Aligned(NamedTuple):
    """Pairs of recorded and live lines. The others have no partner; `moved` have one, but at another place."""

    pairs: list[tuple[Entry, Entry]]
    moved: list[tuple[Entry, Entry]]
    missing: list[Entry]
    extra: list[Entry]


def align(recorded: list[Entry], live: list[Entry], words: Callable[[Entry], Hashable]) -> Aligned:
    """Pair the lines of one list with those of the other: those that say the same, and between them those of one kind."""
    found: list[tuple[int, int]] = []
    left, right = 0, 0
    ends = (len(recorded), len(live))
    for place in (*_places([words(line) for line in recorded], [words(line) for line in live]), ends):
        kinds = [_kind(line) for line in recorded[left : place[0]]], [_kind(line) for line in live[right : place[1]]]
        found += [(left + old, right + new) for old, new in _places(*kinds)]
        found += [place] if place != ends else []
        left, right = place[0] + 1, place[1] + 1
    return _aligned(recorded, live, found)


def _aligned(recorded: list[Entry], live: list[Entry], found: list[tuple[int, int]]) -> Aligned:
    lefts, rights = {left for left, _ in found}, {right for _, right in found}
    missing = [line for place, line in enumerate(recorded) if place not in lefts]
    extra = [line for place, line in enumerate(live) if place not in rights]
    moved = []
    for line in list(missing):
        partner = next((other for other in extra if _kind(other) == _kind(line)), None)
        if partner is not None:
            moved.append((line, partner))
            missing.remove(line)
            extra.remove(partner)
    return Aligned([(recorded[left], live[right]) for left, right in found], moved, missing, extra)


def _places(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Where both have the same, in ascending order."""
    shorter = min(len(old), len(new))
    start = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    stop = next((n for n in range(shorter - start) if old[-1 - n] != new[-1 - n]), shorter - start)
    left, right = old[start : len(old) - stop], new[start : len(new) - stop]
    found = [(place, place) for place in range(start)]
    if left and right and max(len(left), len(right)) <= LARGEST:
        from difflib import SequenceMatcher

        for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
            found += [(start + block.a + n, start + block.b + n) for n in range(block.size)]
    return found + [(len(old) - n, len(new) - n) for n in range(stop, 0, -1)]


def _kind(line: Entry) -> str:
    update = line.params.get("update")
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    return f"{line.method} {kind}"
