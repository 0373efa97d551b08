"""A prompt as Codex takes it: words and context as text, pictures as data or as the file that they are in."""

import mimetypes
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.content import MEDIA_LIMIT, Context, Document, Picture, Piece, Text, pieces_of, reader_of
from antiphon.engines.links import place_of
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.turn import Turn

__all__ = ["PICTURES", "input_of", "text_input"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the model sees."""


async def input_of(turn: "Turn") -> list[dict[str, Any]]:
    """The input of the turn that a prompt becomes."""
    pieces = await pieces_of(turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES)
    files = [{"type": "localImage", "path": path} for path in _linked(turn)]
    return [*(_input(piece) for piece in pieces), *files]


def text_input(text: str) -> dict[str, Any]:
    """Words."""
    return {"type": "text", "text": text, "text_elements": []}


def _input(piece: Piece) -> dict[str, Any]:
    match piece:
        case Text(text=text) | Context(text=text):
            return text_input(text)
        case Picture(mime_type=mime, data=data) | Document(mime_type=mime, data=data):
            return {"type": "image", "url": f"data:{mime};base64,{data}"}


def _linked(turn: "Turn") -> Iterator[str]:
    """The pictures that the prompt links to, as far as they are files here. The words mention them where they stood."""
    for block in turn.prompt:
        if not isinstance(block, v1.ResourceLink):
            continue
        place = place_of(block.uri, turn.session.cwd)
        if place is not None and _is_picture(block.mime_type, place.path):
            yield place.path


def _is_picture(named: str | None, path: str) -> bool:
    if (named or mimetypes.guess_type(path)[0]) not in PICTURES:
        return False
    try:
        return os.path.isfile(path) and os.stat(path).st_size <= MEDIA_LIMIT
    except OSError:
        return False
