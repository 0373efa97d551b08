"""Files as the client sees them, unsaved edits included."""

from antiphon.protocol.base import Exact, Model, Uint
from antiphon.protocol.v1.ids import SessionId

__all__ = ["ReadTextFile", "ReadTextFileResult", "WriteTextFile", "WriteTextFileResult"]


class ReadTextFile(Model, frozen=True):
    """Ask for a text file, or for `limit` lines from `line` on, counted from 1."""

    session_id: SessionId
    path: str
    line: Exact[Uint | None] = None
    limit: Exact[Uint | None] = None


class ReadTextFileResult(Model, frozen=True):
    """The text."""

    content: str


class WriteTextFile(Model, frozen=True):
    """Write a whole text file."""

    session_id: SessionId
    path: str
    content: str


class WriteTextFileResult(Model, frozen=True):
    """Written."""
