"""The filters of `antiphon inspect`: which messages of a recording are shown."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from antiphon.recorder.analysis import RecordedMessage

__all__ = ["MessageFilter", "span"]


@dataclass(frozen=True)
class MessageFilter:
    """What was asked for. Nothing asked for is everything."""

    session: str | None = None
    turn: Sequence[int] | None = None
    method: str | None = None
    dir: str | None = None
    errors: bool = False
    deviations: bool = False
    grep: str | None = None
    message: Sequence[int] | None = None

    def __bool__(self) -> bool:
        return self != MessageFilter()

    @property
    def only_turns(self) -> bool:
        """Whether whole turns are asked for, and nothing in them."""
        return bool(self) and MessageFilter(self.session, self.turn) == self

    def wants(self, shown: RecordedMessage, raw: bytes) -> bool:
        """Whether a message is among them."""
        return (
            (self.session is None or (shown.session or "").startswith(self.session))
            and (self.turn is None or shown.turn in self.turn)
            and (self.dir is None or shown.dir == self.dir)
            and (self.message is None or shown.message in self.message)
            and self._trouble(shown)
            and self._named(shown)
            and self._contains(raw)
        )

    def _trouble(self, shown: RecordedMessage) -> bool:
        if not self.errors and not self.deviations:
            return True
        noise = shown.kind == "noise"
        return (self.errors and (shown.error or noise)) or (self.deviations and bool(shown.deviations or shown.advice))

    def _named(self, shown: RecordedMessage) -> bool:
        return self.method is None or any(
            fnmatchcase(name, self.method) for name in (shown.name, f"session/update {shown.name}")
        )

    def _contains(self, raw: bytes) -> bool:
        return self.grep is None or self.grep.casefold() in raw.decode("utf-8", "replace").casefold()


def span(text: str) -> range:
    """`3`, or `3-5`: numbers from 1 on."""
    first, dash, last = text.partition("-")
    numbers = [first, last if dash else first]
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
        raise argparse.ArgumentTypeError(f"`{text}` is neither a number nor a range such as 3-5")
    found = range(int(numbers[0]), int(numbers[1]) + 1)
    if not found or found[0] < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a range: numbers count from 1")
    return found
