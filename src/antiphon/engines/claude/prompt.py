"""A prompt as Claude Code takes it, and as it waits for its end.

The CLI looks for a slash command and for `@path` in one place only: the last block, if that is text. So the words come last, and context
before them, where an `@` in a file is just an `@`; and the end of a longer prompt that happens to look like a command is not one.
"""

from typing import TYPE_CHECKING, Final

from antiphon.engines.cli_driver import PendingPrompt
from antiphon.engines.content import (
    ContextPiece,
    DocumentPiece,
    PicturePiece,
    Piece,
    TextPiece,
    begins_with_command,
    pieces_of,
    reader_of,
)
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.claude.process import ClaudeProcess
    from antiphon.engines.events import TurnEnd
    from antiphon.protocol.base import JsonObject

__all__ = ["DOCUMENTS", "PICTURES", "ClaudePrompt", "message_of"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that the model is shown. The CLI itself shrinks what has too many pixels or bytes."""

DOCUMENTS: Final = frozenset({"application/pdf"})


async def message_of(turn: "AgentTurn") -> "str | list[JsonObject]":
    """Return the content of the message for a prompt."""
    pieces = await pieces_of(
        turn.prompt, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES, documents=DOCUMENTS
    )
    is_command = begins_with_command(turn.prompt)
    if is_command:
        pieces = _words_last(pieces)
    last = pieces[-1] if pieces else TextPiece("")
    if isinstance(last, TextPiece):
        if not is_command and last.text.startswith("/") and len(pieces) > 1:
            pieces[-1] = TextPiece(f"\n{last.text}")
        if len(pieces) <= 1:
            return last.text
    return [_block(piece) for piece in pieces]


def _words_last(pieces: list[Piece]) -> list[Piece]:
    words = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    return [*(piece for piece in pieces if not isinstance(piece, TextPiece)), TextPiece("\n\n".join(words))]


def _block(piece: Piece) -> "JsonObject":
    match piece:
        case TextPiece(text=text) | ContextPiece(text=text):
            return {"type": "text", "text": text}
        case PicturePiece(mime_type=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case DocumentPiece(mime_type=mime, data=data):
            return {"type": "document", "source": {"type": "base64", "media_type": mime, "data": data}}


class ClaudePrompt(PendingPrompt):
    """A prompt with what the user added to it meanwhile: all of it has to be answered, by the process that it was sent to."""

    def __init__(self, process: "ClaudeProcess", id: str) -> None:
        super().__init__()
        self.process = process
        self.id = id
        self._ids = {id}
        self._worst: TurnEnd | None = None

    def add(self, id: str) -> None:
        """The user adds a message, which has this id."""
        self._ids.add(id)

    def owns(self, id: str) -> bool:
        """Whether the message with this id belongs to the prompt and is not answered yet."""
        return id in self._ids

    def answered(self, ids: "Sequence[str]", end: "TurnEnd | None") -> None:
        """The messages with these ids have been answered; without ids, all of them: an older CLI sends none.

        Of several ends the first one counts that is not a plain one, so that no trouble is hidden by what came after it.
        """
        self._ids -= set(ids or self._ids)
        if self._worst is None or _is_plain(self._worst):
            self._worst = end or self._worst
        if not self._ids:
            self.finish(self._worst)


def _is_plain(end: "TurnEnd") -> bool:
    return end.error is None and end.stop_reason in (None, v1.StopReason.END_TURN)
