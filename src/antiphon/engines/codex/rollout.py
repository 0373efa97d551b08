"""The file in which Codex keeps a thread: the words of the model and the items that were added to it since we last looked."""

import os
from typing import Final

import msgspec

from antiphon.engines.codex.translate.refused import Said
from antiphon.protocol.base import BAD_INPUT

__all__ = ["LARGEST", "Rollout"]

LARGEST: Final = 16 * 1024 * 1024
"""Bytes that are read at once. More is not looked through."""


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    payload: Said = Said()


class Rollout:
    """Of one thread. It blocks."""

    def __init__(self, path: str, *, whole: bool = False) -> None:
        self._path = path
        self._at = 0 if whole else self._size()

    def fresh(self) -> list[Said]:
        """What came since, in its order."""
        size = self._size()
        if not 0 < size - self._at <= LARGEST:
            self._at = size
            return []
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                *lines, half = file.read(size - self._at).split(b"\n")
        except OSError:
            return []
        self._at = size - len(half)  # the rest of a line that is being written comes with the next look
        return [said for said in map(_read, lines) if said is not None]

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:  # nothing was said yet
            return 0


def _read(line: bytes) -> Said | None:
    try:
        found = msgspec.json.decode(line, type=_Line)
    except BAD_INPUT:
        return None
    said = found.payload
    return said if found.type == "response_item" or said.type == "item_completed" else None
