"""The file in which Codex keeps a thread: the words of the model that were added to it since we last looked."""

import os
from typing import Final

import msgspec

from antiphon.engines.codex.translate.refused import Said
from antiphon.protocol.base import BAD_INPUT

__all__ = ["LARGEST", "Rollout"]

LARGEST: Final = 16 * 1024 * 1024
"""Bytes that are read at once. A turn that wrote more is not looked through."""


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    payload: Said = Said()


class Rollout:
    """Of one thread. It blocks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = self._size()

    def fresh(self) -> list[Said]:
        """The items of the Responses API that came since."""
        start, self._at = self._at, self._size()
        if not 0 < self._at - start <= LARGEST:
            return []
        try:
            with open(self._path, "rb") as file:
                file.seek(start)
                lines = file.read(self._at - start).splitlines()
        except OSError:
            return []
        return [line.payload for line in map(_read, lines) if line is not None and line.type == "response_item"]

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:  # nothing was said yet
            return 0


def _read(line: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(line, type=_Line)
    except BAD_INPUT:
        return None
