"""A prompt as the CLI takes it.

The CLI looks for a slash command and for `@path` in one place only: the last block, if that is text. So the words come last, and context
before them, where an `@` in somebody's file is just an `@`; and the end of a longer prompt that happens to look like a command is none.
"""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.content import Context, Document, Picture, Piece, Text, begins_with_command, pieces_of, reader_of

if TYPE_CHECKING:
    from antiphon.agent.turn import Turn

__all__ = ["DOCUMENTS", "PICTURES", "message_of"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the model sees. The CLI itself makes smaller what has too many pixels or bytes."""

DOCUMENTS: Final = frozenset({"application/pdf"})


async def message_of(turn: "Turn") -> "str | list[dict[str, Any]]":
    """The content of the message that a prompt becomes."""
    pieces = await pieces_of(
        turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES, documents=DOCUMENTS
    )
    is_command = begins_with_command(turn.prompt)
    if is_command:
        pieces = _words_last(pieces)
    last = pieces[-1] if pieces else Text("")
    if isinstance(last, Text):
        if not is_command and last.text.startswith("/") and len(pieces) > 1:
            pieces[-1] = Text(f"\n{last.text}")
        if len(pieces) <= 1:
            return last.text
    return [_block(piece) for piece in pieces]


def _words_last(pieces: list[Piece]) -> list[Piece]:
    words = [piece.text for piece in pieces if isinstance(piece, Text)]
    return [*(piece for piece in pieces if not isinstance(piece, Text)), Text("\n\n".join(words))]


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case Text(text=text) | Context(text=text):
            return {"type": "text", "text": text}
        case Picture(mime_type=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case Document(mime_type=mime, data=data):
            return {"type": "document", "source": {"type": "base64", "media_type": mime, "data": data}}
