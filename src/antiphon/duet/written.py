"""What was written, to be compared piece by piece with another telling of it that is cut otherwise. Pure."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from antiphon.protocol import v1
from antiphon.transcript.entries import Message, Thought

__all__ = ["ComparedPiece", "WrittenText"]


class ComparedPiece(NamedTuple):
    """How much of a piece was written."""

    known: bool
    """Some of it, or all."""
    rest: v1.ContentBlock | None
    """What was not; None: nothing is left."""
    strange: bool = False
    """Something else was written where it should stand."""


class WrittenText:
    """What is left of some messages after the pieces that were found in them."""

    def __init__(self, entries: Sequence[Message | Thought]) -> None:
        self._left = deque((block, entry.message_id) for entry in entries for block in entry.blocks)
        self.id: str | None = None
        """The message in which the last piece was found."""

    def take(self, piece: v1.ContentBlock) -> ComparedPiece:
        """Compare the next piece. What is found is taken away; what is not leaves everything as it was."""
        self._skip_blanks()
        if isinstance(piece, v1.TextBlock):
            return self._take_text(piece)
        if not self._left:
            return ComparedPiece(False, piece)
        for number, (block, id) in enumerate(self._left):
            if block == piece:
                self.id = id
                for _ in range(number + 1):
                    self._left.popleft()
                return ComparedPiece(True, None)
        return ComparedPiece(False, piece, strange=True)

    def _take_text(self, piece: v1.TextBlock) -> ComparedPiece:
        text, known = piece.text, False
        while text:
            self._skip_blanks()
            if not self._left:
                break
            block, id = self._left[0]
            ends = _common(block.text, text) if isinstance(block, v1.TextBlock) else None
            if ends is None:
                found = not known and text.strip() != "" and self._skip_to(text)
                return ComparedPiece(known or found, None if found else v1.TextBlock(text=text), strange=not found)
            mine, other = ends
            known, self.id = known or other > 0, id
            assert isinstance(block, v1.TextBlock)  # noqa: S101 - `ends` says so
            self._left.popleft()
            if mine < len(block.text):
                self._left.appendleft((v1.TextBlock(text=block.text[mine:]), id))
            text = text[other:]
        return ComparedPiece(known or not piece.text, v1.TextBlock(text=text) if text else None)

    def _skip_to(self, text: str) -> bool:
        """Whether it stands further down. What stands before it is of us alone."""
        for number, (block, id) in enumerate(self._left):
            if isinstance(block, v1.TextBlock) and (place := block.text.find(text)) >= 0:
                for _ in range(number + 1):
                    self._left.popleft()
                self._left.appendleft((v1.TextBlock(text=block.text[place + len(text) :]), id))
                self.id = id
                return True
        return False

    def _skip_blanks(self) -> None:
        while self._left and isinstance(block := self._left[0][0], v1.TextBlock) and not block.text:
            self._left.popleft()


def _common(mine: str, other: str) -> tuple[int, int] | None:
    """Where one of two texts is at its end and both were equal so far, white space aside; None: they differ before."""
    if mine.startswith(other):
        return len(other), len(other)
    if other.startswith(mine):
        return len(mine), len(mine)
    here = there = 0
    while True:
        here, there = _past_blanks(mine, here), _past_blanks(other, there)
        if here == len(mine) or there == len(other):
            return here, there
        if mine[here] != other[there]:
            return None
        here, there = here + 1, there + 1


def _past_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
