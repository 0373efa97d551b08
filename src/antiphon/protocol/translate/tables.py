"""The tables of a translator: bounded, by id, and for messages with a digest instead of their text."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, Generic, TypeVar

import msgspec

from antiphon.protocol.base import encode
from antiphon.protocol.v1.content import TextBlock

__all__ = ["MAX_ENTITIES", "MAX_PENDING_TEXT", "BoundedTable", "MessageLog"]

MAX_ENTITIES: Final = 2_048
"""Messages, tool calls, terminals or plans of a session that are remembered. The oldest is forgotten for the next one: an update of it
is then taken for its first. No recorded session has more than 300 of a kind."""

MAX_PENDING_TEXT: Final = 64 * 1024
"""Characters of a message that wait to be put into its digest. Until then they are only collected, which is cheap."""

K = TypeVar("K")
V = TypeVar("V")
B = TypeVar("B")


class BoundedTable(dict[K, V], Generic[K, V]):
    """A dictionary with a limit. The oldest entry goes for a new one."""

    def __init__(self, limit: int = MAX_ENTITIES) -> None:
        super().__init__()
        self.limit = limit

    def add(self, key: K, value: V) -> V:
        """Add an entry, in place of the oldest if there are too many."""
        if len(self) >= self.limit and key not in self:
            del self[next(iter(self))]
        self[key] = value
        return value


class MessageLog:
    """What was sent of one message: its length and a digest of it, so that a later version can be recognised as its continuation.

    A long session has megabytes of text, and a message is seldom sent again. With the digest each costs some hundred bytes.
    """

    __slots__ = ("_digest", "_pending", "_waiting", "length", "shown_as")

    def __init__(self, shown_as: str) -> None:
        self.shown_as = shown_as
        """The id under which the other side knows it."""
        self._pending: list[str | bytes] = []
        self._waiting = 0
        self._digest = blake2b(digest_size=16)
        self.length = 0

    def add_text(self, text: str) -> None:
        """Note a piece of text that was sent."""
        self._pending.append(text)
        self._waiting += len(text)
        if self._waiting > MAX_PENDING_TEXT:
            self.fold()

    def add(self, block: object) -> None:
        """Note a block that was sent."""
        text = _plain_text(block)
        if text is not None:
            self.add_text(text)
        else:
            self._pending.append(encode(block))
            self.fold()

    def fold(self) -> None:
        """Put what was collected into the digest."""
        for piece in self._pending:
            data = _encoded(piece) if isinstance(piece, str) else b"\0%b\0" % piece
            self._digest.update(data)
            self.length += len(data)
        self._pending.clear()
        self._waiting = 0

    def clear(self) -> None:
        """Begin again: the message is empty."""
        self._pending.clear()
        self._waiting = self.length = 0
        self._digest = blake2b(digest_size=16)

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
