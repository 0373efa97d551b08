"""What is known about a shell line: its simple commands, and what about it is doubtful."""

import msgspec

from antiphon.policy.patterns import Words
from antiphon.policy.programs import starts_others, uncovered

__all__ = ["Line", "Part"]


class Part(msgspec.Struct, frozen=True):
    """One simple command. The first `settings` words are assignments before its program (`LANG=C sort`)."""

    words: Words
    settings: int = 0

    @property
    def command(self) -> Words:
        """The program and its arguments."""
        return self.words[self.settings :]

    @property
    def guarded(self) -> frozenset[int]:
        """Words that no `*` covers: assignments, wrappers with all that stands behind them, options that start programs, some subcommands."""
        command = self.command
        first = command[0] if command else None
        if first is None or starts_others(first):
            return frozenset(range(len(self.words)))
        return frozenset(range(self.settings)) | {at + self.settings for at in uncovered(command)}


class Line(msgspec.Struct, frozen=True):
    """A shell line, read. An empty `unclear` and an empty `special` mean: these are its commands, and there is nothing else.

    `unclear` says why it cannot be read for sure, so that any rule may or may not match.
    `special` says what it has that is understood but covered by no pattern, such as a redirection into a file.
    """

    parts: tuple[Part, ...] = ()
    unclear: str = ""
    special: str = ""

    @classmethod
    def of_words(cls, words: tuple[str, ...]) -> "Line":
        """An argument list, which no shell reads."""
        if not words or not words[0] or "=" in words[0]:
            return cls(unclear="it names no program")
        if any("\0" in word for word in words):
            return cls(unclear="it has a NUL character")
        return cls((Part(words),))
