"""A prompt as Codex takes it: words and context as text, pictures as data."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.content import Context, Document, Picture, Piece, Text, pieces_of, reader_of

if TYPE_CHECKING:
    from antiphon.agent.turn import Turn

__all__ = ["PICTURES", "input_of", "text_input"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the model sees."""


async def input_of(turn: "Turn") -> list[dict[str, Any]]:
    """The input of the turn that a prompt becomes."""
    pieces = await pieces_of(turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES)
    return [_input(piece) for piece in pieces]


def text_input(text: str) -> dict[str, Any]:
    """Words."""
    return {"type": "text", "text": text, "text_elements": []}


def _input(piece: Piece) -> dict[str, Any]:
    match piece:
        case Text(text=text) | Context(text=text):
            return text_input(text)
        case Picture(mime_type=mime, data=data) | Document(mime_type=mime, data=data):
            return {"type": "image", "url": f"data:{mime};base64,{data}"}
