"""A history told again: the events as the updates that a client gets. Pieces of one message come as one piece.

Most events are pieces of text, so they are looked at as little as possible: an update that is not merged leaves as the bytes that it was kept
as.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from antiphon.duet.events import Event, Prompted, Shown
from antiphon.protocol import v1

__all__ = ["told_again"]


class _Content(msgspec.Struct):
    type: str
    text: str = ""
    annotations: Any = None


class _Piece(msgspec.Struct):
    """An update, as far as it may be a piece of text."""

    kind: str = msgspec.field(name="sessionUpdate")
    content: _Content | None | msgspec.UnsetType = None
    message_id: str | None = msgspec.field(name="messageId", default=None)
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_MERGED: Final[dict[str, type[v1.AgentMessageChunk | v1.AgentThoughtChunk | v1.UserMessageChunk]]] = {
    "agent_message_chunk": v1.AgentMessageChunk,
    "agent_thought_chunk": v1.AgentThoughtChunk,
    "user_message_chunk": v1.UserMessageChunk,
}
_decode: Final = msgspec.json.Decoder(_Piece).decode


def told_again(events: Iterable[Event]) -> Iterator[v1.Update]:
    """The updates of a history, in order."""
    run: list[_Piece] = []
    for event in events:
        match event:
            case Shown():
                piece = _text_of(event.update)
                if piece is not None and (not run or _same(run[0], piece)):
                    run.append(piece)
                    continue
                yield from _message(run)
                run = [] if piece is None else [piece]
                if piece is None:
                    yield cast("v1.Update", event.update)  # bytes leave as they are
            case Prompted():
                yield from _message(run)
                run = []
                for block in event.prompt:
                    yield v1.UserMessageChunk(block, event.message_id)
            case _:
                continue
    yield from _message(run)


def _text_of(update: Raw) -> _Piece | None:
    """A piece of plain text; None for anything else."""
    if b"_chunk" not in bytes(memoryview(update)[:60]):
        return None
    try:
        piece = _decode(update)
    except msgspec.DecodeError:
        return None
    content = piece.content
    if piece.kind in _MERGED and isinstance(content, _Content) and content.type == "text" and not content.annotations:
        return piece
    return None


def _same(first: _Piece, next: _Piece) -> bool:
    return first.kind == next.kind and first.message_id == next.message_id and first.meta == next.meta


def _message(run: list[_Piece]) -> Iterator[v1.Update]:
    if run:
        first = run[0]
        text = "".join(piece.content.text for piece in run if isinstance(piece.content, _Content))
        yield _MERGED[first.kind](v1.TextBlock(text), first.message_id, meta=first.meta)
