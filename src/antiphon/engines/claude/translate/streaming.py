"""What was told of a message while the model wrote it, so that the whole message, which follows, is not told again."""

from typing import Final

__all__ = ["Streamed"]

KEPT: Final = 8
"""Messages whose streamed text is remembered. The whole follows each block at once, so one would nearly do."""


class _Stretch:
    """One block of text or thought as far as it was told."""

    __slots__ = ("index", "kind", "pieces")

    def __init__(self, kind: str, index: int) -> None:
        self.kind = kind
        self.index = index
        self.pieces: list[str] = []


class Streamed:
    """Of one conversation: the main one, or a sub-agent's."""

    def __init__(self) -> None:
        self.message_id: str | None = None
        self._stretches: dict[str | None, list[_Stretch]] = {}
        self._open: dict[int, _Stretch] = {}

    def start(self, message_id: str | None) -> None:
        """A message begins."""
        self.message_id = message_id
        self._open.clear()
        self._stretches.pop(message_id, None)
        self._stretches[message_id] = []
        while len(self._stretches) > KEPT:
            del self._stretches[next(iter(self._stretches))]

    def begin(self, index: int) -> None:
        """A block begins: what follows under this number is not more of an earlier one."""
        self._open.pop(index, None)

    def add(self, index: int, kind: str, text: str) -> None:
        """More of a block was told."""
        stretch = self._open.get(index)
        if stretch is None or stretch.kind != kind:
            stretch = self._open[index] = _Stretch(kind, index)
            self._stretches.setdefault(self.message_id, []).append(stretch)
        stretch.pieces.append(text)

    def rest(self, message_id: str | None, kind: str, text: str) -> str:
        """What of this whole block has not been told yet."""
        stretches = self._stretches.get(message_id) or self._stretches.get(None) or []
        stretch = next((each for each in stretches if each.kind == kind), None)
        if stretch is None:
            return text
        told = "".join(stretch.pieces)
        stretches.remove(stretch)
        if self._open.get(stretch.index) is stretch:
            del self._open[stretch.index]
        if text.startswith(told):
            return text[len(told) :]
        if (
            told.startswith(text) and text
        ):  # an old stream does not say where a block ends: the rest belongs to the next one
            stretch.pieces = [told[len(text) :]]
            stretches.insert(0, stretch)
        return ""
