"""A prompt as Codex takes it: words and context as text, pictures as data or as the file that they are in."""

import asyncio
import mimetypes
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from antiphon.aio import ignore_result
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
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.events import TurnEnd
    from antiphon.errors import AcpError

__all__ = ["PICTURES", "CodexPrompt", "input_of", "text_input"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the model sees."""


async def input_of(turn: "AgentTurn") -> list[dict[str, Any]]:
    """The input of the turn that a prompt becomes."""
    pieces = await pieces_of(turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES)
    files = [{"type": "localImage", "path": path} for path in _linked(turn)]
    return [*(_input(piece) for piece in pieces), *files]


def text_input(text: str) -> dict[str, Any]:
    """Words."""
    return {"type": "text", "text": text, "text_elements": []}


def _input(piece: Piece) -> dict[str, Any]:
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


# --- A prompt that waits for the end of its turn. The server may tell the end before we know which turn is ours


class CodexPrompt:
    """For one turn."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.end: asyncio.Future[TurnEnd] = loop.create_future()
        self.end.add_done_callback(ignore_result)  # a prompt that was called off asks for no error
        self._id: asyncio.Future[str | None] = loop.create_future()
        self._ends: dict[str, TurnEnd] = {}
        self._started: str | None = None
        self._next = False

    async def id(self) -> str | None:
        """The turn's id, once it is known."""
        return await asyncio.shield(self._id)

    def is_turn(self, id: str | None) -> None:
        """This is the turn. None: there is none, and all is done."""
        if not self._id.done():
            self._id.set_result(id)
        if id in self._ends:
            self._finish(self._ends[id])
        elif id is None:
            from antiphon.engines.events import TurnEnd

            self._finish(TurnEnd())

    def is_next_turn(self) -> None:
        """It is the turn that starts now: the server does not say which."""
        self._next = True
        if self._started is not None:
            self.is_turn(self._started)

    def started(self, id: str) -> None:
        """A turn of the thread begins."""
        self._started = id
        if self._next and not self._id.done():
            self.is_turn(id)

    def ended(self, ids: "Sequence[str]", end: "TurnEnd") -> None:
        """A turn of the thread is over."""
        self._ends.update(dict.fromkeys(ids, end))
        if self._id.done() and self._id.result() in ids:
            self._finish(end)

    def failed(self, id: str, error: "AcpError") -> None:
        """A turn of the thread is over, in a way that nobody understands."""
        if not self._id.done() or self._id.result() == id:
            self.fail(error)

    def fail(self, error: "AcpError") -> None:
        """There will be no end."""
        if not self._id.done():
            self._id.set_result(None)
        if not self.end.done():
            self.end.set_exception(error)

    def _finish(self, end: "TurnEnd") -> None:
        if not self.end.done():
            self.end.set_result(end)
