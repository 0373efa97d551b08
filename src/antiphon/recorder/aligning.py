"""Which of the updates that came are which of the recorded ones, when some may be missing, new or in another place. Pure."""

from collections.abc import Iterator
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


def align(recorded: list[Entry], live: list[Entry]) -> Aligned:
    """Pair the lines of one list with those of the other, by their kinds."""
    old, new = [_kind(line) for line in recorded], [_kind(line) for line in live]
    found = list(_places(old, new))
    pairs = [(recorded[left], live[right]) for left, right in found]
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
    return Aligned(pairs, moved, missing, extra)


def _places(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        yield start, start
        start += 1
    stop = 0
    while stop < min(len(old), len(new)) - start and old[-1 - stop] == new[-1 - stop]:
        stop += 1
        yield len(old) - stop, len(new) - stop
    left, right = old[start : len(old) - stop], new[start : len(new) - stop]
    if left and right and max(len(left), len(right)) <= LARGEST:
        from difflib import SequenceMatcher

        for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
            yield from ((start + block.a + n, start + block.b + n) for n in range(block.size))


def _kind(line: Entry) -> str:
    update = line.params.get("update")
    kind = update.get("sessionUpdate") if isinstance(update, dict) else None
    return f"{line.method} {kind}"
