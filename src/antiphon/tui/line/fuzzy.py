"""Fuzzy matching: which of many names a few letters mean, the best first. Pure."""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

__all__ = ["ranked", "rating"]

T = TypeVar("T")

SCATTERED: Final = 5
"""The rating of a name that only has the letters in this order, with others between them."""


def rating(word: str, name: str) -> tuple[int, int, int] | None:
    """Return how well a name fits, the smaller the better; None if its letters do not come in this order."""
    word, name = word.lower(), name.lower()
    last = name.rstrip("/").rpartition("/")[2]
    if name.startswith(word):
        return 0, 0, len(name)
    if last.startswith(word):
        return 1, name.count("/"), len(name)
    if (at := last.find(word)) >= 0:
        at_word = at > 0 and not last[at - 1].isalnum()
        return (2 if at_word else 3), name.count("/"), len(name)
    if word in name:
        return 4, name.count("/"), len(name)
    found = re.search(".*?".join(map(re.escape, word)), name)
    return None if found is None else (SCATTERED, found.end() - found.start(), len(name))


def ranked(
    word: str, offered: Iterable[T], name_of: Callable[[T], str], most: int | None = None, *, keep_order: bool = False
) -> list[T]:
    """Return what fits, the best first; with `keep_order` the order of the offer decides among equally good ones."""
    found = []
    for place, each in enumerate(offered):
        if (rate := rating(word, name_of(each))) is not None:
            found.append(((rate[0], place, 0) if keep_order else (*rate[:2], rate[2]), place, each))
    found.sort(key=lambda one: one[:2])
    return [each for _, _, each in found[:most]]
