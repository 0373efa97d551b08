"""Finds words in what people see of a session: what was said, the titles of calls. Pure; histories are folded elsewhere."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from antiphon.export.session import Line, speaker, text_of
from antiphon.text import one_line
from antiphon.transcript.transcript import CallEntry, Message

__all__ = ["Hit", "hits_in", "pattern_of"]

MOST_HITS: Final = 3
"""Of one session: enough to know it again."""

WINDOW: Final = 300
"""Letters of a line around a hit: a line of a model may be a page."""


class Hit(msgspec.Struct, frozen=True):
    """A line with one of the words in it, and its neighbours."""

    who: str
    line: str
    before: str = ""
    after: str = ""


def pattern_of(words: Sequence[str]) -> "re.Pattern[str]":
    """Any of these words, whatever their case."""
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(re.escape(word) for word in longest_first), re.IGNORECASE)


def hits_in(title: str, lines: Sequence[Line], words: Sequence[str]) -> list[Hit] | None:
    """Where the words stand; None: not all of them are there. The list is empty if all are in the title alone."""
    missing = {word.casefold() for word in words}
    missing -= {word for word in missing if word in title.casefold()}
    pattern = pattern_of(words)
    found: list[Hit] = []
    for line in lines:
        if not isinstance(line.entry, Message | CallEntry):
            continue
        text = text_of(line)
        folded = text.casefold()
        missing -= {word for word in missing if word in folded}
        if len(found) < MOST_HITS and pattern.search(text):
            found += _hits(speaker(line), text, pattern)
    return None if missing else found[:MOST_HITS]


def _hits(who: str, text: str, pattern: "re.Pattern[str]") -> Iterator[Hit]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if found := pattern.search(line):
            begin = max(found.start() - WINDOW // 2, 0)
            shown = line[begin : begin + WINDOW]
            before, after = ([*lines[number - 1 : number]] if number else []), lines[number + 1 : number + 2]
            yield Hit(who, _one(shown, begin > 0), _one("".join(before)), _one("".join(after)))


def _one(line: str, cut: bool = False) -> str:
    return ("…" if cut else "") + one_line(line[:WINDOW])
