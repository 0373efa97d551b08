"""A prompt as the CLI takes it.

The CLI looks for a slash command and for `@path` in one place only: the last block, if that is text. So the words come last, and context
before them, where an `@` in somebody's file is just an `@`; and the end of a longer prompt that happens to look like a command is none.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from antiphon.aio import ignore_result
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
    from antiphon.errors import AcpError

__all__ = ["DOCUMENTS", "PICTURES", "ClaudePrompt", "message_of"]

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the model sees. The CLI itself makes smaller what has too many pixels or bytes."""

DOCUMENTS: Final = frozenset({"application/pdf"})


async def message_of(turn: "AgentTurn") -> "str | list[dict[str, Any]]":
    """The content of the message that a prompt becomes."""
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


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case TextPiece(text=text) | ContextPiece(text=text):
            return {"type": "text", "text": text}
        case PicturePiece(mime_type=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case DocumentPiece(mime_type=mime, data=data):
            return {"type": "document", "source": {"type": "base64", "media_type": mime, "data": data}}


# --- A prompt that waits for its end, with what the user added to it meanwhile: all of it has to be answered, by the process it was said to


class ClaudePrompt:
    """For one prompt. `end` is None if it never began, because it was called off."""

    def __init__(self, process: "ClaudeProcess", id: str) -> None:
        self.process = process
        self.id = id
        self._ids = {id}
        self._worst: TurnEnd | None = None
        self.end: asyncio.Future[TurnEnd | None] = asyncio.get_running_loop().create_future()
        self.end.add_done_callback(
            ignore_result
        )  # a turn that is cancelled waits for its end, and not for how it ended

    def add(self, id: str) -> None:
        """The user adds something."""
        self._ids.add(id)

    def owns(self, id: str) -> bool:
        """Whether it was said here."""
        return id in self._ids

    def answered(self, ids: "Sequence[str]", end: "TurnEnd | None") -> None:
        """These have been answered, or, without ids, all of them: an older CLI does not tell.

        Of several ends the first one counts that is not a plain one, so that no trouble is hidden by what came after it.
        """
        self._ids -= set(ids or self._ids)
        if self._worst is None or _is_plain(self._worst):
            self._worst = end or self._worst
        if not self._ids and not self.end.done():
            self.end.set_result(self._worst)

    def fail(self, error: "AcpError") -> None:
        """There will be no end."""
        if not self.end.done():
            self.end.set_exception(error)


def _is_plain(end: "TurnEnd") -> bool:
    return end.error is None and end.stop_reason in (None, v1.StopReason.END_TURN)
