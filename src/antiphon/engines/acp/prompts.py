"""A prompt as this agent takes it: what it did not say that it takes becomes words in the place where it stood."""

from typing import TYPE_CHECKING, Final

from antiphon.engines.content import PicturePiece, Piece, begins_with_command, pieces_of, reader_of
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.turn import AgentTurn

__all__ = ["blocks_for"]

PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Kinds of picture that are shown as such to an agent that takes pictures, also where they came as an attached file."""


async def blocks_for(turn: "AgentTurn", takes: v1.PromptCapabilities) -> list[v1.ContentBlock]:
    """The prompt, block by block. A slash command stays at its beginning."""
    blocks = list(turn.prompt)
    if all(_taken(block, takes) for block in blocks):
        return blocks
    if begins_with_command(blocks):
        first = next(each for each in blocks if isinstance(each, v1.TextBlock) and each.text.strip())
        blocks = [first, *(each for each in blocks if each is not first)]
    found: list[v1.ContentBlock] = []
    for block in blocks:
        found += [block] if _taken(block, takes) else await _in_words(turn, block, takes)
    return found


def _taken(block: v1.ContentBlock, takes: v1.PromptCapabilities) -> bool:
    match block:
        case v1.ImageBlock():
            return takes.image
        case v1.AudioBlock():
            return takes.audio
        case v1.EmbeddedResource():
            return takes.embedded_context
        case _:
            return True


async def _in_words(turn: "AgentTurn", block: v1.ContentBlock, takes: v1.PromptCapabilities) -> list[v1.ContentBlock]:
    pictures = PICTURES if takes.image else ()
    pieces = await pieces_of([block], read=reader_of(turn), cwd=turn.session.cwd, pictures=pictures)
    return [_block(piece) for piece in reversed(pieces)]  # the mention first, then what it mentions


def _block(piece: Piece) -> v1.ContentBlock:
    if isinstance(piece, PicturePiece):
        return v1.ImageBlock(data=piece.data, mime_type=piece.mime_type)
    return v1.TextBlock(getattr(piece, "text", ""))
