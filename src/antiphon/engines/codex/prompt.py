"""A prompt as Codex takes it (text and context as text, pictures as data or as a file), and as it waits for its end."""

import asyncio
import mimetypes
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from antiphon.engines.cli_driver import PendingPrompt
from antiphon.engines.content import (
    MEDIA_LIMIT,
    ContextPiece,
    DocumentPiece,
    PicturePiece,
    Piece,
    TextPiece,
    link_target,
    pieces_of,
    reader_of,
)
from antiphon.engines.events import TurnEnd
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.codex.server import CodexServer
    from antiphon.protocol.base import JsonObject

__all__ = ["PICTURES", "CodexPrompt", "input_of", "text_input"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that the model is shown."""


async def input_of(turn: "AgentTurn") -> "list[JsonObject]":
    """Return the input of the turn for a prompt."""
    pieces = await pieces_of(turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES)
    files = [{"type": "localImage", "path": path} for path in _linked(turn)]
    return [*(_input(piece) for piece in pieces), *files]


def text_input(text: str) -> "JsonObject":
    """Text as an input of a turn."""
    return {"type": "text", "text": text, "text_elements": []}


def _input(piece: Piece) -> "JsonObject":
    match piece:
        case TextPiece(text=text) | ContextPiece(text=text):
            return text_input(text)
        case PicturePiece(mime_type=mime, data=data) | DocumentPiece(mime_type=mime, data=data):
            return {"type": "image", "url": f"data:{mime};base64,{data}"}


def _linked(turn: "AgentTurn") -> Iterator[str]:
    """The pictures that the prompt links to, as far as they are files here. The words mention them where they stood."""
    for block in turn.prompt:
        if not isinstance(block, v1.ResourceLink):
            continue
        place = link_target(block.uri, turn.session.cwd)
        if place is not None and _is_picture(block.mime_type, place.path):
            yield place.path


def _is_picture(named: str | None, path: str) -> bool:
    if (named or mimetypes.guess_type(path)[0]) not in PICTURES:
        return False
    try:
        return os.path.isfile(path) and os.stat(path).st_size <= MEDIA_LIMIT
    except OSError:
        return False


class CodexPrompt(PendingPrompt):
    """A prompt that waits for the end of its turn. The server may report the end before we know which turn is ours."""

    def __init__(self, server: "CodexServer") -> None:
        super().__init__()
        self.server = server
        self._id: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._ends: dict[str, TurnEnd] = {}
        self._started: str | None = None
        self._next = False
        self.beginning: asyncio.Task[None] | None = None
        """Starts the turn. A task of its own: a turn that is cancelled while it begins must still be known, or it could not be interrupted."""

    async def id(self) -> str | None:
        """Return the id of the turn once it is known; None if there is no turn."""
        return await asyncio.shield(self._id)

    def is_turn(self, id: str | None) -> None:
        """Set the turn of this prompt. None: there is no turn, and all is done."""
        if not self._id.done():
            self._id.set_result(id)
        if id is None:
            self.finish(TurnEnd())
        elif id in self._ends:
            self.finish(self._ends[id])

    def is_next_turn(self) -> None:
        """Take the turn that starts next: the server does not send its id."""
        self._next = True
        if self._started is not None:
            self.is_turn(self._started)

    def started(self, id: str) -> None:
        """A turn of the thread begins."""
        self._started = id
        if self._next and not self._id.done():
            self.is_turn(id)

    def ended(self, ids: "Sequence[str]", end: "TurnEnd") -> None:
        """Turns of the thread have ended."""
        self._ends.update(dict.fromkeys(ids, end))
        if self._id.done() and self._id.result() in ids:
            self.finish(end)

    def failed(self, id: str, error: Exception) -> None:
        """A turn of the thread has ended, in a way that could not be read."""
        if not self._id.done() or self._id.result() == id:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        if not self._id.done():
            self._id.set_result(None)
        super().fail(error)
