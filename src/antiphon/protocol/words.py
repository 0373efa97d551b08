"""Lists of words (enums) that survive words they do not know.

A peer newer than us may send `"kind": "paint"`. The word is kept, so it goes out again as it came in, and it reads as
the list's default, so `match call.kind` needs no extra branch and no handler breaks.
"""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

__all__ = ["Word", "unknown_reads_as"]

W = TypeVar("W", bound="Word")


class Word(str, Enum):  # noqa: UP042 - not StrEnum: unknown words are made with str.__new__
    """One of a list of words on the wire. `value` is the spelling, `meaning` the member to act on.

    A word outside the list compares by its meaning and not by its spelling: `ToolKind("paint") == ToolKind.OTHER`, and it is not equal to
    the string `"paint"`. Compare `value` to know what was written.
    """

    @property
    def known(self) -> bool:
        """False for a word that the list does not have."""
        return "meaning" not in self.__dict__

    @property
    def meaning(self: W) -> W:
        """The member to act on: itself, or what an unknown word is read as."""
        found: W = self.__dict__.get("meaning", self)
        return found

    def __str__(self) -> str:
        return str(self.value)

    # Comparing by meaning is what lets an unknown word fall into the default's branch of a `match` or a dict.
    def __eq__(self, other: object) -> bool:
        if self is other:  # as nearly always: known words are decoded to their members
            return True
        if isinstance(other, Word):
            return str.__eq__(self.meaning, other.meaning)
        return str.__eq__(self.meaning, other) if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return self is not other and not self == other

    def __hash__(self) -> int:
        return str.__hash__(self.meaning)

    @classmethod
    def _missing_(cls: type[W], value: object) -> W | None:
        if not isinstance(value, str):
            return None
        # Not registered with the enum: words come from the peer, and a list of them would grow without end.
        word = str.__new__(cls, value)
        word._name_, word._value_ = "UNKNOWN", value
        default, aliases = cls.__dict__.get("__reads__", (None, {}))
        read_as = aliases.get(value, default)
        word.__dict__["meaning"] = word if read_as is None else cls(read_as)
        return word


def unknown_reads_as(default: str | None, **aliases: str) -> Callable[[type[W]], type[W]]:
    """Set how words outside the list are read: `aliases` first, then `default` (`None`: as themselves)."""

    def mark(words: type[W]) -> type[W]:
        type.__setattr__(words, "__reads__", (default, aliases))
        return words

    return mark
