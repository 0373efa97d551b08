"""The tables of a translator: bounded, by id, and for messages with a digest instead of their text."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, Generic, TypeVar

import msgspec

from antiphon.protocol.base import encode
from antiphon.protocol.v1.content import TextBlock

__all__ = ["MAX_ENTITIES", "MAX_PENDING_PIECES", "MAX_PENDING_TEXT", "BoundedTable", "MessageLog"]

MAX_ENTITIES: Final = 2_048
"""Messages, tool calls, terminals or plans of a session that are remembered. The oldest is forgotten for the next one: an update of it
is then taken for its first. No recorded session has more than 300 of a kind."""

MAX_PENDING_TEXT: Final = 16 * 1024
"""Characters of a message that wait to be put into its digest. Until then they are only collected, which is cheap."""

MAX_PENDING_PIECES: Final = 512
"""Pieces of a message that wait so: short ones take more memory than their text."""

_PIECE: Final = MAX_PENDING_TEXT // MAX_PENDING_PIECES
"""What a piece counts beside its characters."""

K = TypeVar("K")
V = TypeVar("V")
B = TypeVar("B")


class BoundedTable(dict[K, V], Generic[K, V]):
    """A dictionary with a limit. The oldest entry goes for a new one, but for those that `spares` says are needed."""

    def __init__(self, limit: int = MAX_ENTITIES, *, spares: Callable[[V], bool] | None = None) -> None:
        super().__init__()
        self.limit = limit
        self._spares = spares

    def add(self, key: K, value: V) -> V:
        """Add an entry, in place of the oldest if there are too many."""
        if len(self) >= self.limit and key not in self:
            oldest = next(iter(self))
            spares = self._spares
            del self[oldest if spares is None else next((key for key, one in self.items() if not spares(one)), oldest)]
        self[key] = value
        return value

    def renew(self, key: K) -> None:
        """Make an entry the newest."""
        if key in self:
            self[key] = self.pop(key)


class MessageLog:
    """What was sent of one message: its length and a digest of it, so that a later version can be recognised as its continuation.

    A long session has megabytes of text, and a message is seldom sent again. With the digest each costs some hundred bytes.
    """

    __slots__ = ("_digest", "_pending", "_waiting", "length", "shown_as")

    def __init__(self, shown_as: str) -> None:
        self.shown_as = shown_as
        """The id under which the other side knows it."""
        self._pending: list[str] = []
        self._waiting = 0
        self._digest = blake2b(digest_size=16)
        self.length = 0

    def add_text(self, text: str) -> None:
        """Note a piece of text that was sent."""
        self._pending.append(text)
        self._waiting += len(text) + _PIECE
        if self._waiting > MAX_PENDING_TEXT:
            self.fold()

    def add(self, block: object) -> None:
        """Note a block that was sent."""
        text = _plain_text(block)
        if text is not None:
            self.add_text(text)
        else:
            self.fold()
            data = b"\0%b\0" % encode(block)
            self._digest.update(data)
            self.length += len(data)

    def fold(self) -> None:
        """Put what was collected into the digest."""
        data = _encoded("".join(self._pending))
        self._digest.update(data)
        self.length += len(data)
        self._pending.clear()
        self._waiting = 0

    def clear(self) -> None:
        """Begin again: the message is empty."""
        self._pending.clear()
        self._waiting = self.length = 0
        self._digest = blake2b(digest_size=16)

    def begin_again(self) -> None:
        """Use another id from now on: the message became another one."""
        first, _, number = self.shown_as.rpartition("~")
        again = first and number.isdecimal()
        self.shown_as = f"{first}~{int(number) + 1}" if again else f"{self.shown_as}~2"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was sent of it."""
        return not self.length and not self._pending

    def rest_of(self, blocks: "Sequence[B]") -> "list[B] | None":
        """Return what these blocks have beyond what was sent; None if what was sent is not how they begin."""
        self.fold()
        pieces = [_piece(block) for block in blocks]
        whole = b"".join(pieces)
        if len(whole) < self.length or blake2b(whole[: self.length], digest_size=16).digest() != self._digest.digest():
            return None
        return list(_after(self.length, blocks, pieces))


def _piece(block: object) -> bytes:
    """A block as the digest has it."""
    text = _plain_text(block)
    return b"\0%b\0" % encode(block) if text is None else _encoded(text)


def _plain_text(block: object) -> str | None:
    """The text of a block that is nothing else."""
    return block.text if type(block) is TextBlock and block.annotations is None and block.meta is None else None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _after(length: int, blocks: "Sequence[B]", pieces: Sequence[bytes]) -> "Iterable[B]":
    """The blocks, or parts of blocks, that come after so many bytes."""
    for block, piece in zip(blocks, pieces, strict=True):
        if length >= len(piece):
            length -= len(piece)
        elif length and isinstance(block, TextBlock):
            yield msgspec.structs.replace(block, text=piece[length:].decode("utf-8", "surrogatepass"))
            length = 0
        else:
            yield block
            length = 0
