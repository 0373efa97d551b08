"""The answers that a question at a terminal lists, and what a typed line means. Pure.

Rule 1: a whole line is an answer, or it is none. The first letter of a word says nothing: "exit" is not "e".
Rule 2: text that goes on behind the line was pasted or typed ahead, and is no answer.
Rule 3: the end of the input is not the end of a line. "y" and then nothing is no answer.
"""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

__all__ = ["QUIET", "YES_OR_NO", "Answers"]

T = TypeVar("T")

QUIET: Final = 0.2
"""Seconds without input behind a line that allows something. A paste goes on at once; a person who has answered waits."""


class Answers(Generic[T]):
    """The words that a question lists, each with its meaning."""

    def __init__(self, words: Mapping[str, T]) -> None:
        self._words = dict(words)

    def read(self, typed: bytes) -> T | None:
        """Return what was meant by all that was typed; None if it is not exactly one of the words on a line of its own."""
        line, end, rest = typed.partition(b"\n")
        if not end or rest:
            return None
        try:
            word = line.removesuffix(b"\r").strip(b" \t").decode("ascii")
        except UnicodeDecodeError:
            return None
        return self._words.get(word.lower())


YES_OR_NO: Final = Answers({"y": True, "yes": True, "n": False, "no": False})
