"""With what a conversation was last held: its model, its permission mode, its effort."""

from pathlib import Path
from typing import Final

import msgspec

from antiphon.protocol.base import BAD_INPUT

__all__ = ["LastSettings", "read_settings"]

WINDOWS: Final = (64 * 1024, 1024 * 1024, 16 * 1024 * 1024)
"""Bytes of the end of a file that are looked through, more where less does not tell."""


class LastSettings(msgspec.Struct, frozen=True):
    """What the file tells; `None` for what it does not."""

    model: str | None = None
    mode: str | None = None
    effort: str | None = None


class _Message(msgspec.Struct, gc=False):
    model: str | None = None


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    is_sidechain: bool | None = None
    permission_mode: str | None = None
    effort: str | None = None
    message: _Message | None = None


_line: Final = msgspec.json.Decoder(_Line)


def read_settings(path: Path) -> LastSettings:
    """What the last lines of a file say."""
    found = LastSettings()
    for window in WINDOWS:
        data, whole = _end(path, window)
        found = _look(data)
        if whole or (found.model and found.mode):
            break
    return found


def _end(path: Path, window: int) -> tuple[bytes, bool]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - window))
        return file.read(window), size <= window


def _look(data: bytes) -> LastSettings:
    model = mode = effort = None
    for text in reversed(data.split(b"\n")):
        try:
            line = _line.decode(text)
        except BAD_INPUT:
            continue
        if line.is_sidechain:
            continue
        mode = mode or line.permission_mode
        if line.type == "assistant" and line.message and not (line.message.model or "<").startswith("<"):
            model, effort = model or line.message.model, effort or line.effort
        if model and mode:
            break
    return LastSettings(model, mode, effort)
